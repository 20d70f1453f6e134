//! What is kept of a program: arrays, tables of bindings, relations, and what was found before.
//!
//! Enter at [`machine::Machine`], which all that evaluates is written on.

pub(in crate::fast) mod block;
pub(in crate::fast) mod condition;
pub(in crate::fast) mod doubt;
pub(in crate::fast) mod machine;
pub(in crate::fast) mod notes;
pub(in crate::fast) mod noting;
pub(in crate::fast) mod offsets;
pub(in crate::fast) mod plan;
pub(in crate::fast) mod records;
pub(in crate::fast) mod relation;
pub(in crate::fast) mod rows;
