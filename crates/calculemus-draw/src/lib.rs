#![doc = include_str!("../README.md")]

pub mod axis;

pub mod numbers;

pub mod html;

pub mod plot;

pub mod graph;

pub use axis::{Axis, Scale};
