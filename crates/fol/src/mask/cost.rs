//! Numbers of tokens, and how they add up.

use crate::codec::MAX_DIGITS;

/// A number of tokens.
pub(super) type Cost = u32;

/// No completion at all. Sums of a few costs do not overflow.
pub(super) const NEVER: Cost = 1 << 28;

/// The least costs of a term: `NEVER`, or 1 + digits.
pub(super) const TERM_COSTS: usize = 2 + MAX_DIGITS as usize;

/// The place of a term's least cost in a table.
pub(super) fn class(term: Cost) -> usize {
    if (term as usize) < TERM_COSTS { term as usize } else { 0 }
}

/// The term's least cost at a place of a table.
pub(super) fn of_class(class: usize) -> Cost {
    if class < 2 { NEVER } else { class as Cost }
}

/// A sum of costs.
pub(super) fn sum<const N: usize>(costs: [Cost; N]) -> Cost {
    costs.into_iter().fold(0, |sum: Cost, cost| (sum + cost.min(NEVER)).min(NEVER))
}

/// The cost, if it is possible at all.
pub(super) fn cost_if(possible: bool, cost: Cost) -> Cost {
    if possible { cost } else { NEVER }
}

/// The cost of `arity` arguments in parentheses.
pub(super) fn arguments(arity: usize, term: Cost) -> Cost {
    match Cost::try_from(arity) {
        Ok(0) => 0,
        Ok(arity) => arity.checked_mul(term.min(NEVER)).map_or(NEVER, |terms| sum([terms, arity, 1])),
        Err(_) => NEVER,
    }
}
