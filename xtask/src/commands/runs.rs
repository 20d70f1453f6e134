//! `cargo xtask runs`: the runs that are there, in a table.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::answer::give;
use crate::record::Record;
use crate::{place, run_folder};

/// Options of `runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// What is told of a run.
struct Line {
    name: String,
    /// What it learns with.
    model: String,
    state: &'static str,
    /// Updates done.
    step: Option<u64>,
    /// The least validation loss, and the least excess over the optimum where that is known.
    loss: Option<f64>,
    excess: Option<f64>,
    bytes: u64,
}

/// `cargo xtask runs`; returns the exit status.
pub(crate) fn run(args: &RunsArgs) -> Result<u8> {
    let root = place::runs();
    let mut folders = Vec::new();
    find(&root, &mut folders)?;
    folders.sort();
    let lines = folders.iter().map(|f| line(&root, f)).collect::<Result<Vec<Line>>>()?;
    let items: Vec<Value> = lines.iter().map(to_json).collect();
    let document = json!({"schema": "xtask/1", "command": "runs", "runs": items});
    give(args.json, &document, || match lines.as_slice() {
        [] => format!("no run in {}\n", root.display()),
        lines => table(lines),
    })?;
    Ok(0)
}

/// The runs in a folder; a sweep holds its own some levels deeper.
fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e.into()),
    };
    for entry in entries {
        let entry = entry?;
        // A link is not followed: it may lead around in a circle.
        if !entry.file_type()?.is_dir() {
            continue;
        }
        let path = entry.path();
        if path.join("config.toml").is_file() {
            found.push(path);
        } else {
            find(&path, found)?;
        }
    }
    Ok(())
}

fn line(root: &Path, folder: &Path) -> Result<Line> {
    let record = Record::read(folder)?;
    let least = |key: &str| record.best(key).map(|best| best.0);
    let judged = folder.join("eval.json").is_file();
    let ended = record.lines("end").next().is_some();
    let state = match (ended, judged) {
        _ if is_busy(folder) => "at work",
        (true, true) => "judged",
        (true, false) => "trained",
        // An n-gram run has no metrics; a recurrent one that diverged has no end.
        (false, true) => "judged",
        (false, false) => "stopped",
    };
    let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
    Ok(Line {
        name,
        model: model(folder),
        state,
        step: record.all().last().and_then(|l| l.get("step")?.as_u64()),
        loss: least("nats_per_token").or_else(|| least("loss")),
        excess: least("excess"),
        bytes: bytes(folder)?,
    })
}

/// Whether a process writes in it now.
fn is_busy(folder: &Path) -> bool {
    let busy = |e: &anyhow::Error| matches!(e.downcast_ref(), Some(training::Refusal::Busy { .. }));
    folder.join(".lock").is_file() && run_folder::lock(folder).is_err_and(|e| busy(&e))
}

/// The learner as the run's configuration names it.
fn model(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("config.toml")).unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let word = |key: &str| table.get(key).and_then(toml::Value::as_str);
    word("cell").or(word("model")).unwrap_or("?").to_owned()
}

/// The size of a run on the disk.
fn bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // What a run at work removes meanwhile counts nothing.
        sum += if kind.is_dir() { bytes(&entry.path())? } else { entry.metadata().map_or(0, |m| m.len()) };
    }
    Ok(sum)
}

fn to_json(line: &Line) -> Value {
    json!({
        "run": line.name, "model": line.model, "state": line.state, "step": line.step,
        "best_validation_loss": line.loss, "best_validation_excess": line.excess, "bytes": line.bytes,
    })
}

fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|l| l.name.chars().count()).max().unwrap_or(0).max(3);
    let number = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.4}"));
    let mut text = format!(
        "{:width$}  {:11}  {:8} {:>9} {:>9} {:>9} {:>9}\n",
        "run", "model", "state", "update", "best loss", "excess", "MB"
    );
    for l in lines {
        let step = l.step.map_or_else(|| "–".to_owned(), |s| s.to_string());
        let (loss, excess, mb) = (number(l.loss), number(l.excess), l.bytes as f64 / 1e6);
        text.push_str(&format!(
            "{:width$}  {:11}  {:8} {step:>9} {loss:>9} {excess:>9} {mb:>9.1}\n",
            l.name, l.model, l.state
        ));
    }
    text
}
