//! Core form to values.

// The order is that of reading: the seam, the truth, then what is fast.
pub mod profile;

pub mod engine;

pub mod start;

pub mod proof;

pub mod reference;

pub(crate) mod kernels;

pub mod fast;

pub mod datalog;

pub mod auto;
