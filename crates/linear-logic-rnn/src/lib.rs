//! Recurrent cells whose step is a proof of linear logic (Hu & Murfet 2016), and the cells they are compared with.
//!
//! What a cell is told is an [`options::Configuration`], which [`proofs`] make from texts of the language; [`cell::Cell`]
//! writes it as a [`step::Step`], with its number of weights, its cost and its degree; [`engine`] runs that, forward and backward, and [`composed`] runs it on candle. Comments that speak of "section 3" mean the sections
//! of the page on the rules of the cells, `docs/linear-logic/cells.md`. The features `candle-cuda` and `candle-metal`, off by default,
//! give the composed engine a GPU.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod error;

mod nearest;

pub mod options;

pub mod step;

pub mod cell;

mod cells;

mod program;

pub mod proofs;

pub mod engine;

#[cfg(feature = "candle")]
pub mod composed;

mod unique;

pub mod document;

pub mod task;

pub mod optimiser;

pub mod metrics;

pub mod learner;

pub mod gates;

pub mod snap;

pub mod certify;

pub mod statistics;

pub mod contrast;

pub mod arms;

pub use program::ProgramText;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
