//! How many atoms there are.

use super::count_law::CountLaw;

/// By multiplication, which is the same on every machine.
pub(crate) fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}

/// The number of atoms with k variables in scope.
pub(crate) fn atoms(law: &CountLaw, k: usize) -> f64 {
    let terms = (k as u64 + law.constants) as f64;
    let predicates: f64 =
        law.predicates.iter().map(|&(arity, number)| power(terms, arity) * number as f64).sum();
    predicates + law.relations.len() as f64 * terms * terms + if law.truth { 2.0 } else { 0.0 }
}
