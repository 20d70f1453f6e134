//! Warnings about functions: `missing-dot`, `unused-dot`, `boolean-truncation`,
//! `dense-activation`.

use std::collections::HashSet;

use super::parts::Parts;
use crate::ast::{Brackets, Expr, ExprKind, Name, Reference, RightSide, Sign, Statement, StatementKind};
use crate::error::{Code, Warning};
use crate::function::BUILT_IN;
use crate::names::axes::is_axis_function;
use crate::names::known::Names;
use crate::names::{occurrence, walk};
use crate::program::{Kind, Style};

/// Checks the functions of a statement.
pub(super) fn check(statement: &Statement, names: &Names, reports: &mut Vec<Warning>) {
    dots(statement, reports);
    let StatementKind::Equation { head, sign, sign_span, right: RightSide::Expr { expr, .. } } =
        &statement.kind
    else {
        return;
    };
    let Some(tensor) = names.tensors.get(&head.name.text) else { return };
    if *sign == Sign::Equal
        && (tensor.style, tensor.kind) == (Style::Round, Kind::Bool)
        && let Some(function) = real_function(expr, names)
    {
        let message =
            format!("`{}` is Boolean: of `{function}(…)` only whether it is > 0 is kept", head.name.text);
        let report = Warning::new(Code::BooleanTruncation, *sign_span, message);
        reports.push(report.help("use `+=` to keep the value, or `step(…)` to say that it is cut"));
    }
    if tensor.style == Style::Square {
        dense(expr, names, reports);
    }
}

/// The calls of a statement, from left to right.
#[derive(Default)]
struct Calls<'a>(Vec<(&'a Name, bool)>);

impl<'a> walk::Visitor<'a> for Calls<'a> {
    fn reference(&mut self, _: &'a Reference) {}

    fn call(&mut self, call: &'a Expr) {
        if let ExprKind::Call { name, axes, .. } = &call.kind {
            self.0.push((name, axes.is_some()));
        }
    }
}

/// Dots without an axis function, and axis functions without a dot where there is a choice.
fn dots(statement: &Statement, reports: &mut Vec<Warning>) {
    let mut calls = Calls::default();
    walk::reads(statement, &mut calls);
    calls.0.retain(|(name, _)| is_axis_function(&name.text));
    if calls.0.is_empty() {
        let references = Parts::of(statement).references;
        let dotted = references.iter().flat_map(|reference| &reference.places).filter(|place| place.dot);
        let message = "a dot names the axis of softmax or lnorm, and there is none here";
        reports.extend(
            dotted.map(|place| Warning::new(Code::UnusedDot, place.span, message).help("drop the dot")),
        );
        return;
    }
    let Some(head) = occurrence::head(statement) else { return };
    let indices: Vec<&str> = head.places.iter().flat_map(walk::place_indices).map(|(name, _)| name).collect();
    let several = indices.iter().collect::<HashSet<_>>().len() > 1;
    let (true, Some(last)) = (several && !head.places.iter().any(|place| place.dot), indices.last()) else {
        return;
    };
    for (name, _) in calls.0.iter().filter(|(_, named)| !named) {
        let message = format!("`{}` runs along `{last}`, the last index of the left side", name.text);
        let report = Warning::new(Code::MissingDot, name.span, message);
        reports.push(report.help(format!("write `{last}.` on the left, or `{}[{last}](…)`", name.text)));
    }
}

/// A function whose values are not 0 and 1, outside of `step`: `count` and `avg` are such, and what joins numbers is.
fn real_function<'e>(expr: &'e Expr, names: &Names) -> Option<&'e str> {
    let within = |expr| real_function(expr, names);
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().find_map(|(_, term)| within(term)),
        ExprKind::Product(factors) => factors.iter().find_map(|(_, factor)| within(factor)),
        ExprKind::Negate(inner) => within(inner),
        ExprKind::Power(base, exponent, _) => within(base).or_else(|| within(exponent)),
        ExprKind::Group { expr, .. } => within(expr),
        ExprKind::Call { name, arguments, .. } => match name.text.as_str() {
            "step" => None,
            "concat" => arguments.iter().find_map(within),
            joins @ ("sum" | "prod" | "max" | "min") if arguments.len() == 1 => {
                let numbers = arguments.iter().any(|argument| reads_numbers(argument, names));
                arguments.iter().find_map(within).or_else(|| numbers.then_some(joins))
            }
            // The larger or the smaller of truths is one.
            "max" | "min" if !arguments.iter().any(|argument| reads_numbers(argument, names)) => {
                arguments.iter().find_map(within)
            }
            other => Some(other),
        },
        ExprKind::Number(_)
        | ExprKind::Reference(_)
        | ExprKind::Not(_)
        | ExprKind::Index(_)
        | ExprKind::Text(_) => None,
    }
}

/// Whether an expression reads a tensor of numbers outside of a function of them.
fn reads_numbers(expr: &Expr, names: &Names) -> bool {
    let within = |expr| reads_numbers(expr, names);
    match &expr.kind {
        ExprKind::Reference(reference) => {
            let tensor = names.tensors.get(&reference.name.text);
            tensor.is_some_and(|tensor| tensor.kind != Kind::Bool)
        }
        ExprKind::Sum(terms) => terms.iter().any(|(_, term)| within(term)),
        ExprKind::Product(factors) => factors.iter().any(|(_, factor)| within(factor)),
        ExprKind::Negate(inner) => within(inner),
        ExprKind::Power(base, ..) => within(base),
        ExprKind::Group { expr, .. } => within(expr),
        ExprKind::Index(_) => true,
        ExprKind::Call { .. } | ExprKind::Number(_) | ExprKind::Not(_) | ExprKind::Text(_) => false,
    }
}

/// Elementwise functions with f(0) ≠ 0 of relations: in a square equation a missing tuple is
/// read as 0 there. A relation beside the call keeps it sparse, and under an axis function a
/// missing tuple stays missing.
fn dense(expr: &Expr, names: &Names, reports: &mut Vec<Warning>) {
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| dense(term, names, reports)),
        ExprKind::Product(factors) => {
            let sparse =
                |factor: &Expr| matches!(&factor.kind, ExprKind::Reference(r) if is_sparse(r, names));
            if !factors.iter().any(|(_, factor)| sparse(factor)) {
                factors.iter().for_each(|(_, factor)| dense(factor, names, reports));
            }
        }
        ExprKind::Negate(inner) | ExprKind::Group { expr: inner, .. } => dense(inner, names, reports),
        ExprKind::Power(base, exponent, _) => {
            dense(base, names, reports);
            dense(exponent, names, reports);
        }
        ExprKind::Call { name, arguments, .. } if !is_axis_function(&name.text) => {
            let first = arguments.first();
            if let (Some(value), Some(relation)) =
                (at_zero(&name.text, arguments), first.and_then(|a| relation(a, names)))
                && value != 0.0
            {
                let message = format!(
                    "`{}` of the relation `{relation}` is {value} where a tuple is missing, so every element has a value",
                    name.text
                );
                let report = Warning::new(Code::DenseActivation, name.span, message);
                reports.push(report.help("use a round left side, or multiply by the relation"));
            }
            arguments.iter().for_each(|argument| dense(argument, names, reports));
        }
        _ => {}
    }
}

fn is_sparse(reference: &Reference, names: &Names) -> bool {
    let tensor = names.tensors.get(&reference.name.text);
    reference.brackets == Brackets::Round && tensor.is_some_and(|tensor| tensor.style == Style::Round)
}

/// The value of an elementwise function where its first argument is 0.
fn at_zero(name: &str, arguments: &[Expr]) -> Option<f64> {
    let (_, function, _, most) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    if matches!(name, "max" | "min") {
        return None;
    }
    let mut values = vec![0.0];
    if *most > 1 {
        values.extend(arguments.get(1).map(|second| walk::number(second).unwrap_or(1.0)));
    }
    Some(function.value(&values))
}

/// The first relation that an argument reads outside of guards.
fn relation<'a>(argument: &'a Expr, names: &Names) -> Option<&'a str> {
    match &argument.kind {
        ExprKind::Reference(reference) => is_sparse(reference, names).then_some(reference.name.text.as_str()),
        ExprKind::Sum(terms) => terms.iter().find_map(|(_, term)| relation(term, names)),
        ExprKind::Product(factors) => factors.iter().find_map(|(_, factor)| relation(factor, names)),
        ExprKind::Negate(inner) | ExprKind::Group { expr: inner, .. } => relation(inner, names),
        ExprKind::Power(base, ..) => relation(base, names),
        _ => None,
    }
}
