//! The crate from outside: random rules against the obvious evaluator, and larger inputs.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod generate;
mod laws;
mod naive;
mod profile;
mod random_rules;
mod scale;
mod tagged;
