//! What an expression is at all bindings: blocks of numbers.
//!
//! Enter at `Machine::expr`; `Machine::scope` sums.

pub(in crate::fast) mod cancelled;
pub(in crate::fast) mod contract;
pub(in crate::fast) mod expr;
pub(in crate::fast) mod factored;
pub(in crate::fast) mod gather;
pub(in crate::fast) mod holds;
pub(in crate::fast) mod scope;
pub(in crate::fast) mod slope;
