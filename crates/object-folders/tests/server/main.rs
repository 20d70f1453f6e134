//! Folders put to and fetched from a server of S3 that the test starts, and a folder: same bytes, whatever is killed, replaced
//! or refused.

#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

mod board;
mod common;
mod kills;
mod refusals;
mod round_trips;
