//! By how much an index function of a left side exceeds one of a read: `t+1` over `t` is 1.
//!
//! Both are written as linear forms; indices that occur in both cancel. What remains is bounded
//! by the ranges of indices, where they are known, and by guards such as `j < i`.

use std::collections::BTreeMap;

use crate::ast::Comparison;
use crate::program::{Guard, IndexFn, IndexId, Program, Range};
use crate::recursion::graph::{Around, Occurrence};
use crate::value::{Const, Domain};

/// Index functions nested deeper than this are taken as unknown.
const DEEPEST: usize = 200;

/// The least and the largest value of a difference, where they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    pub(super) least: Option<i128>,
    pub(super) largest: Option<i128>,
}

/// A sum of multiples of indices and a constant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Linear {
    factors: BTreeMap<IndexId, i128>,
    constant: i128,
}

impl Linear {
    fn of(function: &IndexFn, depth: usize) -> Option<Linear> {
        let part = |inner: &IndexFn| Linear::of(inner, depth + 1);
        if depth > DEEPEST {
            return None;
        }
        match function {
            IndexFn::Const(value) => Some(Linear { constant: value.int()?.into(), ..Linear::default() }),
            IndexFn::Index(id) => Some(Linear { factors: [(*id, 1)].into(), constant: 0 }),
            IndexFn::Negate(a) => part(a)?.times(-1),
            IndexFn::Add(a, b) => part(a)?.plus(&part(b)?),
            IndexFn::Subtract(a, b) => part(a)?.plus(&part(b)?.times(-1)?),
            IndexFn::Multiply(a, b) => match (part(a)?, part(b)?) {
                (a, b) if a.factors.is_empty() => b.times(a.constant),
                (a, b) if b.factors.is_empty() => a.times(b.constant),
                _ => None,
            },
            IndexFn::Ordinal(_) | IndexFn::Divide(..) | IndexFn::Remainder(..) => None,
        }
    }

    fn times(mut self, by: i128) -> Option<Linear> {
        self.constant = self.constant.checked_mul(by)?;
        for factor in self.factors.values_mut() {
            *factor = factor.checked_mul(by)?;
        }
        Some(self.reduced())
    }

    fn plus(mut self, other: &Linear) -> Option<Linear> {
        self.constant = self.constant.checked_add(other.constant)?;
        for (index, by) in &other.factors {
            let factor = self.factors.entry(*index).or_default();
            *factor = factor.checked_add(*by)?;
        }
        Some(self.reduced())
    }

    fn minus(self, other: &Linear) -> Option<Linear> {
        self.plus(&other.clone().times(-1)?)
    }

    fn reduced(mut self) -> Linear {
        self.factors.retain(|_, factor| *factor != 0);
        self
    }

    /// Bounds from the ranges of the indices.
    fn bounds(&self, program: &Program) -> Bounds {
        let mut bounds = Bounds { least: Some(self.constant), largest: Some(self.constant) };
        for (index, factor) in &self.factors {
            let (low, high) = range(program, *index);
            let scaled = |end: Option<i64>| i128::from(end?).checked_mul(*factor);
            let (low, high) = if *factor > 0 { (low, high) } else { (high, low) };
            let add = |sum: Option<i128>, end: Option<i64>| sum?.checked_add(scaled(end)?);
            bounds = Bounds { least: add(bounds.least, low), largest: add(bounds.largest, high) };
        }
        bounds
    }
}

/// The ends of an index's range, where it is known and one of integers.
fn range(program: &Program, index: IndexId) -> (Option<i64>, Option<i64>) {
    let Some(index) = program.indices.get(index.0 as usize) else { return (None, None) };
    match &index.range {
        Range::Domain(Domain::Interval { from, to }) => (Some(*from), Some(*to)),
        Range::Domain(domain @ Domain::Listed(_)) => {
            let integers = domain.values().map(Const::int);
            let integers: Option<Vec<i64>> = integers.collect();
            let integers = integers.unwrap_or_default();
            (integers.iter().min().copied(), integers.iter().max().copied())
        }
        Range::Tuples | Range::Computed => (None, None),
    }
}

/// Bounds of `head - read` at an occurrence.
pub(super) fn bounds(
    program: &Program,
    occurrence: &Occurrence<'_>,
    head: &IndexFn,
    read: &IndexFn,
) -> Bounds {
    let Some(difference) = difference(head, read) else { return Bounds::default() };
    let mut bounds = difference.bounds(program);
    for guard in guards(occurrence) {
        let Guard::CompareIndex(comparison, left, right) = guard else { continue };
        let Some(guarded) = self::difference(left, right) else { continue };
        narrow(&mut bounds, &difference, &guarded, *comparison);
    }
    bounds
}

fn difference(left: &IndexFn, right: &IndexFn) -> Option<Linear> {
    Linear::of(left, 0)?.minus(&Linear::of(right, 0)?)
}

/// What holds at an occurrence: the guards of all that stands around it.
fn guards<'a>(occurrence: &'a Occurrence<'_>) -> impl Iterator<Item = &'a Guard> {
    occurrence.around.iter().flat_map(|around| match around {
        Around::When(when) => when.guards.as_slice(),
        _ => &[],
    })
}

/// Uses a guard `guarded ⋈ 0` where it differs from the difference, or from its negative, by a
/// constant only.
fn narrow(bounds: &mut Bounds, difference: &Linear, guarded: &Linear, comparison: Comparison) {
    let same = difference.clone().minus(guarded).filter(|rest| rest.factors.is_empty());
    let opposite = difference.clone().plus(guarded).filter(|rest| rest.factors.is_empty());
    // guarded = difference - same, or guarded = opposite - difference.
    let (least, largest) = match comparison {
        Comparison::Less => (None, Some(-1)),
        Comparison::LessEqual => (None, Some(0)),
        Comparison::Greater => (Some(1), None),
        Comparison::GreaterEqual => (Some(0), None),
        Comparison::Equal => (Some(0), Some(0)),
        Comparison::NotEqual => (None, None),
    };
    let shift = |end: Option<i128>, by: i128, sign: i128| by.checked_add(end? * sign);
    if let Some(rest) = same {
        raise(&mut bounds.least, shift(least, rest.constant, 1));
        lower(&mut bounds.largest, shift(largest, rest.constant, 1));
    }
    if let Some(rest) = opposite {
        raise(&mut bounds.least, shift(largest, rest.constant, -1));
        lower(&mut bounds.largest, shift(least, rest.constant, -1));
    }
}

fn raise(end: &mut Option<i128>, to: Option<i128>) {
    if let Some(to) = to {
        *end = Some(end.map_or(to, |end| end.max(to)));
    }
}

fn lower(end: &mut Option<i128>, to: Option<i128>) {
    if let Some(to) = to {
        *end = Some(end.map_or(to, |end| end.min(to)));
    }
}
