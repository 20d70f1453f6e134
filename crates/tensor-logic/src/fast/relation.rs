//! Stored relations: sorted tuples of codes, with a dictionary for each place.
//!
//! Contributions arrive in [`Piece`]s (what one term made, or given facts), each with its own
//! dictionaries; [`Relation::merge`] sorts them together and joins equal tuples by the tensor's
//! [`Combine`]. Dictionaries and tuples are in the order of answers.

use std::collections::HashMap;
use std::sync::Arc;

use super::block::{larger, smaller};
use crate::engine::Tuples;
use crate::program::Combine;
use crate::value::{Const, Symbols};

/// A relation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Relation {
    /// The number of tuples.
    pub(crate) len: usize,
    /// For each place its constants, in the order of answers.
    pub(crate) dictionaries: Vec<Arc<Vec<Const>>>,
    /// For each place the positions of its constants.
    pub(crate) columns: Vec<Arc<Vec<u32>>>,
    /// Values; `None`: all 1.
    pub(crate) values: Option<Arc<Vec<f64>>>,
}

/// One place of a [`Piece`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Codes {
    /// What the codes stand for; values may repeat and may be unused.
    pub(crate) dictionary: Vec<Const>,
    /// One code a contribution.
    pub(crate) codes: Vec<u32>,
}

impl Codes {
    /// Codes of constants.
    pub(crate) fn of(constants: impl Iterator<Item = Const>) -> Codes {
        let mut known: HashMap<Const, u32> = HashMap::new();
        let mut result = Codes::default();
        for value in constants {
            let next = result.dictionary.len() as u32;
            let code = *known.entry(value).or_insert(next);
            if code == next {
                result.dictionary.push(value);
            }
            result.codes.push(code);
        }
        result
    }
}

/// Contributions to a relation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Piece {
    /// How many.
    pub(crate) len: usize,
    /// Where they go.
    pub(crate) places: Vec<Codes>,
    /// Their values; `None`: all 1.
    pub(crate) values: Option<Vec<f64>>,
}

impl Relation {
    /// The relation of all contributions.
    pub(crate) fn merge(arity: usize, pieces: &[Piece], combine: Combine, symbols: &Symbols) -> Relation {
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let mut dictionaries = Vec::with_capacity(arity);
        let mut columns: Vec<Vec<u32>> = Vec::with_capacity(arity);
        for place in 0..arity {
            let (dictionary, column) = merge_place(pieces, place, symbols);
            dictionaries.push(Arc::new(dictionary));
            columns.push(column);
        }
        let values: Option<Vec<f64>> = pieces.iter().any(|piece| piece.values.is_some()).then(|| {
            let all = pieces.iter().flat_map(|piece| (0..piece.len).map(move |at| value_of(piece, at)));
            all.collect()
        });
        let order = sorted_order(&columns, &dictionaries, total);
        combine_sorted(order.as_deref(), dictionaries, &columns, values.as_deref(), total, combine)
    }

    /// The value of a tuple.
    pub(crate) fn value(&self, at: usize) -> f64 {
        self.values.as_ref().and_then(|values| values.get(at).copied()).unwrap_or(1.0)
    }

    /// The tuples at these positions only.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Relation {
        let kept: Vec<usize> = (0..self.len).filter(|at| keep(*at)).collect();
        let take = |column: &Arc<Vec<u32>>| Arc::new(kept.iter().map(|at| column[*at]).collect::<Vec<u32>>());
        let used = self.dictionaries.iter().zip(&self.columns).map(|(d, c)| only_used(Arc::clone(d), take(c)));
        let (dictionaries, columns) = used.unzip();
        let values = self.values.as_ref().map(|values| Arc::new(kept.iter().map(|at| values[*at]).collect()));
        Relation { len: kept.len(), dictionaries, columns, values }
    }

    /// The tuples as answers show them.
    pub(crate) fn tuples(&self) -> Tuples {
        let tuple = |row: usize| {
            let pairs = self.columns.iter().zip(&self.dictionaries);
            pairs.filter_map(|(column, dictionary)| dictionary.get(column[row] as usize).copied()).collect()
        };
        Tuples {
            tuples: (0..self.len).map(tuple).collect(),
            values: (0..self.len).map(|at| self.value(at)).collect(),
        }
    }
}

fn value_of(piece: &Piece, at: usize) -> f64 {
    piece.values.as_ref().map_or(1.0, |values| values[at])
}

/// The dictionary of one place over all pieces, and its column.
fn merge_place(pieces: &[Piece], place: usize, symbols: &Symbols) -> (Vec<Const>, Vec<u32>) {
    let mut dictionary = Vec::new();
    for piece in pieces {
        let codes = &piece.places[place];
        let mut used = vec![false; codes.dictionary.len()];
        codes.codes.iter().for_each(|code| used[*code as usize] = true);
        dictionary.extend(codes.dictionary.iter().zip(used).filter(|(_, used)| *used).map(|(value, _)| *value));
    }
    if !dictionary.is_sorted_by(|a, b| symbols.compare(*a, *b).is_lt()) {
        dictionary.sort_unstable_by(|a, b| symbols.compare(*a, *b));
        dictionary.dedup();
    }
    let mut column = Vec::new();
    for piece in pieces {
        let codes = &piece.places[place];
        let find = |value: &Const| dictionary.binary_search_by(|other| symbols.compare(*other, *value));
        let translated: Vec<u32> =
            codes.dictionary.iter().map(|value| find(value).map_or(u32::MAX, |at| at as u32)).collect();
        column.extend(codes.codes.iter().map(|code| translated[*code as usize]));
    }
    (dictionary, column)
}

/// The order of the rows by their columns, equal ones as they came; `None` where they are in
/// order already.
fn sorted_order(columns: &[Vec<u32>], dictionaries: &[Arc<Vec<Const>>], total: usize) -> Option<Vec<u32>> {
    let space = dictionaries.iter().try_fold(1_u64, |space, dictionary| {
        space.checked_mul((dictionary.len() as u64).max(1))
    });
    if let Some(_space) = space {
        let mut keys: Vec<(u64, u32)> = (0..total as u32).map(|row| (0, row)).collect();
        for (column, dictionary) in columns.iter().zip(dictionaries) {
            let size = (dictionary.len() as u64).max(1);
            for (key, code) in keys.iter_mut().zip(column) {
                key.0 = key.0 * size + u64::from(*code);
            }
        }
        if keys.is_sorted() {
            return None;
        }
        keys.sort_unstable();
        return Some(keys.into_iter().map(|(_, row)| row).collect());
    }
    let mut order: Vec<u32> = (0..total as u32).collect();
    order.sort_by(|a, b| {
        let pairs = columns.iter().map(|column| column[*a as usize].cmp(&column[*b as usize]));
        pairs.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    Some(order)
}

fn combine_sorted(
    order: Option<&[u32]>,
    dictionaries: Vec<Arc<Vec<Const>>>,
    columns: &[Vec<u32>],
    values: Option<&[f64]>,
    total: usize,
    combine: Combine,
) -> Relation {
    let row_at = |at: usize| order.map_or(at, |order| order[at] as usize);
    let equal = |a: usize, b: usize| columns.iter().all(|column| column[a] == column[b]);
    let mut kept: Vec<u32> = Vec::new();
    let mut results = Vec::new();
    let mut at = 0;
    while at < total {
        let first = row_at(at);
        let mut end = at + 1;
        while end < total && equal(first, row_at(end)) {
            end += 1;
        }
        let one = |at: usize| values.map_or(1.0, |values| values[row_at(at)]);
        if let Some(value) = join((at..end).map(one), combine) {
            kept.push(first as u32);
            results.push(value);
        }
        at = end;
    }
    let take = |column: &Vec<u32>| Arc::new(kept.iter().map(|row| column[*row as usize]).collect::<Vec<u32>>());
    let valued = results.iter().any(|value| *value != 1.0);
    let columns: Vec<Arc<Vec<u32>>> = columns.iter().map(take).collect();
    let used = dictionaries.into_iter().zip(columns).map(|(dictionary, column)| only_used(dictionary, column));
    let (dictionaries, columns) = used.unzip();
    Relation { len: kept.len(), columns, dictionaries, values: valued.then(|| Arc::new(results)) }
}

/// Drops constants that no tuple has any more.
fn only_used(dictionary: Arc<Vec<Const>>, column: Arc<Vec<u32>>) -> (Arc<Vec<Const>>, Arc<Vec<u32>>) {
    let mut used = vec![false; dictionary.len()];
    column.iter().for_each(|code| used[*code as usize] = true);
    if used.iter().all(|used| *used) {
        return (dictionary, column);
    }
    let mut next = 0;
    let renumbered: Vec<u32> = used
        .iter()
        .map(|used| {
            next += u32::from(*used);
            next.wrapping_sub(1)
        })
        .collect();
    let kept = dictionary.iter().zip(&used).filter(|(_, used)| **used).map(|(value, _)| *value).collect();
    (Arc::new(kept), Arc::new(column.iter().map(|code| renumbered[*code as usize]).collect()))
}

/// All contributions to one tuple; `None` where it does not exist.
fn join(values: impl Iterator<Item = f64>, combine: Combine) -> Option<f64> {
    let mut count = 0.0;
    let counted = values.inspect(|_| count += 1.0);
    Some(match combine {
        Combine::Sum => counted.sum(),
        Combine::Avg => {
            let total: f64 = counted.sum();
            total / count
        }
        Combine::Max => counted.fold(f64::NEG_INFINITY, larger),
        Combine::Min => counted.fold(f64::INFINITY, smaller),
        Combine::Times => counted.product(),
        Combine::Or => return counted.fold(false, |any, value| any || value > 0.0).then_some(1.0),
        Combine::Exists => {
            let total: f64 = counted.sum();
            return (total > 0.0).then_some(1.0);
        }
    })
}
