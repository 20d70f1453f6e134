//! Relations that follow from weighted facts: they have the type `prob` too (N13).

use std::collections::{BTreeMap, HashMap};

use crate::ast::{
    self, Expr, ExprKind, Joint, Literal, LiteralKind, Reference, RightSide, Sign, StatementKind,
};
use crate::error::{Code, Refusal};
use crate::names::known::TensorName;
use crate::names::walk::{self, Visitor};
use crate::program::{Combine, Kind, Style};

/// Gives Boolean relations that rules make from relations with probabilities a type of that kind: that of what they read,
/// `prob` where it is mixed.
pub(super) fn infer(program: &ast::Program, tensors: &mut BTreeMap<String, TensorName>) {
    let rules: Vec<(&Reference, Vec<Literal>)> = program.statements.iter().filter_map(rule).collect();
    let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, (_, body)) in rules.iter().enumerate() {
        for read in body.iter().filter_map(reference) {
            readers.entry(&read.name.text).or_default().push(at);
        }
    }
    let mut open: Vec<usize> = (0..rules.len()).rev().collect();
    while let Some((head, body)) = open.pop().map(|at| &rules[at]) {
        let Some(name) = tensors.get(&head.name.text) else { continue };
        let boolean = name.combine == Combine::Exists && name.style == Style::Round;
        if name.typed.is_some() || !(boolean || name.kind.is_probability()) {
            continue;
        }
        let kind = body.iter().filter_map(reference).filter_map(|read| tensors.get(&read.name.text));
        let kind = kind.map(|read| read.kind).filter(|kind| kind.is_probability()).reduce(wider);
        let Some(kind) = kind else { continue };
        let kind = if boolean { kind } else { wider(kind, name.kind) };
        if (boolean || kind != name.kind)
            && let Some(tensor) = tensors.get_mut(&head.name.text)
        {
            tensor.kind = kind;
            tensor.combine = Combine::Proofs;
            open.extend(readers.get(head.name.text.as_str()).into_iter().flatten());
        }
    }
}

/// What loses no proof that one of them keeps.
fn wider(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::TopK(a), Kind::TopK(b)) => Kind::TopK(a.max(b)),
        _ => Kind::Prob,
    }
}

/// The head of a rule and its literals, also of one that is written as an equation.
fn rule(statement: &ast::Statement) -> Option<(&Reference, Vec<Literal>)> {
    match &statement.kind {
        StatementKind::Rule { head, body, .. } => Some((head, body.clone())),
        StatementKind::Equation {
            head, sign: Sign::Equal, right: RightSide::Expr { expr, guards }, ..
        } => {
            let terms = match &expr.kind {
                ExprKind::Sum(terms) => terms.iter().map(|(_, term)| term).collect(),
                _ => vec![expr],
            };
            let literals = terms.into_iter().flat_map(read_in);
            Some((head, literals.chain(guards.iter().cloned()).collect()))
        }
        _ => None,
    }
}

fn reference(literal: &Literal) -> Option<&Reference> {
    match &literal.kind {
        LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => Some(reference),
        LiteralKind::Compare { .. } | LiteralKind::Assign { .. } => None,
    }
}

/// What a term reads: the literals of a product, and of what is no such product all references, outside of guards.
fn read_in(term: &Expr) -> Vec<Literal> {
    struct Reads(Vec<Literal>);
    impl<'a> Visitor<'a> for Reads {
        fn reference(&mut self, read: &'a Reference) {
            self.0.push(Literal { kind: LiteralKind::Positive(read.clone()), span: read.span });
        }
        // Comparisons see numbers.
        fn enters(&self, _: &'a Expr) -> bool {
            false
        }
    }
    literals_of(term).unwrap_or_else(|| {
        let mut reads = Reads(Vec::new());
        walk::expr(term, &mut reads);
        reads.0
    })
}

/// The literals of a product of references.
pub fn literals_of(expr: &Expr) -> Option<Vec<Literal>> {
    let span = expr.span;
    match &expr.kind {
        ExprKind::Reference(of) => Some(vec![Literal { kind: LiteralKind::Positive(of.clone()), span }]),
        ExprKind::Not(of) => Some(vec![Literal { kind: LiteralKind::Negative(of.clone()), span }]),
        ExprKind::Product(factors) => {
            let each = factors.iter().map(|(joint, factor)| match joint {
                Joint::First | Joint::Beside | Joint::Times => literals_of(factor),
                Joint::Over | Joint::Remainder => None,
            });
            each.collect::<Option<Vec<_>>>().map(|parts| parts.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// What has no probability, but would read as if it had one: a weighted tensor, and a tensor that a rule makes from what
/// holds with a probability, which is 1 wherever that is possible.
pub(super) fn check(
    statement: &ast::Statement,
    tensors: &BTreeMap<String, TensorName>,
    reports: &mut Vec<Refusal>,
) {
    match &statement.kind {
        StatementKind::Weighted { reference, .. } if reference.brackets != ast::Brackets::Round => {
            let name = &reference.name.text;
            let message = format!("`{name}` is a tensor here, and only tuples have a probability");
            let report = Refusal::new(Code::MixedStyle, reference.span, message);
            reports.push(report.help(format!("write `{}`", round(reference))));
        }
        StatementKind::Rule { head, body, .. } if head.brackets != ast::Brackets::Round => {
            let holds = |read: &&Reference| {
                tensors.get(&read.name.text).is_some_and(|tensor| tensor.kind.is_probability())
            };
            let Some(read) = body.iter().filter_map(reference).find(holds) else { return };
            let (name, of) = (&head.name.text, &read.name.text);
            let message = format!("`{name}` is a tensor here, and `{of}` holds with a probability");
            let report = Refusal::new(Code::MixedStyle, head.span, message).label(read.span, "read here");
            reports.push(report.help(format!("write `{}`, which has a probability too", round(head))));
        }
        _ => {}
    }
}

/// A reference as that of a relation.
fn round(reference: &Reference) -> String {
    let places = if reference.places.is_empty() { "" } else { "…" };
    format!("{}({places})", reference.name.text)
}
