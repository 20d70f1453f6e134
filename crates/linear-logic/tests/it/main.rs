//! The tests of the crate, one program: a module for each thing that is tested.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

mod compilation;
mod denotation;
mod differential;
mod polynomials;
mod random_terms;
mod terms;

#[cfg(feature = "cli")]
mod cases;
#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "cli")]
mod ill;
#[cfg(feature = "cli")]
mod pages;
#[cfg(feature = "cli")]
mod refusals;
#[cfg(feature = "cli")]
mod texts;
