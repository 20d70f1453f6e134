//! Facts and declarations: a fact has constants, a declaration indices, and nothing has both.

use std::collections::HashSet;

use crate::ast::{
    Brackets, IndexKind, Place, PlaceKind, Program, Reference, RightSide, Sign, Span, Statement,
    StatementKind,
};
use crate::error::{Code, Refusal};
use crate::names::walk;

/// The indices that the program declares.
pub(super) fn declared_indices(program: &Program) -> HashSet<&str> {
    let declared = program.statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Indices { names, .. } => Some(names.iter().map(|name| name.text.as_str())),
        _ => None,
    });
    declared.flatten().collect()
}

/// Small letters among the arguments of facts.
pub(super) fn check(statement: &Statement, declared: &HashSet<&str>, reports: &mut Vec<Refusal>) {
    match &statement.kind {
        StatementKind::Bare { reference, kind: Some(_) }
            if reference.places.iter().all(walk::is_constant) =>
        {
            reports.extend(typed(reference));
        }
        StatementKind::Bare { reference, .. }
            if reference.brackets == Brackets::Round && !reference.places.iter().all(is_index) =>
        {
            refuse_first(reference, |_| true, reports);
        }
        StatementKind::Parameter { reference, .. } => reports.extend(no_index(reference)),
        StatementKind::Equation { head, right: RightSide::Array(_), .. } => {
            let what = "the left side of an array has indices, each of its own place, and constants";
            reports.extend(no_place(head, what, walk::is_constant));
        }
        StatementKind::Equation { head, right: RightSide::File { .. }, .. } => {
            let what = "a file gives all of a tensor, and its left side has indices, each of its own place";
            reports.extend(no_place(head, what, |_| false));
        }
        StatementKind::Weighted { reference, .. } => refuse_first(reference, |_| true, reports),
        StatementKind::Equation {
            head, sign: Sign::Equal, right: RightSide::Expr { expr, guards }, ..
        } if head.brackets == Brackets::Round && guards.is_empty() && walk::number(expr).is_some() => {
            // `R(x, y) = 1` over declared indices is an equation for all of them.
            let equation = head.places.iter().all(is_index);
            let known = |name: &str| declared.contains(name);
            refuse_first(head, |place| !equation || !index_name(place).is_some_and(known), reports);
        }
        _ => {}
    }
}

/// The first place of a declaration with a type that is no index.
fn typed(reference: &Reference) -> Option<Refusal> {
    let place = reference.places.iter().find(|place| !is_index(place))?;
    let tensor = &reference.name.text;
    let message =
        format!("a type is that of all of `{tensor}`: its places are named by indices, and this is none");
    let report = Refusal::new(Code::BadArgument, place.span, message);
    Some(report.help(format!("declare `{tensor}` with indices, and write facts apart, as in `R(A) = 2`")))
}

/// The first place of a parameter that is no index: its start is that of all elements.
fn no_index(reference: &Reference) -> Option<Refusal> {
    let place = reference.places.iter().find(|place| !is_index(place))?;
    let tensor = &reference.name.text;
    let message = format!("`{tensor}` is a parameter, its places are named by indices, and this is none");
    let report = Refusal::new(Code::BadArgument, place.span, message);
    Some(report.help(format!(
        "declare all of `{tensor}`, as in `{tensor}[i, j] ~ normal(0, 0.1)`; a part of it takes `=`"
    )))
}

/// The first place on the left of data that is neither an index that stands in no place before it, nor `fixed`.
fn no_place(head: &Reference, what: &str, fixed: impl Fn(&Place) -> bool) -> Option<Refusal> {
    let mut seen = HashSet::new();
    let place = head.places.iter().find(|place| match index_name(place) {
        Some(name) => !seen.insert(name),
        None => !fixed(place),
    })?;
    let report = Refusal::new(Code::BadArgument, place.span, format!("{what}, and this is none"));
    let help =
        "read the data into a tensor of its own, and say by an equation or a rule where its elements go";
    Some(report.help(help))
}

/// Refuses the first argument that is no constant and is wanted to be one.
fn refuse_first(reference: &Reference, wanted: impl Fn(&Place) -> bool, reports: &mut Vec<Refusal>) {
    let wrong = |place: &&Place| !walk::is_constant(place) && wanted(place);
    let Some(place) = reference.places.iter().find(wrong) else { return };
    let (span, name) = small(place);
    let fact = &reference.name.text;
    let report = match &name {
        Some(name) => {
            let message = format!(
                "`{name}` is an index, because it begins with a small letter, and `{fact}` is given for constants here"
            );
            Refusal::new(Code::LowercaseConstant, span, message).help(format!("write `\"{name}\"`"))
        }
        None => {
            let message = format!("`{fact}` is given for constants here, and this is none");
            Refusal::new(Code::LowercaseConstant, span, message)
        }
    };
    reports.push(report);
}

/// The argument, and the name in it that began with a small letter.
fn small(place: &Place) -> (Span, Option<String>) {
    let name = walk::place_indices(place).next().map(|(name, _)| name.to_owned());
    (place.span, name)
}

/// Whether a place is an index alone, as in a declaration.
fn is_index(place: &Place) -> bool {
    index_name(place).is_some() || matches!(place.kind, PlaceKind::Wildcard)
}

fn index_name(place: &Place) -> Option<&str> {
    match &place.kind {
        PlaceKind::Index(index) => match &index.kind {
            IndexKind::Index(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}
