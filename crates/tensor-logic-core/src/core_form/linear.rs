//! Index functions that are sums of multiples of indices, and the index that such an equation gives.

use crate::program::{IndexFn, IndexId};
use crate::value::Const;

/// An index function as `constant + Σ coefficient · value`, where it is one. An index whose
/// occurrences cancel stays, with coefficient 0: it is still an index of the function.
pub fn linear(function: &IndexFn) -> Option<(Vec<(IndexId, i64)>, i64)> {
    let both = |a: &IndexFn, b: &IndexFn, sign: i64| {
        let ((mut terms, constant), (others, more)) = (linear(a)?, linear(b)?);
        for (index, coefficient) in others {
            let coefficient = coefficient.checked_mul(sign)?;
            match terms.iter_mut().find(|(i, _)| *i == index) {
                Some((_, sum)) => *sum = sum.checked_add(coefficient)?,
                None => terms.push((index, coefficient)),
            }
        }
        Some((terms, constant.checked_add(more.checked_mul(sign)?)?))
    };
    match function {
        IndexFn::Const(Const::Int(value)) => Some((Vec::new(), *value)),
        IndexFn::Index(index) => Some((vec![(*index, 1)], 0)),
        IndexFn::Negate(a) => both(&IndexFn::Const(Const::Int(0)), a, -1),
        IndexFn::Add(a, b) => both(a, b, 1),
        IndexFn::Subtract(a, b) => both(a, b, -1),
        IndexFn::Multiply(a, b) => {
            let (terms, constant) = linear(a)?;
            let (others, factor) = linear(b)?;
            let ((terms, constant), factor) = match (terms.is_empty(), others.is_empty()) {
                (_, true) => ((terms, constant), factor),
                (true, false) => ((others, factor), constant),
                (false, false) => return None,
            };
            let scaled: Option<Vec<(IndexId, i64)>> =
                terms.into_iter().map(|(index, c)| Some((index, c.checked_mul(factor)?))).collect();
            Some((scaled?, constant.checked_mul(factor)?))
        }
        _ => None,
    }
}

/// The value of `index` for which `constant + Σ coefficient · value` is 0, given the values of the others; `None` where no
/// integer is. Nothing between overflows, so that it is found wherever it is an integer of 64 bits.
pub fn solve(
    terms: &[(IndexId, i64)],
    constant: i128,
    index: IndexId,
    value: &dyn Fn(IndexId) -> Option<i64>,
) -> Option<i64> {
    let (mut rest, mut own) = (constant, 0);
    for (other, coefficient) in terms {
        if *other == index {
            own = i128::from(*coefficient);
        } else {
            rest = rest.checked_add(i128::from(*coefficient) * i128::from(value(*other)?))?;
        }
    }
    if own == 0 || rest % own != 0 {
        return None;
    }
    i64::try_from(-(rest / own)).ok()
}
