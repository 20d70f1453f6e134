//! Presence that no binding changes: the values that index functions take, reads that name elements of a
//! tensor whatever the binding, expressions that always have a value.

use crate::program::{
    Argument, Expr, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read, Style, floor_div,
};
use crate::value::{Const, Domain};

/// The smallest and the largest value of a function.
pub fn bounds(program: &Program, function: &IndexFn) -> Option<(i64, i64)> {
    let known = |id: IndexId| match &program.index(id).range {
        Range::Domain(domain) => Some(domain),
        Range::Tuples | Range::Computed => None,
    };
    let count = |id| known(id).and_then(|domain| i64::try_from(domain.len()).ok());
    bounds_counted(function, &|id| known(id).and_then(extent), &count)
}

/// The smallest and the largest integer of a domain; an empty one has them the wrong way round.
pub fn extent(domain: &Domain) -> Option<(i64, i64)> {
    match domain {
        Domain::Interval { from, to } => Some((*from, *to)),
        Domain::Listed(_) => {
            let ints: Option<Vec<i64>> = domain.values().map(Const::int).collect();
            let ints = ints?;
            Some((*ints.iter().min()?, *ints.iter().max()?))
        }
    }
}

/// The bounds of no value.
const EMPTY: (i64, i64) = (1, 0);

/// [`bounds`] of a function without positions, with other ranges.
pub fn bounds_with(function: &IndexFn, range: &impl Fn(IndexId) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
    bounds_counted(function, range, &|_| None)
}

/// [`bounds`] with other ranges, and with other numbers of values, which bound a position whatever
/// the values are.
pub fn bounds_counted(
    function: &IndexFn,
    range: &impl Fn(IndexId) -> Option<(i64, i64)>,
    count: &impl Fn(IndexId) -> Option<i64>,
) -> Option<(i64, i64)> {
    bounded(function, range, count, false)
}

/// [`bounds_counted`] of what the function gives where it has a value at all: nothing is divided by 0.
pub fn bounds_where_defined(
    function: &IndexFn,
    range: &impl Fn(IndexId) -> Option<(i64, i64)>,
    count: &impl Fn(IndexId) -> Option<i64>,
) -> Option<(i64, i64)> {
    bounded(function, range, count, true)
}

fn bounded(
    function: &IndexFn,
    range: &impl Fn(IndexId) -> Option<(i64, i64)>,
    count: &impl Fn(IndexId) -> Option<i64>,
    partly: bool,
) -> Option<(i64, i64)> {
    let of = |part: &IndexFn| bounded(part, range, count, partly);
    let corners = |a: (i64, i64), b: (i64, i64), join: &dyn Fn(i64, i64) -> Option<i64>| {
        if a.0 > a.1 || b.0 > b.1 {
            return Some(EMPTY);
        }
        let all = [join(a.0, b.0)?, join(a.0, b.1)?, join(a.1, b.0)?, join(a.1, b.1)?];
        Some((*all.iter().min()?, *all.iter().max()?))
    };
    match function {
        IndexFn::Const(value) => value.int().map(|value| (value, value)),
        IndexFn::Index(id) => range(*id),
        IndexFn::Ordinal(id) => Some((0, count(*id)?.checked_sub(1)?)),
        IndexFn::Negate(a) => of(a).and_then(|(from, to)| Some((to.checked_neg()?, from.checked_neg()?))),
        IndexFn::Add(a, b) => corners(of(a)?, of(b)?, &i64::checked_add),
        IndexFn::Subtract(a, b) => corners(of(a)?, of(b)?, &i64::checked_sub),
        IndexFn::Multiply(a, b) => corners(of(a)?, of(b)?, &i64::checked_mul),
        IndexFn::Divide(a, b) => {
            let divisor = of(b)?;
            if divisor.0 <= 0 && divisor.1 >= 0 {
                let parts = [(divisor.0, -1), (1, divisor.1)].map(|part| corners(of(a)?, part, &floor_div));
                let held =
                    parts.into_iter().map(|part| part.filter(|_| partly)).collect::<Option<Vec<_>>>()?;
                let held = held.into_iter().filter(|(from, to)| from <= to);
                return Some(held.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or(EMPTY));
            }
            corners(of(a)?, divisor, &floor_div)
        }
        IndexFn::Remainder(a, b) => {
            let (from, to) = of(b)?;
            if of(a).is_some_and(|(low, high)| low > high) {
                return Some(EMPTY);
            }
            let inside = of(a).filter(|(low, high)| from == to && *low >= 0 && *high < from);
            match (from == to, from > 0) {
                (true, true) => Some(inside.unwrap_or((0, from - 1))),
                (true, false) if from < 0 => Some((from + 1, 0)),
                _ if partly && (from, to) == (0, 0) => Some(EMPTY),
                _ if partly => Some(((from + 1).min(0), (to - 1).max(0))),
                _ => None,
            }
        }
    }
}

/// The values of an index that ranges over a domain.
pub fn range(program: &Program, index: IndexId) -> Option<&Domain> {
    match &program.indices.get(index.0 as usize)?.range {
        Range::Domain(domain) => Some(domain),
        Range::Tuples | Range::Computed => None,
    }
}

/// Whether an index ranges over a domain that is not empty.
pub fn has_values(program: &Program, index: IndexId) -> bool {
    range(program, index).is_some_and(|domain| !domain.is_empty())
}

/// Whether a value is present under every binding.
pub fn always(program: &Program, expr: &Expr) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| always(program, part));
    match expr {
        Expr::Number(_) => true,
        Expr::Index(function) => integer(program, function),
        Expr::Read(read) => in_range(program, read),
        Expr::Missing(_) => false,
        Expr::Product(parts) | Expr::Plus(parts) => all(parts),
        Expr::Terms(parts) => parts.iter().any(|part| always(program, part)),
        Expr::Quotient(a, b) | Expr::Power(a, b) => always(program, a) && always(program, b),
        Expr::Negate(a) => always(program, a),
        Expr::Reduce(reduce) => {
            let zero = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
            let some = reduce.when.guards.is_empty()
                && reduce.over.iter().all(|index| has_values(program, *index))
                && always(program, &reduce.body);
            (reduce.explicit && zero) || some
        }
        Expr::Call(call) => call.when.guards.is_empty() && all(&call.arguments),
        Expr::Axis(axis) => axis.when.guards.is_empty() && always(program, &axis.argument),
    }
}

/// Whether a function has an integer value under every binding.
pub fn integer(program: &Program, function: &IndexFn) -> bool {
    match function {
        IndexFn::Index(id) => matches!(range(program, *id), Some(Domain::Interval { .. })),
        _ => bounds(program, function).is_some(),
    }
}

/// Whether an element exists whatever the binding.
pub fn in_range(program: &Program, read: &Read) -> bool {
    match read.otherwise {
        Otherwise::ZeroOutside => true,
        Otherwise::Absent => false,
        Otherwise::Zero => {
            let Some(tensor) = program.tensors.get(read.tensor.0 as usize) else { return false };
            let mut places = tensor.places.iter().zip(&read.arguments);
            places.all(|(place, argument)| match argument {
                Argument::At(function) => match &place.domain {
                    Some(domain) => fits(program, function, domain),
                    None => tensor.style == Style::Round,
                },
                Argument::Any => false,
            })
        }
    }
}

/// The most values that are compared one by one.
const COMPARED: usize = 10_000;

/// Whether all values of a domain, if they are not too many to be compared, are another's.
pub fn within(part: &Domain, whole: &Domain) -> bool {
    match (part, whole) {
        (Domain::Interval { from, to }, Domain::Interval { from: low, to: high }) => {
            low <= from && to <= high
        }
        (part, whole) => part.len() <= COMPARED && part.values().all(|value| whole.contains(value)),
    }
}

/// Whether a function has a value of a domain under every binding.
pub fn fits(program: &Program, function: &IndexFn, domain: &Domain) -> bool {
    match function {
        IndexFn::Const(value) => domain.contains(*value),
        IndexFn::Index(id) => match (range(program, *id), domain) {
            (Some(range), domain) => within(range, domain),
            (None, _) => false,
        },
        _ => match (bounds(program, function), domain) {
            (Some((from, to)), Domain::Interval { from: low, to: high }) => *low <= from && to <= *high,
            _ => false,
        },
    }
}
