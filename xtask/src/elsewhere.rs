//! A command in a build without what it needs: builds that, and hands the command over.
//!
//! The equation language and the composed engines take longer to compile than all the rest, the clients of object stores are
//! a hundred packages, and nobody who trains what is written by hand on data that are here should wait for them.

#[cfg(not(feature = "bench"))]
use std::ffi::OsString;
#[cfg(not(feature = "bench"))]
use std::process::Command;

#[cfg(not(feature = "bench"))]
use anyhow::Context as _;
use anyhow::Result;
use training::DeviceSpec;

use crate::answer::usage;
use crate::place;

/// Runs the command of these arguments in a build with these features; returns its exit status. Where processes can be
/// replaced, this one is, so that signals reach who works.
#[cfg(not(feature = "bench"))]
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

/// Hands the command that runs over to a build with these features, and with those of this one: a build that lacked what
/// this one has would hand the command back.
#[cfg(not(feature = "bench"))]
pub(crate) fn hand_over(features: &str) -> Result<u8> {
    let own = OWN.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    let features: Vec<&str> = std::iter::once(features).chain(own).collect();
    run("release", &features.join(","), std::env::args_os().skip(1))
}

/// What a build may have beside the rest, and whether this one has it.
#[cfg(not(feature = "bench"))]
const OWN: [(&str, bool); 10] = [
    ("candle", cfg!(feature = "candle")),
    ("candle-cuda", cfg!(feature = "candle-cuda")),
    ("candle-metal", cfg!(feature = "candle-metal")),
    ("cuda", cfg!(feature = "cuda")),
    ("metal", cfg!(feature = "metal")),
    ("rocm", cfg!(feature = "rocm")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("mpi", cfg!(feature = "mpi")),
    ("programs", cfg!(feature = "programs")),
    ("store", cfg!(feature = "store")),
];

/// A command that another build has done, where this process could not become that one: the end with its exit status.
#[cfg(not(feature = "store"))]
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: u8,
}

#[cfg(not(feature = "store"))]
impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "another build ended with {}", self.status)
    }
}

#[cfg(not(feature = "store"))]
impl std::error::Error for Done {}

/// The build of the benches does what it is asked to measure, and nothing else.
#[cfg(feature = "bench")]
pub(crate) fn hand_over(features: &str) -> Result<u8> {
    anyhow::bail!("this build has no {features}")
}

/// For a command that names a device of a model: where this build has it not and another one can be made, that one does
/// the command, and its exit status comes back. A device that no build has is a wrong argument.
pub(crate) fn with_device(device: &str) -> Result<Option<u8>> {
    let wrong = |refusal: training::Refusal| usage(format!("--device: {refusal}"));
    let spec: DeviceSpec = device.parse().map_err(wrong)?;
    match (spec.check_built(), spec.feature()) {
        (Ok(()), _) => Ok(None),
        (Err(_), Some(feature)) if place::has_sources() => hand_over(feature).map(Some),
        (Err(refusal), _) => Err(wrong(refusal)),
    }
}
