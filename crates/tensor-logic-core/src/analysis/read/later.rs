//! What the language has and this crate does not evaluate yet.

use crate::ast::{Directive, Span, Statement, StatementKind, TypeExpr, Value};
use crate::error::{Code, Refusal};

/// The types that are not evaluated yet.
const TYPES: &[&str] = &["prob", "topk", "addmult"];

/// The constructs of a statement that are not evaluated yet.
pub(super) fn check(statement: &Statement, reports: &mut Vec<Refusal>) {
    match &statement.kind {
        StatementKind::Weighted { weight, reference } => {
            let span = weight.span.to(reference.span);
            reports.push(not_yet(span, "weighted facts (`p :: R(…)`)"));
        }
        StatementKind::Bare { kind: Some(kind), .. } | StatementKind::Parameter { kind: Some(kind), .. } => {
            type_expr(kind, reports);
        }
        StatementKind::Query { directives, .. } => {
            directives.iter().for_each(|asked| directive(asked, reports));
        }
        StatementKind::Directive(asked) => directive(asked, reports),
        _ => {}
    }
}

fn type_expr(kind: &TypeExpr, reports: &mut Vec<Refusal>) {
    if TYPES.contains(&kind.name.text.as_str()) {
        reports.push(not_yet(kind.span, &format!("the type `{}`", kind.name.text)));
    }
}

fn directive(directive: &Directive, reports: &mut Vec<Refusal>) {
    let arguments = directive.arguments.as_deref().unwrap_or(&[]);
    match directive.name.text.as_str() {
        name @ ("embed" | "exclusive") => reports.push(not_yet(directive.span, &format!("`@{name}`"))),
        "semiring" => {
            for argument in arguments {
                if let Value::Name(name) = &argument.value
                    && TYPES.contains(&name.text.as_str())
                {
                    reports.push(not_yet(argument.span, &format!("the semiring `{}`", name.text)));
                }
            }
        }
        "minimize" => {
            for argument in arguments {
                let lift = argument.key.as_ref().is_some_and(|key| key.text == "lift");
                if lift && matches!(&argument.value, Value::Name(name) if name.text == "yes") {
                    reports.push(not_yet(argument.span, "structural lifting (`lift=yes`)"));
                }
            }
        }
        _ => {}
    }
}

fn not_yet(span: Span, what: &str) -> Refusal {
    Refusal::new(Code::NotYet, span, format!("{what} cannot be evaluated yet"))
}
