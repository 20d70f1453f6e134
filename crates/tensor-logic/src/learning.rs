//! Gradients of programs evaluated, and following them.

pub mod evaluate;

pub mod learn;
