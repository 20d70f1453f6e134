//! Core form to values.

// The order is that of reading: what stands on kernels, the rules, and what chooses.
pub mod fast;

pub mod datalog;

pub mod auto;
