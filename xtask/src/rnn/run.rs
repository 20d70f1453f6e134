//! A recurrent run in its folder: training, the test at each length, `eval.json`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::gates;
use linear_logic_rnn::learner::Learner as Recurrent;
use linear_logic_rnn::step::Part;
use serde_json::{Map, Value, json};
use training::schedule::{Decline, Schedule};
use training::{Piece, Settings, Task};

use super::config::Config;
use crate::answer::say;
use crate::learner::{Kind, Learner as _, State, Subject};
use crate::record::{Record, document, field, write_document};
use crate::run_folder;

/// Updates between `update` lines.
const LOG_EVERY: u64 = 100;

/// A cell on its task.
pub(crate) struct OnTask {
    config: Config,
    cell: Cell,
    learner: Recurrent,
}

impl OnTask {
    /// The cell and its learner; what the cell warns of is said.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let cell = config.cell()?;
        for warning in &cell.warnings {
            say!("warning: {}: {}", warning.kind, warning.message);
        }
        let learner = config.learner(&cell)?;
        Ok(Self { config: config.clone(), cell, learner })
    }
}

impl Subject for OnTask {
    type Task = Recurrent;

    fn task(&mut self) -> Option<&mut Recurrent> {
        Some(&mut self.learner)
    }

    fn settings(&self) -> Result<Settings> {
        settings(&self.config)
    }

    fn describe(&self, folder: &Path, anew: bool) -> Result<()> {
        if anew || !folder.join("config.json").is_file() {
            write_about(&self.config, &self.cell, folder)?;
        }
        Ok(())
    }

    fn judge(&mut self, folder: &Path, state: State, quiet: bool) -> Result<Value> {
        let status = match state {
            State::Done => "done",
            State::Diverged => "diverged",
        };
        evaluate(&self.config, &self.cell, &mut self.learner, folder, status, quiet)
    }
}

/// A run that is trained, opened to look into its weights.
pub(super) struct Trained {
    pub(super) folder: PathBuf,
    pub(super) config: Config,
    pub(super) cell: Cell,
    /// In the order of the step.
    pub(super) theta: Vec<f32>,
}

impl Trained {
    /// The run of a name or a folder; `what` is what only recurrent runs have.
    pub(super) fn open(run: &str, what: &str) -> Result<Self> {
        Self::in_folder(run_folder::find(run)?, what)
    }

    /// The run of a folder.
    pub(super) fn in_folder(folder: PathBuf, what: &str) -> Result<Self> {
        if run_folder::kind(&folder)? != Kind::Recurrent {
            bail!("{}: only recurrent runs {what}", folder.display());
        }
        let config: Config = run_folder::config(&folder)?;
        let cell = config.cell()?;
        let theta = training::checkpoint::load_weights(&run_folder::weights(&folder), &cell.layout())
            .context("the model of the run; `cargo xtask train` makes it")?;
        Ok(Self { folder, config, cell, theta })
    }
}

/// Forward and backward through the first batches of a run, without an update: the mean of at most eight, or of half a
/// second.
pub(super) fn one_step(config: &Config, cell: &Cell) -> Result<Value> {
    let mut learner = config.learner(cell)?;
    let theta = learner.layout().initialise(config.seed);
    let mut gradient = vec![0.0; theta.len()];
    let (mut items, mut updates) = (0, 0_u32);
    let clock = std::time::Instant::now();
    while updates == 0 || updates < 8 && clock.elapsed().as_secs_f64() < 0.5 {
        let batch = learner.batch(0, u64::from(updates))?;
        items += batch.steps * batch.sequences;
        learner.gradient(&theta, &batch, Piece { part: 0, parts: 1 }, 1, &mut gradient)?;
        updates += 1;
    }
    let seconds = clock.elapsed().as_secs_f64() / f64::from(updates);
    let items = items as f64 / f64::from(updates);
    Ok(json!({"items": items, "unit": "steps of sequences", "seconds": seconds}))
}

/// How words are read, for reports.
pub(super) fn order(config: &Config) -> &'static str {
    config.options.order().map_or("literal", |order| order.name())
}

fn settings(config: &Config) -> Result<Settings> {
    let optimiser = config.optimiser()?;
    Ok(Settings {
        optimiser: optimiser.fused(),
        schedule: Schedule {
            lr: optimiser.lr,
            warmup: 0,
            total: config.updates,
            min_lr: 0.0,
            decline: Decline::Constant,
        },
        clip: optimiser.clip,
        accumulate: 1,
        pieces: 0,
        patience: 0,
        min_delta: 0.0,
        goal: if config.stop_at.is_some() { config.stop_after } else { 0 },
        eval_every: config.eval_every,
        log_every: LOG_EVERY,
        save_every: config.save_every,
        max_skipped: config.max_skipped,
        seed: config.seed,
        config_digest: config.digest()?,
        data_digest: String::new(),
        optimum: None,
        initial: None,
    })
}

/// `config.json`: the cell, its sizes, its programs in canonical text and the word order.
fn write_about(config: &Config, cell: &Cell, folder: &Path) -> Result<()> {
    let programs: Vec<Value> =
        cell.programs.iter().map(|p| json!({"place": p.place, "text": p.text, "is": p.canonical})).collect();
    let about = json!({
        "model_type": "linear-logic-rnn", "cell": config.cell, "sizes": config.resolved_sizes()?,
        "options": config.options, "programs": programs, "order": order(config), "task": config.task,
        "num_parameters": cell.count(), "commit": run_folder::commit(),
    });
    write_document(&folder.join("config.json"), &about)
}

/// Tests the best weights at every length and writes `eval.json`.
fn evaluate(
    config: &Config,
    cell: &Cell,
    learner: &mut Recurrent,
    folder: &Path,
    status: &str,
    quiet: bool,
) -> Result<Value> {
    let weights = run_folder::weights(folder);
    // A run may diverge before any validation was a number: it has no model then, and counts as the worst there is.
    let theta = if status == "diverged" && !weights.is_file() {
        None
    } else {
        let theta = training::checkpoint::load_weights(&weights, learner.layout());
        Some(theta.context("the model of the run")?)
    };
    let mut lengths = Vec::new();
    for length in config.lengths() {
        let Some(theta) = &theta else {
            lengths.push(json!({"length": length, "sequences": 0, "loss": null}));
            continue;
        };
        let batches = learner.batches().clone();
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(config.eval_sequences as u64) };
        let batches =
            batches.test(length, config.eval_sequences).map(|batch| batch.map_err(anyhow::Error::from));
        let tested = learner.judge(theta, batches, |batch| bar.inc(batch.sequences as u64))?;
        bar.finish_and_clear();
        let mut line = json!({"length": length, "sequences": tested.score.sequences, "loss": tested.loss});
        if let Value::Object(line) = &mut line {
            line.extend(tested.score.fields());
        }
        lengths.push(line);
    }
    let record = Record::read(folder)?;
    let mut document = json!({
        "task": config.task, "cell": config.cell, "order": order(config), "seed": config.seed,
        "total_params": cell.count(), "best_update": record.best("loss").map(|best| best.1), "status": status,
        "seconds": seconds(&record), "steps_per_second": speed(&record), "lengths": lengths,
        "commit": run_folder::commit(), "cell_params": cell.step.count(Part::Cell),
    });
    if let (Some(share), Value::Object(fields)) = (config.stop_at, &mut document) {
        fields.insert("reached_at".to_owned(), json!(reached_at(&record, share)));
    }
    let gates = theta.map(|theta| gates_right(config, cell, &theta, learner)).transpose()?.flatten();
    if let (Some(share), Value::Object(fields)) = (gates, &mut document) {
        fields.insert("gates_right".to_owned(), json!(share));
    }
    write_document(&folder.join("eval.json"), &document)?;
    Ok(document)
}

/// The first update at whose evaluation this share of the sequences of the longest training length was right.
fn reached_at(record: &Record, share: f64) -> Option<u64> {
    let reached = |line: &&Map<String, Value>| field(line, "longest").is_some_and(|right| right >= share);
    record.lines("eval").find(reached).and_then(|line| line.get("step")?.as_u64())
}

/// Sequences on which it is asked what gates say.
const READ_BACK: usize = 128;

/// The share of steps at which the gates name the planted program, on test sequences of the longest training length.
fn gates_right(config: &Config, cell: &Cell, theta: &[f32], learner: &Recurrent) -> Result<Option<f64>> {
    let task = config.task()?;
    if task.planted().is_none() {
        return Ok(None);
    }
    let examples = learner.batches().examples(config.max_length, READ_BACK)?;
    Ok(gates::share_right(cell, theta, &task, &examples))
}

/// Judges a run once more.
pub(crate) fn judge_again(config: &Config, folder: &Path, quiet: bool) -> Result<Value> {
    let cell = config.cell()?;
    let mut learner = config.learner(&cell)?;
    let earlier = document(&folder.join("eval.json"))?;
    let status = earlier.get("status").and_then(Value::as_str).unwrap_or("done");
    if status == "diverged" && !run_folder::weights(folder).is_file() {
        bail!("{}: no model: the run diverged before any validation was a number", folder.display());
    }
    if !run_folder::weights(folder).is_file() {
        bail!("{}: no model yet; go on with `cargo xtask train --resume`", folder.display());
    }
    evaluate(config, &cell, &mut learner, folder, status, quiet)
}

/// Seconds of training, without the evaluations.
pub(crate) fn seconds(record: &Record) -> f64 {
    // The sum of no numbers is -0.
    record.lines("update").filter_map(|line| field(line, "seconds")).sum::<f64>() + 0.0
}

/// Sequence-steps in a second of training.
pub(crate) fn speed(record: &Record) -> Option<f64> {
    let steps = field(record.lines("update").next_back()?, "sequence_steps")?;
    let seconds = seconds(record);
    (seconds > 0.0).then(|| steps / seconds)
}
