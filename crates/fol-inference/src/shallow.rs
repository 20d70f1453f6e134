//! What can be seen of an instance without reading it: numbers and lengths. A label must not be told by them.

use std::collections::BTreeMap;

use fol::ast::Formula;

use crate::tree::{atoms, length};

/// What each number is.
pub const NAMES: [&str; 12] = [
    "premises",
    "tokens of the premises",
    "longest premise",
    "shortest premise",
    "tokens asked about",
    "atoms of the premises",
    "predicates",
    "atoms of the commonest predicate",
    "predicates that stand once",
    "atoms asked about",
    "predicates asked about",
    "atoms of the premises with a predicate asked about",
];

/// The shallow features of premises and of what is asked about, in the order of [`NAMES`].
pub fn features(premises: &[Formula], asked: Option<&Formula>) -> [f64; 12] {
    let lengths: Vec<usize> = premises.iter().map(length).collect();
    let counts = |formulas: &[Formula]| {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for formula in formulas {
            atoms(formula, &mut |predicate, _| *counts.entry(predicate.0).or_default() += 1);
        }
        counts
    };
    let own = counts(premises);
    let question = counts(asked.map(std::slice::from_ref).unwrap_or_default());
    let shared: usize = question.keys().filter_map(|predicate| own.get(predicate)).sum();
    [
        premises.len(),
        lengths.iter().sum(),
        lengths.iter().max().copied().unwrap_or(0),
        lengths.iter().min().copied().unwrap_or(0),
        asked.map_or(0, length),
        own.values().sum(),
        own.len(),
        own.values().max().copied().unwrap_or(0),
        own.values().filter(|count| **count == 1).count(),
        question.values().sum(),
        question.len(),
        shared,
    ]
    .map(|number| number as f64)
}
