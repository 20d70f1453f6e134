//! The dialogue behind `tl repl`: lines in, what is to be said out. It prints and reads nothing.
//!
//! Enter at [`Console::line`]. A statement that is refused is not kept; a query answers at once;
//! a line that cannot be the end of a statement waits for the next one, an empty line ends it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::ast::{Brackets, ExprKind, Program as Tree, RightSide, Sign, Statement, StatementKind};
use crate::draw::{Severity, Sheet};
use crate::error::{Code, Refusal};
use crate::lex::{self, TokenKind};
use crate::notebook::{Notebook, Refusals};
use crate::parse;

/// What a line leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// An answer, for standard output.
    Say(String),
    /// A refusal or a warning, for standard error.
    Complain(String),
}

/// What comes after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A new statement.
    Statement,
    /// The rest of this statement.
    Rest,
    /// Nothing.
    Quit,
}

/// What `:help` says.
const HELP: &str = "\
A statement is kept, a query answers:   Edge(Ann, Bob)   Edge(Ann, x)?
  :list            the statements
  :drop NAME       forget the statements that define NAME, or the directives @NAME
  :load FILE       the statements of a file
  :check           all warnings
  :explain [Q?]    what the program is, and how it is evaluated (for a query)
  :profile Q?      answer a query, and say where the time went
  :grad GOAL [A B] the value and the gradients of a scalar (by A and B)
  :help            this
  :quit            the end
An open bracket or an operator at the end of a line continues it; an empty line ends it. Ctrl-C ends the query at hand
and nothing else.";

/// The commands, for who completes them.
const COMMANDS: [&str; 9] =
    [":check", ":drop", ":explain", ":grad", ":help", ":list", ":load", ":profile", ":quit"];

/// A dialogue.
#[derive(Debug)]
pub struct Console {
    notebook: Notebook,
    statements: Vec<String>,
    /// Lines of a statement that is not complete.
    pending: String,
}

impl Console {
    /// A dialogue that begins with what the notebook gives, but without its text.
    pub fn new(mut notebook: Notebook) -> Console {
        notebook.set_text("");
        Console { notebook, statements: Vec::new(), pending: String::new() }
    }

    /// Takes a line.
    pub fn line(&mut self, line: &str) -> (Vec<Reaction>, Next) {
        if self.pending.is_empty() && line.trim_start().starts_with(':') {
            return self.command(line.trim());
        }
        let first = self.pending.is_empty();
        self.pending.push_str(line);
        self.pending.push('\n');
        if goes_on(&self.pending) && (first || !line.trim().is_empty()) {
            return (Vec::new(), Next::Rest);
        }
        let text = std::mem::take(&mut self.pending);
        (self.statements_of(&text, "line"), Next::Statement)
    }

    /// Loads a file, as `:load` does.
    pub fn load(&mut self, path: &Path) -> Vec<Reaction> {
        match std::fs::read(path) {
            Ok(bytes) => {
                if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
                    self.notebook.set_folder(folder);
                }
                self.statements_of(&String::from_utf8_lossy(&bytes), &path.display().to_string())
            }
            Err(error) => vec![complaint(format!("cannot read {}: {error}", path.display()))],
        }
    }

    /// The names of the program and the commands that begin like this.
    pub fn completions(&self, start: &str) -> Vec<String> {
        let mut names = BTreeSet::new();
        for statement in &self.statements {
            for token in lex::lex(statement).tokens {
                if matches!(token.kind, TokenKind::Capital | TokenKind::Small)
                    && let Some(name) = statement.get(token.span.start..token.span.end)
                {
                    names.insert(name.to_owned());
                }
            }
        }
        names.extend(crate::function::BUILT_IN.iter().map(|(name, ..)| (*name).to_owned()));
        names.extend(crate::function::OTHERS.iter().map(|name| (*name).to_owned()));
        names.extend(COMMANDS.map(str::to_owned));
        names.into_iter().filter(|name| name.starts_with(start) && name != start).collect()
    }

    fn command(&mut self, line: &str) -> (Vec<Reaction>, Next) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let reactions = match (word, rest.is_empty()) {
            (":quit" | ":q", _) => return (Vec::new(), Next::Quit),
            (":help" | ":h", _) => vec![Reaction::Say(HELP.to_owned())],
            (":list", _) => self.statements.iter().cloned().map(Reaction::Say).collect(),
            (":drop", false) => self.drop_name(rest),
            (":load", false) => self.load(Path::new(rest.trim_matches('"'))),
            (":drop", true) => vec![complaint("`:drop` needs a name".to_owned())],
            (":load", true) => vec![complaint("`:load` needs a file".to_owned())],
            (":check", _) => self.check(),
            (":explain", _) => vec![self.explain(rest)],
            (":profile", false) => self.profile(rest),
            (":profile", true) => vec![complaint("`:profile` needs a query".to_owned())],
            (":grad", false) => self.gradients(rest),
            (":grad", true) => vec![complaint("`:grad` needs a scalar".to_owned())],
            _ => vec![complaint(format!("there is no `{word}`: `:help` says what there is"))],
        };
        (reactions, Next::Statement)
    }

    /// Forgets the lines of a statement that is not complete; false if there are none.
    pub fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.pending).is_empty()
    }

    fn drop_name(&mut self, name: &str) -> Vec<Reaction> {
        let kept: Vec<String> =
            self.statements.iter().filter(|statement| !defines(statement, name)).cloned().collect();
        let learned = self.notebook.forget(name);
        if kept.len() == self.statements.len() && !learned {
            return vec![complaint(format!("no statement defines `{name}`"))];
        }
        let was_whole = self.notebook.check().is_ok();
        self.statements = kept;
        self.notebook.set_text(self.statements.join("\n"));
        // What is left may be no program: statements may follow that mend it.
        match self.notebook.check() {
            Err(refused) if was_whole => vec![refusal(&refused)],
            _ => Vec::new(),
        }
    }

    /// Takes the statements of a text in order, those between two queries together.
    fn statements_of(&mut self, text: &str, name: &str) -> Vec<Reaction> {
        let (tree, errors) = parse::parse(text);
        if !errors.is_empty() {
            return vec![drawn(name, text, &errors, Severity::Error)];
        }
        let mut reactions = Vec::new();
        for group in groups(&tree, text) {
            match group {
                Group::Kept(statements) => match self.keep(&statements) {
                    Ok(mut warnings) => reactions.append(&mut warnings),
                    Err(refused) => {
                        reactions.push(complaint(refused));
                        break;
                    }
                },
                Group::Query(query) => match self.notebook.ask(&query) {
                    Ok(reply) => {
                        reactions.push(Reaction::Say(reply.to_string()));
                        reactions.extend(self.of_the_run());
                    }
                    Err(refused) => {
                        reactions.push(refusal(&refused));
                        if refused.is_interrupted() {
                            // Whoever interrupts one query of a file wants none of those behind it.
                            break;
                        }
                    }
                },
                Group::Write(write) => reactions.extend(self.write(&write).err().map(complaint)),
            }
        }
        reactions
    }

    /// All warnings of the program.
    fn check(&mut self) -> Vec<Reaction> {
        match self.notebook.check() {
            Ok(warnings) if warnings.is_empty() => vec![Reaction::Say("no warning".to_owned())],
            Ok(warnings) => vec![drawn("program", self.notebook.text(), &warnings, Severity::Warning)],
            Err(refused) => vec![refusal(&refused)],
        }
    }

    fn explain(&mut self, query: &str) -> Reaction {
        match self.notebook.explain((!query.is_empty()).then_some(query)) {
            Ok(text) => Reaction::Say(text.trim_end().to_owned()),
            Err(refused) => refusal(&refused),
        }
    }

    fn profile(&mut self, query: &str) -> Vec<Reaction> {
        match self.notebook.profile_text(query) {
            Ok((reply, table)) => {
                vec![Reaction::Say(reply.to_string()), Reaction::Say(table.trim_end().to_owned())]
            }
            Err(refused) => vec![refusal(&refused)],
        }
    }

    /// The value and the gradients of a goal, which may hold blanks only inside brackets.
    fn gradients(&mut self, rest: &str) -> Vec<Reaction> {
        let mut words = rest.split_whitespace();
        let goal = words.next().unwrap_or("");
        let by: Vec<&str> = words.flat_map(|word| word.split(',')).filter(|word| !word.is_empty()).collect();
        match self.notebook.gradients(goal, &by) {
            Ok(found) => {
                let value = Reaction::Say(format!("{}\n  {:?}", goal.trim_end_matches('?'), found.value));
                let by = found.by.iter().map(|(_, reply)| Reaction::Say(reply.to_string()));
                std::iter::once(value).chain(by).collect()
            }
            Err(refused) => vec![refusal(&refused)],
        }
    }

    /// The warnings that the last query gave rise to; those of the statements were given when they came.
    fn of_the_run(&self) -> Vec<Reaction> {
        let statements = self.notebook.text().len();
        let new = |warning: &&Refusal| {
            let of_values = matches!(warning.code, Code::NonFinite | Code::ImplicitParameter);
            of_values || warning.span.start >= statements
        };
        let said = |warning: &Refusal| {
            let help = warning.help.as_ref().map(|help| format!("\n   = help: {help}"));
            let (code, message) = (warning.code.name(), &warning.message);
            complaint(format!("warning[{code}]: {message}{}", help.unwrap_or_default()))
        };
        self.notebook.warnings().iter().filter(new).map(said).collect()
    }

    /// Adds statements if the program stays one.
    fn keep(&mut self, statements: &[String]) -> Result<Vec<Reaction>, String> {
        let before = self.notebook.text().len();
        let mut all = self.statements.clone();
        all.extend(statements.iter().cloned());
        let old = self.notebook.text().to_owned();
        self.notebook.set_text(all.join("\n"));
        let twice = statements.iter().filter(|own| self.statements.contains(own) && adds(own));
        let twice: Vec<Reaction> = twice.map(|own| complaint(again(own))).collect();
        match self.notebook.check() {
            Ok(warnings) => {
                self.statements = all;
                let new: Vec<Refusal> =
                    warnings.into_iter().filter(|warning| warning.span.start >= before).collect();
                let text = self.notebook.text();
                let shown = (!new.is_empty()).then(|| drawn("program", text, &new, Severity::Warning));
                Ok(shown.into_iter().chain(twice).collect())
            }
            Err(refused) => {
                self.notebook.set_text(old);
                // What was no program before may be mended statement by statement, and sizes may come later.
                let known = self.notebook.check().err().map(|refused| refused.reports).unwrap_or_default();
                let old = |report: &Refusal| {
                    let alike =
                        |other: &Refusal| (other.code, &other.message) == (report.code, &report.message);
                    report.code == Code::UnknownSize || known.iter().any(alike)
                };
                if !refused.reports.iter().all(old) {
                    return Err(refused.to_string());
                }
                self.notebook.set_text(all.join("\n"));
                self.statements = all;
                Ok(vec![complaint(format!("{refused}\nit is kept: what is missing may follow"))])
            }
        }
    }

    /// Carries out one write; it is not kept.
    fn write(&mut self, write: &str) -> Result<(), String> {
        let old = self.notebook.text().to_owned();
        let mut all = self.statements.clone();
        all.push(write.to_owned());
        self.notebook.set_text(all.join("\n"));
        let done = self.notebook.run().map(|_| ()).map_err(|refused: Refusals| shown(&refused));
        self.notebook.set_text(old);
        done
    }
}

/// What is said of a refusal.
fn shown(refused: &Refusals) -> String {
    if refused.is_interrupted() { "interrupted".to_owned() } else { refused.to_string() }
}

fn refusal(refused: &Refusals) -> Reaction {
    complaint(shown(refused))
}

fn complaint(text: String) -> Reaction {
    Reaction::Complain(text)
}

fn drawn(name: &str, text: &str, reports: &[Refusal], severity: Severity) -> Reaction {
    let sheet = Sheet::new(name, text);
    let drawn: Vec<String> = reports.iter().map(|report| sheet.draw(report, severity)).collect();
    complaint(drawn.join("").trim_end().to_owned())
}

/// Statements that are taken together.
enum Group {
    Kept(Vec<String>),
    Query(String),
    Write(String),
}

fn groups(tree: &Tree, text: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for statement in &tree.statements {
        let own = text.get(statement.span.start..statement.span.end).unwrap_or("").to_owned();
        match (&statement.kind, groups.last_mut()) {
            (StatementKind::Query { .. }, _) => groups.push(Group::Query(own)),
            (StatementKind::Write { .. }, _) => groups.push(Group::Write(own)),
            (_, Some(Group::Kept(statements))) => statements.push(own),
            _ => groups.push(Group::Kept(vec![own])),
        }
    }
    groups
}

/// Whether a text defines or declares a name.
fn defines(text: &str, name: &str) -> bool {
    let (tree, _) = parse::parse(text);
    let one = |statement: &Statement| match &statement.kind {
        StatementKind::Indices { names, .. } => names.iter().any(|known| known.text == name),
        StatementKind::Set { name: known, .. } => known.text == name,
        StatementKind::Bare { reference, .. }
        | StatementKind::Parameter { reference, .. }
        | StatementKind::Weighted { reference, .. } => reference.name.text == name,
        StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => head.name.text == name,
        StatementKind::Directive(directive) => name.strip_prefix('@') == Some(directive.name.text.as_str()),
        StatementKind::Write { .. } | StatementKind::Query { .. } => false,
    };
    tree.statements.iter().any(one)
}

/// Whether a statement adds to what others say, so that it counts twice where it stands twice.
fn adds(text: &str) -> bool {
    let (tree, _) = parse::parse(text);
    let one = |statement: &Statement| match &statement.kind {
        // Of numbers that are given twice there is a warning.
        StatementKind::Equation { right: RightSide::Expr { expr, .. }, .. }
            if matches!(expr.kind, ExprKind::Number(_)) =>
        {
            false
        }
        StatementKind::Equation { head, sign, right: RightSide::Expr { .. }, .. } => match sign {
            // A tuple that follows twice follows.
            Sign::Equal => head.brackets != Brackets::Round,
            Sign::Plus | Sign::Times => true,
            _ => false,
        },
        _ => false,
    };
    tree.statements.iter().any(one)
}

/// What is said of a statement that stands there twice now.
fn again(text: &str) -> String {
    let text = text.lines().next().unwrap_or("");
    format!(
        "warning: `{text}` stands there already, and now counts twice\n   = help: `:drop NAME` forgets all statements of a name"
    )
}

/// Whether a text ends inside brackets or behind an operator.
fn goes_on(text: &str) -> bool {
    let tokens = lex::lex(text).tokens;
    let mut open = 0_i64;
    for token in &tokens {
        match token.kind {
            TokenKind::LeftRound | TokenKind::LeftSquare | TokenKind::LeftBrace => open += 1,
            TokenKind::RightRound | TokenKind::RightSquare | TokenKind::RightBrace => open -= 1,
            _ => {}
        }
    }
    let last = tokens.iter().rev().find(|token| token.kind != TokenKind::End);
    open > 0 || last.is_some_and(|token| token.kind.continues())
}
