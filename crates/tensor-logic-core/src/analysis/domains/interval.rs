//! Intervals of index functions: what values a function takes, and for which values of one index
//! it stays inside a domain.

use crate::linear::linear;
use crate::presence::{bounds_where_defined, bounds_with, extent, range};
use crate::program::{IndexFn, IndexId, Program, Range, floor_div};
use crate::value::{Const, Domain};

/// Functions of which no formula says the values are tried for up to so many bindings.
const TRIED: usize = 1 << 20;

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
        _ => hull(program, function).map_or(Values::Unknown, |(from, to)| Values::Between(from, to)),
    }
}

/// The smallest and the largest value that a function takes, where its indices have known ranges: `i * i - 2 * i` is not
/// smaller than -1, which the bounds of its parts do not say. Of functions of very many bindings it is what the parts say.
pub(super) fn hull(program: &Program, function: &IndexFn) -> Option<(i64, i64)> {
    let count = |id| range(program, id).and_then(|domain| i64::try_from(domain.len()).ok());
    // Not where a part leaves 64 bits for some binding, for which the function has no value.
    let bounds = bounds_where_defined(function, &|id| range(program, id).and_then(extent), &count);
    let mut indices: Vec<IndexId> = Vec::new();
    let mut repeated = false;
    function.visit(&mut |id| match indices.contains(&id) {
        true => repeated = true,
        false => indices.push(id),
    });
    if bounds.is_some_and(|(from, to)| from > to || (!repeated && attained(program, function))) {
        return bounds;
    }
    let domains: Vec<&Domain> = indices.iter().map(|id| range(program, *id)).collect::<Option<_>>()?;
    let bindings = domains.iter().try_fold(1_usize, |all, domain| all.checked_mul(domain.len()));
    let Some(bindings) = bindings.filter(|bindings| *bindings <= TRIED) else { return bounds };
    let mut positions = vec![0; domains.len()];
    let mut found: Option<(i64, i64)> = None;
    for _ in 0..bindings {
        let at = |id: IndexId| indices.iter().position(|other| *other == id);
        let value = |id| at(id).and_then(|at| domains[at].value(positions[at]));
        if let Some(value) =
            function.evaluate(&value, &|id| at(id).map(|at| positions[at])).and_then(Const::int)
        {
            found = Some(found.map_or((value, value), |(from, to)| (from.min(value), to.max(value))));
        }
        for (position, domain) in positions.iter_mut().zip(&domains) {
            *position += 1;
            if *position < domain.len() {
                break;
            }
            *position = 0;
        }
    }
    // No value at all: the wrong way round.
    Some(found.unwrap_or((1, 0)))
}

/// Whether a function of different indices takes the smallest and the largest value that the bounds of its parts say.
fn attained(program: &Program, function: &IndexFn) -> bool {
    let of = |part: &IndexFn| attained(program, part);
    let bounds = |part: &IndexFn| bounds_with(part, &|id| range(program, id).and_then(extent));
    match function {
        IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => true,
        IndexFn::Negate(a) => of(a),
        IndexFn::Add(a, b) | IndexFn::Subtract(a, b) | IndexFn::Multiply(a, b) => of(a) && of(b),
        IndexFn::Divide(a, b) => bounds(b).is_some_and(|(low, high)| low > 0 || high < 0) && of(a) && of(b),
        IndexFn::Remainder(a, b) => {
            let IndexFn::Const(divisor) = **b else { return false };
            let (Some(divisor), Some((from, to))) = (divisor.int(), bounds(a)) else { return false };
            // All remainders, or none but the numbers themselves.
            let all =
                a.alone().is_some() && to.saturating_sub(from).saturating_add(1) >= divisor.saturating_abs();
            (all || (0 <= from && to < divisor)) && of(a)
        }
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
            IndexFn::Add(a, b) | IndexFn::Subtract(a, b) if self.holds(a) && self.holds(b) => {
                self.solve_sum(function, low, high)
            }
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

    /// The same of a sum in which the open index stands more than once: `i + i` is `2 * i`.
    fn solve_sum(&self, function: &IndexFn, low: i64, high: i64) -> Option<(i64, i64)> {
        let (terms, constant) = linear(function)?;
        let (own, others): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(index, _)| *index == self.index);
        let (mut low, mut high) = (low.checked_sub(constant)?, high.checked_sub(constant)?);
        for (index, coefficient) in others {
            let (from, to) = (self.range)(index)?;
            let (a, b) = (from.checked_mul(coefficient)?, to.checked_mul(coefficient)?);
            (low, high) = (low.checked_sub(a.min(b))?, high.checked_sub(a.max(b))?);
        }
        let [(index, coefficient)] = own.as_slice() else { return None };
        let factor = IndexFn::Const(Const::Int(*coefficient));
        let product = IndexFn::Multiply(Box::new(IndexFn::Index(*index)), Box::new(factor));
        self.solve(&product, low, high)
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
