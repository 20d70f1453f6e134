//! What engines are asked and answer: values, proofs, what they did and what tensors take.

// The order is that of reading.
pub mod profile;

pub mod engine;

pub mod start;

pub mod room;

pub mod handed;

pub mod proof;
