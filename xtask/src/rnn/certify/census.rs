//! `certify` of a sweep: of its runs without an error in their tests, how many are right at every length.
//!
//! The sweep's folder gets `certified.json` and `certified.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use linear_logic_rnn::statistics::median;
use serde_json::{Value, json};

use super::super::run::Trained;
use super::{CERTIFIED, COUNTEREXAMPLE, CertifyArgs, OPEN, UNDECIDED, WRONG};
use crate::answer::{give, say};
use crate::draw::numbers::fixed;
use crate::record::{document, write_document};
use crate::{place, run_folder};

/// What has no certificate: a task that is no automaton, a cell with a table of gates.
const REFUSED: &str = "refused";

/// The folder of a sweep by that name: no run itself, with runs two levels below.
pub(super) fn folder(run: &str) -> Result<Option<PathBuf>> {
    for folder in [PathBuf::from(run), place::runs().join(run)] {
        if folder.join("config.toml").is_file() {
            return Ok(None);
        }
        if folder.is_dir() && !runs(&folder)?.is_empty() {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// The runs of a sweep in the order of their names, seeds as numbers.
fn runs(sweep: &Path) -> Result<Vec<PathBuf>> {
    let inside = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let entries: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
    };
    let mut found = Vec::new();
    for point in inside(sweep)? {
        for run in inside(&point)? {
            let seed =
                run.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_prefix("seed-")?.parse().ok());
            if let Some(seed) = seed.filter(|_: &u64| run.join("config.toml").is_file()) {
                found.push((point.clone(), seed, run));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, _, run)| run).collect())
}

/// What the runs of a point came to.
#[derive(Default)]
struct Point {
    cell: String,
    task: String,
    runs: usize,
    /// Runs without an error in their test.
    exact: usize,
    verdicts: BTreeMap<String, usize>,
    /// Of each certified run.
    seconds: Vec<f64>,
}

impl Point {
    fn count(&self, verdict: &str) -> usize {
        self.verdicts.get(verdict).copied().unwrap_or(0)
    }
}

/// Certifies every run that made no error in its test; returns the exit status.
pub(super) fn take(sweep: &Path, args: &CertifyArgs) -> Result<u8> {
    let mut points: BTreeMap<String, Point> = BTreeMap::new();
    let mut lines = Vec::new();
    for folder in runs(sweep)? {
        let name = folder.strip_prefix(sweep)?.display().to_string();
        let tested = document(&folder.join("eval.json"))?;
        let Some(errors) = tested.get("lengths").and_then(Value::as_array) else {
            bail!("{}: the run has no test yet; `cargo xtask sweep` makes it", folder.display());
        };
        let trained = Trained::in_folder(folder.clone(), "are certified")?;
        let (cell, task) = (&trained.config.cell, &trained.config.task);
        let name_of_point = name.rsplit_once('/').map_or(name.as_str(), |(point, _)| point);
        let point = points.entry(name_of_point.to_owned()).or_default();
        (point.cell, point.task) =
            (trained.config.name.clone().unwrap_or_else(|| cell.clone()), task.clone());
        point.runs += 1;
        let is_exact = !errors.is_empty()
            && errors.iter().all(|at| at.get("symbol_error").and_then(Value::as_f64) == Some(0.0));
        if !is_exact {
            continue;
        }
        point.exact += 1;
        let clock = Instant::now();
        // Cells and tasks of one sweep may differ: what has no certificate is a row like the others.
        let found = super::judge(&folder.display().to_string(), &trained, args.effort)
            .unwrap_or_else(|e| json!({"verdict": REFUSED, "why": format!("{e:#}")}));
        let seconds = clock.elapsed().as_secs_f64();
        let verdict = found.get("verdict").and_then(Value::as_str).unwrap_or_default().to_owned();
        if verdict == CERTIFIED {
            point.seconds.push(seconds);
        }
        let symbols = found.get("word").and_then(Value::as_array).map(Vec::len);
        let why = found.get("why").cloned().unwrap_or_default();
        let more = match (symbols, why.as_str()) {
            (Some(symbols), _) => format!(" of {symbols} symbols"),
            (_, Some(why)) => format!(": {why}"),
            _ => String::new(),
        };
        say!("{name}: {verdict}{more}; {seconds:.2} s");
        *point.verdicts.entry(verdict.clone()).or_default() += 1;
        lines.push(json!({
            "run": name, "verdict": verdict, "states": found.get("states"), "symbols": symbols, "why": why, "seconds": seconds,
        }));
    }
    let rows: Vec<Value> = points.iter().map(|(name, point)| row(name, point)).collect();
    let document = json!({
        "schema": "xtask/1", "command": "certify", "sweep": sweep.display().to_string(), "effort": args.effort, "points": rows,
        "runs": lines,
        "commit": run_folder::commit(),
    });
    let text = table(sweep, args.effort, &points, &lines);
    write_document(&sweep.join("certified.json"), &document)?;
    training::files::write(&sweep.join("certified.md"), text.as_bytes())?;
    give(args.json, &document, || text)?;
    let any = |verdict| points.values().any(|point| point.count(verdict) > 0);
    Ok(if any(COUNTEREXAMPLE) {
        WRONG
    } else if any(UNDECIDED) || any(REFUSED) {
        OPEN
    } else {
        0
    })
}

fn row(name: &str, point: &Point) -> Value {
    json!({
        "point": name, "cell": point.cell, "task": point.task, "runs": point.runs, "exact": point.exact,
        CERTIFIED: point.count(CERTIFIED), COUNTEREXAMPLE: point.count(COUNTEREXAMPLE), UNDECIDED: point.count(UNDECIDED),
        REFUSED: point.count(REFUSED),
        "seconds": {"median": median(&point.seconds), "most": point.seconds.iter().copied().reduce(f64::max)},
    })
}

/// The points, and the runs that are not certified.
fn table(sweep: &Path, effort: u32, points: &BTreeMap<String, Point>, runs: &[Value]) -> String {
    let name = sweep.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "# {name}: right at every length?\n\nOf each point the runs without an error in their test, and the verdicts of \
         `cargo xtask certify --effort {effort}` on them;\nseconds of the certified. Commit {}.\n\n\
         | cell | task | exact | certified | a counterexample | undecided | refused | seconds, median | most |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        run_folder::commit()
    );
    for point in points.values() {
        let most = point.seconds.iter().copied().reduce(f64::max);
        text += &format!(
            "| {} | {} | {} of {} | {} | {} | {} | {} | {} | {} |\n",
            point.cell,
            point.task,
            point.exact,
            point.runs,
            point.count(CERTIFIED),
            point.count(COUNTEREXAMPLE),
            point.count(UNDECIDED),
            point.count(REFUSED),
            fixed(median(&point.seconds), 2),
            fixed(most, 2),
        );
    }
    let open = runs.iter().filter(|run| run.get("verdict").and_then(Value::as_str) != Some(CERTIFIED));
    let mut open = open.peekable();
    if open.peek().is_some() {
        text += "\n| run | verdict | |\n|---|---|---|\n";
    }
    for run in open {
        let field = |key: &str| run.get(key).and_then(Value::as_str).unwrap_or_default();
        let symbols = run.get("symbols").and_then(Value::as_u64);
        let more = symbols.map_or_else(|| field("why").to_owned(), |symbols| format!("{symbols} symbols"));
        text += &format!("| {} | {} | {more} |\n", field("run"), field("verdict"));
    }
    text
}
