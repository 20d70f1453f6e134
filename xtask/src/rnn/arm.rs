//! An arm of a sweep: a point on a task, with what its runs came to.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use linear_logic_rnn::statistics::{Sample, median};
use linear_logic_rnn::step::Part;
use linear_logic_rnn::task::{Settings, Task};
use serde_json::Value;

use super::config::Config;
use crate::record::{Record, document};
use crate::run_folder;
use crate::sweep::Point;
use crate::sweep::values::shown;

/// The measures of a test.
pub(super) const MEASURES: [&str; 3] = ["symbol_error", "sequence_exact", "last_symbol"];

/// One run at one length.
pub(super) struct Entry {
    pub(super) length: u64,
    pub(super) values: BTreeMap<&'static str, f64>,
}

/// A finished run.
pub(super) struct Run {
    pub(super) seed: u64,
    /// The first update at whose evaluation the goal was reached.
    pub(super) reached_at: Option<u64>,
    /// The share of steps at which the gates name the planted program.
    pub(super) gates_right: Option<f64>,
    /// Weights without the readout.
    pub(super) cell_params: Option<u64>,
    pub(super) lr: f64,
    pub(super) params: u64,
    pub(super) status: String,
    pub(super) seconds: f64,
    pub(super) validation: f64,
    pub(super) commit: String,
    pub(super) entries: Vec<Entry>,
}

/// A variant on a task, with its runs.
pub(super) struct Arm<'a> {
    pub(super) task: String,
    pub(super) cell: String,
    pub(super) name: String,
    pub(super) keys: &'a toml::Table,
    /// What was chosen for it.
    pub(super) selected: &'a toml::Table,
    /// Multiply-adds of one step of its cell, without the readout.
    pub(super) multiply_adds: usize,
    /// Whether its runs have a goal.
    pub(super) has_goal: bool,
    pub(super) longest_training: usize,
    pub(super) longest_test: u64,
    pub(super) runs: Vec<Run>,
}

impl Arm<'_> {
    pub(super) fn read<'a>(point: &'a Point<Config>) -> Result<Option<Arm<'a>>> {
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
            selected: &point.selected,
            multiply_adds: config.cell()?.step.multiply_adds(Part::Cell),
            has_goal: config.stop_at.is_some(),
            longest_training: config.max_length,
            longest_test: config.lengths().into_iter().max().unwrap_or(0) as u64,
            runs,
        }))
    }

    /// The lengths of the test.
    pub(super) fn lengths(&self) -> Vec<u64> {
        let mut lengths: Vec<u64> =
            self.runs.iter().flat_map(|r| r.entries.iter().map(|e| e.length)).collect();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// One value for each seed; a run that has none counts as the worst there is.
    pub(super) fn values(&self, length: u64, measure: &str) -> Vec<f64> {
        let of = |run: &Run| {
            let entry = run.entries.iter().find(|e| e.length == length)?;
            entry.values.get(measure).copied().filter(|value| value.is_finite())
        };
        let worst = if measure == "symbol_error" { 1.0 } else { 0.0 };
        self.runs.iter().map(|run| of(run).unwrap_or(worst)).collect()
    }

    /// The primary measure at the longest length of the sweep's test.
    pub(super) fn sample(&self) -> Sample {
        let longest = self.longest_test;
        Sample { name: self.name.clone(), values: self.values(longest, primary(&self.task)) }
    }

    pub(super) fn validation(&self) -> f64 {
        let losses: Vec<f64> = self.runs.iter().map(|r| r.validation).collect();
        median(&losses).unwrap_or(f64::INFINITY)
    }

    /// Median and worst over seeds.
    pub(super) fn spread(&self, length: u64, measure: &str) -> Option<(f64, f64)> {
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
            reached_at: eval.get("reached_at").and_then(Value::as_u64),
            gates_right: eval.get("gates_right").and_then(Value::as_f64),
            cell_params: eval.get("cell_params").and_then(Value::as_u64),
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
pub(super) fn primary(task: &str) -> &'static str {
    let task = Task::new(task, &Settings::default());
    if task.is_ok_and(|task| task.is_state()) { "last_symbol" } else { "sequence_exact" }
}

/// The word by which something is serialised.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, value: Option<f64>) -> Run {
        let entries = value.map(|v| Entry { length: 9, values: [("last_symbol", v)].into() });
        let (status, commit) = ("done".to_owned(), "c".to_owned());
        Run {
            seed,
            reached_at: None,
            gates_right: None,
            cell_params: None,
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
            selected: &keys,
            multiply_adds: 1,
            has_goal: false,
            longest_training: 5,
            longest_test: 9,
            runs: (0..).zip(runs).map(|(seed, value)| run(seed, value)).collect(),
        };
        assert_eq!(arm.sample().values, [0.9, 0.0, 1.0, 0.0, 0.8]);
        assert_eq!(arm.spread(9, "last_symbol"), Some((0.8, 0.0)));
        assert_eq!(arm.spread(9, "symbol_error"), Some((1.0, 1.0)));
    }
}
