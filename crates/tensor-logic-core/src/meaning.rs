//! What a program means: the seam that every engine answers at, and the interpreter that is the truth.

// The order is that of reading.
pub mod profile;

pub mod engine;

pub mod start;

pub mod proof;

pub mod reference;
