//! Tests of the crate.

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
