//! The crate from outside. One program, so that candle is linked once.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what should not be")]

mod answers;
mod checkpointing;
mod export;
mod gradients;
mod learning;
mod lstm;
mod model;
mod moderator;
mod moved;
mod premises;
mod structured;
mod texts;
mod tree;
mod variants;
