//! The commands as a user calls them, and what the project says of itself. One program, so that it is linked once.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod common;

mod architecture;
mod certify;
mod codes;
mod commands;
mod docs_rnn;
mod examples;
mod inference;
mod invent;
mod kills;
mod modules;
mod record;
mod reports;
mod rnn;
mod runs_rnn;
mod sample;
mod suites;
mod sweeps;
