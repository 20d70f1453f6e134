//! Components that read themselves: what comes to rest, step by step, at once, or by what changed.

pub(in crate::fast) mod deltas;
pub(in crate::fast) mod going;
pub(in crate::fast) mod linear;
pub(in crate::fast) mod solve;
pub(in crate::fast) mod steps;
pub(in crate::fast) mod tuples;
pub(in crate::fast) mod windows;
