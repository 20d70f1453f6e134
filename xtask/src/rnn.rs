//! The recurrent learner: its configuration, its runs, what sweeps of it show, and the commands that print exact
//! values.

mod arm;
pub(crate) mod cell;
pub(crate) mod certify;
pub(crate) mod config;
mod contrast;
pub(crate) mod optim;
mod page;
pub(crate) mod run;
pub(crate) mod snap;
mod table;
pub(crate) mod task;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use linear_logic_rnn::arms;
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::error::{Kind, Refusal};
use linear_logic_rnn::options::CellKind;
use linear_logic_rnn::step::Part;
use serde_json::{Value, json};

use crate::answer::{give, print_json, print_text};
use crate::contrast::Contrast;
use crate::draw::numbers::{count, duration};
use crate::learner::{self, Learner};
use crate::record::{Record, document};
use crate::run_folder;
use crate::signals::Stop;
use crate::sweep::{Plan, Point, Summary, Tables};
use config::Config;

impl Learner for Config {
    type Subject = run::OnTask;

    const KIND: learner::Kind = learner::Kind::Recurrent;
    const CHANGEABLE: &'static [&'static str] =
        &["eval_every", "save_every", "threads", "eval_lengths", "eval_sequences"];
    const SILENT: &'static [&'static str] = &["expect", "name", "allow_gap", "placebo"];
    const JUDGES_DIVERGED: bool = true;

    const EXPECTS: &'static [&'static str] =
        &["params", "last_symbol_min", "sequence_exact_min", "seconds_max"];

    // Its verdicts are made of planned comparisons of its own (table.rs).
    const MEASURES: &'static [&'static str] = &[];

    fn optimum_of(_: &str) -> Option<&'static str> {
        None
    }

    fn parameters(&self) -> Result<Option<usize>> {
        Ok(Some(self.cell()?.count()))
    }

    fn can_be_judged(&self, _: &str, _: &Self) -> Result<()> {
        Ok(())
    }

    fn check_contrasts(contrasts: &[Contrast], arms: &[Self]) -> Result<()> {
        let named: Vec<(&str, &str)> =
            arms.iter().map(|arm| (arm.task.as_str(), arm.name.as_deref().unwrap_or(&arm.cell))).collect();
        for contrast in contrasts {
            contrast.check(&named)?;
            let judged = |arm: &&Self| contrast.tasks.contains(&arm.task);
            if let Some(arm) = arms.iter().filter(judged).find(|arm| arm.stop_at.is_none()) {
                bail!(
                    "contrast {}: the runs of {} have no stop_at, so none reaches a goal",
                    contrast.name,
                    arm.task
                );
            }
        }
        Ok(())
    }

    fn varies(&self, key: &str) -> bool {
        let Ok(kind) = self.cell.parse::<CellKind>() else { return true };
        let is_one = || self.options.of(kind).is_ok_and(|options| arms::has_no_gates(&options));
        !Self::further_keys().contains(&key)
            || kind.options().contains(&key) && !(key == "gate_bias" && is_one())
    }

    fn further_keys() -> Vec<&'static str> {
        CellKind::all().flat_map(|kind| kind.options().iter().copied()).collect()
    }

    fn check(&self, name: &str) -> Result<()> {
        self.check(name)
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn device(&self) -> &str {
        &self.device
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn shared(&self) -> Option<&str> {
        None
    }

    fn prepare(_shared: &str, _quiet: bool, _stop: &Stop) -> Result<()> {
        Ok(())
    }

    fn forecast(&self) -> Result<Value> {
        let cell = self.cell()?;
        let step = run::one_step(self, &cell)?;
        let seconds = step.get("seconds").and_then(Value::as_f64).map(|s| s * self.updates as f64);
        let weights: serde_json::Map<String, Value> =
            cell.step.trained().map(|(_, w)| (w.name.clone(), json!(w.shape))).collect();
        let document = json!({
            "schema": "xtask/1", "command": "train", "params": cell.count(), "weights": weights,
            "sizes": self.resolved_sizes()?, "total_updates": self.updates, "config": toml::Table::try_from(self)?,
            "step": step, "seconds_estimated": seconds,
        });
        Ok(document)
    }

    fn forecast_in_words(&self, forecast: &Value) -> Result<String> {
        Ok(self.dry_run_text(&self.cell()?, forecast))
    }

    fn headline(&self) -> Result<String> {
        let (count, order) = (self.cell()?.count(), run::order(self));
        Ok(format!("{} with {count} weights on {}, words read {order}", self.cell, self.task))
    }

    fn open(&self, _folder: &Path, _quiet: bool, _stop: &Stop) -> Result<run::OnTask> {
        run::OnTask::open(self)
    }

    fn report(folder: &Path) -> Result<PathBuf> {
        page::write(folder)
    }

    fn in_short(evaluation: &Value) -> String {
        let lines = evaluation.get("lengths").and_then(Value::as_array).into_iter().flatten();
        let line = |line: &Value| {
            let number = |key: &str| line.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
            format!(
                "length {:>5}: symbol error {:.4}, exact {:.4}, last symbol {:.4}\n",
                number("length"),
                number("symbol_error"),
                number("sequence_exact"),
                number("last_symbol")
            )
        };
        lines.map(line).collect()
    }

    fn is_judged(&self, folder: &Path) -> Result<bool> {
        let eval = document(&folder.join("eval.json"))?;
        let lengths = eval.get("lengths").and_then(Value::as_array);
        let found: Vec<u64> =
            lengths.into_iter().flatten().filter_map(|l| l.get("length")?.as_u64()).collect();
        Ok(eval.is_object() && self.lengths().iter().all(|length| found.contains(&(*length as u64))))
    }

    fn best_loss(&self, folder: &Path) -> Result<f64> {
        let best = Record::read(folder)?.best("loss");
        let eval = document(&folder.join("eval.json"))?;
        if best.is_none() && eval.get("status").and_then(Value::as_str) == Some("diverged") {
            return Ok(f64::INFINITY);
        }
        best.map(|best| best.0).ok_or_else(|| anyhow!("{} has no validation loss", folder.display()))
    }

    fn identity(&self) -> Result<Option<String>> {
        if self.placebo {
            return Ok(None);
        }
        let model = arms::identity(&self.options.of(self.cell.parse()?)?, &self.resolved_sizes()?)?;
        let mut rest = toml::Table::try_from(self)?;
        let sizes = ["hidden", "aux", "aux2", "readout", "addresses", "content", "pattern_addresses"];
        for key in sizes
            .into_iter()
            .chain(["cell", "budget", "cell_budget"])
            .chain(Self::further_keys())
            .chain(Self::SILENT.iter().copied())
        {
            rest.remove(key);
        }
        Ok(Some(format!("{rest}{model}")))
    }

    fn check_in_sweep(&self) -> Result<()> {
        arms::check_rank(&self.options.of(self.cell.parse()?)?, &self.resolved_sizes()?)?;
        let cell = self.cell()?;
        let (all, alone) = (cell.count(), cell.step.count(Part::Cell));
        for (budget, count, of) in [(self.budget, all, ""), (self.cell_budget, alone, " in its cell")] {
            let Some(budget) = budget.filter(|_| !self.allow_gap) else { continue };
            if count * 100 < budget * 97 || count * 100 > budget * 103 {
                let message = format!(
                    "{} has {count} weights{of}, not within 3 % of the budget of {budget}; other sizes, or allow_gap = true",
                    self.cell
                );
                return Err(Refusal::new(Kind::BudgetGap, message).into());
            }
        }
        Ok(())
    }
}

impl Tables for Config {
    fn summary(plan: &Plan<Self>, points: &[Point<Self>]) -> Result<Summary> {
        table::summary(plan, points)
    }
}

impl Config {
    /// The size of a run, for people.
    fn dry_run_text(&self, cell: &Cell, forecast: &Value) -> String {
        let (weights, updates, batch, longest) = (cell.count(), self.updates, self.batch, self.max_length);
        let memory = 16.0 * weights as f64 / 1e3;
        let mut text = format!("{:18} {weights}, {memory:.1} kB with gradient and two moments\n", "weights");
        for (_, weight) in cell.step.trained() {
            let shape: Vec<String> = weight.shape.iter().map(ToString::to_string).collect();
            text += &format!("  {:16} {}\n", weight.name, shape.join(" × "));
        }
        let steps = updates.saturating_mul(batch as u64).saturating_mul(longest as u64);
        let most = format!("at most {longest} steps: at most {steps} steps");
        text += &format!("{:18} {updates} updates of {batch} sequences of {most}\n", "the run");
        let at = |path: &str| forecast.pointer(path).and_then(Value::as_f64);
        let speed =
            at("/step/items").zip(at("/step/seconds")).map(|(items, seconds)| (items / seconds) as u64);
        let whole = duration(at("/seconds_estimated"));
        text + &format!("{:18} {} steps of sequences a second, about {whole} in all\n", "speed", count(speed))
    }
}

/// `cargo xtask eval` of a recurrent run, at its own lengths and further ones; returns the exit status.
pub(crate) fn eval(folder: &Path, further: &[usize], json: bool, quiet: bool) -> Result<u8> {
    let mut config: Config = run_folder::config(folder)?;
    let mut lengths = config.lengths();
    lengths.extend(further);
    lengths.sort_unstable();
    lengths.dedup();
    config.eval_lengths = Some(lengths);
    config.check(&folder.display().to_string())?;
    training::threads::set(config.threads)?;
    let _alone = run_folder::lock(folder)?;
    let evaluation = run::judge_again(&config, folder, quiet)?;
    give(json, &evaluation, || Config::in_short(&evaluation))?;
    Ok(0)
}

/// Writes the page of one recurrent run.
pub(crate) fn report(folders: &[PathBuf], json: bool) -> Result<u8> {
    let [folder] = folders else { bail!("recurrent runs are reported one by one; a sweep compares them") };
    let page = page::write(folder)?;
    let eval = document(&folder.join("eval.json"))?;
    let document = json!({"schema": "xtask/1", "command": "report", "report": page, "eval": eval});
    give(json, &document, || format!("report: {}\n", page.display()))?;
    Ok(0)
}

/// Prints an answer, or with `--json` the refusal; returns the exit status. `text` writes the answer for people.
fn print(json: bool, answer: Result<Value, Refusal>, text: impl FnOnce(&Value) -> String) -> Result<u8> {
    match answer {
        Ok(document) if json => print_json(&document)?,
        Ok(document) => print_text(&text(&document)),
        Err(refusal) if json => {
            print_json(&json!({"ok": false, "errors": [refusal.json()]}))?;
            return Ok(1);
        }
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(0)
}

/// A list of numbers with spaces between them.
fn spaced(list: Option<&Value>) -> String {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
