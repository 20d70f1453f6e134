//! Intervals of index functions: what values a function takes, and for which values of one index
//! it stays inside a domain.

use crate::presence::{bounds, bounds_with};
use crate::program::{IndexFn, IndexId, Program, Range, floor_div};
use crate::value::{Const, Domain};

/// The values that a function takes.
pub(super) enum Values {
    /// These constants.
    Listed(Vec<Const>),
    /// Integers between the two.
    Between(i64, i64),
    /// An index of it is bound by tuples or computed.
    Unknown,
}

/// The values that a function takes over the ranges of its indices.
pub(super) fn values(program: &Program, function: &IndexFn) -> Values {
    match function {
        IndexFn::Const(value) => Values::Listed(vec![*value]),
        IndexFn::Index(id) => match &program.index(*id).range {
            Range::Domain(Domain::Interval { from, to }) => Values::Between(*from, *to),
            Range::Domain(domain) => Values::Listed(domain.values().collect()),
            Range::Tuples | Range::Computed => Values::Unknown,
        },
        _ => bounds(program, function).map_or(Values::Unknown, |(from, to)| Values::Between(from, to)),
    }
}

/// A function of one open index and others with known ranges.
pub(super) struct Solver<'a, R> {
    /// The open index.
    pub(super) index: IndexId,
    /// The ranges of the others.
    pub(super) range: &'a R,
}

impl<R: Fn(IndexId) -> Option<(i64, i64)>> Solver<'_, R> {
    /// The values of the open index for which the function stays between `low` and `high`
    /// whatever the others are. `None`: no limit can be said.
    pub(super) fn solve(&self, function: &IndexFn, low: i64, high: i64) -> Option<(i64, i64)> {
        let bounds = |part: &IndexFn| bounds_with(part, self.range);
        match function {
            IndexFn::Index(id) => (*id == self.index).then_some((low, high)),
            IndexFn::Const(_) | IndexFn::Ordinal(_) | IndexFn::Remainder(..) => None,
            IndexFn::Negate(a) => self.solve(a, high.checked_neg()?, low.checked_neg()?),
            IndexFn::Add(a, b) => {
                let (open, other) = self.sides(a, b)?;
                let (from, to) = bounds(other)?;
                self.solve(open, low.checked_sub(from)?, high.checked_sub(to)?)
            }
            IndexFn::Subtract(a, b) if self.holds(a) && !self.holds(b) => {
                let (from, to) = bounds(b)?;
                self.solve(a, low.checked_add(to)?, high.checked_add(from)?)
            }
            IndexFn::Subtract(a, b) if self.holds(b) && !self.holds(a) => {
                let (from, to) = bounds(a)?;
                self.solve(b, to.checked_sub(high)?, from.checked_sub(low)?)
            }
            IndexFn::Subtract(..) => None,
            IndexFn::Multiply(a, b) => {
                let (open, other) = self.sides(a, b)?;
                let (factor, same) = bounds(other)?;
                if factor != same || factor == 0 {
                    return None;
                }
                let (low, high) = if factor > 0 { (low, high) } else { (high, low) };
                let up = low.checked_neg().and_then(|low| floor_div(low, factor))?.checked_neg()?;
                self.solve(open, up, floor_div(high, factor)?)
            }
            IndexFn::Divide(a, b) => {
                let (divisor, same) = bounds(b)?;
                if self.holds(b) || divisor != same || divisor <= 0 {
                    return None;
                }
                let last = high.checked_mul(divisor)?.checked_add(divisor - 1)?;
                self.solve(a, low.checked_mul(divisor)?, last)
            }
        }
    }

    fn holds(&self, function: &IndexFn) -> bool {
        let mut found = false;
        function.visit(&mut |id| found |= id == self.index);
        found
    }

    fn sides<'f>(&self, a: &'f IndexFn, b: &'f IndexFn) -> Option<(&'f IndexFn, &'f IndexFn)> {
        match (self.holds(a), self.holds(b)) {
            (true, false) => Some((a, b)),
            (false, true) => Some((b, a)),
            _ => None,
        }
    }
}
