//! Recurrent cells whose step is a proof of linear logic (Hu & Murfet 2016), and the cells they are compared with.
//!
//! A cell is a [`step::Step`]: a straight-line program over vectors, written once, executed by two engines.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod error;

mod nearest;

pub mod task;

pub mod optimiser;

pub mod metrics;

pub mod statistics;
