//! A folder of immutable files, put under a URL and fetched from there.
//!
//! `put` sends every file below a folder and its manifest last, so that whoever sees the manifest sees all. `get` fetches
//! what lies under a URL, the manifest last again. Both go on where a kill left them, and leave alone what is there already:
//! the digest says so. `s3://bucket/prefix` is any store that speaks S3, `file:///folder` a folder, perhaps of another machine.
//!
//! All of it is behind the feature `store`; without it there is [`check_built`] and its refusal.

mod error;

#[cfg(feature = "store")]
mod name;

#[cfg(feature = "store")]
mod options;

#[cfg(feature = "store")]
mod state;

#[cfg(feature = "store")]
mod disk;

#[cfg(feature = "store")]
mod place;

#[cfg(feature = "store")]
mod local;

#[cfg(feature = "store")]
mod put;

#[cfg(feature = "store")]
mod get;

#[cfg(feature = "store")]
mod blocking;

#[cfg(feature = "store")]
mod board;

pub use error::{Kind, Refusal};

#[cfg(feature = "store")]
pub use {
    blocking::{get, put},
    board::Board,
    get::fetch,
    options::{Moved, Names, Options, Patience, Unlisted, Watch},
    put::send,
};

/// Whether this build can reach what a URL names.
///
/// # Errors
/// It was made without the feature `store`.
pub fn check_built() -> Result<(), Refusal> {
    if cfg!(feature = "store") {
        return Ok(());
    }
    let message = "this build reaches no URL: it was made without the feature `store`";
    Err(Refusal::new(Kind::NotBuilt, message).help("build it with `--features store`"))
}

/// The README's program is run with the tests of the documentation.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;
