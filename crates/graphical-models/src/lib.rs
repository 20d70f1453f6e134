//! Inference in discrete graphical models.
//!
//! A [`Model`] is a product of factors over variables with finitely many states: read from a `.bif` or `.uai` file
//! ([`bif::read`], [`uai::read`]), or made of [`Factor`]s. [`Model::marginals`] gives the distribution of all variables and
//! the probability of the evidence at once:
//!
//! ```
//! let model = graphical_models::bif::read(
//!     "network sprinkler {}
//!      variable Rain { type discrete [ 2 ] { no, yes }; }
//!      variable Wet { type discrete [ 2 ] { no, yes }; }
//!      probability ( Rain ) { table 0.8, 0.2; }
//!      probability ( Wet | Rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }",
//! )?;
//! let wet = model.find("Wet").ok_or("no such variable")?;
//! let found = model.marginals(&[(wet, 1)], &graphical_models::Limits::default())?;
//! assert!((found.log_evidence.exp() - 0.24).abs() < 1e-12);
//! assert!((found.of[0][1] - 2.0 / 3.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Model::joint`] is the distribution of several variables together, [`Model::most_probable`] the most probable states of all:
//! these are exact too. Where that is too much, [`Model::sample_forward`] estimates marginals of a Bayesian network with their standard
//! errors, and [`Model::loopy`] passes messages in a graph with circles.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub mod bif;
mod drawing;
mod graph;
mod inference;
mod joint;
mod lanes;
mod loopy;
mod messages;
mod model;
mod nest;
mod order;
mod sampling;
mod sums;
pub mod uai;

pub use inference::{Limits, Marginals};
pub use joint::Joint;
pub use loopy::{Believed, Loopy};
pub use model::{Factor, Model, Variable, VariableId};
pub use sampling::{Estimate, Sampled, Sampling};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A text is no model or no evidence.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// From 1.
        line: usize,
        /// In letters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A text of evidence names a variable or a state that the model has not.
    #[error("line {line}, column {column}: {message}")]
    Unknown {
        /// From 1.
        line: usize,
        /// In letters, from 1.
        column: usize,
        /// What there is not.
        message: String,
    },
    /// A text of evidence says two states of one variable.
    #[error("line {line}, column {column}: {message}")]
    Contradiction {
        /// From 1.
        line: usize,
        /// In letters, from 1.
        column: usize,
        /// Which variable it is.
        message: String,
    },
    /// Variables and factors make no model.
    #[error("{0}")]
    Model(String),
    /// The evidence is none that the model can have.
    #[error("{0}")]
    Evidence(String),
    /// What is asked for is nothing that the model can answer.
    #[error("{0}")]
    Question(String),
    /// The cliques have too many cells.
    #[error("the cliques have {cells:.2e} cells or more, and {limit:.2e} are allowed")]
    TooLarge {
        /// Of the best order that was found, up to where it was given up.
        cells: f64,
        /// The limit.
        limit: f64,
    },
    /// The tables that are held at once take too much memory.
    #[error("{bytes:.2e} bytes are needed, and {limit:.2e} are allowed")]
    Memory {
        /// What would be needed.
        bytes: f64,
        /// The limit.
        limit: f64,
    },
}
