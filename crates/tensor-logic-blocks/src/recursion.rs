//! Components that read themselves: what comes to rest, step by step, at once, or by what changed.

pub(crate) mod deltas;
pub(crate) mod going;
pub(crate) mod linear;
pub(crate) mod solve;
pub(crate) mod steps;
pub(crate) mod tuples;
pub(crate) mod windows;
