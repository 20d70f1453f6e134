//! What an expression is at all bindings: blocks of numbers.
//!
//! Enter at `Machine::expr`; `Machine::scope` sums.

pub(crate) mod cancelled;
pub(crate) mod contract;
pub(crate) mod expr;
pub(crate) mod factored;
pub(crate) mod gather;
pub(crate) mod holds;
pub(crate) mod scope;
pub(crate) mod slope;
