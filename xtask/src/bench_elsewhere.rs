//! `cargo xtask bench` in a build without the benches: builds them, and hands the command over.
//!
//! What the benches measure beside the learners (the equation language, the composed engines on candle) takes longer to
//! compile than all the rest, and nobody who trains a model should wait for it. They have a profile of their own, too.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

/// Options of `bench`, not looked at here.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// As `cargo xtask bench --help` says, once the benches are built.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// `cargo xtask bench`; returns the exit status of the build that has the benches.
pub(crate) fn run(args: &BenchArgs) -> Result<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(&cargo)
        .args(["run", "--profile", "measured", "--package", "xtask", "--features", "bench", "--", "bench"])
        .args(&args.rest)
        .status()
        .with_context(|| format!("the benches are built by {}", cargo.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
