//! Guards that say that two values are equal: what has the same value is found by it, not pair by pair.
//!
//! Enter at [`Machine::partners`], for the rows of a table, and at [`Machine::joined_by_value`], for two tables that share no
//! index.

use crate::engine::Storage;
use std::collections::HashMap;

use super::support::{MANY, Search};
use crate::ast::Comparison;
use crate::error::Result;
use crate::program::{Expr, Guard, IndexId};
use crate::store::condition::{Condition, free};
use crate::store::machine::Machine;
use crate::store::rows::Rows;

/// Two values that must be equal, as the condition at a position says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Equal<'p> {
    pub(crate) at: usize,
    pub(crate) sides: [&'p Expr; 2],
    /// Whether the guard says so by their difference, which must be 0.
    difference: bool,
}

/// The values that open guards want to be equal, where each hangs on indices that the other does not hang on.
pub(crate) fn equal<'p>(search: &Search<'p, '_>) -> Vec<Equal<'p>> {
    let open = search.conditions.iter().zip(&search.done).enumerate().filter(|(_, (_, done))| !**done);
    let found = open.filter_map(|(at, (condition, _))| {
        let Condition::Guard(Guard::Compare(Comparison::Equal, a, b)) = *condition else { return None };
        let (difference, [a, b]) = match difference(a, b).or_else(|| difference(b, a)) {
            Some(sides) => (true, sides),
            None => (false, [a, b]),
        };
        let (own, other) = (free(a), free(b));
        let apart = !own.is_empty() && !other.is_empty() && !own.iter().any(|index| other.contains(index));
        apart.then_some(Equal { at, sides: [a, b], difference })
    });
    found.collect()
}

/// The values of which the first is a difference, where the second is 0. Of numbers it is 0 where they are equal, however it
/// is rounded; with an infinite one it is not, and an absent one is left out of it: [`Equal::tells`].
fn difference<'p>(value: &'p Expr, zero: &Expr) -> Option<[&'p Expr; 2]> {
    let (Expr::Terms(terms) | Expr::Plus(terms)) = value else { return None };
    match (terms.as_slice(), zero) {
        ([Expr::Negate(b), a] | [a, Expr::Negate(b)], Expr::Number(number)) if *number == 0.0 => Some([a, b]),
        _ => None,
    }
}

impl Equal<'_> {
    /// Whether the guard is what the equality of these values is.
    fn tells(&self, values: &[Option<f64>]) -> bool {
        !self.difference || values.iter().all(|value| value.is_some_and(f64::is_finite))
    }
}

/// So many guards are tried for the one that leaves the fewest.
const TRIED: usize = 4;

/// What stands at places, by its value.
pub(crate) struct ByValue {
    /// The places of each value one behind the other, in order.
    places: Vec<u32>,
    /// By the bits of a value where they begin and end.
    of: HashMap<u64, (usize, usize)>,
}

/// The bits of a value, by which it is found; none for what is equal to nothing.
fn bits(value: f64) -> Option<u64> {
    // -0 is equal to 0.
    (!value.is_nan()).then(|| (value + 0.0).to_bits())
}

impl ByValue {
    fn new(values: &[Option<f64>]) -> ByValue {
        let known = values.iter().zip(0..).filter_map(|(value, at)| Some((bits((*value)?)?, at)));
        let mut known: Vec<(u64, u32)> = known.collect();
        known.sort_unstable();
        let mut of: HashMap<u64, (usize, usize)> = HashMap::new();
        for (at, (bits, _)) in known.iter().enumerate() {
            of.entry(*bits).or_insert((at, at)).1 = at + 1;
        }
        ByValue { places: known.into_iter().map(|(_, at)| at).collect(), of }
    }

    /// How many places have the values of a list.
    fn count(&self, wanted: &[Option<f64>]) -> usize {
        wanted.iter().map(|value| self.of(*value).len()).fold(0, usize::saturating_add)
    }

    fn of(&self, value: Option<f64>) -> &[u32] {
        let range = value.and_then(bits).and_then(|bits| self.of.get(&bits));
        range.map_or(&[], |(from, to)| &self.places[*from..*to])
    }
}

/// For each row of a table the ordinals of an index that may be its partners, ascending.
pub(crate) struct Partners {
    /// The guard that says so.
    pub(crate) at: usize,
    ordinals: ByValue,
    wanted: Vec<Option<f64>>,
}

impl Partners {
    /// Those of a row.
    pub(crate) fn of(&self, row: usize) -> &[u32] {
        self.ordinals.of(self.wanted[row])
    }
}

impl Machine {
    /// The ordinals of an index at which one of two values is what the other is at a row, if the guards say so of anything; each
    /// value is asked for once at each place.
    pub(crate) fn partners(
        &mut self,
        search: &Search<'_, '_>,
        equal: &[Equal<'_>],
        rows: &Rows,
        index: IndexId,
    ) -> Result<Option<Partners>> {
        let known = |other: &IndexId| rows.binds(*other) || search.context.fixed(*other).is_some();
        let alone = |other: &IndexId| *other == index || search.context.fixed(*other).is_some();
        let found = equal.iter().flat_map(turned).filter(|(_, a, b)| {
            let own = free(b);
            free(a).iter().all(known) && own.contains(&index) && own.iter().all(alone)
        });
        let mut least: Option<(usize, Partners)> = None;
        for (equal, a, b) in found.take(TRIED).collect::<Vec<_>>() {
            self.reserve_rows(self.size(index), 1)?;
            let (id, size) = (self.number(), self.size(index) as u32);
            let every = Rows::unit().select(&vec![0; size as usize], id).with(index, (0..size).collect(), id);
            let (values, wanted) = (self.of_rows(b, search, &every)?, self.of_rows(a, search, rows)?);
            if !(equal.tells(&values) && equal.tells(&wanted)) {
                continue;
            }
            let partners = Partners { at: equal.at, ordinals: ByValue::new(&values), wanted };
            let total = partners.ordinals.count(&partners.wanted);
            if least.as_ref().is_none_or(|(least, _)| total < *least) {
                least = Some((total, partners));
            }
        }
        Ok(least.map(|(_, partners)| partners))
    }

    /// The rows of two tables without a common index that a guard leaves which wants a value of one to be a value of the other,
    /// and that guard; `None`, if there is none, or it leaves many pairs of which what is still to be joined or compared may leave
    /// few.
    pub(crate) fn joined_by_value(
        &mut self,
        search: &Search<'_, '_>,
        left: &Rows,
        right: &Rows,
        last: bool,
    ) -> Result<Option<(Rows, usize)>> {
        let pairs = left.len.saturating_mul(right.len);
        let common = right.indices.iter().any(|index| left.binds(*index));
        if common || (pairs <= MANY && self.storage != Storage::Sparse) {
            return Ok(None);
        }
        let of = |indices: &[IndexId], table: &Rows| {
            let fixed = |index: &IndexId| search.context.fixed(*index).is_some();
            indices.iter().all(|index| table.binds(*index) || fixed(index))
                && indices.iter().any(|index| table.binds(*index))
        };
        let equal = equal(search);
        let found =
            equal.iter().flat_map(turned).filter(|(_, a, b)| of(&free(a), left) && of(&free(b), right));
        let mut least: Option<(usize, ByValue, Vec<Option<f64>>, usize)> = None;
        for (equal, a, b) in found.take(TRIED).collect::<Vec<_>>() {
            let (values, wanted) = (self.of_rows(b, search, right)?, self.of_rows(a, search, left)?);
            if !(equal.tells(&values) && equal.tells(&wanted)) {
                continue;
            }
            let others = ByValue::new(&values);
            let total = others.count(&wanted);
            if least.as_ref().is_none_or(|(least, ..)| total < *least) {
                least = Some((total, others, wanted, equal.at));
            }
        }
        let Some((total, others, wanted, at)) = least else { return Ok(None) };
        let many = total > MANY && total / 4 > left.len + right.len;
        if many && (!last || search.relates(left, right)) {
            return Ok(None);
        }
        // Beside the rows stand their numbers.
        self.reserve_rows(total, left.columns.len() + right.columns.len() + 2)?;
        let (mut lefts, mut rights) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (row, value) in wanted.iter().enumerate() {
            rights.extend_from_slice(others.of(*value));
            lefts.resize(rights.len(), row as u32);
        }
        Ok(Some((self.side_by_side((left, &lefts), (right, &rights), &[]), at)))
    }
}

/// Both ways round.
fn turned<'p, 'e>(equal: &'e Equal<'p>) -> [(&'e Equal<'p>, &'p Expr, &'p Expr); 2] {
    let [a, b] = equal.sides;
    [(equal, a, b), (equal, b, a)]
}
