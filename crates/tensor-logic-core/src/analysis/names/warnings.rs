//! The warnings of section 10 that names and tree suffice for.
//!
//! Enter at [`warnings`]. `implicit-parameter`, `dependent-parents` and `non-finite` need the
//! core form or the answers and are made elsewhere.

use std::collections::{HashMap, HashSet};

use crate::ast::{IndexKind, Program, Reference, RightSide, Sign, Statement, StatementKind};
use crate::error::{Code, Warning};
use crate::names::indices::{Fixed, fixed};
use crate::names::known::Names;
use crate::names::occurrence::{self, Role};
use crate::names::walk;
use crate::program::Style;

mod functions;
mod gradient;
mod parts;
mod sums;

use parts::Parts;

/// All warnings, in order of place. The text is quoted in the explicit forms of sums.
pub fn warnings(text: &str, program: &Program, names: &Names) -> Vec<Warning> {
    let mut reports = Vec::new();
    for statement in &program.statements {
        letter_case(statement, names, &mut reports);
        functions::check(statement, names, &mut reports);
        sums::check(text, statement, names, &mut reports);
    }
    empty_relations(program, names, &mut reports);
    duplicate_facts(program, names, &mut reports);
    gradient::check(program, names, &mut reports);
    reports.sort_by_key(|report| (report.span.start, report.code));
    reports.dedup();
    reports
}

/// A symbol in an index that differs from an index of the statement only in case.
fn letter_case(statement: &Statement, names: &Names, reports: &mut Vec<Warning>) {
    let parts = Parts::of(statement);
    let indices: HashMap<String, &str> =
        parts.indices.iter().map(|index| (index.to_lowercase(), *index)).collect();
    if indices.is_empty() {
        return;
    }
    for leaf in parts.values.iter().flat_map(|value| walk::leaves(value)) {
        let IndexKind::Name(name) = &leaf.kind else { continue };
        let Some(index) = indices.get(&name.to_lowercase()) else { continue };
        if names.constants.contains_key(name) {
            continue;
        }
        let message = format!("`{name}` is a symbol here and `{index}` an index");
        let help = format!("write `{index}` for the index, or `\"{name}\"` for the symbol");
        reports.push(Warning::new(Code::LetterCase, leaf.span, message).help(help));
    }
}

/// Relations that are read and have neither facts nor rules.
fn empty_relations(program: &Program, names: &Names, reports: &mut Vec<Warning>) {
    let defined = |name: &str| names.is_defined(name);
    let mut seen = HashSet::new();
    for occurrence in occurrence::all(program, &defined, &names.constants) {
        let Some(tensor) = names.tensors.get(occurrence.name) else { continue };
        let has_data = tensor.given || tensor.computed || tensor.parameter.is_some();
        let read = matches!(occurrence.role, Role::Read);
        if tensor.style == Style::Round && !has_data && read && seen.insert(occurrence.name) {
            let message =
                format!("the relation `{}` is empty: it has neither facts nor rules", occurrence.name);
            reports.push(Warning::new(Code::EmptyRelation, occurrence.span, message));
        }
    }
}

/// Valued facts that are given twice; their values are combined.
fn duplicate_facts(program: &Program, names: &Names, reports: &mut Vec<Warning>) {
    let mut seen: HashMap<(&str, Vec<Fixed>), &Reference> = HashMap::new();
    for statement in &program.statements {
        let StatementKind::Equation {
            head, sign: Sign::Equal, right: RightSide::Expr { expr, guards }, ..
        } = &statement.kind
        else {
            continue;
        };
        if walk::number(expr).is_none() || !guards.is_empty() {
            continue;
        }
        let tuple: Option<Vec<Fixed>> = head
            .places
            .iter()
            .map(|place| match &place.kind {
                crate::ast::PlaceKind::Index(index) => fixed(index, names),
                _ => None,
            })
            .collect();
        let Some(tuple) = tuple else { continue };
        let first = *seen.entry((&head.name.text, tuple)).or_insert(head);
        if first.span != head.span {
            let message = format!("`{}` has a value here already: the two are combined", head.name.text);
            let report = Warning::new(Code::DuplicateFact, head.span, message);
            reports.push(report.label(first.span, "the first value"));
        }
    }
}
