//! Tests of the crate.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what should not be")]

mod asked;
mod audit;
mod common;
mod data;
mod edits;
mod instances;
mod judging;
mod refusals;
mod shortcuts;
mod terms;
