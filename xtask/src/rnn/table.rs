//! What a sweep of recurrent runs showed: a table and a picture for each task, and a verdict.
//!
//! A *variant* is a point of the sweep without its task. For each task the best `ll` variant by validation loss meets
//! the strongest baseline (section 12); a sweep of `ll` alone compares its arms, key by key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use linear_logic_rnn::statistics::{Report, Row, Sample, median, strongest};
use serde_json::{Map, Value, json};

use super::config::Config;
use crate::draw::html::{self, Column, Table};
use crate::draw::numbers::{count, fixed, p_value};
use crate::draw::plot::{Mark, Plot, Point as Dot};
use crate::draw::{Axis, Scale};
use crate::record::{Record, document};
use crate::run_folder;
use crate::sweep::values::shown;
use crate::sweep::{Plan, Point, Summary};

/// The measures of a test.
const MEASURES: [&str; 3] = ["symbol_error", "sequence_exact", "last_symbol"];

/// One run at one length.
struct Entry {
    length: u64,
    values: BTreeMap<&'static str, f64>,
}

/// A finished run.
struct Run {
    seed: u64,
    lr: f64,
    params: u64,
    status: String,
    seconds: f64,
    validation: f64,
    commit: String,
    entries: Vec<Entry>,
}

/// A variant on a task, with its runs.
struct Arm<'a> {
    task: String,
    cell: String,
    name: String,
    keys: &'a toml::Table,
    longest_training: usize,
    longest_test: u64,
    runs: Vec<Run>,
}

impl Arm<'_> {
    fn read<'a>(point: &'a Point<Config>) -> Result<Option<Arm<'a>>> {
        let Some(first) = point.runs.first() else { return Ok(None) };
        let config = &first.config;
        let part = |(key, value): (&String, &toml::Value)| match value {
            toml::Value::String(word) if key == "cell" => word.clone(),
            _ => format!("{key}={}", shown(value)),
        };
        let words: Vec<String> = point.keys.iter().filter(|(key, _)| *key != "task").map(part).collect();
        let name = match &config.name {
            Some(name) => name.clone(),
            None if words.is_empty() => config.cell.clone(),
            None => words.join(" "),
        };
        let mut runs = Vec::new();
        for job in &point.runs {
            runs.push(Run::read(&job.config, &job.folder)?);
        }
        Ok(Some(Arm {
            task: config.task.clone(),
            cell: config.cell.clone(),
            name,
            keys: &point.keys,
            longest_training: config.max_length,
            longest_test: config.lengths().into_iter().max().unwrap_or(0) as u64,
            runs,
        }))
    }

    /// The lengths of the test.
    fn lengths(&self) -> Vec<u64> {
        let mut lengths: Vec<u64> =
            self.runs.iter().flat_map(|r| r.entries.iter().map(|e| e.length)).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// One value for each seed; a run that has none counts as the worst there is.
    fn values(&self, length: u64, measure: &str) -> Vec<f64> {
        let of = |run: &Run| {
            let entry = run.entries.iter().find(|e| e.length == length)?;
            entry.values.get(measure).copied().filter(|value| value.is_finite())
        };
        let worst = if measure == "symbol_error" { 1.0 } else { 0.0 };
        self.runs.iter().map(|run| of(run).unwrap_or(worst)).collect()
    }

    /// The primary measure at the longest length of the sweep's test.
    fn sample(&self) -> Sample {
        let longest = self.longest_test;
        Sample { name: self.name.clone(), values: self.values(longest, primary(&self.task)) }
    }

    fn validation(&self) -> f64 {
        let losses: Vec<f64> = self.runs.iter().map(|r| r.validation).collect();
        median(&losses).unwrap_or(f64::INFINITY)
    }

    /// Median and worst over seeds.
    fn spread(&self, length: u64, measure: &str) -> Option<(f64, f64)> {
        let values = self.values(length, measure);
        let worst = if measure == "symbol_error" { f64::max } else { f64::min };
        Some((median(&values)?, values.iter().copied().reduce(worst)?))
    }
}

impl Run {
    fn read(config: &Config, folder: &Path) -> Result<Self> {
        let eval = document(&folder.join("eval.json"))?;
        let mut entries = Vec::new();
        for line in eval.get("lengths").and_then(Value::as_array).into_iter().flatten() {
            let values = MEASURES.iter().filter_map(|m| Some((*m, line.get(*m)?.as_f64()?))).collect();
            entries.push(Entry { length: line.get("length").and_then(Value::as_u64).unwrap_or(0), values });
        }
        Ok(Self {
            seed: config.seed,
            lr: config.optimiser()?.lr,
            params: eval.get("total_params").and_then(Value::as_u64).unwrap_or(0),
            status: eval.get("status").and_then(Value::as_str).unwrap_or("unfinished").to_owned(),
            seconds: eval.get("seconds").and_then(Value::as_f64).unwrap_or(0.0),
            validation: Record::read(folder)?.best("loss").map_or(f64::INFINITY, |best| best.0),
            commit: run_folder::trained_by(&run_folder::text(folder)?.1).to_owned(),
            entries,
        })
    }
}

/// What a task is judged by.
fn primary(task: &str) -> &'static str {
    let follows = ["parity", "mod-sum", "s3", "s5", "d5"];
    if follows.contains(&task) { "last_symbol" } else { "sequence_exact" }
}

/// What the runs of a sweep showed.
pub(crate) fn summary(plan: &Plan<Config>, points: &[Point<Config>]) -> Result<Summary> {
    let mut arms = Vec::new();
    for point in points {
        arms.extend(Arm::read(point)?);
    }
    let lines = lines(&arms);
    let report = verdict(&plan.name, &arms);
    let found = serde_json::to_value(&report)?;
    let notes = vec![report.question.clone(), LIMITS.to_owned()];
    let mut tables = vec![(format!("Verdict: {}", word(&report.verdict)), verdict_table(&report), notes)];
    tables.extend(
        by_task(&arms).into_iter().map(|(task, arms)| (task.to_owned(), table(task, &arms), Vec::new())),
    );
    let document = json!({
        "schema": "xtask/1", "command": "sweep", "name": plan.name, "seeds": plan.seeds,
        "commits": commits(&arms), "verdict": found, "rows": lines,
    });
    Ok(Summary {
        lines,
        columns: &COLUMNS,
        origin: origin(plan, &arms),
        tables,
        plots: plots(&arms),
        further: html::join([]),
        file: ("verdict.json", found),
        document,
    })
}

const COLUMNS: [&str; 12] = [
    "task",
    "cell",
    "variant",
    "seed",
    "lr",
    "total_params",
    "length",
    "symbol_error",
    "sequence_exact",
    "last_symbol",
    "status",
    "seconds",
];

/// The rows of `table.csv`.
fn lines(arms: &[Arm<'_>]) -> Vec<Map<String, Value>> {
    let mut lines = Vec::new();
    for arm in arms {
        for run in &arm.runs {
            for entry in &run.entries {
                let mut line = Map::new();
                let mut put = |key: &str, value: Value| _ = line.insert(key.to_owned(), value);
                put("task", json!(arm.task));
                put("cell", json!(arm.cell));
                put("variant", json!(arm.name));
                put("seed", json!(run.seed));
                put("lr", json!(run.lr));
                put("total_params", json!(run.params));
                put("length", json!(entry.length));
                for measure in MEASURES {
                    put(measure, json!(entry.values.get(measure)));
                }
                put("status", json!(run.status));
                put("seconds", json!(run.seconds));
                lines.push(line);
            }
        }
    }
    lines
}

/// The arms by task, in the order of the sweep.
fn by_task<'a, 'b>(arms: &'b [Arm<'a>]) -> Vec<(&'b str, Vec<&'b Arm<'a>>)> {
    let mut tasks: Vec<(&str, Vec<&Arm<'_>>)> = Vec::new();
    for arm in arms {
        match tasks.iter_mut().find(|(task, _)| *task == arm.task) {
            Some((_, list)) => list.push(arm),
            None => tasks.push((&arm.task, vec![arm])),
        }
    }
    tasks
}

/// The arm of the least median validation loss; ties keep the earlier.
fn best<'b, 'a>(arms: impl Iterator<Item = &'b Arm<'a>>) -> Option<&'b Arm<'a>>
where
    'a: 'b,
{
    arms.reduce(|best, next| if next.validation() < best.validation() { next } else { best })
}

fn verdict(name: &str, arms: &[Arm<'_>]) -> Report {
    let (proofs, others) = (arms.iter().any(|arm| arm.cell == "ll"), arms.iter().any(|arm| arm.cell != "ll"));
    let question = match (proofs, others) {
        (true, true) => {
            format!("{name}: does the best linear-logic cell do better than the strongest baseline?")
        }
        (false, true) => {
            format!("{name}: does the best cell, by validation, do better than the strongest other?")
        }
        (_, false) => {
            format!(
                "{name}: does the first of two settings do better than the second, each with its best arm?"
            )
        }
    };
    let mut rows = Vec::new();
    for (task, arms) in by_task(arms) {
        if others && !proofs {
            let Some(candidate) = best(arms.iter().copied()) else { continue };
            let rest = arms.iter().filter(|arm| !std::ptr::eq(**arm, candidate));
            let rest: Vec<Sample> = rest.map(|arm| arm.sample()).collect();
            rows.extend(strongest(&rest).map(|other| Row::new(task, &candidate.sample(), other)));
        } else if others {
            let baselines: Vec<Sample> =
                arms.iter().filter(|arm| arm.cell != "ll").map(|arm| arm.sample()).collect();
            let candidate = best(arms.iter().copied().filter(|arm| arm.cell == "ll"));
            if let (Some(candidate), Some(baseline)) = (candidate, strongest(&baselines)) {
                rows.push(Row::new(task, &candidate.sample(), baseline));
            }
        } else {
            rows.extend(settings(task, &arms));
        }
    }
    Report::new(question, rows)
}

/// For every key with several values, each pair of them by its best arms.
fn settings(task: &str, arms: &[&Arm<'_>]) -> Vec<Row> {
    // Sizes follow from the budget and are no settings.
    let is_setting =
        |key: &&String| !["task", "name", "hidden", "aux", "aux2", "budget"].contains(&key.as_str());
    let mut keys: Vec<&String> = arms.iter().flat_map(|arm| arm.keys.keys()).filter(is_setting).collect();
    keys.sort();
    keys.dedup();
    let mut rows = Vec::new();
    for key in keys {
        let mut values: Vec<String> = Vec::new();
        for value in arms.iter().filter_map(|arm| arm.keys.get(key)).map(shown) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let with = |value: &str| {
            let arm =
                best(arms.iter().copied().filter(|a| a.keys.get(key).map(shown).as_deref() == Some(value)))?;
            Some(Sample { name: format!("{key}={value} ({})", arm.name), ..arm.sample() })
        };
        for (at, first) in values.iter().enumerate() {
            for second in values.iter().skip(at + 1) {
                if let (Some(first), Some(second)) = (with(first), with(second)) {
                    rows.push(Row::new(task, &first, &second));
                }
            }
        }
    }
    rows
}

/// The arms of a task.
fn table(task: &str, arms: &[&Arm<'_>]) -> Table {
    let measure = primary(task);
    let lengths = arms.first().map(|arm| arm.lengths()).unwrap_or_default();
    let mut head = ["variant", "#weights", "#lr", "#validation"].map(ToOwned::to_owned).to_vec();
    head.extend(lengths.iter().map(|length| format!("#{measure} at {length}")));
    head.extend(["#diverged", "#seconds"].map(ToOwned::to_owned));
    let mut table = Table::new(head);
    for arm in arms {
        let first = arm.runs.first();
        let mut cells = vec![
            html::text(arm.name.clone()),
            html::number(count(first.map(|r| r.params))),
            html::number(first.map_or_else(String::new, |r| r.lr.to_string())),
            html::number(fixed(Some(arm.validation()).filter(|v| v.is_finite()), 4)),
        ];
        for length in &lengths {
            cells.push(html::number(match arm.spread(*length, measure) {
                Some((middle, worst)) => format!("{middle:.4} ({worst:.4})"),
                None => "–".to_owned(),
            }));
        }
        let diverged = arm.runs.iter().filter(|r| r.status == "diverged").count();
        let seconds: Vec<f64> = arm.runs.iter().map(|r| r.seconds).collect();
        cells.extend([diverged.to_string(), fixed(median(&seconds), 1)].map(html::number));
        table.row(cells);
    }
    table
}

fn origin(plan: &Plan<Config>, arms: &[Arm<'_>]) -> String {
    format!(
        "Median (worst) over {} seeds; lr chosen by validation loss on other seeds where the sweep selects. Commit that \
         trained: {}.",
        plan.seeds.len(),
        commits(arms).join(", ")
    )
}

/// The commits that trained the runs.
fn commits(arms: &[Arm<'_>]) -> Vec<String> {
    let all: BTreeSet<&String> = arms.iter().flat_map(|arm| arm.runs.iter().map(|run| &run.commit)).collect();
    all.into_iter().cloned().collect()
}

/// Known limits, which every report states.
const LIMITS: &str = "Copy and reverse need memory that grows with the length, so no finite-state cell generalises \
                      on them. A diagonal V can realise any automaton but needs K = m·|Q| for m symbols, where a full \
                      V needs K = |Q|.";

fn verdict_table(report: &Report) -> Table {
    let columns: &[Column<'_, Row>] = &[
        ("task", &|row| html::text(&row.task)),
        ("candidate", &|row| html::text(&row.candidate)),
        ("#median", &|row| html::number(fixed(row.medians.candidate, 4))),
        ("baseline", &|row| html::text(&row.baseline)),
        ("#median", &|row| html::number(fixed(row.medians.baseline, 4))),
        ("#p", &|row| html::number(p_value(row.p))),
        ("result", &|row| html::text(word(&row.result))),
    ];
    Table::of(&report.rows, columns)
}

/// The word by which something is serialised.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Accuracy against length, one picture for each task.
fn plots(arms: &[Arm<'_>]) -> Vec<(String, Plot)> {
    let plot = |(task, arms): (&str, Vec<&Arm<'_>>)| {
        let measure = primary(task);
        let label = if measure == "last_symbol" { "right last symbols" } else { "exact sequences" };
        let most = arms.iter().flat_map(|arm| arm.lengths()).max().unwrap_or(1).max(2);
        let mut plot = Plot::new(
            task,
            Axis::new("length", Scale::Log).within(1.0, most as f64),
            Axis::new(label, Scale::Linear).within(0.0, 1.0),
        )
        .noted("median over seeds; the band is their range; training lengths are shaded");
        for arm in &arms {
            let lengths = arm.lengths();
            let points: Vec<Dot> = lengths
                .iter()
                .filter_map(|length| Some(Dot::at(*length as f64, median(&arm.values(*length, measure))?)))
                .collect();
            let band = lengths.iter().filter_map(|length| {
                let values = arm.values(*length, measure);
                let least = values.iter().copied().reduce(f64::min)?;
                Some((*length as f64, least, values.iter().copied().reduce(f64::max)?))
            });
            plot = plot.with(&arm.name, Mark::Dotted, points).band(&arm.name, band.collect());
        }
        let longest = arms.iter().map(|arm| arm.longest_training).max().unwrap_or(0);
        (format!("accuracy-{task}"), plot.shaded(longest as f64))
    };
    by_task(arms).into_iter().map(plot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, value: Option<f64>) -> Run {
        let entries = value.map(|v| Entry { length: 9, values: [("last_symbol", v)].into() });
        let (status, commit) = ("done".to_owned(), "c".to_owned());
        Run {
            seed,
            lr: 0.1,
            params: 1,
            status,
            seconds: 1.0,
            validation: 0.5,
            commit,
            entries: entries.into_iter().collect(),
        }
    }

    /// Five seeds, of which two never came to a result: they are not left out.
    #[test]
    fn a_run_without_a_result_counts_as_the_worst() {
        let keys = toml::Table::new();
        let runs = [Some(0.9), None, Some(1.0), Some(f64::NAN), Some(0.8)];
        let arm = Arm {
            task: "parity".to_owned(),
            cell: "gru".to_owned(),
            name: "gru".to_owned(),
            keys: &keys,
            longest_training: 5,
            longest_test: 9,
            runs: (0..).zip(runs).map(|(seed, value)| run(seed, value)).collect(),
        };
        assert_eq!(arm.sample().values, [0.9, 0.0, 1.0, 0.0, 0.8]);
        assert_eq!(arm.spread(9, "last_symbol"), Some((0.8, 0.0)));
        assert_eq!(arm.spread(9, "symbol_error"), Some((1.0, 1.0)));
    }
}
