//! What the language has and this crate does not evaluate yet.

use crate::ast::{Directive, Span, Statement, StatementKind};
use crate::error::{Code, Refusal};

/// The constructs of a statement that are not evaluated yet.
pub(super) fn check(statement: &Statement, reports: &mut Vec<Refusal>) {
    match &statement.kind {
        StatementKind::Query { directives, .. } => {
            directives.iter().for_each(|asked| directive(asked, reports));
        }
        StatementKind::Directive(asked) => directive(asked, reports),
        _ => {}
    }
}

fn directive(directive: &Directive, reports: &mut Vec<Refusal>) {
    match directive.name.text.as_str() {
        "embed" => reports.push(not_yet(directive.span, "`@embed`")),
        _ => {}
    }
}

fn not_yet(span: Span, what: &str) -> Refusal {
    Refusal::new(Code::NotYet, span, format!("{what} cannot be evaluated yet"))
}
