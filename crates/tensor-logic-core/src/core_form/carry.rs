//! What two programs say alike, so that what was computed of one serves the other: in a dialogue a program grows by a
//! statement or changes its query, and most of it stays what it was.
//!
//! Enter at [`same`].

use std::collections::BTreeSet;

use crate::program::{Equation, Facts, Given, Index, Program, Tensor, TensorId};
use crate::value::SymbolId;

/// The tensors whose values are the same in both programs, parameters at the same values: defined alike, over tensors that
/// are, under the same settings. Ids and symbols must agree too.
pub fn same(old: &Program, new: &Program) -> BTreeSet<TensorId> {
    if old.settings != new.settings || !symbols_agree(old, new) {
        return BTreeSet::new();
    }
    let indices: Vec<bool> = old.indices.iter().zip(&new.indices).map(|(old, new)| index(old, new)).collect();
    let (before, after) = (by_tensor(old), by_tensor(new));
    let mut kept: BTreeSet<TensorId> = BTreeSet::new();
    for (at, (one, other)) in old.tensors.iter().zip(&new.tensors).enumerate() {
        let alike = before[at].len() == after[at].len()
            && before[at].iter().zip(&after[at]).all(|(one, other)| equation(one, other, &indices));
        if alike && tensor(one, other) {
            kept.insert(TensorId(at as u32));
        }
    }
    // What reads something else is something else.
    let reads: Vec<(TensorId, TensorId)> = new
        .equations
        .iter()
        .flat_map(|equation| {
            let mut read = Vec::new();
            equation.visit_reads(&mut |element, _| read.push((equation.tensor, element.tensor)));
            read
        })
        .collect();
    loop {
        let before = kept.len();
        for (tensor, read) in &reads {
            if !kept.contains(read) {
                kept.remove(tensor);
            }
        }
        if kept.len() == before {
            return kept;
        }
    }
}

/// Whether every symbol of the old program has its id in the new one.
fn symbols_agree(old: &Program, new: &Program) -> bool {
    let ids = (0..old.symbols.len()).map(|at| SymbolId(at as u32));
    let mut ids = ids.into_iter();
    old.symbols.len() <= new.symbols.len() && ids.all(|id| old.symbols.name(id) == new.symbols.name(id))
}

/// The equations of each tensor, with their positions.
fn by_tensor(program: &Program) -> Vec<Vec<(usize, &Equation)>> {
    let mut found = vec![Vec::new(); program.tensors.len()];
    for (at, equation) in program.equations.iter().enumerate() {
        if let Some(own) = found.get_mut(equation.tensor.0 as usize) {
            own.push((at, equation));
        }
    }
    found
}

fn index(old: &Index, new: &Index) -> bool {
    old.name == new.name && format!("{:?}", old.range) == format!("{:?}", new.range)
}

/// Whether two equations are one: the same text, the same ids, indices that run alike.
fn equation((at, old): &(usize, &Equation), (other, new): &(usize, &Equation), indices: &[bool]) -> bool {
    let written = format!("{old:?}");
    if at != other || written != format!("{new:?}") {
        return false;
    }
    let numbers = written.split("IndexId(").skip(1);
    let mut ids = numbers.filter_map(|rest| rest.split(')').next()?.parse::<usize>().ok());
    ids.all(|id| indices.get(id).copied().unwrap_or(false))
}

fn tensor(old: &Tensor, new: &Tensor) -> bool {
    let places = |tensor: &Tensor| format!("{:?}", tensor.places);
    old.name == new.name
        && old.version == new.version
        && !old.hidden
        && !new.hidden
        && (old.style, old.kind, old.combine, old.role) == (new.style, new.kind, new.combine, new.role)
        && old.start == new.start
        && old.given.len() == new.given.len()
        && old.given.iter().zip(&new.given).all(|(old, new)| given(old, new))
        && places(old) == places(new)
}

fn given(old: &Given, new: &Given) -> bool {
    match (old, new) {
        (Given::Facts(old), Given::Facts(new)) => facts(old, new),
        (Given::Columns(old), Given::Columns(new)) => {
            old.len == new.len
                && old.dictionaries == new.dictionaries
                && old.columns == new.columns
                && (0..old.len).all(|at| old.value(at).to_bits() == new.value(at).to_bits())
        }
        (
            Given::Array { fixed, shape, values, .. },
            Given::Array { fixed: others, shape: sizes, values: numbers, .. },
        ) => fixed == others && shape == sizes && bits(values, numbers),
        _ => false,
    }
}

fn facts(old: &Facts, new: &Facts) -> bool {
    old.arity == new.arity
        && old.count == new.count
        && old.constants == new.constants
        && bits(&old.values, &new.values)
}

fn bits(old: &[f64], new: &[f64]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.to_bits() == new.to_bits())
}
