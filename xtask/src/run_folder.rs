//! A run is a folder: where it is, how it is named, and what stands beside the numbers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use crate::answer::usage;
use crate::learner::{self, Learner};

/// The folder of all runs.
pub(crate) const RUNS: &str = "runs";

/// A run by folder, or by name in `runs/`.
pub(crate) fn find(run: &str) -> Result<PathBuf> {
    let (given, inside) = (PathBuf::from(run), Path::new(RUNS).join(run));
    for folder in [&given, &inside] {
        if folder.join("config.toml").is_file() {
            return Ok(folder.clone());
        }
    }
    let mut there: Vec<String> = std::fs::read_dir(RUNS)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    there.sort();
    let (given, inside) = (given.display(), inside.display());
    bail!("neither {given} nor {inside} is a run (no config.toml there); runs are: {}", there.join(", "))
}

/// Name and text of a run's configuration.
fn text(folder: &Path) -> Result<(String, String)> {
    let path = folder.join("config.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| anyhow!("{}: {e}", path.display()))?;
    Ok((path.display().to_string(), text))
}

/// The configuration that a run was made with.
pub(crate) fn config<L: Learner>(folder: &Path) -> Result<L> {
    let (name, text) = text(folder)?;
    L::from_text(&name, &text, &[])
}

/// Whether it is a run of the recurrent learner.
pub(crate) fn is_recurrent(folder: &Path) -> Result<bool> {
    let (name, text) = text(folder)?;
    learner::is_recurrent(&name, &text)
}

/// Comments for `config.toml`: version, commit, machine and command line.
pub(crate) fn made_with(device: &str, threads: usize) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!(
        "# version {}, commit {}\n# device {device}, {threads} threads, {}\n# xtask {}\n",
        env!("CARGO_PKG_VERSION"),
        commit(),
        machine(),
        arguments.join(" ").replace('\n', " "),
    )
}

/// The name of a new run: given, or the file's stem and the first 8 digits of the configuration's digest.
pub(crate) fn name<L: Learner>(given: Option<&str>, file: &str, config: &L) -> Result<String> {
    if let Some(name) = given {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        return if plain {
            Ok(name.to_owned())
        } else {
            Err(usage(format!("--name {name}: a plain folder name is needed")))
        };
    }
    let stem = Path::new(file).file_stem().map_or_else(|| "run".into(), |s| s.to_string_lossy().into_owned());
    let all = blake3::hash(config.to_toml()?.as_bytes()).to_hex();
    Ok(format!("{stem}-{}", all.get(..8).unwrap_or_default()))
}

/// The commit of the source, with `+changes` if the tree is dirty; `unknown` outside a repository.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}+changes"),
    }
}

/// The processor and its number of cores.
pub(crate) fn machine() -> String {
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}, {cores} cores, {}",
        model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        std::env::consts::OS
    )
}
