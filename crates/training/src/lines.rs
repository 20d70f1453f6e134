//! What the `update` and `eval` lines of `metrics.jsonl` are called, for each kind of learner.
//!
//! `docs/metrics.md` lists every field with its unit.

use serde_json::{Map, Value, json};

use crate::checkpoint::State;

/// The words of a learner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lines {
    /// A language model: nats per token, counts of targets, epochs.
    #[default]
    Tokens,
    /// A recurrent learner: a loss, counts of sequence-steps.
    Sequences,
}

/// What happened since the last `update` line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    pub(crate) loss: f64,
    pub(crate) lr: f64,
    pub(crate) grad_norm: f64,
    /// Targets and sequence-steps that this process saw in these seconds, skipped updates and those before a kill
    /// included or left out on both sides alike.
    pub(crate) targets: u64,
    pub(crate) sequence_steps: u64,
    pub(crate) seconds: f64,
}

impl Interval {
    /// Units of work in a second, with their name.
    pub(crate) fn speed(&self, lines: Lines) -> String {
        let (work, unit) = match lines {
            Lines::Tokens => (self.targets, "targets/s"),
            Lines::Sequences => (self.sequence_steps, "steps/s"),
        };
        format!("{:.0} {unit}", work as f64 / self.seconds)
    }
}

impl Lines {
    /// The fields of an `update` line.
    pub(crate) fn update(self, state: &State, interval: Interval) -> Map<String, Value> {
        let Interval { loss, lr, grad_norm, targets, seconds, .. } = interval;
        object(match self {
            Self::Tokens => json!({
                "step": state.step, "epoch": state.epoch, "loss": loss, "lr": lr, "grad_norm": grad_norm,
                "targets": state.targets, "skipped": state.skipped, "seconds": seconds,
                "targets_per_second": targets as f64 / seconds,
            }),
            Self::Sequences => json!({
                "step": state.step, "loss": loss, "lr": lr, "grad_norm": grad_norm, "skipped": state.skipped,
                "seconds": seconds, "sequence_steps": state.sequence_steps,
            }),
        })
    }

    /// The first fields of an `eval` line.
    pub(crate) fn eval(self, step: u64, weights: &str, watched: f64) -> Map<String, Value> {
        object(match self {
            Self::Tokens => {
                json!({"step": step, "split": "val", "weights": weights, "nats_per_token": watched})
            }
            Self::Sequences => json!({"step": step, "split": "val", "loss": watched}),
        })
    }
}

/// The fields of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
