//! `zero-gradient`: all paths from a parameter to a loss pass step, sign or floor, whose
//! derivative is 0, so the parameter does not learn.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Expr, ExprKind, Goal, LiteralKind, Program, RightSide, Span, StatementKind};
use crate::error::{Code, Warning};
use crate::names::known::Names;
use crate::program::Combine;

/// A read of a tensor on the right side of another's equation.
struct Edge<'a> {
    read: &'a str,
    /// The function without derivative that it stands in.
    blocked: Option<(&'a str, Span)>,
}

/// What stands for the sign of a relation without values among the functions without derivative.
const SIGN: &str = "=";

/// Checks every loss of the program.
pub(super) fn check(program: &Program, names: &Names, reports: &mut Vec<Warning>) {
    let mut edges: BTreeMap<&str, Vec<Edge<'_>>> = BTreeMap::new();
    for statement in &program.statements {
        if let StatementKind::Equation { head, sign_span, right: RightSide::Expr { expr, .. }, .. } =
            &statement.kind
        {
            let known = names.tensors.get(&head.name.text);
            let boolean = known.is_some_and(|tensor| matches!(tensor.combine, Combine::Exists | Combine::Or));
            let blocked = boolean.then_some((SIGN, *sign_span));
            collect(expr, blocked, edges.entry(&head.name.text).or_default());
        }
    }
    for loss in losses(program) {
        let all = reached(loss, &edges, true);
        let free = reached(loss, &edges, false);
        for (name, tensor) in &names.tensors {
            if tensor.parameter.is_none() || !all.contains(name.as_str()) || free.contains(name.as_str()) {
                continue;
            }
            // The functions through which the loss still sees the parameter.
            let cuts = all.iter().filter_map(|head| edges.get(head)).flatten();
            let cuts = cuts.filter(|edge| reached(edge.read, &edges, true).contains(name.as_str()));
            let Some((function, span)) = cuts.filter_map(|edge| edge.blocked).min_by_key(|(_, s)| s.start)
            else {
                continue;
            };
            let (message, help) = if function == SIGN {
                (
                    format!(
                        "this relation only says that there is something, and `{name}` reaches `{loss}` only so"
                    ),
                    "`+=` adds the values of a relation up",
                )
            } else {
                (
                    format!(
                        "`{function}` has derivative 0, and `{name}` reaches `{loss}` only through such functions"
                    ),
                    "use a smooth function, such as `sig` for `step`",
                )
            };
            reports.push(Warning::new(Code::ZeroGradient, span, message).help(help));
        }
    }
}

/// The goals of queries with `@minimize`.
fn losses(program: &Program) -> BTreeSet<&str> {
    let goals = program.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Query { goal: Goal::Literals(literals), directives }
            if directives.iter().any(|directive| directive.name.text == "minimize") =>
        {
            match &literals.first()?.kind {
                LiteralKind::Positive(reference) => Some(reference.name.text.as_str()),
                _ => None,
            }
        }
        _ => None,
    });
    goals.collect()
}

/// The tensors that a tensor depends on, itself included; with or without blocked reads.
fn reached<'a>(from: &'a str, edges: &BTreeMap<&'a str, Vec<Edge<'a>>>, blocked: bool) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for edge in edges.get(name).into_iter().flatten() {
            if (blocked || edge.blocked.is_none()) && seen.insert(edge.read) {
                open.push(edge.read);
            }
        }
    }
    seen
}

fn collect<'a>(expr: &'a Expr, blocked: Option<(&'a str, Span)>, edges: &mut Vec<Edge<'a>>) {
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| collect(term, blocked, edges)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| collect(factor, blocked, edges)),
        ExprKind::Negate(inner) | ExprKind::Group { expr: inner, .. } => collect(inner, blocked, edges),
        ExprKind::Power(base, exponent, _) => {
            collect(base, blocked, edges);
            collect(exponent, blocked, edges);
        }
        ExprKind::Call { name, arguments, .. } => {
            let cuts = matches!(name.text.as_str(), "step" | "sign" | "floor");
            let blocked = if cuts { Some((name.text.as_str(), name.span)) } else { blocked };
            arguments.iter().for_each(|argument| collect(argument, blocked, edges));
        }
        ExprKind::Reference(reference) => edges.push(Edge { read: &reference.name.text, blocked }),
        ExprKind::Number(_) | ExprKind::Not(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
    }
}
