//! The tests of the crate, one program: a module for each thing that is tested.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

mod certificates;
mod common;
mod external;
mod limits;
mod oracle;
mod reading;
mod rules;
mod semantics;
mod worked;

#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "cli")]
mod pages;
