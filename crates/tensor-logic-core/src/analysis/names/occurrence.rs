//! Every occurrence of a tensor's name, in order of the text, with what it says of the tensor.

use std::collections::HashMap;

use crate::ast::{
    Array, Brackets, Expr, Goal, Item, LiteralKind, Program, Reference, RightSide, Sign, Span, Start,
    Statement, StatementKind, TypeExpr,
};
use crate::names::known::Numeric;
use crate::names::walk;
use crate::program::Style;

/// An occurrence of a tensor's name.
#[derive(Debug)]
pub(super) struct Occurrence<'a> {
    pub(super) name: &'a str,
    pub(super) span: Span,
    pub(super) brackets: Brackets,
    /// The number of places that it says the tensor has; `None`: any.
    pub(super) rank: Option<usize>,
    pub(super) role: Role<'a>,
}

/// What an occurrence does.
#[derive(Debug)]
pub(super) enum Role<'a> {
    Read,
    Defines(Definition<'a>),
}

/// What a defining occurrence says.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) style: Style,
    /// The sign of assignment, where the form has one that counts.
    pub(super) sign: Option<(Mark, Span)>,
    pub(super) form: Form,
    pub(super) typed: Option<&'a TypeExpr>,
    pub(super) head: &'a Reference,
    pub(super) statement: Span,
}

/// A sign of assignment or an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Arrow,
    Sign(Sign),
}

/// The forms of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Declaration,
    Fact,
    Weighted,
    Parameter,
    /// An array, a number at constant places, a file; whether it gives values to a relation.
    Data {
        valued: bool,
    },
    Equation,
    Rule,
    Redefinition,
}

/// The reference that a statement defines or declares.
pub(super) fn head(statement: &Statement) -> Option<&Reference> {
    match &statement.kind {
        StatementKind::Bare { reference, .. }
        | StatementKind::Parameter { reference, .. }
        | StatementKind::Weighted { reference, .. } => Some(reference),
        StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => Some(head),
        _ => None,
    }
}

/// Whether a bare reference is a fact: all its arguments are constants, or it has none (section 3).
pub(super) fn is_fact(reference: &Reference) -> bool {
    reference.brackets == Brackets::Round && reference.places.iter().all(walk::is_constant)
}

/// All occurrences, in order of the text. In a comparison a name that nothing defines is a
/// symbol if its side is an index expression; it is no occurrence then.
pub(super) fn all<'a>(
    program: &'a Program,
    defined: &'a dyn Fn(&str) -> bool,
    constants: &'a HashMap<String, Numeric>,
) -> Vec<Occurrence<'a>> {
    let mut reader = Reader { found: Vec::new(), defined, constants };
    for statement in &program.statements {
        if let Some(occurrence) = definition(statement) {
            reader.found.push(occurrence);
        }
        match &statement.kind {
            StatementKind::Query { goal, .. } => reader.goal(goal),
            StatementKind::Write { reference, .. } => reader.whole(reference),
            _ => walk::reads(statement, &mut reader),
        }
    }
    reader.found.sort_by_key(|occurrence| occurrence.span.start);
    reader.found
}

struct Reader<'a> {
    found: Vec<Occurrence<'a>>,
    defined: &'a dyn Fn(&str) -> bool,
    constants: &'a HashMap<String, Numeric>,
}

impl<'a> Reader<'a> {
    /// A reference that without brackets means the whole tensor.
    fn whole(&mut self, reference: &'a Reference) {
        let rank = (reference.brackets != Brackets::None).then_some(reference.places.len());
        self.found.push(Occurrence { rank, ..read(reference) });
    }

    fn goal(&mut self, goal: &'a Goal) {
        match goal {
            Goal::Literals(literals) => match literals.as_slice() {
                [only] if matches!(only.kind, LiteralKind::Positive(_)) => {
                    if let LiteralKind::Positive(reference) = &only.kind {
                        self.whole(reference);
                    }
                }
                _ => literals.iter().for_each(|literal| walk::literal(literal, self)),
            },
            Goal::Restricted { name, .. } | Goal::Conditional { name, .. } => {
                self.found.push(Occurrence {
                    name: &name.text,
                    span: name.span,
                    brackets: Brackets::None,
                    rank: None,
                    role: Role::Read,
                });
            }
        }
    }
}

impl<'a> walk::Visitor<'a> for Reader<'a> {
    fn reference(&mut self, reference: &'a Reference) {
        self.found.push(read(reference));
    }

    fn enters(&self, side: &'a Expr) -> bool {
        !walk::is_index_side(side, self.defined, self.constants)
    }
}

fn read(reference: &Reference) -> Occurrence<'_> {
    Occurrence {
        name: &reference.name.text,
        span: reference.span,
        brackets: reference.brackets,
        rank: Some(reference.places.len()),
        role: Role::Read,
    }
}

fn definition(statement: &Statement) -> Option<Occurrence<'_>> {
    let head = head(statement)?;
    let mut style = if head.brackets == Brackets::Round { Style::Round } else { Style::Square };
    let bare = head.brackets == Brackets::None;
    let mut rank = Some(head.places.len());
    let (mut sign, mut typed) = (None, None);
    let form = match &statement.kind {
        StatementKind::Bare { reference, kind } => {
            typed = kind.as_ref();
            if kind.is_none() && is_fact(reference) { Form::Fact } else { Form::Declaration }
        }
        StatementKind::Weighted { .. } => Form::Weighted,
        StatementKind::Parameter { kind, start, .. } => {
            typed = kind.as_ref();
            if let (true, Start::Array(array)) = (bare, start) {
                rank = Some(depth(array));
            }
            Form::Parameter
        }
        StatementKind::Rule { arrow, .. } => {
            sign = Some((Mark::Arrow, *arrow));
            Form::Rule
        }
        StatementKind::Equation { sign: Sign::Redefine, right, .. } => {
            if let (true, RightSide::Array(array)) = (bare, right) {
                rank = Some(depth(array));
            }
            Form::Redefinition
        }
        StatementKind::Equation { sign: written, sign_span, right, .. } => {
            sign = Some((Mark::Sign(*written), *sign_span));
            match right {
                RightSide::Array(array) => {
                    rank = if bare { Some(depth(array)) } else { rank };
                    Form::Data { valued: true }
                }
                RightSide::File { file, options } => {
                    let dense = file.value.ends_with(".npy") || file.value.ends_with(".safetensors");
                    if bare {
                        style = if dense { Style::Square } else { Style::Round };
                        rank = file.value.ends_with(".txt").then_some(2);
                    }
                    Form::Data { valued: dense || options.iter().any(|option| option.text == "values") }
                }
                RightSide::Expr { expr, guards } => {
                    let fixed = head.places.iter().all(walk::is_constant) && guards.is_empty();
                    match walk::number(expr) {
                        Some(_) if fixed => Form::Data { valued: *written == Sign::Equal },
                        _ => Form::Equation,
                    }
                }
            }
        }
        _ => return None,
    };
    Some(Occurrence {
        name: &head.name.text,
        span: head.span,
        brackets: head.brackets,
        rank,
        role: Role::Defines(Definition { style, sign, form, typed, head, statement: statement.span }),
    })
}

/// How deep an array is nested, along its first rows.
pub(super) fn depth(array: &Array) -> usize {
    let mut depth = 1;
    let mut row = array;
    while let Some(Item::Array(first)) = row.items.first() {
        depth += 1;
        row = first;
    }
    depth
}
