//! Programs that include others: `@include("gcn.tl", as=First, X=Atoms, e=16)`.
//!
//! Enter at [`expand`]. The result is a text again, a legal program: in the place of each directive stand the included
//! statements, with lines `#line 1 "gcn.tl"` and `#line 4` around them that [`Places`](crate::error::Places) reads, so
//! that whatever comes later points into the file where a line was written.
//!
//! Inclusion is hygienic. What the file lists in `@export(X, H, e)` is shared with the program, under its own name or the
//! one that an argument gives; every other tensor, set and declared index is local and gets the name of the inclusion
//! before it: `W` becomes `First_W`, `e` becomes `first_e`. A local that the file only gives a default (a parameter, a
//! number, the size of an index) may be given by an argument too. Queries and file writes of the file are passed over.

mod names;
mod piece;

use crate::ast::{Directive, Program, Span, StatementKind, Text, Value};
use crate::error::{Code, Label, Refusal, Result};
use crate::parse::parse;

use names::{declared, defined};

/// Where the texts of included programs come from.
pub trait Texts {
    /// The text of a file, by its path from the program's folder.
    ///
    /// # Errors
    /// `file-not-found` and `file-format`, located at the file's name.
    fn text(&mut self, file: &str, span: Span) -> Result<String>;
}

/// No texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTexts;

impl Texts for NoTexts {
    fn text(&mut self, file: &str, span: Span) -> Result<String> {
        Err(Refusal::new(Code::FileNotFound, span, format!("there is no file `{file}` here")))
    }
}

/// Why a program cannot be expanded.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The text that the reports point into: the program's, or that of an included file.
    pub text: String,
    /// What is refused, in order of place.
    pub reports: Vec<Refusal>,
}

/// The deepest nesting of inclusions.
const DEPTH: usize = 32;

/// The most bytes that a program may have with all that it includes: files that include others twice grow fast.
const LARGEST: usize = 1 << 24;

/// Whether a text may include others.
pub fn includes(text: &str) -> bool {
    text.contains("@include")
}

/// The text of a program with all that it includes.
///
/// # Errors
/// `file-not-found`, `file-format`, `include-cycle`, `bad-argument`, `too-large`, and the syntax errors of included files.
pub fn expand(text: &str, texts: &mut dyn Texts) -> std::result::Result<String, Failure> {
    let mut expansion = Expansion { texts, open: Vec::new(), bytes: text.len() };
    expansion.expand(text, None)
}

/// An expansion at work.
struct Expansion<'a> {
    texts: &'a mut dyn Texts,
    /// The files that are being included, from the outermost.
    open: Vec<String>,
    /// The bytes of all texts so far.
    bytes: usize,
}

/// One `@include(…)`.
struct Include<'a> {
    directive: &'a Directive,
    file: &'a Text,
    /// The path of the file from the program's folder.
    path: String,
    /// The name before local names: `First`.
    prefix: String,
    arguments: Vec<Given<'a>>,
}

/// `X=Atoms`, `e=16`
struct Given<'a> {
    key: &'a str,
    value: &'a Value,
    span: Span,
}

impl Expansion<'_> {
    /// A text, of `file` or of the program, with what it includes. Texts that cannot be read are left as they are: reading
    /// refuses them.
    fn expand(&mut self, text: &str, file: Option<&str>) -> std::result::Result<String, Failure> {
        if !includes(text) {
            return Ok(text.to_owned());
        }
        let (tree, broken) = parse(text);
        if !broken.is_empty() {
            return Ok(without_includes(text, &tree));
        }
        let mut reports = Vec::new();
        let includes = listed(&tree, file, &mut reports);
        if !reports.is_empty() {
            return Err(located(text, file, reports));
        }
        let declared = declared(&tree);
        let mut pieces = Vec::new();
        for include in &includes {
            let loaded = self.load(include).map_err(|report| located(text, file, vec![report]))?;
            let whole = self.nested(&loaded, &include.path)?;
            let piece = piece::made(&whole, include, &declared).map_err(|failure| match failure {
                piece::Fault::Here(report) => located(text, file, vec![report]),
                piece::Fault::There(reports) => located(&whole, Some(&include.path), reports),
            })?;
            pieces.push(piece);
        }
        let reports = captured(&tree, &includes, &pieces);
        if !reports.is_empty() {
            return Err(located(text, file, reports));
        }
        Ok(joined(text, file, &includes, &pieces))
    }

    fn nested(&mut self, text: &str, path: &str) -> std::result::Result<String, Failure> {
        self.open.push(path.to_owned());
        let whole = self.expand(&piece::beside(text, path), Some(path));
        self.open.pop();
        whole
    }

    fn load(&mut self, include: &Include<'_>) -> Result<String> {
        let (path, span) = (&include.path, include.file.span);
        if let Some(from) = self.open.iter().position(|open| open == path) {
            let cycle = self.open.get(from..).unwrap_or(&[]).join("` includes `");
            let message = format!("`{cycle}` includes `{path}` again");
            return Err(Refusal::new(Code::IncludeCycle, span, message)
                .help("put what both need into a file of its own"));
        }
        if self.open.len() >= DEPTH {
            let message = format!("files include each other more than {DEPTH} deep");
            return Err(Refusal::new(Code::TooLarge, span, message));
        }
        let text = self.texts.text(path, span)?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > LARGEST {
            let message =
                format!("the program has more than {} MiB with all that it includes", LARGEST >> 20);
            return Err(Refusal::new(Code::TooLarge, span, message));
        }
        // As at the beginning of a program, a byte order mark says nothing.
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

/// A failure in a text, with the line that says whose it is.
fn located(text: &str, file: Option<&str>, mut reports: Vec<Refusal>) -> Failure {
    let header = file.map_or(String::new(), |file| format!("#line 1 \"{file}\"\n"));
    let moved = |span: Span| Span { start: span.start + header.len(), end: span.end + header.len() };
    for report in &mut reports {
        report.span = moved(report.span);
        report.labels.iter_mut().for_each(|label: &mut Label| label.span = moved(label.span));
    }
    reports.sort_by_key(|report| report.span.start);
    Failure { text: header + text, reports }
}

/// The text with blanks in the place of its inclusions.
fn without_includes(text: &str, tree: &Program) -> String {
    let edits = directives(tree).map(|directive| (directive.span, String::new())).collect();
    names::edited(text, edits)
}

fn directives(tree: &Program) -> impl Iterator<Item = &Directive> {
    tree.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Directive(directive) if directive.name.text == "include" => Some(directive),
        _ => None,
    })
}

/// The inclusions of a program, in order, and what is wrong with them as they are written.
fn listed<'a>(tree: &'a Program, file: Option<&str>, reports: &mut Vec<Refusal>) -> Vec<Include<'a>> {
    let mut found: Vec<Include<'a>> = Vec::new();
    for directive in directives(tree) {
        match read(directive, file) {
            Ok(include) => {
                if let Some(other) = found.iter().find(|other| other.prefix == include.prefix) {
                    let message = format!("`{}` names two inclusions", include.prefix);
                    reports.push(
                        Refusal::new(Code::BadArgument, directive.span, message)
                            .label(other.directive.span, "the other one")
                            .help("give this one a name of its own: `as=Second`"),
                    );
                }
                found.push(include);
            }
            Err(report) => reports.push(report),
        }
    }
    found
}

/// `@include("gcn.tl", as=First, X=Atoms)`
fn read<'a>(directive: &'a Directive, file: Option<&str>) -> Result<Include<'a>> {
    let bad = |span: Span, message: &str| {
        Refusal::new(Code::BadArgument, span, message).help("write `@include(\"gcn.tl\", as=First, X=Atoms)`")
    };
    let mut given = directive.arguments.as_deref().unwrap_or(&[]).iter();
    let first = given.next().ok_or_else(|| bad(directive.span, "`@include` needs the name of a file"))?;
    let (None, Value::Text(included)) = (&first.key, &first.value) else {
        return Err(bad(first.span, "the first argument of `@include` is the name of a file, in quotes"));
    };
    let mut named = None;
    let mut arguments: Vec<Given<'a>> = Vec::new();
    for argument in given {
        let Some(key) = &argument.key else {
            return Err(bad(argument.span, "only the file stands without a name: write `X=Atoms`"));
        };
        let twice = key.text == "as" && named.is_some();
        if twice || arguments.iter().any(|given| given.key == key.text) {
            return Err(bad(argument.span, &format!("`{}` is given twice", key.text)));
        }
        match (&argument.value, key.text.as_str()) {
            (Value::Name(name), "as") if name.text.starts_with(char::is_uppercase) => {
                named = Some(name.text.clone())
            }
            (_, "as") => {
                return Err(bad(argument.span, "`as` is the capital name that stands before local names"));
            }
            (value, key) => arguments.push(Given { key, value, span: argument.span }),
        }
    }
    let prefix = match named {
        Some(name) => name,
        None => {
            stem(&included.value).ok_or_else(|| bad(first.span, "this inclusion needs a name: `as=First`"))?
        }
    };
    let path = path(&included.value, included.span, file)?;
    Ok(Include { directive, file: included, path, prefix, arguments })
}

/// The path of an included file from the program's folder; `std/` is the library's.
fn path(name: &str, span: Span, from: Option<&str>) -> Result<String> {
    let whole = match from.and_then(|from| from.rsplit_once('/')) {
        Some((folder, _)) if !name.starts_with("std/") => format!("{folder}/{name}"),
        _ => name.to_owned(),
    };
    if name.is_empty() || name.contains(['"', '\n', '\r', '\0']) {
        return Err(Refusal::new(Code::FileNotFound, span, "this is no name of a file"));
    }
    Ok(whole)
}

/// `Gcn` of `std/gcn.tl`.
fn stem(file: &str) -> Option<String> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.split('.').next().unwrap_or(name);
    let mut letters = name.chars();
    let first = letters.next()?.to_uppercase();
    let stem: String = first.chain(letters).map(|letter| if letter == '-' { '_' } else { letter }).collect();
    crate::lex::is_capital_name(&stem).then_some(stem)
}

/// Names that an included file leaves free and this one defines, and local names of it that this one defines too.
fn captured(tree: &Program, includes: &[Include<'_>], pieces: &[piece::Piece]) -> Vec<Refusal> {
    let (own, ranges) = (defined(tree), declared(tree));
    let mut reports = Vec::new();
    for (include, piece) in includes.iter().zip(pieces) {
        let at = |message: String| Refusal::new(Code::BadArgument, include.directive.span, message);
        let file = &include.file.value;
        for name in piece.free.iter().filter(|name| own.contains(name.as_str())) {
            let what = if piece::BUILT_IN.contains(&name.as_str()) { "built in" } else { "a constant" };
            let message = format!("`{name}` is {what} in `{file}`, and this program defines it");
            reports
                .push(at(message).help(format!("write `@export({name})` in `{file}` if both are the same")));
        }
        let taken = |name: &&String| own.contains(name.as_str()) || ranges.contains(name.as_str());
        for name in piece.local.iter().filter(taken) {
            let message = format!("`{name}` is a local name of `{file}`, and this program defines it too");
            reports.push(at(message).help("another name of the inclusion, `as=Other`, gives it another one"));
        }
    }
    reports
}

/// The text with the pieces in the places of the directives.
fn joined(text: &str, file: Option<&str>, includes: &[Include<'_>], pieces: &[piece::Piece]) -> String {
    let places = crate::error::Places::new(text);
    let mut out = String::new();
    let mut from = 0;
    for (include, piece) in includes.iter().zip(pieces) {
        let Span { start, end } = include.directive.span;
        out.push_str(text.get(from..start).unwrap_or(""));
        let (line, column) = places.of(end);
        let back = file.map_or(String::new(), |file| format!(" \"{file}\""));
        for given in &piece.given {
            out.push_str(&format!("\n#line {line}{back}\n{given}"));
        }
        out.push_str(&format!("\n#line 1 \"{}\"\n{}", include.path, piece.text));
        // What follows on the line keeps its column.
        out.push_str(&format!("\n#line {line}{back}\n{}", " ".repeat(column - 1)));
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or(""));
    out
}
