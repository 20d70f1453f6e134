//! The tests of the crate, one program: a module for each thing that is tested.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

mod cell_laws;
mod cells;
mod certificates;
mod common;
mod configurations;
mod costs;
mod gradients;
mod masters;
mod one_hot;
mod pages;
mod plain;
mod refusals;
