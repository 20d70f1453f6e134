//! Gradients of programs evaluated, and following them.

pub mod evaluate;

mod lift;

mod batches;

pub mod learn;
