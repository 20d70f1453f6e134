//! `cargo xtask bench` in a build without the benches, which have a profile of their own, too.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use crate::elsewhere;

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
    elsewhere::run("measured", "bench", std::iter::once("bench".into()).chain(args.rest.iter().cloned()))
}
