//! The crate from outside: random rules against the engine of `datarel`, by several workers and processes, and maintained.
#![cfg(feature = "timely")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod generate;
mod maintained;
mod processes;
mod random;
mod refused;
mod shapes;
