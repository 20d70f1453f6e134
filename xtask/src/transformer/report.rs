//! What runs showed, as one file for people, or as CSV or JSON for programs.
//!
//! One run gives a page in its folder, several give one page with one table and shared axes. A page has no script,
//! no font and no picture from elsewhere, and no clock: the same runs give the same bytes. What is read stands in
//! [`mod@run`]; [`single`] and [`compare`] are the two pages; [`suites`] shows
//! what a run is not always judged on.

mod answers;
mod compare;
mod curves;
pub(crate) mod run;
mod samples;
mod single;
pub(crate) mod suites;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::json;

pub(crate) use answers::{depth_plot, depths};
pub(crate) use compare::{numbers_of, parts as comparison};
pub(crate) use run::Run;

use crate::draw::csv;
use crate::place;

/// Writes the page of one run, or the comparison of several, and returns its path.
pub(crate) fn write(runs: &[PathBuf], out: Option<&Path>) -> Result<PathBuf> {
    let read = read(runs)?;
    let (page, place) = match read.as_slice() {
        [] => bail!("no run to report"),
        [run] => (single::page(run), run.folder.join("report.html")),
        runs => (compare::page("Comparison", runs), place::runs().join("comparison.html")),
    };
    let path = out.map_or(place, Path::to_owned);
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    training::files::write(&path, page.as_bytes())?;
    Ok(path)
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
pub(crate) fn metrics_csv(runs: &[Run]) -> Result<String> {
    let mut rows = Vec::new();
    for run in runs {
        for line in run.metrics.all() {
            let mut row = line.clone();
            row.insert("run".to_owned(), json!(run.name));
            rows.push(row);
        }
    }
    csv::table(&["run", "kind", "step"], &rows)
}
