//! The warning `dependent-parents` (N13): the paper's chain of marginals multiplies marginals as
//! if they were independent, which they are not where they share an ancestor.
//!
//! Enter at [`warnings`].

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Code, Warning};
use crate::program::{Combine, Expr, Given, Program, Read, Role, Style, TensorId};

/// A warning for every equation that multiplies computed factors which share a probability table.
pub fn warnings(program: &Program) -> Vec<Warning> {
    let tables: BTreeSet<TensorId> = (0u32..)
        .map(TensorId)
        .zip(&program.tensors)
        .filter(|(id, _)| is_table(program, *id))
        .map(|(id, _)| id)
        .collect();
    let mut below = BTreeMap::new();
    // Components come in evaluation order, so that the tables below a factor are known.
    for component in &program.components {
        for id in &component.tensors {
            below.insert(*id, tables_below(program, *id, &tables, &below));
        }
    }
    let mut found = Vec::new();
    for equation in &program.equations {
        for term in &equation.terms {
            let Some(reads) = factors(&term.body) else { continue };
            let sets: Vec<(TensorId, &BTreeSet<TensorId>)> = reads
                .iter()
                .filter(|read| program.tensor(read.tensor).role == Role::Computed)
                .filter_map(|read| Some((read.tensor, below.get(&read.tensor)?.as_ref()?)))
                .collect();
            let shared = sets.iter().enumerate().find_map(|(at, (a, first))| {
                let (b, table) = sets
                    .iter()
                    .skip(at + 1)
                    .find_map(|(b, second)| first.intersection(second).next().map(|table| (*b, *table)))?;
                Some((*a, b, table))
            });
            if let Some((a, b, table)) = shared {
                let message = format!(
                    "`{}` and `{}` are multiplied as if they were independent, and both come from `{}`",
                    program.name(a),
                    program.name(b),
                    program.name(table)
                );
                let help = "write the product of all factors as one model `Z` and ask `Z[… | …]?`";
                found.push(Warning::new(Code::DependentParents, equation.head_span, message).help(help));
                break;
            }
        }
    }
    found
}

/// Non-negative data that sums to 1 along its first index.
fn is_table(program: &Program, id: TensorId) -> bool {
    let tensor = program.tensor(id);
    let [Given::Array { fixed, shape, values, .. }] = tensor.given.as_slice() else { return false };
    let whole =
        tensor.style == Style::Square && tensor.role == Role::Data && fixed.iter().all(Option::is_none);
    let Some(first) = shape.first().copied().filter(|first| whole && *first > 0) else { return false };
    let columns = values.len() / first;
    let sum = |column: usize| values.iter().skip(column).step_by(columns.max(1)).sum::<f64>();
    values.iter().all(|value| *value >= 0.0) && (0..columns).all(|column| (sum(column) - 1.0).abs() <= 1e-9)
}

/// The reads of a product, or `None` where it is none.
fn factors(expr: &Expr) -> Option<Vec<&Read>> {
    match expr {
        Expr::Read(read) => Some(vec![read]),
        Expr::Number(_) => Some(Vec::new()),
        Expr::Product(parts) => {
            let parts: Option<Vec<Vec<&Read>>> = parts.iter().map(factors).collect();
            Some(parts?.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// The probability tables that a tensor is made of by sums of products; `None` where it is made
/// otherwise.
fn tables_below(
    program: &Program,
    id: TensorId,
    tables: &BTreeSet<TensorId>,
    below: &BTreeMap<TensorId, Option<BTreeSet<TensorId>>>,
) -> Option<BTreeSet<TensorId>> {
    if program.tensor(id).combine != Combine::Sum {
        return None;
    }
    let mut found = BTreeSet::new();
    for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
        for term in &equation.terms {
            for read in factors(&term.body)? {
                if tables.contains(&read.tensor) {
                    found.insert(read.tensor);
                } else if program.tensor(read.tensor).role == Role::Computed {
                    found.extend(below.get(&read.tensor)?.as_ref()?);
                }
            }
        }
    }
    Some(found)
}
