//! `cargo xtask report`: what runs showed, as one file for people, or as CSV or JSON for programs.
//!
//! One run gives a page in its folder, several give one page with one table and shared axes. A page has no script,
//! no font and no picture from elsewhere, and no clock: the same runs give the same bytes. What is read stands in
//! [`mod@run`]; [`single`] and [`compare`] are the two pages.

mod axis;
mod compare;
pub(crate) mod csv;
mod curves;
mod expect;
pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod plot;
pub(crate) mod run;
mod samples;
mod single;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

pub(crate) use axis::{Axis, Scale};
pub(crate) use compare::numbers_of;
pub(crate) use run::Run;

use crate::answer::{print_json, print_text};
use crate::config::Model;
use crate::{place, run_folder};

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
    let recurrent: Result<Vec<bool>> =
        folders.iter().map(|folder| run_folder::is_recurrent(folder)).collect();
    match recurrent?.iter().filter(|is| **is).count() {
        0 => {}
        n if n == folders.len() && !args.csv && args.out.is_none() => {
            return crate::rnn::report(&folders, args.json);
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
    if args.json {
        let rows: Vec<Value> = read(&folders)?.iter().map(numbers_of).collect();
        print_json(&json!({"schema": "xtask/1", "command": "report", "report": page, "runs": rows}))?;
    } else {
        print_text(&format!("report: {}\n", page.display()));
    }
    Ok(0)
}

/// Writes the page of one run, or the comparison of several, and returns its path.
pub(crate) fn write(runs: &[PathBuf], out: Option<&Path>) -> Result<PathBuf> {
    let read = read(runs)?;
    let (page, place) = match read.as_slice() {
        [] => bail!("no run to report"),
        [run] => (single::page(run), run.folder.join("report.html")),
        runs => (comparison("Comparison", None, runs), place::runs().join("comparison.html")),
    };
    let path = out.map_or(place, Path::to_owned);
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    training::files::write(&path, page.as_bytes())?;
    Ok(path)
}

/// The page of several runs, with HTML that stands above their table.
pub(crate) fn comparison(title: &str, summary: Option<maud::Markup>, runs: &[Run]) -> String {
    compare::page(title, summary, runs)
}

/// Reads runs. Two of the same name are told apart by as much of their folders as that needs.
pub(crate) fn read(folders: &[PathBuf]) -> Result<Vec<Run>> {
    let mut runs = folders.iter().map(|f| Run::read(f)).collect::<Result<Vec<Run>>>()?;
    let names: Vec<String> = runs.iter().map(|r| r.name.clone()).collect();
    for run in &mut runs {
        if names.iter().filter(|n| **n == run.name).count() > 1 {
            run.name = run.folder.display().to_string();
            run.group.clone_from(&run.name);
        }
    }
    Ok(runs)
}

/// The lines of all metrics, each with the name of its run first.
fn metrics_csv(runs: &[Run]) -> Result<String> {
    let mut rows = Vec::new();
    for run in runs {
        for line in &run.metrics {
            let mut row = line.clone();
            row.insert("run".to_owned(), json!(run.name));
            rows.push(row);
        }
    }
    csv::table(&["run", "kind", "step"], &rows)
}

/// The learner, for people.
fn model_name(run: &Run) -> String {
    match run.config.model {
        Model::Transformer => "transformer".to_owned(),
        Model::Lstm => "LSTM".to_owned(),
        Model::Ngram => match run.config.order {
            Some(order) => format!("Kneser–Ney model of order {order}"),
            None => "Kneser–Ney model".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests;
