//! What the relational engine derived, as values and refusals of the language.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::Span;
use crate::digits::are_kept;
use crate::divergence::diverges;
use crate::engine::{Tuples, Value, interrupted};
use crate::error::{Code, Refusal, Result};
use crate::handed::data;
use crate::program::{Columns, Combine, Given, Kind, Program, Style, TensorId};
use crate::room::{is_by_support, volume, whole};
use crate::value::{Const, Domain, Tuple};
use datarel::{Database, Failure, Relation, RelationId, sorting};

/// The value of a goal.
pub(crate) fn value(
    program: &Program,
    database: &Database,
    (goal, relation): (TensorId, RelationId),
) -> Value {
    let relation = database.relation(relation);
    let counts = relation.ring().counts();
    let (arity, rows, values) = (relation.arity(), relation.rows(), relation.values());
    let number = |at: usize| number(relation, at);
    let count = |at: usize| values.get(at).map_or(1, |value| value.as_count());
    let beyond = counts && (0..relation.len()).any(|at| !are_kept(i128::from(count(at))));
    let ids = |at: usize| rows.get(at * arity..(at + 1) * arity).unwrap_or(&[]).iter();
    let tensor = program.tensor(goal);
    if tensor.style == Style::Square {
        let domains: Vec<Option<&Domain>> = tensor.places.iter().map(|place| place.domain.as_ref()).collect();
        let size = domains.iter().map(|domain| domain.map_or(0, Domain::len)).product();
        let place = |at: usize| {
            ids(at).zip(&domains).try_fold(0, |place, (id, domain)| {
                let domain = (*domain)?;
                Some(place * domain.len() + domain.ordinal(database.constants.value(*id))?)
            })
        };
        if beyond {
            // Of counts, an element without a tuple is 0.
            return Value::Counts(Arc::new(spread(vec![0; size], relation.len(), place, count)));
        }
        let elements = vec![tensor.combine.default_value(); size];
        return Value::Dense(spread(elements, relation.len(), place, number).into());
    }
    let tuple = |at: usize| -> Tuple { ids(at).map(|id| database.constants.value(*id)).collect() };
    let mut found: Vec<(Tuple, usize)> = (0..relation.len()).map(|at| (tuple(at), at)).collect();
    if !found.is_sorted_by(|(a, _), (b, _)| program.symbols.compare_tuples(a, b).is_lt()) {
        found.sort_by(|(a, _), (b, _)| program.symbols.compare_tuples(a, b));
    }
    let values = found.iter().map(|(_, at)| number(*at)).collect();
    let counts = found.iter().filter(|_| beyond).map(|(_, at)| count(*at)).collect();
    let tuples = found.into_iter().map(|(tuple, _)| tuple).collect();
    Value::Tuples(Tuples { tuples, values, counts })
}

/// The tuples of a relation that several hold, each once.
pub(crate) fn merged(
    program: &Program,
    database: &Database,
    id: TensorId,
    parts: Option<&Vec<RelationId>>,
) -> Value {
    let mut all: BTreeMap<Tuple, f64> = BTreeMap::new();
    for part in parts.into_iter().flatten() {
        let value = value(program, database, (id, *part));
        if let Value::Tuples(Tuples { tuples, values, .. }) = value {
            all.extend(tuples.into_iter().zip(values));
        }
    }
    let mut found: Vec<(Tuple, f64)> = all.into_iter().collect();
    found.sort_by(|(a, _), (b, _)| program.symbols.compare_tuples(a, b));
    let (tuples, values) = found.into_iter().unzip();
    Value::Tuples(Tuples { tuples, values, counts: Vec::new() })
}

/// The value of a tuple, by its position.
fn number(relation: &Relation, at: usize) -> f64 {
    match relation.values().get(at) {
        Some(value) if relation.ring().counts() => value.as_count() as f64,
        Some(value) => value.as_real(),
        None => 1.0,
    }
}

/// The value of a goal, if it fits.
///
/// # Errors
/// `too-large` for a square tensor whose elements need more bytes than the limit.
pub(crate) fn answered(
    program: &Program,
    database: &Database,
    (goal, relation): (TensorId, RelationId),
    limit: u64,
) -> Result<Value> {
    if program.tensor(goal).style == Style::Square {
        whole(program, goal, 0, limit)?;
    }
    Ok(value(program, database, (goal, relation)))
}

/// The relation of a goal as data for another engine; of a square tensor the elements that are there, where they are few.
///
/// # Errors
/// `too-large` for a square tensor all of whose elements are given and need more bytes than the limit.
pub(crate) fn given(
    program: &Program,
    database: &Database,
    (goal, relation): (TensorId, RelationId),
    limit: u64,
) -> Result<Vec<Given>> {
    let (id, relation, tensor) = (relation, database.relation(relation), program.tensor(goal));
    let beyond = |value: &datarel::Value| !are_kept(i128::from(value.as_count()));
    let beyond = relation.ring().counts() && relation.values().iter().any(beyond);
    let few = tensor.combine == Combine::Sum && is_by_support(volume(&tensor.sizes()), relation.len());
    if beyond || tensor.style == Style::Square && !few {
        return Ok(data(tensor, answered(program, database, (goal, id), limit)?));
    }
    let values = match tensor.kind {
        Kind::Bool => Vec::new(),
        _ => (0..relation.len()).map(|at| number(relation, at)).collect(),
    };
    Ok(vec![Given::Columns(Arc::new(columns(program, database, relation, values)))])
}

/// The tuples of a relation with these values (none: all 1), in the order of answers.
fn columns(program: &Program, database: &Database, relation: &Relation, values: Vec<f64>) -> Columns {
    let place = |ids: Vec<u32>| {
        let used = ascending(&ids);
        let constants: Vec<Const> = used.iter().map(|id| database.constants.value(*id)).collect();
        let mut order: Vec<u32> = (0..used.len() as u32).collect();
        let compare =
            |a: &u32, b: &u32| program.symbols.compare(constants[*a as usize], constants[*b as usize]);
        if !order.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            order.sort_unstable_by(compare);
        }
        let mut code = vec![0; order.len()];
        (0..).zip(&order).for_each(|(position, at)| code[*at as usize] = position);
        let dictionary: Vec<Const> = order.iter().map(|at| constants[*at as usize]).collect();
        (Arc::new(dictionary), renumbered(ids, &used, &code))
    };
    let (dictionaries, mut columns): (Vec<_>, Vec<Vec<u32>>) =
        relation.columns().into_iter().map(place).unzip();
    let len = relation.len();
    let mut values = (!values.is_empty()).then_some(values);
    let order = sorting(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>(), len);
    if let Some(order) = order {
        let rows = || order.iter().map(|row| *row as usize);
        columns.iter_mut().for_each(|column| *column = rows().map(|row| column[row]).collect());
        values = values.map(|values| rows().map(|row| values[row]).collect());
    }
    let columns = columns.into_iter().map(Arc::new).collect();
    Columns { len, dictionaries, columns, values: values.map(Arc::new) }
}

/// Different ids in ascending order.
fn ascending(ids: &[u32]) -> Vec<u32> {
    let (Some(low), Some(high)) = (ids.iter().min(), ids.iter().max()) else { return Vec::new() };
    let span = (high - low) as usize + 1;
    if span > SPREAD * ids.len() {
        let mut used = ids.to_vec();
        used.sort_unstable();
        used.dedup();
        return used;
    }
    let mut seen = vec![false; span];
    ids.iter().for_each(|id| seen[(id - low) as usize] = true);
    (*low..=*high).zip(seen).filter(|(_, seen)| *seen).map(|(id, _)| id).collect()
}

/// Ids become the codes of those that are used.
fn renumbered(mut ids: Vec<u32>, used: &[u32], codes: &[u32]) -> Vec<u32> {
    let (Some(low), Some(high)) = (used.first(), used.last()) else { return ids };
    let span = (high - low) as usize + 1;
    if span == used.len() && codes.is_sorted() {
        ids.iter_mut().for_each(|id| *id -= low);
    } else if span <= SPREAD * ids.len() {
        let mut of = vec![0; span];
        used.iter().zip(codes).for_each(|(id, code)| of[(id - low) as usize] = *code);
        ids.iter_mut().for_each(|id| *id = of[(*id - low) as usize]);
    } else {
        let code = |id: &u32| used.binary_search(id).map_or(0, |at| codes[at]);
        ids.iter_mut().for_each(|id| *id = code(id));
    }
    ids
}

/// Ids of a column are looked up in a table of their range where that is at most so many times as long.
const SPREAD: usize = 4;

/// The elements of a square tensor, with what its tuples have put in their places.
fn spread<T>(
    mut elements: Vec<T>,
    tuples: usize,
    place: impl Fn(usize) -> Option<usize>,
    value: impl Fn(usize) -> T,
) -> Vec<T> {
    for at in 0..tuples {
        if let Some(element) = place(at).and_then(|place| elements.get_mut(place)) {
            *element = value(at);
        }
    }
    elements
}

/// A failure as the language refuses it.
pub(super) fn refusal(
    program: &Program,
    database: &Database,
    tensors: &BTreeMap<RelationId, TensorId>,
    failure: Failure,
) -> Refusal {
    let tensor_of = |relation: RelationId| tensors.get(&relation).copied();
    let place = |relation: RelationId| {
        let tensor = tensor_of(relation);
        let equation = program.equations.iter().filter(|equation| Some(equation.tensor) == tensor);
        let recursive = |e: &&crate::program::Equation| program.reads_of(e.tensor).contains(&e.tensor);
        let mut equations: Vec<_> = equation.collect();
        equations.sort_by_key(|equation| (!recursive(equation), equation.span.start));
        let written = tensor.map_or(Span::default(), |id| program.tensor(id).span);
        equations.first().map_or(written, |equation| equation.head_span)
    };
    let name = |relation: RelationId| tensor_of(relation).map_or("?", |id| program.name(id)).to_owned();
    match failure {
        Failure::Tuples { relation, limit } => {
            let message = format!("`{}` grows beyond {limit} tuples (--max-tuples)", name(relation));
            Refusal::new(Code::Budget, place(relation), message)
                .help("end the rule by a comparison or a declared domain, or raise --max-tuples")
        }
        Failure::Bytes { relation, needed, limit } => {
            let message =
                format!("`{}` needs {needed} bytes, and {limit} are allowed (--max-bytes)", name(relation));
            Refusal::new(Code::Budget, place(relation), message).help("raise --max-bytes")
        }
        Failure::Divergence { relation, rounds, .. } => {
            let tensor = tensor_of(relation);
            let component = program
                .components
                .iter()
                .find(|component| tensor.is_some_and(|id| component.tensors.contains(&id)));
            match component {
                Some(component) => diverges(program, component, rounds, tensor),
                None => {
                    Refusal::new(Code::Divergence, place(relation), "the recursion does not come to rest")
                }
            }
        }
        Failure::Overflow { relation, tuple } => {
            let tuple: Tuple = tuple.iter().map(|id| database.constants.value(*id)).collect();
            let name = name(relation);
            let message = format!(
                "`{name}({})` would be more than a count of 64 bits holds",
                program.show_tuple(&tuple)
            );
            let help = format!("`: real` instead of `: count` for `{name}`");
            Refusal::new(Code::Overflow, place(relation), message).help(help)
        }
        Failure::Interrupted => interrupted(Span::default()),
        Failure::TooManyConstants
        | Failure::Shape { .. }
        | Failure::NotStratified { .. }
        | Failure::Rule { .. } => Refusal::new(Code::Budget, Span::default(), failure.to_string()),
    }
}
