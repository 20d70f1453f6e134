//! Stored relations: sorted tuples of codes, with a dictionary for each place.
//!
//! Contributions arrive in [`Piece`]s (what one term made, or given facts), each with its own
//! dictionaries; [`Relation::merge`] sorts them together and joins equal tuples by the tensor's
//! [`Combine`]. Dictionaries and tuples are in the order of answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datarel::sorting;

use super::block::Groups;
use crate::engine::Tuples;
use crate::kernels::{Array, Buffer, Grouping, larger, smaller};
use crate::program::{Combine, Given, Program, Role, TensorId};
use crate::value::{Const, Domain, Symbols, Tuple};

/// A relation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relation {
    /// The number of tuples.
    pub(crate) len: usize,
    /// For each place its constants, in the order of answers.
    pub(crate) dictionaries: Vec<Arc<Vec<Const>>>,
    /// For each place the positions of its constants.
    pub(crate) columns: Vec<Arc<Vec<u32>>>,
    /// Values; `None`: all 1.
    pub(crate) values: Option<Arc<Values>>,
    /// Which tuples these are: relations of one number have the same.
    pub(crate) tuples: u64,
}

/// Tuples that are like no others; their number is no stamp of anything else.
fn new_tuples() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 48);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The values of the tuples, in 64 bits, as an array that is computed with, or both.
#[derive(Debug, Default)]
pub(crate) struct Values {
    doubles: OnceLock<Arc<Vec<f64>>>,
    array: OnceLock<Array>,
}

impl Values {
    fn of(doubles: Vec<f64>) -> Arc<Values> {
        Arc::new(Values { doubles: OnceLock::from(Arc::new(doubles)), array: OnceLock::new() })
    }

    /// The values in 64 bits.
    pub(crate) fn doubles(&self) -> &Arc<Vec<f64>> {
        let computed = || match self.array.get().and_then(Array::done) {
            Some(Buffer::Numbers(numbers)) => numbers.doubles(),
            Some(truths) => Arc::new(truths.numbers()),
            None => Arc::default(),
        };
        self.doubles.get_or_init(computed)
    }

    /// The values as an array, which is made of the doubles if there is none yet.
    pub(crate) fn array(&self, make: impl FnOnce(&[f64]) -> Array) -> Array {
        self.array.get_or_init(|| make(self.doubles())).clone()
    }
}

/// The tuples of a relation without their values, where every contribution is a tuple of its own.
#[derive(Debug, Clone)]
pub(crate) struct Skeleton {
    /// The tuples, all with the value 1.
    pub(crate) relation: Relation,
    /// Which contribution each tuple is; `None`: they are in order.
    pub(crate) order: Option<Arc<Vec<u32>>>,
}

impl Skeleton {
    /// The tuples that contributions make, if no two make the same.
    pub(crate) fn new(arity: usize, piece: Piece, symbols: &Symbols) -> Option<Skeleton> {
        let pieces = [Piece { values: None, counts: None, ..piece }];
        let joined = Joined::new(arity, &pieces, Combine::Or, symbols);
        if joined.first.len() < pieces[0].len {
            return None;
        }
        let order = (!joined.first.is_sorted()).then(|| Arc::new(joined.first.clone()));
        Some(Skeleton { relation: joined.tuples.picked(&joined.first), order })
    }
}

/// The tuples of several relations, without their values.
#[derive(Debug, Clone)]
pub(crate) struct Union {
    /// The tuples, all with the value 1.
    pub(crate) relation: Relation,
    /// Of each of the relations its rows, by the tuples that they are here; `None`: the same, in their order.
    pub(crate) groups: Vec<Option<Groups>>,
}

impl Union {
    /// The tuples of all of these.
    pub(crate) fn new(arity: usize, parts: &[&Relation], symbols: &Symbols) -> Union {
        if let [first, others @ ..] = parts
            && others.iter().all(|other| other.tuples == first.tuples)
        {
            let relation = Relation { values: None, ..Relation::clone(first) };
            return Union { relation, groups: vec![None; parts.len()] };
        }
        let bare = |part: &&Relation| Relation { values: None, ..Relation::clone(part) }.piece();
        let pieces: Vec<Piece> = parts.iter().map(bare).collect();
        let mut into: Vec<Vec<u32>> = parts.iter().map(|part| vec![0; part.len]).collect();
        let starts: Vec<usize> =
            parts.iter().scan(0, |start, part| Some(std::mem::replace(start, *start + part.len))).collect();
        let joined = Joined::visiting(arity, &pieces, Combine::Or, symbols, |row, tuple| {
            let part = starts.partition_point(|start| *start <= row) - 1;
            into[part][row - starts[part]] = tuple;
        });
        let relation = joined.tuples.picked(&joined.first);
        let grouped = |of: Vec<u32>| {
            if of.len() == relation.len && of.is_sorted() {
                return None;
            }
            let (start, ordered) = datarel::by_group(&of, relation.len);
            Some(Groups { of: Arc::new(of), rows: Grouping::new(start, ordered) })
        };
        let groups = into.into_iter().map(grouped).collect();
        Union { relation, groups }
    }

    /// About how much room it takes.
    pub(crate) fn bytes(&self) -> usize {
        let groups = self.groups.iter().flatten().map(|groups| 4 * groups.of.len() + groups.rows.bytes());
        4 * self.relation.len * self.relation.columns.len() + groups.sum::<usize>()
    }
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
    pub(crate) fn of(constants: impl Iterator<Item = Const> + Clone) -> Codes {
        Codes::of_interval(constants.clone()).unwrap_or_else(|| {
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
        })
    }

    /// Codes of integers that lie close together: their distances from the least, which are in the order of answers.
    fn of_interval(constants: impl Iterator<Item = Const> + Clone) -> Option<Codes> {
        let (mut low, mut high, mut len) = (i64::MAX, i64::MIN, 0_u64);
        for value in constants.clone() {
            let value = value.int()?;
            (low, high, len) = (low.min(value), high.max(value), len + 1);
        }
        if len == 0 || high.abs_diff(low) >= 2 * len {
            return None;
        }
        let codes =
            constants.map(|value| value.int().map_or(0, |value| value.abs_diff(low) as u32)).collect();
        Some(Codes { dictionary: (low..=high).map(Const::Int).collect(), codes })
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
    /// How many contributions each stands for, where means are taken; `None`: 1.
    pub(crate) counts: Option<Vec<f64>>,
}

impl Piece {
    /// The marked elements of a square of values.
    pub(crate) fn of_marked(domains: &[Domain], values: &[f64], marks: &[bool]) -> Piece {
        let marked: Vec<usize> = (0..marks.len()).filter(|at| marks[*at]).collect();
        let sizes: Vec<usize> = domains.iter().map(Domain::len).collect();
        let apart = crate::kernels::strides(&sizes);
        let place = |((domain, size), stride): ((&Domain, &usize), usize)| Codes {
            dictionary: domain.values().collect(),
            codes: marked.iter().map(|at| (at / stride % size) as u32).collect(),
        };
        let values: Vec<f64> = marked.iter().map(|at| values[*at]).collect();
        Piece {
            len: marked.len(),
            places: domains.iter().zip(&sizes).zip(apart).map(place).collect(),
            values: values.iter().any(|value| *value != 1.0).then_some(values),
            counts: None,
        }
    }
}

impl Relation {
    /// The relation without tuples.
    pub(crate) fn empty(arity: usize) -> Relation {
        Relation {
            len: 0,
            dictionaries: vec![Arc::default(); arity],
            columns: vec![Arc::default(); arity],
            values: None,
            tuples: new_tuples(),
        }
    }

    /// Whether columns are all there is of a tensor.
    pub(crate) fn is_given(program: &Program, id: TensorId) -> bool {
        let tensor = program.tensor(id);
        let [Given::Columns(given)] = tensor.given.as_slice() else { return false };
        let mut limits = given.dictionaries.iter().zip(&tensor.places);
        let inside = limits.all(|(own, place)| {
            place.limit.as_ref().is_none_or(|limit| own.iter().all(|value| limit.contains(*value)))
        });
        let mut equations = program.equations.iter().filter(|equation| equation.tensor == id);
        let truths = matches!(tensor.combine, Combine::Or | Combine::Exists) && given.values.is_some();
        tensor.role == Role::Data && !truths && inside && equations.all(|own| own.terms.is_empty())
    }

    /// Columns that are all there is of a tensor, as they lie.
    pub(crate) fn as_given(program: &Program, id: TensorId) -> Option<Relation> {
        let [Given::Columns(given)] = program.tensor(id).given.as_slice() else { return None };
        if !Relation::is_given(program, id) {
            return None;
        }
        let valued = |values: &&Arc<Vec<f64>>| values.iter().any(|value| *value != 1.0);
        let values = given.values.as_ref().filter(valued).map(|values| {
            Arc::new(Values { doubles: OnceLock::from(Arc::clone(values)), array: OnceLock::new() })
        });
        Some(Relation {
            len: given.len,
            dictionaries: given.dictionaries.clone(),
            columns: given.columns.clone(),
            values,
            tuples: new_tuples(),
        })
    }

    /// The relation of all contributions.
    pub(crate) fn merge(arity: usize, pieces: &[Piece], combine: Combine, symbols: &Symbols) -> Relation {
        let Joined { tuples, first, cells } = Joined::new(arity, pieces, combine, symbols);
        if cells.is_empty() {
            return tuples.picked(&first);
        }
        let kept = || first.iter().zip(&cells).filter(|(_, cell)| cell.exists(combine));
        let values: Vec<f64> = kept().map(|(_, cell)| cell.finish(combine)).collect();
        let rows: Vec<u32> = kept().map(|(row, _)| *row).collect();
        let valued = values.iter().any(|value| *value != 1.0);
        Relation { values: valued.then(|| Values::of(values)), ..tuples.picked(&rows) }
    }

    /// All contributions joined into one piece, so that more can follow.
    pub(crate) fn fold(pieces: &[Piece], arity: usize, combine: Combine, symbols: &Symbols) -> Piece {
        let Joined { tuples, first, cells } = Joined::new(arity, pieces, combine, symbols);
        let counts = (combine == Combine::Avg).then(|| cells.iter().map(|cell| cell.count).collect());
        let values = (!cells.is_empty()).then(|| cells.iter().map(|cell| cell.value).collect());
        Piece { values, counts, ..tuples.picked(&first).piece() }
    }

    /// The tuples of these rows, in this order, without values.
    fn picked(&self, rows: &[u32]) -> Relation {
        if rows.len() == self.len && rows.is_sorted() {
            return Relation { values: None, ..self.clone() };
        }
        let take = |column: &Vec<u32>| Arc::new(rows.iter().map(|row| column[*row as usize]).collect());
        let places = self.dictionaries.iter().zip(&self.columns);
        let used = places.map(|(dictionary, column)| only_used(Arc::clone(dictionary), take(column)));
        let (dictionaries, columns) = used.unzip();
        Relation { len: rows.len(), dictionaries, columns, values: None, tuples: new_tuples() }
    }

    /// The same tuples with these values, one for each, which are computed before anybody looks at them.
    pub(crate) fn valued(&self, values: Array) -> Relation {
        let values = Values { doubles: OnceLock::new(), array: OnceLock::from(values) };
        Relation { values: Some(Arc::new(values)), ..self.clone() }
    }

    /// The values as an array, if there is one.
    pub(crate) fn array(&self) -> Option<Array> {
        self.values.as_ref()?.array.get().cloned()
    }

    /// The values, if they are computed with and are computed anew when what they come from changes.
    pub(crate) fn computed(&self) -> Option<Array> {
        self.array().filter(|array| !array.is_given())
    }

    /// The tuples as a piece.
    pub(crate) fn piece(&self) -> Piece {
        let places = self.dictionaries.iter().zip(&self.columns);
        let places = places.map(|(d, c)| Codes { dictionary: d.to_vec(), codes: c.to_vec() }).collect();
        Piece { len: self.len, places, values: self.doubles().map(|values| values.to_vec()), counts: None }
    }

    /// The value of a tuple.
    pub(crate) fn value(&self, at: usize) -> f64 {
        self.doubles().and_then(|values| values.get(at).copied()).unwrap_or(1.0)
    }

    /// The values in 64 bits; `None`: all 1.
    pub(crate) fn doubles(&self) -> Option<&Arc<Vec<f64>>> {
        self.values.as_ref().map(|values| values.doubles())
    }

    /// The tuples at these positions only.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Relation {
        let kept: Vec<u32> = (0..self.len as u32).filter(|at| keep(*at as usize)).collect();
        let of = |values: &Arc<Vec<f64>>| Values::of(kept.iter().map(|at| values[*at as usize]).collect());
        Relation { values: self.doubles().map(of), ..self.picked(&kept) }
    }

    /// A tuple.
    pub(crate) fn tuple(&self, row: usize) -> Tuple {
        let pairs = self.columns.iter().zip(&self.dictionaries);
        pairs.filter_map(|(column, dictionary)| dictionary.get(column[row] as usize).copied()).collect()
    }

    /// The tuples as answers show them.
    pub(crate) fn tuples(&self) -> Tuples {
        Tuples {
            counts: Vec::new(),
            tuples: (0..self.len).map(|row| self.tuple(row)).collect(),
            values: (0..self.len).map(|at| self.value(at)).collect(),
        }
    }
}

/// The dictionary of one place over all pieces, and its column.
fn merge_place(pieces: &[Piece], place: usize, symbols: &Symbols) -> (Vec<Const>, Vec<u32>) {
    let mut dictionary = Vec::new();
    for piece in pieces {
        let codes = &piece.places[place];
        let mut used = vec![false; codes.dictionary.len()];
        codes.codes.iter().for_each(|code| used[*code as usize] = true);
        dictionary
            .extend(codes.dictionary.iter().zip(used).filter(|(_, used)| *used).map(|(value, _)| *value));
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

/// Sorted contributions, those to the same tuple joined.
struct Joined {
    /// Where each contribution goes.
    tuples: Relation,
    /// For each tuple one of its contributions.
    first: Vec<u32>,
    /// What each tuple gets; none where all that matters is that it is there.
    cells: Vec<Cell>,
}

impl Joined {
    fn new(arity: usize, pieces: &[Piece], combine: Combine, symbols: &Symbols) -> Joined {
        Joined::visiting(arity, pieces, combine, symbols, |_, _| {})
    }

    /// The same; `visit` is told of each contribution to which tuple it goes.
    fn visiting(
        arity: usize,
        pieces: &[Piece],
        combine: Combine,
        symbols: &Symbols,
        mut visit: impl FnMut(usize, u32),
    ) -> Joined {
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let places = (0..arity).map(|place| merge_place(pieces, place, symbols));
        let (dictionaries, columns): (Vec<_>, Vec<_>) =
            places.map(|(dictionary, column)| (Arc::new(dictionary), Arc::new(column))).unzip();
        let all = |of: &dyn Fn(&Piece) -> Option<&Vec<f64>>| -> Option<Vec<f64>> {
            pieces.iter().any(|piece| of(piece).is_some()).then(|| {
                let one = |piece: &Piece| of(piece).cloned().unwrap_or_else(|| vec![1.0; piece.len]);
                pieces.iter().flat_map(one).collect()
            })
        };
        let values = all(&|piece| piece.values.as_ref());
        let counts = all(&|piece| piece.counts.as_ref());
        // Where all are 1, more of them change nothing.
        let bare = values.is_none() && counts.is_none() && !matches!(combine, Combine::Sum | Combine::Avg);
        let order = sorting(&columns.iter().map(|column| column.as_slice()).collect::<Vec<_>>(), total);
        let equal = |a: usize, b: usize| columns.iter().all(|column| column[a] == column[b]);
        let (mut first, mut cells): (Vec<u32>, Vec<Cell>) = (Vec::new(), Vec::new());
        for at in 0..total {
            let row = order.as_ref().map_or(at, |order| order[at] as usize);
            let value = values.as_ref().map_or(1.0, |values| values[row]);
            let count = counts.as_ref().map_or(1.0, |counts| counts[row]);
            if first.last().is_some_and(|last| equal(*last as usize, row)) {
                cells.last_mut().into_iter().for_each(|cell| cell.add(combine, value, count));
            } else {
                first.push(row as u32);
                cells.extend((!bare).then_some(Cell { value, count }));
            }
            visit(row, first.len() as u32 - 1);
        }
        let tuples = Relation { len: total, dictionaries, columns, values: None, tuples: new_tuples() };
        Joined { tuples, first, cells }
    }
}

/// The contributions to one tuple.
#[derive(Debug, Clone, Copy)]
struct Cell {
    value: f64,
    count: f64,
}

impl Cell {
    fn add(&mut self, combine: Combine, value: f64, count: f64) {
        self.count += count;
        self.value = match combine {
            Combine::Sum | Combine::Avg | Combine::Exists | Combine::Proofs | Combine::Slopes => {
                self.value + value
            }
            Combine::Max | Combine::Or => larger(self.value, value),
            Combine::Min => smaller(self.value, value),
            Combine::Times => self.value * value,
        };
    }

    fn exists(self, combine: Combine) -> bool {
        !matches!(combine, Combine::Or | Combine::Exists) || self.value > 0.0
    }

    fn finish(self, combine: Combine) -> f64 {
        match combine {
            Combine::Or | Combine::Exists => 1.0,
            Combine::Avg => self.value / self.count,
            _ => self.value,
        }
    }
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
