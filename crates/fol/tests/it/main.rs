//! What the crate promises, tested from outside: one program, a module for each subject.
//!
//! Modules that run the command `fol` need the feature `cli`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

mod canon;
mod checking;
mod common;
mod data;
mod invent;
mod laws;
mod masks;
mod notations;
mod oracles;
mod pages;
mod pictures;
mod reading;
mod sampler;
mod scorer;
mod structure;
mod substitution;
mod tasks;
mod tptp;
mod tptp_writing;
mod tree_places;

#[cfg(feature = "cli")]
mod cases;
#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "cli")]
mod exchange;
#[cfg(feature = "cli")]
mod glyph;
#[cfg(feature = "cli")]
mod kinds;
#[cfg(feature = "cli")]
mod shell;
