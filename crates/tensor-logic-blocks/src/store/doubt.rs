//! Numbers that make what was computed from them wrong: such as are not finite, and divisors without an inverse.

use rayon::prelude::*;

use crate::kernels::{Number, finite};

/// What numbers must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Sums that were not formed in the order of the text: infinite, or no number.
    NotFinite,
    /// Divisors of which the inverse was taken: so small that it is infinite.
    NoInverse,
}

impl Doubt {
    pub(crate) fn dispelled<T: Number>(self, values: &[T]) -> bool {
        match self {
            Doubt::NotFinite => all_finite(values),
            Doubt::NoInverse => {
                values.iter().all(|value| *value == T::ZERO || (T::ONE / *value).finite() || !value.finite())
            }
        }
    }
}

/// Whether every number is finite.
pub(crate) fn all_finite<T: Number>(values: &[T]) -> bool {
    if values.len() < 1 << 16 { finite(values) } else { values.par_chunks(1 << 16).all(finite) }
}

/// The binary logarithm of the largest number, 0 for what is below 1; infinite where one is not finite.
pub(crate) fn bits_of<T: Number>(values: &[T]) -> f64 {
    let largest = |values: &[T]| {
        values.iter().fold(0.0_f64, |largest, value| {
            let own = value.double().abs();
            // No comparison with a NaN holds.
            if own.is_finite() { largest.max(own) } else { f64::INFINITY }
        })
    };
    let largest = if values.len() < 1 << 16 {
        largest(values)
    } else {
        values.par_chunks(1 << 16).map(largest).reduce(|| 0.0, f64::max)
    };
    largest.log2().max(0.0)
}
