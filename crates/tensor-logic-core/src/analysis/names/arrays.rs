//! Arrays: `ragged-array` and `array-rank`.

use crate::ast::{Array, Brackets, Item, Reference, RightSide, Span, Start, Statement, StatementKind};
use crate::error::{Code, Refusal};
use crate::names::{occurrence, walk};

/// Checks the array of a statement, if it has one.
pub(super) fn check(statement: &Statement, reports: &mut Vec<Refusal>) {
    let (head, array) = match &statement.kind {
        StatementKind::Equation { head, right: RightSide::Array(array), .. } => (head, array),
        StatementKind::Parameter { reference, start: Start::Array(array), .. } => (reference, array),
        _ => return,
    };
    match ragged(array) {
        Some(report) => reports.push(report),
        None => reports.extend(rank(head, array)),
    }
}

/// The first item, in order of the text, that differs from the first one of its depth.
fn ragged(array: &Array) -> Option<Refusal> {
    let mut level: Vec<&Array> = vec![array];
    let mut found: Option<Refusal> = None;
    while let Some(first) = level.first() {
        let length = first.items.len();
        let other = level.iter().find(|row| row.items.len() != length);
        let lengths = other.map(|row| differs(row.span, &count(row.items.len()), &count(length)));
        found = earlier(found, lengths);
        found = earlier(found, mixture(&level));
        level = level.iter().flat_map(|row| &row.items).filter_map(row).collect();
    }
    found
}

fn row(item: &Item) -> Option<&Array> {
    match item {
        Item::Array(row) => Some(row),
        Item::Number(_) => None,
    }
}

fn earlier(one: Option<Refusal>, other: Option<Refusal>) -> Option<Refusal> {
    one.into_iter().chain(other).min_by_key(|report| report.span.start)
}

/// The first item that is a row where the first is a number, or the other way round.
fn mixture(level: &[&Array]) -> Option<Refusal> {
    let mut items = level.iter().flat_map(|row| &row.items);
    let first = items.next()?;
    let other = items.find(|item| row(item).is_some() != row(first).is_some())?;
    let show = |item: &Item| row(item).map_or("a single number".to_owned(), |row| count(row.items.len()));
    let span = match other {
        Item::Array(row) => row.span,
        Item::Number(number) => number.span,
    };
    Some(differs(span, &show(other), &show(first)))
}

fn count(length: usize) -> String {
    if length == 1 { "1 entry".to_owned() } else { format!("{length} entries") }
}

fn differs(span: Span, here: &str, first: &str) -> Refusal {
    let message = format!("this row has {here}, the first row has {first}");
    Refusal::new(Code::RaggedArray, span, message).help("give all rows of an array the same length")
}

/// An array must have one level for each place that its left side leaves open.
fn rank(head: &Reference, array: &Array) -> Option<Refusal> {
    if head.brackets == Brackets::None {
        return None;
    }
    let open = head.places.iter().filter(|place| !walk::is_constant(place)).count();
    let depth = occurrence::depth(array);
    (depth != open).then(|| {
        let message = format!("this array has rank {depth}, the left side leaves {open} places open");
        let report = Refusal::new(Code::ArrayRank, array.span, message);
        report.label(head.span, format!("rank {open}")).help("write one index for each level of the array")
    })
}
