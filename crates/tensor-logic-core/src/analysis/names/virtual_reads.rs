//! `virtual-read` (N8): of a starred place only the last slice is kept, so outside its own
//! equation it may be read with the same starred index, in step, or at its last value.

use std::collections::BTreeMap;

use crate::ast::{Goal, IndexExpr, IndexKind, IndexOperator, LiteralKind, Place, PlaceKind, Program};
use crate::ast::{Reference, Span, Statement, StatementKind};
use crate::error::{Code, Refusal};
use crate::names::indices::{Fixed, fixed};
use crate::names::known::Names;
use crate::names::{occurrence, walk};

/// Checks what a statement reads of virtual places.
pub(super) fn check(statement: &Statement, names: &Names, reports: &mut Vec<Refusal>) {
    let mut whole = None;
    match &statement.kind {
        StatementKind::Write { reference, .. } => whole = Some(reference),
        StatementKind::Query { goal: Goal::Literals(literals), .. } => {
            if let [only] = literals.as_slice()
                && let LiteralKind::Positive(reference) = &only.kind
            {
                whole = Some(reference);
            }
        }
        _ => {}
    }
    for read in virtual_reads(statement, names) {
        match read.place {
            Some(place) if in_step(place, &read.stars) || walk::is_constant(place) => {}
            Some(place) => reports.push(refuse(place.span, read.reference, &read.stars)),
            None if whole.is_some() => {
                reports.push(refuse(read.reference.span, read.reference, &read.stars));
            }
            None => {}
        }
    }
}

/// Constants at which a virtual place is read and that are not its last value. `ends` says from
/// where to where the place of a tensor reaches; without it the farthest constant is the last.
pub fn not_last(
    program: &Program,
    names: &Names,
    ends: impl Fn(&str, usize) -> Option<(i64, i64)>,
) -> Vec<Refusal> {
    let mut constants: BTreeMap<(&str, usize), Vec<(i64, Span)>> = BTreeMap::new();
    let mut upwards: BTreeMap<(&str, usize), bool> = BTreeMap::new();
    for statement in &program.statements {
        for read in virtual_reads(statement, names) {
            let Some(PlaceKind::Index(index)) = read.place.map(|place| &place.kind) else { continue };
            if let (Some(Fixed::Integer(value)), Some(place)) = (fixed(index, names), read.place) {
                constants.entry((&read.reference.name.text, read.at)).or_default().push((value, place.span));
            }
        }
        directions(statement, &mut upwards);
    }
    let mut reports = Vec::new();
    for (key, reads) in &constants {
        let Some(upwards) = upwards.get(key) else { continue };
        let values = || reads.iter().map(|(value, _)| *value);
        let end = ends(key.0, key.1).map(|(from, to)| if *upwards { to } else { from });
        let Some(last) = end.or(if *upwards { values().max() } else { values().min() }) else { continue };
        for (value, span) in reads.iter().filter(|(value, _)| *value != last) {
            let message = format!("`{}` is virtual: it keeps its slice {last} only, not {value}", key.0);
            reports.push(Refusal::new(Code::VirtualRead, *span, message).help("drop the star on the left"));
        }
    }
    reports
}

/// A read of a virtual place outside its own equation.
struct Read<'a> {
    reference: &'a Reference,
    at: usize,
    /// `None` where the reference has no brackets.
    place: Option<&'a Place>,
    stars: Vec<&'a str>,
}

fn virtual_reads<'a>(statement: &'a Statement, names: &'a Names) -> Vec<Read<'a>> {
    let own = occurrence::head(statement);
    let mut found = Vec::new();
    for reference in references(statement) {
        let Some(tensor) = names.tensors.get(&reference.name.text) else { continue };
        let mut places: Vec<usize> = tensor.stars.iter().map(|(at, _)| *at).collect();
        places.dedup();
        for at in places {
            let starred = own.filter(|head| head.name.text == reference.name.text);
            if starred.and_then(|head| head.places.get(at)).is_some_and(|place| place.star) {
                continue;
            }
            let place = reference.places.get(at);
            let stars = tensor.stars.iter().filter(|(place, _)| *place == at).map(|(_, name)| name.as_str());
            found.push(Read { reference, at, place, stars: stars.collect() });
        }
    }
    found
}

fn references(statement: &Statement) -> Vec<&Reference> {
    struct All<'a>(Vec<&'a Reference>);
    impl<'a> walk::Visitor<'a> for All<'a> {
        fn reference(&mut self, reference: &'a Reference) {
            self.0.push(reference);
        }
    }
    let mut all = All(Vec::new());
    walk::reads(statement, &mut all);
    all.0
}

fn in_step(place: &Place, stars: &[&str]) -> bool {
    let mut indices = walk::place_indices(place).map(|(name, _)| name).peekable();
    let is_index = matches!(place.kind, PlaceKind::Index(_));
    place.star && is_index && indices.peek().is_some() && indices.all(|name| stars.contains(&name))
}

fn refuse(span: Span, reference: &Reference, stars: &[&str]) -> Refusal {
    let name = &reference.name.text;
    let star = stars.first().copied().unwrap_or("t");
    let message = format!("`{name}` is virtual in `{star}`: only its last slice is kept");
    let help = format!("drop the star on the left of `{name}`, or read it at `*{star}` or at its last value");
    Refusal::new(Code::VirtualRead, span, message).help(help)
}

/// Whether the starred places of a statement's left side move up, seen from its own reads.
fn directions<'a>(statement: &'a Statement, upwards: &mut BTreeMap<(&'a str, usize), bool>) {
    let Some(head) = occurrence::head(statement) else { return };
    for (at, place) in head.places.iter().enumerate().filter(|(_, place)| place.star) {
        let Some((index, to)) = offset(place) else { continue };
        for read in references(statement).into_iter().filter(|read| read.name.text == head.name.text) {
            let Some((other, from)) = read.places.get(at).and_then(offset) else { continue };
            if other == index && to != from {
                upwards.insert((&head.name.text, at), to > from);
            }
        }
    }
}

/// `t`, `t + c`, `t - c`, `c + t` as index and offset.
fn offset(place: &Place) -> Option<(&str, i64)> {
    fn of(index: &IndexExpr) -> Option<(Option<&str>, i64)> {
        match &index.kind {
            IndexKind::Index(name) => Some((Some(name), 0)),
            IndexKind::Integer(value) => Some((None, *value)),
            IndexKind::Binary(operator, left, right) => {
                let simple =
                    |part: &IndexExpr| matches!(part.kind, IndexKind::Index(_) | IndexKind::Integer(_));
                if !simple(left) || !simple(right) {
                    return None;
                }
                match (operator, of(left)?, of(right)?) {
                    (IndexOperator::Add, (Some(name), _), (None, by))
                    | (IndexOperator::Add, (None, by), (Some(name), _)) => Some((Some(name), by)),
                    (IndexOperator::Subtract, (Some(name), _), (None, by)) => {
                        Some((Some(name), by.checked_neg()?))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
    let PlaceKind::Index(index) = &place.kind else { return None };
    let (name, by) = of(index)?;
    Some((name?, by))
}
