//! Recurrent cells whose step is a proof of linear logic (Hu & Murfet 2016), and the cells they are compared with.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod error;

mod nearest;

pub mod options;

pub mod step;

pub mod cell;

mod cells;

mod program;

pub mod engine;

#[cfg(feature = "candle")]
pub mod composed;

mod unique;

pub mod document;

pub mod task;

pub mod optimiser;

pub mod metrics;

pub mod learner;

pub mod statistics;

pub use program::ProgramText;
