//! The refusals of the stage "reading" behind the grammar: what a statement says by itself, or
//! beside a declaration, without knowing what its tensors are.
//!
//! Enter at [`read`], for the whole stage, or [`check`]. Small letters where capital ones belong, functions, directives, types,
//! probabilities.

mod arguments;
mod calls;
mod constants;
mod words;

use crate::ast::{Name, Program, Reference, Span, Statement, StatementKind, TypeExpr};
use crate::error::{Code, Places, Refusal};
use crate::function::UserFunctions;
use crate::names::walk::{self, Visitor};
use crate::parse::parse;

use words::advice;
pub use words::{TYPES, nearest, proofs};

/// Reads a program: its tree, or all refusals of the stage in order of place. `broken` are those
/// that were found when the text was decoded.
///
/// # Errors
/// `syntax` to `bad-probability`.
pub fn read(text: &str, broken: Vec<Refusal>, functions: &UserFunctions) -> Result<Program, Vec<Refusal>> {
    let (program, found) = parse(text);
    let mut syntax = broken;
    syntax.extend(found);
    let mut reports = check(&program, functions);
    if syntax.is_empty() {
        return if reports.is_empty() { Ok(program) } else { Err(reports) };
    }
    // After a syntax error reading resumes at the next line: each line has one at most.
    syntax.sort_by_key(|report| report.span.start);
    let places = Places::new(text);
    syntax.dedup_by_key(|report| places.row(report.span.start));
    syntax.append(&mut reports);
    syntax.sort_by_key(|report| report.span.start);
    Err(syntax)
}

/// A text from its bytes. What is no UTF-8 is a syntax error at its place, and a replacement
/// character in the text.
pub fn decode(bytes: &[u8]) -> (String, Vec<Refusal>) {
    let mut text = String::with_capacity(bytes.len());
    let mut reports = Vec::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            let start = text.len();
            text.push(char::REPLACEMENT_CHARACTER);
            let message = "expected a character of UTF-8, found other bytes";
            reports.push(Refusal::new(Code::Syntax, Span { start, end: text.len() }, message));
        }
    }
    (text, reports)
}

/// All refusals of this stage behind the grammar, in order of place.
pub fn check(program: &Program, functions: &UserFunctions) -> Vec<Refusal> {
    let mut reports = Vec::new();
    let declared = constants::declared_indices(program);
    let known = arguments::known(program);
    for statement in &program.statements {
        let mut reader = Reader { functions, reports: &mut reports };
        reader.statement(statement);
        constants::check(statement, &declared, &mut reports);
        arguments::check(statement, &known, &mut reports);
    }
    reports.sort_by_key(|report| report.span.start);
    reports
}

struct Reader<'a> {
    functions: &'a UserFunctions,
    reports: &'a mut Vec<Refusal>,
}

impl Reader<'_> {
    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Bare { reference, kind } => {
                self.tensor(reference);
                self.type_expr(kind.as_ref());
            }
            StatementKind::Parameter { reference, kind, start, .. } => {
                self.tensor(reference);
                self.type_expr(kind.as_ref());
                calls::start(start, self.reports);
            }
            StatementKind::Weighted { weight, reference } => {
                if !(0.0..=1.0).contains(&weight.value) {
                    let message = format!("`{}` is no probability", weight.text);
                    let report = Refusal::new(Code::BadProbability, weight.span, message);
                    self.reports.push(report.help("a probability lies between 0 and 1"));
                }
                self.tensor(reference);
            }
            StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => self.tensor(head),
            _ => {}
        }
        walk::reads(statement, self);
    }

    /// A tensor has a capital letter.
    fn tensor(&mut self, reference: &Reference) {
        if !is_capital(&reference.name) {
            let small = &reference.name.text;
            let message = format!("`{small}` stands for a tensor and begins with a small letter");
            let report = Refusal::new(Code::LowercaseTensor, reference.name.span, message);
            self.reports.push(report.help(format!("write `{}`", capitalised(small))));
        }
    }

    fn type_expr(&mut self, kind: Option<&TypeExpr>) {
        let Some(kind) = kind else { return };
        let name = kind.name.text.as_str();
        let (message, help) = match (TYPES.contains(&name), kind.argument) {
            (true, None) if name != "topk" => return,
            (true, Some(1..)) if name == "topk" => return,
            (true, _) if name == "topk" => {
                ("`topk` needs the number of proofs that it keeps".to_owned(), "write `topk(3)`".to_owned())
            }
            (true, _) => (format!("the type `{name}` has no argument"), format!("write `{name}`")),
            (false, _) => (format!("there is no type `{name}`"), advice(name, TYPES)),
        };
        self.reports.push(Refusal::new(Code::UnknownType, kind.name.span, message).help(help));
    }
}

impl<'a> Visitor<'a> for Reader<'_> {
    fn reference(&mut self, reference: &'a Reference) {
        self.tensor(reference);
    }

    fn call(&mut self, call: &'a crate::ast::Expr) {
        calls::check(call, self.functions, self.reports);
    }
}

fn is_capital(name: &Name) -> bool {
    name.text.chars().next().is_some_and(char::is_uppercase)
}

/// The same name with a capital letter.
fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
