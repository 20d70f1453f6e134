//! Gradients of programs evaluated, and following them.

pub mod evaluate;

mod lift;

pub mod learn;
