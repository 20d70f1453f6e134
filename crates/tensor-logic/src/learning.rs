//! Gradients as programs, and following them.

pub mod gradient;

pub mod learn;
