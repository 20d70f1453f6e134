//! What is kept of a program: arrays, tables of bindings, relations, and what was found before.
//!
//! Enter at [`machine::Machine`], which all that evaluates is written on.

pub(crate) mod block;
pub(crate) mod condition;
pub(crate) mod doubt;
pub(crate) mod machine;
pub(crate) mod notes;
pub(crate) mod noting;
pub(crate) mod offsets;
pub(crate) mod plan;
pub(crate) mod records;
pub(crate) mod relation;
pub(crate) mod rows;
