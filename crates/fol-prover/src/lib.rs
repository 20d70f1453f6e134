//! Whether a formula of first-order logic follows from others: yes with a proof, no with a finite model, or unknown.
//!
//! A [`Problem`] is premises and a conclusion; [`prove`](prove()) gives its [`Verdict`] within a [`Limit`]. A definite verdict carries its
//! certificate, a [`Proof`] or a [`Model`], and [`check_proof`] and [`check_model`] believe nothing of it: the one applies the substitutions that
//! are written down and propagates units, the other evaluates the formulas as they stand. [`rules`] are the named rules of short
//! proofs, [`semantics`] says whether a formula is valid, contradictory or contingent, [`external`] asks other provers, [`random`]
//! draws problems.
//!
//! ```
//! use fol_prover::{Limit, Problem, Verdict, prove};
//!
//! let problem = Problem::read("∀x ∃y R(x, y) ⊢ ∃y ∀x R(x, y)")?;
//! let Verdict::Refuted(model) = prove(&problem, Limit::default()).verdict else { panic!() };
//! assert_eq!(model.size, 2);
//! # Ok::<(), fol::error::Refusal>(())
//! ```

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod problem;

pub mod logic;

pub mod limit;

pub mod proof;

pub mod model;

pub mod check;

mod hash;

mod clausify;

mod sat;

mod ground;

mod finite;

mod saturate;

pub mod prove;

pub mod semantics;

pub mod show;

pub mod json;

pub mod external;

pub mod rules;

pub mod random;

/// The code of the README, tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use check::{check_model, check_proof};
pub use external::tptp;
pub use limit::Limit;
pub use model::Model;
pub use problem::Problem;
pub use proof::Proof;
pub use prove::{Answer, Verdict, prove};
