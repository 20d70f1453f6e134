//! A command in a build without what it needs: builds that, and hands the command over.
//!
//! The equation language and the composed engines take longer to compile than all the rest, and nobody who trains what is
//! written by hand should wait for them.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs the command of these arguments in a build with these features; returns its exit status. Where processes can be
/// replaced, this one is, so that signals reach who works.
pub(crate) fn run(profile: &str, features: &str, args: impl IntoIterator<Item = OsString>) -> Result<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command
        .args(["run", "--profile", profile, "--package", "xtask", "--features", features, "--"])
        .args(args);
    let failed = || format!("a build with {features} is made by {}", cargo.display());
    #[cfg(unix)]
    return Err(std::os::unix::process::CommandExt::exec(&mut command)).with_context(failed);
    #[cfg(not(unix))]
    {
        let status = command.status().with_context(failed)?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
