//! Denotation: the value of a proof, over any ring and any carrier of the atoms.
//!
//! Enter at [`Evaluator::closed`] and [`Evaluator::apply`]; read the result with
//! [`Evaluator::coordinates`]. There is one evaluator. Over matrices it is the vector space semantics, over words its
//! free-monoid oracle, over infinitesimals its derivatives, over polynomials the polynomial map of a proof, and over
//! instructions its compilation.

mod carrier;
mod code;
mod coordinates;
mod dense;
mod epsilons;
mod evaluate;
mod linear;
mod matrix;
mod value;
mod word;
mod words;

pub use carrier::{Carrier, Change, Obstacle, Outcome, Scalar};
pub use dense::{Dense, MAX_ENTRIES};
pub use evaluate::Evaluator;
pub use matrix::Matrix;
pub use value::ValueId;
pub use word::Word;
pub use words::{FormalSum, Words};
