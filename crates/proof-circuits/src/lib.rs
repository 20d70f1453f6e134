//! Exact probabilities of what follows by rules from independent facts.
//!
//! Facts hold independently, each with a probability, or are alternatives that exclude each other. [`Proofs`] says what
//! follows from them by ground rules, with negation and recursion. [`Proofs::compile`] makes a [`Circuits`] of it: decision
//! diagrams, compiled once and counted by weight as often as the probabilities change, forward ([`Circuits::probabilities`])
//! and backward ([`Circuits::slopes`]). Goals whose proofs have the same shape share one diagram.
//!
//! ```
//! use proof_circuits::{Limits, Literal, Proofs};
//!
//! // An alarm rings if there is an earthquake or a burglary.
//! let mut proofs = Proofs::default();
//! let earthquake = proofs.fact();
//! let burglary = proofs.fact();
//! let alarm = proofs.atom(0);
//! proofs.rule(alarm, &[Literal::Is(earthquake)]);
//! proofs.rule(alarm, &[Literal::Is(burglary)]);
//! let circuits = proofs.compile(&[alarm], &Limits::default())?;
//! let weights = [0.03, 0.2];
//! assert!((circuits.probabilities(&weights)?[0] - 0.224).abs() < 1e-12);
//! assert_eq!(circuits.slopes(&weights, &[1.0])?, [0.8, 0.97]);
//! # Ok::<(), proof_circuits::Failure>(())
//! ```
//!
//! Where the diagrams are too many, [`Proofs::top`] keeps of every atom the k most probable proofs. [`Proofs::best`] lists the
//! most probable proofs of one atom, and [`Proofs::kept`] those that were kept, each with a derivation. [`ProofSets`] are the same proofs as the tags of a semiring.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod circuit;
mod compile;
mod derivation;
mod diagram;
mod elimination;
mod functions;
mod order;
mod possible;
mod proofs;
mod sets;
mod shape;
mod top;
mod trial;

pub use circuit::Circuits;
pub use derivation::{Explained, Proof, Step};
pub use proofs::{Atom, Event, Literal, Proofs};
pub use sets::{ProofSet, ProofSets};

/// What a compilation may use.
pub struct Limits<'a> {
    /// The most bytes that diagrams take while they are made, with what is kept of those that were.
    pub bytes: usize,
    /// Asked now and then; ends the compilation where it says so.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for Limits<'_> {
    /// 2³⁰ bytes, and nobody stops it.
    fn default() -> Self {
        Limits { bytes: 1 << 30, stop: &|| false }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The diagrams take more bytes than are allowed.
    #[error("the decision diagrams of the proofs need more than {bytes} bytes")]
    TooLarge {
        /// The limit.
        bytes: usize,
    },
    /// Somebody asked to end.
    #[error("stopped")]
    Stopped,
    /// A rule needs an atom of a higher stratum, or denies one that is not of a lower one.
    #[error("a rule of stratum {stratum} asks for an atom of stratum {of}")]
    NotStratified {
        /// The head of the rule.
        head: Atom,
        /// Its stratum.
        stratum: u32,
        /// The stratum of the atom that it asks for.
        of: u32,
    },
    /// A number that is no probability.
    #[error("{weight} is no probability")]
    NoProbability {
        /// The event.
        event: Event,
        /// Its weight.
        weight: f64,
    },
    /// Alternatives that exclude each other are more probable than 1 together.
    #[error("alternatives that exclude each other have a probability of {sum} together")]
    NoDistribution {
        /// The first of the alternatives.
        event: Event,
        /// Their sum.
        sum: f64,
    },
}
