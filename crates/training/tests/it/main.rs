//! The crate from outside. One program, so that candle is linked once.

#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

mod collective;
mod composed;
mod threads;
mod trainer;
mod upstream_traps;
mod vectors;
