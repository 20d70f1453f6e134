//! `cargo xtask report`: what runs showed, as one file for people, or as CSV or JSON for programs.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::answer::{give, print_text};
use crate::learner::Kind;
use crate::transformer::report::{metrics_csv, numbers_of, read, write};
use crate::{rnn, run_folder};

/// Options of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folders, or names in runs/.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The file to write; without it report.html in the folder of the run, or runs/comparison.html.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes the metrics of all runs as CSV instead, to --out or to standard output.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Prints one JSON document with the numbers of the table to standard output.
    #[arg(long)]
    json: bool,
}

/// `cargo xtask report`; returns the exit status.
pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for name in &args.runs {
        let folder = run_folder::find(name)?;
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let kinds = folders.iter().map(|folder| run_folder::kind(folder)).collect::<Result<Vec<Kind>>>()?;
    match kinds.iter().filter(|kind| **kind == Kind::Recurrent).count() {
        0 => {}
        n if n == folders.len() && !args.csv && args.out.is_none() => {
            return rnn::report(&folders, args.json);
        }
        n if n == folders.len() => bail!("--csv and --out are for runs of the symbolic transformer"),
        _ => bail!("runs of two kinds of learners do not stand in one report"),
    }
    if args.csv {
        let runs = read(&folders)?;
        let text = metrics_csv(&runs)?;
        match &args.out {
            Some(path) => training::files::write(path, text.as_bytes())?,
            None => print_text(&text),
        }
        return Ok(0);
    }
    let page = write(&folders, args.out.as_deref())?;
    let rows: Vec<Value> = read(&folders)?.iter().map(numbers_of).collect();
    let document = json!({"schema": "xtask/1", "command": "report", "report": page, "runs": rows});
    give(args.json, &document, || format!("report: {}\n", page.display()))?;
    Ok(0)
}
