//! An included file with the names that it has in the program.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Spelling, What, declared, defined, edited, head, spellings};
use super::{Given, Include};
use crate::ast::{
    Directive, Expr, ExprKind, Program, RightSide, Sign, Span, Statement, StatementKind, Value,
};
use crate::error::{Code, Refusal, Result};
use crate::parse::parse;

/// What an inclusion puts into a program.
#[derive(Debug)]
pub(super) struct Piece {
    /// The statements of the file, on the lines where they stand there.
    pub(super) text: String,
    /// Statements that arguments stand for, as `first_e : 16`.
    pub(super) given: Vec<String>,
    /// Capital names that the file neither defines nor exports: symbols, most of all, and built-in relations.
    pub(super) free: BTreeSet<String>,
    /// The names that local ones got.
    pub(super) local: BTreeSet<String>,
}

/// What is wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// At the inclusion.
    Here(Refusal),
    /// In the file.
    There(Vec<Refusal>),
}

/// Relations that are built in where a program does not define them.
pub(super) const BUILT_IN: [&str; 2] = ["Even", "Odd"];

/// The piece of a file; `ranges` are the indices that the including program declares.
pub(super) fn made(
    text: &str,
    include: &Include<'_>,
    ranges: &BTreeSet<&str>,
) -> std::result::Result<Piece, Fault> {
    let (tree, broken) = parse(text);
    if !broken.is_empty() {
        return Err(Fault::There(broken));
    }
    let exports = exports(&tree).map_err(|report| Fault::There(vec![report]))?;
    let mut naming = Naming::new(&tree, include, exports);
    for given in &include.arguments {
        naming.take(given).map_err(Fault::Here)?;
    }
    naming.keep_apart(ranges);
    let dropped: Vec<Span> =
        tree.statements.iter().filter(|each| naming.drops(each)).map(|each| each.span).collect();
    let outside = |span: Span| !dropped.iter().any(|drop| drop.start <= span.start && span.end <= drop.end);
    let mut edits: Vec<(Span, String)> = dropped.iter().map(|span| (*span, String::new())).collect();
    for spelling in spellings(&tree).into_iter().filter(|spelling| outside(spelling.span)) {
        edits.extend(naming.word(&spelling).map(|word| (spelling.span, word)));
    }
    edits.extend(naming.numbers.iter().map(|(span, number)| (*span, number.clone())));
    Ok(Piece { text: edited(text, edits), given: naming.given, free: naming.free, local: naming.local })
}

/// What the file shares: the names of its `@export(…)`.
fn exports(tree: &Program) -> Result<BTreeSet<&str>> {
    let mut exports = BTreeSet::new();
    for statement in &tree.statements {
        let StatementKind::Directive(directive) = &statement.kind else { continue };
        match directive.name.text.as_str() {
            "export" => {
                for argument in directive.arguments.iter().flatten() {
                    let (None, Value::Name(name)) = (&argument.key, &argument.value) else {
                        let message = "`@export` takes names of tensors and indices";
                        return Err(Refusal::new(Code::BadArgument, argument.span, message));
                    };
                    exports.insert(name.text.as_str());
                }
            }
            "tol" | "rounds" | "seed" => return Err(setting(directive)),
            _ => {}
        }
    }
    Ok(exports)
}

fn setting(directive: &Directive) -> Refusal {
    let message = format!("`@{}` holds for a whole program, and this file is included", directive.name.text);
    Refusal::new(Code::UnknownDirective, directive.span, message)
        .help("write it in the program that includes")
}

/// The text of a file whose data lie beside it, with their paths from the program's folder.
pub(super) fn beside(text: &str, path: &str) -> String {
    if !path.contains('/') {
        return text.to_owned();
    }
    let (tree, _) = parse(text);
    edited(text, tree.statements.iter().filter_map(|statement| moved_file(statement, path)).collect())
}

fn moved_file(statement: &Statement, path: &str) -> Option<(Span, String)> {
    let (folder, _) = path.rsplit_once('/')?;
    let StatementKind::Equation { right: RightSide::File { file, .. }, .. } = &statement.kind else {
        return None;
    };
    Some((file.span, format!("\"{folder}/{}\"", file.value)))
}

/// Which name each name of the file gets.
struct Naming<'a> {
    tree: &'a Program,
    include: &'a Include<'a>,
    exports: BTreeSet<&'a str>,
    /// What the file defines: tensors, numbers, sets.
    defined: BTreeSet<&'a str>,
    /// The indices that it gives a range.
    declared: BTreeSet<&'a str>,
    /// All indices that occur.
    indices: BTreeSet<&'a str>,
    /// Other names for names of the file, from arguments and for indices that are kept apart.
    others: BTreeMap<&'a str, String>,
    /// Names whose definition an argument replaces.
    replaced: BTreeSet<&'a str>,
    /// Numbers in the place of others.
    numbers: Vec<(Span, String)>,
    given: Vec<String>,
    free: BTreeSet<String>,
    local: BTreeSet<String>,
}

impl<'a> Naming<'a> {
    fn new(tree: &'a Program, include: &'a Include<'a>, exports: BTreeSet<&'a str>) -> Naming<'a> {
        let is_index = |spelling: &Spelling<'_>| matches!(spelling.what, What::Index | What::DeclaredIndex);
        let indices = spellings(tree).into_iter().filter(is_index).map(|spelling| spelling.text).collect();
        Naming {
            tree,
            include,
            exports,
            defined: defined(tree),
            declared: declared(tree),
            indices,
            others: BTreeMap::new(),
            replaced: BTreeSet::new(),
            numbers: Vec::new(),
            given: Vec::new(),
            free: BTreeSet::new(),
            local: BTreeSet::new(),
        }
    }

    /// The local name of a capital name or an index.
    fn own(&self, name: &str) -> String {
        let prefix = &self.include.prefix;
        match name.starts_with(char::is_uppercase) {
            true => format!("{prefix}_{name}"),
            false => format!("{}_{name}", prefix.to_lowercase()),
        }
    }

    /// Takes an argument.
    fn take(&mut self, given: &'a Given<'a>) -> Result<()> {
        if given.key.starts_with(char::is_uppercase) {
            self.take_tensor(given)
        } else {
            self.take_index(given)
        }
    }

    fn take_tensor(&mut self, given: &'a Given<'a>) -> Result<()> {
        let key = given.key;
        let capital = match given.value {
            Value::Name(name) if name.text.starts_with(char::is_uppercase) => Some(name.text.clone()),
            _ => None,
        };
        if self.exports.contains(key) {
            let name =
                capital.ok_or_else(|| bad(given.span, format!("`{key}` is given the name of a tensor")))?;
            self.others.insert(key, name);
            return Ok(());
        }
        let Some(number) = self.default_of(key) else { return Err(self.not_given(given)) };
        match (given.value, capital, number) {
            (_, Some(name), _) => {
                self.replaced.insert(key);
                self.others.insert(key, name);
            }
            (Value::Number(value), None, Some(span)) => self.numbers.push((span, value.text.clone())),
            (_, None, Some(_)) => {
                return Err(bad(given.span, format!("`{key}` is given a number, or the name of one")));
            }
            (_, None, None) => {
                let message = format!("`{key}` is a parameter: it is given the name of a tensor");
                return Err(bad(given.span, message));
            }
        }
        Ok(())
    }

    /// The one statement that gives a local its value, if an argument may replace it: a parameter, or a number (and the
    /// number's place).
    fn default_of(&self, name: &str) -> Option<Option<Span>> {
        let mut statements = self.tree.statements.iter().filter(|statement| head(statement) == Some(name));
        let statement = statements.next()?;
        if statements.next().is_some() {
            return None;
        }
        match &statement.kind {
            StatementKind::Parameter { .. } => Some(None),
            StatementKind::Equation {
                head,
                sign: Sign::Equal,
                right: RightSide::Expr { expr, guards },
                ..
            } if head.places.is_empty() && guards.is_empty() && is_number(expr) => Some(Some(expr.span)),
            _ => None,
        }
    }

    fn take_index(&mut self, given: &'a Given<'a>) -> Result<()> {
        let key = given.key;
        if !self.indices.contains(key) && !self.exports.contains(key) {
            return Err(self.not_given(given));
        }
        let range = match given.value {
            Value::Name(name) if !name.text.starts_with(char::is_uppercase) => {
                self.others.insert(key, name.text.clone());
                self.replaced.insert(key);
                return Ok(());
            }
            Value::Name(name) => name.text.clone(),
            Value::Number(number) => number.text.clone(),
            Value::Text(_) => {
                let message = format!("`{key}` is given an index, a set or a size");
                return Err(bad(given.span, message));
            }
        };
        let own = self.own(key);
        self.given.push(format!("{own} : {range}"));
        self.local.insert(own.clone());
        self.others.insert(key, own);
        self.replaced.insert(key);
        Ok(())
    }

    /// An argument that the file does not take.
    fn not_given(&self, given: &Given<'_>) -> Refusal {
        let (key, file) = (given.key, &self.include.file.value);
        let locals = self.defined.iter().copied().filter(|name| self.default_of(name).is_some());
        let takes: BTreeSet<&str> =
            self.exports.iter().copied().chain(locals).chain(self.declared.iter().copied()).collect();
        let takes: Vec<String> = takes.into_iter().map(|name| format!("`{name}`")).collect();
        let message = match self.defined.contains(key) {
            true => format!("`{key}` is local to `{file}`"),
            false => format!("`{file}` has no `{key}`"),
        };
        let help = if takes.is_empty() {
            "it takes nothing".to_owned()
        } else {
            format!("it takes {}", takes.join(", "))
        };
        bad(given.span, message).help(help)
    }

    /// Indices of the file that have no range there would have that of an index of the program.
    fn keep_apart(&mut self, ranges: &BTreeSet<&str>) {
        for name in self.indices.clone() {
            let local = self.declared.contains(name) || ranges.contains(name);
            if local && !self.exports.contains(name) && !self.others.contains_key(name) {
                let own = self.own(name);
                self.local.insert(own.clone());
                self.others.insert(name, own);
            }
        }
    }

    /// Whether a statement is passed over.
    fn drops(&self, statement: &Statement) -> bool {
        match &statement.kind {
            StatementKind::Query { .. } | StatementKind::Write { .. } => true,
            StatementKind::Directive(directive) => directive.name.text == "export",
            _ => head(statement).is_some_and(|name| self.replaced.contains(name)),
        }
    }

    /// The other word for a name, if it gets one.
    fn word(&mut self, spelling: &Spelling<'a>) -> Option<String> {
        let name = spelling.text;
        let is_index = matches!(spelling.what, What::Index | What::DeclaredIndex);
        if is_index && spelling.what == What::DeclaredIndex && self.replaced.contains(name) {
            // The range that the file gives is that of an index that nothing has.
            return Some(format!("{}_default", self.own(name)));
        }
        if let Some(other) = self.others.get(name) {
            return Some(other.clone());
        }
        if is_index || self.exports.contains(name) {
            return None;
        }
        let tensor = spelling.what == What::Tensor && !BUILT_IN.contains(&name);
        if self.defined.contains(name) || tensor {
            let own = self.own(name);
            self.local.insert(own.clone());
            return Some(own);
        }
        // `De` is the size of `e`.
        let size = self.others.get(name.to_lowercase().as_str()).map(|index| capitalised(index));
        if spelling.what == What::Alone || BUILT_IN.contains(&name) {
            self.free.insert(size.clone().unwrap_or_else(|| name.to_owned()));
        }
        size
    }
}

fn is_number(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Number(_) => true,
        ExprKind::Negate(inner) => matches!(inner.kind, ExprKind::Number(_)),
        _ => false,
    }
}

/// `Hidden` for `hidden`.
fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn bad(span: Span, message: String) -> Refusal {
    Refusal::new(Code::BadArgument, span, message)
}
