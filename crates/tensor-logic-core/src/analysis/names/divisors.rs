//! `divisor-index`: an index all of whose occurrences in its scope stand in divisors. Whether a
//! quotient is summed or divided by a sum would then be a guess.

use crate::ast::Statement;
use crate::error::{Code, Refusal};
use crate::names::known::Names;
use crate::names::scopes;

/// Checks the scopes of a statement of `text`.
pub(super) fn check(text: &str, statement: &Statement, names: &Names, reports: &mut Vec<Refusal>) {
    let (terms, left) = scopes::of(statement, names);
    for term in &terms {
        term.bind(&left, &mut |_, name, occurrences| {
            let Some(first) = occurrences.first() else { return };
            if occurrences.iter().all(|occurrence| occurrence.divisor.is_some()) {
                let message = format!("`{name}` is summed here and occurs in divisors only");
                let report = Refusal::new(Code::DivisorIndex, first.span, message);
                let divisor = first.divisor.and_then(|span| text.get(span.start..span.end));
                let help = format!("to divide by a sum, write `sum[{name}]({})`", divisor.unwrap_or("…"));
                reports.push(report.help(help));
            }
        });
    }
}
