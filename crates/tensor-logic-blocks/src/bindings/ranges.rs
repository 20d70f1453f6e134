//! What indices range over that take the values of tuples.

use std::sync::Arc;

use crate::kernels::volume;
use crate::program::{Argument, IndexFn, IndexId, Range, Read};
use crate::store::machine::{Counts, Machine, indices_of, product_columns};
use crate::store::plan::Source;
use crate::value::{Const, Domain};

impl Machine {
    /// A domain that holds these values: an interval where they lie close together.
    pub(crate) fn compact(&self, mut values: Vec<Const>) -> Domain {
        let symbols = &self.program.symbols;
        if !values.is_sorted_by(|a, b| symbols.compare(*a, *b).is_lt()) {
            values.sort_unstable_by(|a, b| symbols.compare(*a, *b));
            values.dedup();
        }
        if let (Some(Const::Int(from)), Some(Const::Int(to))) = (values.first(), values.last()) {
            let span = to.abs_diff(*from);
            if span < 4 * values.len() as u64 + 64 {
                return Domain::Interval { from: *from, to: *to };
            }
        }
        Domain::listed(values)
    }

    /// Sets the ranges of indices that take the values of tuples: those at the places of `reads`
    /// (else of `nearby`) where the index stands alone or beside a constant.
    pub(crate) fn set_tuple_ranges(&mut self, indices: &[IndexId], reads: &[&Read], nearby: &[&Read]) {
        for index in indices {
            if !matches!(self.program.index(*index).range, Range::Tuples) {
                continue;
            }
            let gives = |read: &&&Read| {
                read.arguments
                    .iter()
                    .any(|argument| matches!(argument, Argument::At(f) if giver(f, *index).is_some()))
            };
            let mut givers: Vec<&Read> = reads.iter().filter(gives).copied().collect();
            if givers.is_empty() {
                givers = nearby.iter().filter(gives).copied().collect();
            }
            let source = |read: &&Read| match self.counts(read, false) {
                Counts::All => Source::Tuples(read.tensor),
                _ => Source::Tensor(read.tensor),
            };
            let mut relations: Vec<_> = givers.iter().map(source).collect();
            relations.dedup();
            // Two terms may read one relation at different places.
            let reads: Vec<u64> = givers.iter().map(|read| read.node.number()).collect();
            let stamps = (self.stamps(relations), reads);
            if self.tuple_sources.get(index).is_some_and(|(known, _)| *known == stamps) {
                continue;
            }
            let values = self.tuple_values(*index, &givers);
            let domain = self.compact(values.clone());
            let ordinals =
                values.iter().filter_map(|value| domain.ordinal(*value)).map(|at| at as u32).collect();
            self.set_range(*index, domain);
            self.tuple_sources.insert(*index, (stamps, ordinals));
        }
    }

    /// The ordinals of the values that an index takes in tuples.
    pub(crate) fn tuple_ordinals(&self, index: IndexId) -> Option<Vec<u32>> {
        match self.program.index(index).range {
            Range::Tuples => {
                Some(self.tuple_sources.get(&index).map_or(Vec::new(), |(_, ordinals)| ordinals.clone()))
            }
            Range::Domain(_) | Range::Computed => None,
        }
    }

    fn tuple_values(&mut self, index: IndexId, givers: &[&Read]) -> Vec<Const> {
        let mut lists: Vec<Vec<Const>> = Vec::new();
        let mut seen: Vec<Arc<Vec<Const>>> = Vec::new();
        for read in givers {
            let relation = self.as_relation(read, self.counts(read, false));
            for (place, argument) in read.arguments.iter().enumerate() {
                let Argument::At(function) = argument else { continue };
                let Some((sign, rest)) = giver(function, index) else { continue };
                // value = sign · index + rest, so index = sign · (value - rest).
                let offsets: Vec<Option<i64>> = match &rest {
                    None => vec![None],
                    Some(rest) => self.all_values(rest).into_iter().map(Some).collect(),
                };
                let Some(dictionary) = relation.dictionaries.get(place) else { continue };
                if sign == 1 && rest.is_none() {
                    if seen.iter().any(|seen| Arc::ptr_eq(seen, dictionary)) {
                        continue;
                    }
                    seen.push(Arc::clone(dictionary));
                }
                let mut values = Vec::new();
                for value in dictionary.iter() {
                    for offset in &offsets {
                        let found = match (value, offset) {
                            (value, None) if sign == 1 => Some(*value),
                            (Const::Int(value), offset) => {
                                let rest = value.checked_sub(offset.unwrap_or(0));
                                rest.and_then(|rest| rest.checked_mul(sign)).map(Const::Int)
                            }
                            _ => None,
                        };
                        values.extend(found);
                    }
                }
                lists.push(values);
            }
        }
        let symbols = &self.program.symbols;
        let sort = |values: &mut Vec<Const>| {
            if !values.is_sorted_by(|a, b| symbols.compare(*a, *b).is_lt()) {
                values.sort_unstable_by(|a, b| symbols.compare(*a, *b));
                values.dedup();
            }
        };
        // Most often one relation has nearly all of them.
        lists.sort_by_key(Vec::len);
        let mut values = lists.pop().unwrap_or_default();
        sort(&mut values);
        let known = values.len();
        for value in lists.into_iter().flatten() {
            if values[..known].binary_search_by(|other| symbols.compare(*other, value)).is_err() {
                values.push(value);
            }
        }
        sort(&mut values);
        values
    }

    /// All integers that an index function can have over the ranges of its indices.
    fn all_values(&self, function: &IndexFn) -> Vec<i64> {
        let indices = indices_of(function);
        let sizes: Vec<usize> = indices.iter().map(|index| self.size(*index)).collect();
        if volume(&sizes) > 1 << 20 {
            return Vec::new();
        }
        let columns = product_columns(&sizes);
        let value = |row: usize| {
            let ordinal =
                |index: IndexId| indices.iter().position(|i| *i == index).map(|at| columns[at][row]);
            self.function(function, &ordinal)?.int()
        };
        let mut values: Vec<i64> = (0..volume(&sizes)).filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// How a place gives the value of an index: `sign · index + rest`; `None` for the rest: 0.
fn giver(function: &IndexFn, index: IndexId) -> Option<(i64, Option<IndexFn>)> {
    let is = |part: &IndexFn| part.alone() == Some(index);
    let without = |part: &IndexFn| !indices_of(part).contains(&index);
    match function {
        IndexFn::Index(own) => (*own == index).then_some((1, None)),
        IndexFn::Add(a, b) if is(a) && without(b) => Some((1, Some(IndexFn::clone(b)))),
        IndexFn::Add(a, b) if is(b) && without(a) => Some((1, Some(IndexFn::clone(a)))),
        IndexFn::Subtract(a, b) if is(a) && without(b) => Some((1, Some(IndexFn::Negate(b.clone())))),
        IndexFn::Subtract(a, b) if is(b) && without(a) => Some((-1, Some(IndexFn::clone(a)))),
        _ => None,
    }
}
