//! The tests of the crate as one program.
#![expect(clippy::expect_used, reason = "a test that has no answer has failed")]

mod explained;
mod grids;
mod large;
mod worlds;
