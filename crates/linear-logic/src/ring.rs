//! Commutative rings, as the evaluator knows them: zero, one, sum, product, equality, and the integers.
//!
//! A user's own ring is a type with five functions. The rings of the command are in the modules below.

mod chosen;
mod epsilon;
mod exact;
mod interface;
mod polynomial;

pub use chosen::{Chosen, Number};
pub use epsilon::{Epsilons, Infinitesimal};
pub use exact::{Double, Integers, Modular, Rationals, Word64};
pub use interface::{Fault, Name, Ring};
pub use polynomial::{Monomial, Polynomial, Polynomials};
