//! What engines are asked and answer: values, proofs, and what they did.

// The order is that of reading.
pub mod profile;

pub mod engine;

pub mod start;

pub mod proof;
