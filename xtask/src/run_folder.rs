//! A run is a folder: where it is, how it is named, and what stands beside the numbers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use training::files::{Lock, Sharing};

use crate::answer::usage;
use crate::learner::{Kind, Learner};
use crate::record::Record;
use crate::{keys, place};

/// A run by folder, or by name in `runs/`.
pub(crate) fn find(run: &str) -> Result<PathBuf> {
    let (given, inside) = (PathBuf::from(run), place::runs().join(run));
    for folder in [&given, &inside] {
        if folder.join("config.toml").is_file() {
            return Ok(folder.clone());
        }
    }
    let mut there: Vec<String> = std::fs::read_dir(place::runs())
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    there.sort();
    let (given, inside) = (given.display(), inside.display());
    bail!("neither {given} nor {inside} is a run (no config.toml there); runs are: {}", there.join(", "))
}

/// Name and text of a run's configuration.
pub(crate) fn text(folder: &Path) -> Result<(String, String)> {
    keys::read(&folder.join("config.toml"))
}

/// The configuration that a run was made with.
pub(crate) fn config<L: Learner>(folder: &Path) -> Result<L> {
    let (name, text) = text(folder)?;
    L::from_text(&name, &text, &[])
}

/// What stands after a word in the last comment of a run's configuration that begins with it.
pub(crate) fn made_with_of<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let after = |line: &'a str| line.strip_prefix("# ")?.strip_prefix(word)?.strip_prefix(' ');
    text.lines().rev().find_map(after).map(str::trim)
}

/// The commit that trained a run, by the text of its configuration.
pub(crate) fn trained_by(text: &str) -> &str {
    made_with_of(text, "version").and_then(|v| v.split_once("commit ")).map_or("unknown", |c| c.1)
}

/// The learner of a run.
pub(crate) fn kind(folder: &Path) -> Result<Kind> {
    let (name, text) = text(folder)?;
    Kind::of(&name, &text)
}

/// Where the best weights of a run are.
pub(crate) fn weights(folder: &Path) -> PathBuf {
    folder.join("model.safetensors")
}

/// The right to write in a run's folder; refused while another process has it.
pub(crate) fn lock(folder: &Path) -> Result<Lock> {
    Ok(training::files::lock(folder, Sharing::Alone)?)
}

/// Whether a folder holds nothing of a run: it is not there, or a kill came before its first file was whole.
pub(crate) fn is_empty(folder: &Path) -> Result<bool> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e).with_context(|| folder.display().to_string()),
    };
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name != ".lock" && !name.ends_with(".tmp") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the page of a run is there and was written after the run was judged.
pub(crate) fn has_page(folder: &Path) -> Result<bool> {
    let written = |name: &str| std::fs::metadata(folder.join(name)).and_then(|m| m.modified()).ok();
    let (page, judged) = (written("report.html"), written("eval.json"));
    Ok(page.is_some() && page >= judged)
}

/// The digest of the data that a run was made with: as its record says, or else a comment of its `config.toml`.
pub(crate) fn data_digest(folder: &Path) -> Result<Option<String>> {
    if let Some(digest) = Record::read(folder)?.data_digest() {
        return Ok(Some(digest.to_owned()));
    }
    if !folder.join("config.toml").is_file() {
        return Ok(None);
    }
    let (_, config) = text(folder)?;
    let comment = config.lines().rfind(|l| l.starts_with("# data "));
    Ok(comment.and_then(|l| l.split_whitespace().next_back()).map(ToOwned::to_owned))
}

/// Refuses data that are not those of the run.
pub(crate) fn check_data(folder: &Path, data: &str, digest: &str) -> Result<()> {
    match data_digest(folder)? {
        Some(recorded) if recorded != digest => bail!(
            "{} was made with data of the digest {recorded}, and the data set {data} has {digest}: put the old data \
             back, or train a new run",
            folder.display()
        ),
        _ => Ok(()),
    }
}

/// Writes `config.toml`: the resolved configuration, below it what the run was made with. A file that already says the
/// same configuration stays as it is, with what stands below it.
pub(crate) fn write_config<L: Learner>(folder: &Path, config: &L, further: &str) -> Result<bool> {
    if folder.join("config.toml").is_file() && self::config::<L>(folder)? == *config {
        return Ok(false);
    }
    let made_with = made_with(config.device(), training::threads::resolve(config.threads(), 1));
    let text = format!("{}\n{made_with}{further}", config.to_toml()?);
    training::files::write(&folder.join("config.toml"), text.as_bytes())?;
    Ok(true)
}

/// Comments for `config.toml`: version, commit, machine and command line.
fn made_with(device: &str, threads: usize) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!(
        "# version {}, commit {}\n# device {device}, {threads} threads, {}\n# xtask {}\n",
        env!("CARGO_PKG_VERSION"),
        commit(),
        machine(),
        // A comment holds no control character.
        arguments.join(" ").replace(char::is_control, " "),
    )
}

/// The name of a new run: given, or the file's stem and the first 8 digits of the configuration's digest.
pub(crate) fn name<L: Learner>(given: Option<&str>, file: &str, config: &L) -> Result<String> {
    if let Some(name) = given {
        return if place::is_plain(name) {
            Ok(name.to_owned())
        } else {
            Err(usage(format!("--name {name}: a plain folder name is needed")))
        };
    }
    let stem = Path::new(file).file_stem().map_or_else(|| "run".into(), |s| s.to_string_lossy().into_owned());
    let all = blake3::hash(config.to_toml()?.as_bytes()).to_hex();
    Ok(format!("{stem}-{}", all.get(..8).unwrap_or_default()))
}

/// The commit of the source, with `+changes` if the tree is dirty; `unknown` outside a repository. As it was when this
/// process first asked: what is checked out while a sweep runs is not what runs.
pub(crate) fn commit() -> String {
    static COMMIT: OnceLock<String> = OnceLock::new();
    COMMIT.get_or_init(checked_out).clone()
}

fn checked_out() -> String {
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

/// The most memory that this process has held, where the system tells.
pub(crate) fn peak_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
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
