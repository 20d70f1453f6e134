//! What the language has and this crate does not evaluate yet.

use crate::ast::{Directive, Span, Statement, StatementKind, Value};
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
    let arguments = directive.arguments.as_deref().unwrap_or(&[]);
    if directive.name.text == "minimize" {
        for argument in arguments {
            let lift = argument.key.as_ref().is_some_and(|key| key.text == "lift");
            if lift && matches!(&argument.value, Value::Name(name) if name.text == "yes") {
                reports.push(not_yet(argument.span, "structural lifting (`lift=yes`)"));
            }
        }
    }
}

fn not_yet(span: Span, what: &str) -> Refusal {
    Refusal::new(Code::NotYet, span, format!("{what} cannot be evaluated yet"))
}
