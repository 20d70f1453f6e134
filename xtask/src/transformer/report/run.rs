//! What a run left behind: `config.toml`, `config.json`, `metrics.jsonl`, `eval.json`; nothing else is read.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::super::config::{Config, Model};
use crate::draw::numbers::interval;
use crate::record::{Line, Record, document, field};
use crate::{expect, run_folder};

/// A run as a report sees it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The name for people.
    pub(crate) name: String,
    /// What it belongs to with others: they share a colour and one entry of the legend. By itself its name.
    pub(crate) group: String,
    /// The configuration.
    pub(crate) config: Config,
    /// The text of `config.toml`: keys, and below them what the run was made with.
    pub(crate) config_text: String,
    /// The lines of `metrics.jsonl`.
    pub(crate) metrics: Record,
    /// `eval.json`, or null.
    pub(crate) eval: Value,
    /// `config.json`, or null.
    pub(crate) about: Value,
}

impl Run {
    /// Reads a run. Only `config.toml` must be there.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let config: Config = run_folder::config(folder)?;
        let name = match folder.file_name() {
            Some(name) => name.to_string_lossy().into_owned(),
            None => folder
                .canonicalize()
                .ok()
                .and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()))
                .unwrap_or_default(),
        };
        Ok(Self {
            folder: folder.to_owned(),
            group: name.clone(),
            name,
            config,
            config_text: run_folder::text(folder)?.1,
            metrics: Record::read(folder)?,
            eval: document(&folder.join("eval.json"))?,
            about: document(&folder.join("config.json"))?,
        })
    }

    /// The learner, for people.
    pub(crate) fn model_name(&self) -> String {
        match (self.config.model, self.config.order) {
            (Model::Transformer, _) => "transformer".to_owned(),
            (Model::Lstm, _) => "LSTM".to_owned(),
            (Model::Ngram, Some(order)) => format!("Kneser–Ney model of order {order}"),
            (Model::Ngram, None) => "Kneser–Ney model".to_owned(),
            (Model::Uniform, _) => "uniform".to_owned(),
            (Model::GrammarUniform, _) => "uniform within the grammar".to_owned(),
        }
    }

    /// A number of `eval.json`.
    pub(crate) fn eval(&self, pointer: &str) -> Option<f64> {
        self.eval.pointer(pointer).and_then(Value::as_f64)
    }

    /// A mean of `eval.json` with half its 95 % interval.
    pub(crate) fn interval(&self, pointer: &str) -> String {
        interval(self.eval(&format!("{pointer}/value")), self.eval(&format!("{pointer}/se")))
    }

    /// The number of parameters.
    pub(crate) fn parameters(&self) -> Option<u64> {
        let about = self.about.get("num_parameters").and_then(Value::as_u64);
        about.or_else(|| self.metrics.lines("start").next()?.get("parameters")?.as_u64())
    }

    /// What the configuration expects, beside what was measured.
    pub(crate) fn expectations(&self) -> Vec<expect::Row> {
        let Some(expect) = &self.config.expect else { return Vec::new() };
        let judged = self.eval.get("expect").and_then(Value::as_array);
        expect.rows(|key| match key {
            "params" => self.parameters().map(|n| n as f64),
            "seconds_max" => self.seconds(),
            _ => {
                judged?.iter().find(|row| row.get("key").is_some_and(|k| k == key))?.get("measured")?.as_f64()
            }
        })
    }

    /// Updates done.
    pub(crate) fn updates(&self) -> Option<u64> {
        self.metrics.lines("update").last()?.get("step")?.as_u64()
    }

    /// Targets seen.
    pub(crate) fn targets(&self) -> Option<u64> {
        self.metrics.lines("update").last()?.get("targets")?.as_u64()
    }

    /// What training computed, in TFLOP: six operations for each parameter and target (Kaplan et al. 2020, section 2.1),
    /// the look-ups of embeddings counted as if they were products.
    pub(crate) fn compute(&self) -> Option<f64> {
        Some(self.targets()? as f64 * self.compute_of_target()?)
    }

    /// The same of one target.
    pub(crate) fn compute_of_target(&self) -> Option<f64> {
        Some(6e-12 * self.parameters()? as f64)
    }

    /// Seconds of training and of validation, each counted in lines of its own; the pauses between left out.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let times = || self.metrics.all().iter().filter_map(|l| field(l, "seconds"));
        times().next().map(|_| times().sum())
    }

    /// The smallest validation loss.
    pub(crate) fn best(&self) -> Option<f64> {
        self.metrics.best("nats_per_token").map(|best| best.0)
    }

    /// Why training ended, if it did.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.metrics.lines("end").last()?.get("reason")?.as_str()
    }

    /// The optimum that validation was compared with.
    pub(crate) fn optimum(&self) -> Option<f64> {
        let of = |l: &Line| Some(field(l, "nats_per_token")? - field(l, "excess")?);
        self.metrics.lines("eval").find_map(of).or_else(|| self.eval("/iid/optimum/nats_per_token"))
    }

    /// The digest of the data: as judged, or as trained on.
    pub(crate) fn data_digest(&self) -> Option<&str> {
        let judged = self.eval.get("data_digest").and_then(Value::as_str);
        judged.or_else(|| self.metrics.data_digest())
    }

    /// The last comment of `config.toml` that begins with a word.
    pub(crate) fn made_with(&self, word: &str) -> Option<&str> {
        run_folder::made_with_of(&self.config_text, word)
    }

    /// The commit that trained it.
    pub(crate) fn commit(&self) -> &str {
        run_folder::trained_by(&self.config_text)
    }

    /// A field of the lines of a kind over targets seen; thinned out to means of neighbours where there are many.
    pub(crate) fn curve(&self, kind: &'static str, key: &str) -> Vec<(f64, f64)> {
        let places: Vec<(f64, f64)> = self
            .metrics
            .lines("update")
            .filter_map(|l| Some((field(l, "step")?, field(l, "targets")?)))
            .collect();
        let curve = self.metrics.lines(kind).filter_map(|l| {
            let step = field(l, "step")?;
            let x = field(l, "targets").or_else(|| targets_at(&places, step))?;
            Some((x, field(l, key).unwrap_or(f64::NAN)))
        });
        thinned(curve.collect())
    }

    /// Whether the model is a network that is trained step by step.
    pub(crate) fn is_trained(&self) -> bool {
        self.config.model.has_weights()
    }
}

/// Targets seen at a step, between the lines that say it.
fn targets_at(places: &[(f64, f64)], step: f64) -> Option<f64> {
    let after = places.iter().position(|p| p.0 >= step);
    let (before, after) = match after {
        Some(0) => (Some(&(0.0, 0.0)), places.first()),
        Some(i) => (places.get(i - 1), places.get(i)),
        None => return places.last().map(|p| p.1).or((step == 0.0).then_some(0.0)),
    };
    let (&(s0, t0), &(s1, t1)) = before.zip(after)?;
    Some(if s1 > s0 { t0 + (t1 - t0) * (step - s0) / (s1 - s0) } else { t1 })
}

/// The most values of a curve.
const MOST: usize = 400;

/// Means of neighbours, so that at most [`MOST`] values are left.
fn thinned(curve: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let together = curve.len().div_ceil(MOST);
    if together <= 1 {
        return curve;
    }
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        (part.iter().map(|p| p.0).sum::<f64>() / n, part.iter().map(|p| p.1).sum::<f64>() / n)
    };
    curve.chunks(together).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_targets() {
        let places = [(50.0, 500.0), (100.0, 1200.0)];
        for (step, targets) in
            [(0.0, 0.0), (25.0, 250.0), (50.0, 500.0), (75.0, 850.0), (100.0, 1200.0), (130.0, 1200.0)]
        {
            assert_eq!(targets_at(&places, step), Some(targets), "{step}");
        }
        assert_eq!((targets_at(&[], 0.0), targets_at(&[], 1.0)), (Some(0.0), None));
    }

    #[test]
    fn long_curves_are_thinned() {
        let curve: Vec<(f64, f64)> = (0..1001).map(|i| (f64::from(i), 2.0 * f64::from(i))).collect();
        let thin = thinned(curve.clone());
        assert!(thin.len() <= MOST && thin.len() > MOST / 2);
        assert_eq!(thin.first(), Some(&(1.0, 2.0)));
        assert_eq!(thinned(curve[..300].to_vec()), curve[..300]);
    }
}
