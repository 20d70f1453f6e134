//! What a cell computes in one step, as data: a straight-line program over vectors.
//!
//! A cell is written once, with [`Builder`]; the engine of [`crate::engine`] runs it fast, forward and backward, and
//! [`crate::composed`] runs it on candle, as oracle and on a GPU. Values are vectors of a fixed number of features;
//! the batch is not written. A value is named by [`ValueId`] and uses earlier values only. Equal operations on equal
//! operands are one value, so what two programs of a cell have in common is computed once.

mod builder;
mod cost;
mod data;

pub use builder::Builder;
pub(crate) use builder::MOST_FEATURES;
pub use data::*;
