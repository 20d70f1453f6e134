//! The loop on a task small enough to be obvious: a linear map learned from noise-free pairs.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seeded::Family;
use serde_json::{Map, Value};
use training::optimiser::{AdamW, RmsProp};
use training::schedule::{Decline, Schedule};
use training::trainer::MAX_SKIPPED;
use training::{
    Decay, Error, Evaluation, Initial, Layout, Lines, Loss, Outcome, Piece, Progress, Result, Settings, Task,
    Trainer,
};

const IN: usize = 4;
const OUT: usize = 3;

/// y = W·x + b with a known W and b.
struct Linear {
    layout: Layout,
    stop: Arc<AtomicUsize>,
    stop_at: u64,
    /// Updates whose loss is not a number.
    broken: std::ops::Range<u64>,
    /// Whether the weight is cut off from the loss.
    cut: bool,
    evaluations: Vec<f64>,
    lines: Lines,
}

impl Linear {
    fn new() -> Self {
        let mut layout = Layout::default();
        let initial = Initial::XavierUniform { fan_in: IN, fan_out: OUT };
        layout.add("map.weight", &[OUT, IN], Decay::Yes, initial);
        layout.add("map.bias", &[OUT], Decay::No, Initial::Constant(0.0));
        let stop = Arc::new(AtomicUsize::new(0));
        Self {
            layout,
            stop,
            stop_at: u64::MAX,
            broken: 0..0,
            cut: false,
            evaluations: Vec::new(),
            lines: Lines::Tokens,
        }
    }

    fn error(theta: &[f32], x: &[f32], o: usize) -> f32 {
        let want: f32 = x.iter().enumerate().map(|(i, x)| x * (o as f32 - i as f32)).sum::<f32>() + 0.5;
        let got: f32 = x.iter().enumerate().map(|(i, x)| x * theta[o * IN + i]).sum::<f32>();
        got + theta[OUT * IN + o] - want
    }
}

impl Task for Linear {
    type Batch = Vec<Vec<f32>>;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn updates_per_epoch(&self) -> u64 {
        7
    }

    fn batch(&mut self, epoch: u64, index: u64) -> Result<Self::Batch> {
        let mut s = Family::named("pairs").stream(epoch * 7 + index);
        Ok((0..8).map(|_| (0..IN).map(|_| s.normal() as f32).collect()).collect())
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Self::Batch,
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
    ) -> Result<Loss> {
        if update == self.stop_at {
            self.stop.store(2, Ordering::Relaxed);
        }
        let mut loss = Loss::default();
        for x in &batch[piece.range(batch.len())] {
            for o in 0..OUT {
                let e = Self::error(theta, x, o);
                loss.sum += f64::from(e * e) / 2.0;
                if !self.cut {
                    for i in 0..IN {
                        gradient[o * IN + i] += e * x[i];
                    }
                }
                gradient[OUT * IN + o] += e;
            }
            loss.targets += 1;
        }
        if self.broken.contains(&update) {
            loss.sum = f64::NAN;
            gradient[OUT * IN] = f32::NAN;
        }
        Ok(loss)
    }

    fn evaluate(&mut self, theta: &[f32]) -> Result<Evaluation> {
        let x = vec![1.0; IN];
        let watched = (0..OUT).map(|o| f64::from(Self::error(theta, &x, o)).powi(2)).sum();
        let watched = self.evaluations.pop().unwrap_or(watched);
        Ok(Evaluation { watched, fields: Map::new() })
    }

    fn lines(&self) -> Lines {
        self.lines
    }

    fn sequence_steps(&self, batch: &Self::Batch) -> u64 {
        if self.lines == Lines::Tokens { 0 } else { 10 * batch.len() as u64 }
    }

    fn refuses_silent_weights(&self) -> bool {
        self.lines == Lines::Tokens
    }
}

fn settings(total: u64) -> Settings {
    Settings {
        optimiser: AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.9 }.into(),
        schedule: Schedule { lr: 0.05, warmup: 2, total, min_lr: 0.0, decline: Decline::Cosine },
        clip: 1.0,
        max_skipped: MAX_SKIPPED,
        accumulate: 2,
        patience: 0,
        min_delta: 1e-3,
        eval_every: 6,
        log_every: 4,
        save_every: 3,
        seed: 1,
        config_digest: "c".to_owned(),
        data_digest: "d".to_owned(),
        optimum: None,
    }
}

fn train(task: &mut Linear, settings: Settings, folder: &Path) -> Result<(Outcome, Vec<f32>)> {
    let stop = Arc::clone(&task.stop);
    let start = Map::from_iter([("step".to_owned(), Value::from(0))]);
    let mut trainer = Trainer::open(task, settings, folder, start)?;
    let outcome = trainer.run(&stop, &Progress::Quiet)?;
    Ok((outcome, trainer.weights().to_vec()))
}

fn lines(folder: &Path) -> Vec<Map<String, Value>> {
    let mut lines = training::metrics::read(&folder.join("metrics.jsonl")).unwrap();
    for line in &mut lines {
        for field in training::metrics::TIME_FIELDS {
            line.remove(field);
        }
    }
    lines
}

#[test]
fn it_learns() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = Linear::new();
    let (outcome, weights) = train(&mut task, settings(400), folder.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("steps".to_owned()));
    assert!((weights[OUT * IN] - 0.5).abs() < 0.02 && (weights[IN] - 1.0).abs() < 0.05, "{weights:?}");
}

#[test]
fn stopped_and_resumed_equals_unbroken() {
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, expected) = train(&mut Linear::new(), settings(20), whole.path()).unwrap();
    // Stops in the middle of an epoch, between two log lines and two checkpoints.
    let mut task = Linear::new();
    task.stop_at = 10;
    let (outcome, _) = train(&mut task, settings(20), broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Interrupted(2));
    let (outcome, weights) = train(&mut Linear::new(), settings(20), broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("steps".to_owned()));
    assert_eq!(weights, expected);
    assert_eq!(lines(whole.path()), lines(broken.path()));
    let newest = |p: &Path| std::fs::read(p.join("last/step-0000020.safetensors")).unwrap();
    assert!(newest(whole.path()) == newest(broken.path()));
}

/// The other optimiser and the other words: its state goes through the checkpoint too.
#[test]
fn rmsprop_stopped_and_resumed_equals_unbroken() {
    let by_rmsprop = |folder: &Path, stop_at| {
        let optimiser = RmsProp { decay: 0.9, momentum: 0.9, eps: 1e-10 }.into();
        let mut task = Linear { lines: Lines::Sequences, stop_at, ..Linear::new() };
        train(&mut task, Settings { optimiser, ..settings(20) }, folder).unwrap()
    };
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, expected) = by_rmsprop(whole.path(), u64::MAX);
    assert_eq!(by_rmsprop(broken.path(), 10).0, Outcome::Interrupted(2));
    assert_eq!(by_rmsprop(broken.path(), u64::MAX).1, expected);
    assert_eq!(lines(whole.path()), lines(broken.path()));
    let found = lines(whole.path());
    let keys = |kind: &str| {
        let line = found.iter().rfind(|l| l["kind"] == kind).unwrap();
        line.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys("update"), "kind step loss lr grad_norm skipped sequence_steps");
    assert_eq!(keys("eval"), "kind step split loss");
    let last = found.iter().rfind(|l| l["kind"] == "update").unwrap();
    assert_eq!(last["sequence_steps"], 20 * 80);
}

#[test]
fn a_rate_beyond_all_reason_ends_the_run_and_a_checkpoint_stays() {
    let folder = tempfile::tempdir().unwrap();
    let schedule = Schedule { lr: 1e30, warmup: 0, total: 100, min_lr: 0.0, decline: Decline::Constant };
    let optimiser = RmsProp { decay: 0.9, momentum: 0.9, eps: 1e-10 }.into();
    let wild = Settings { optimiser, schedule, max_skipped: 3, save_every: 1, clip: 0.0, ..settings(100) };
    let mut task = Linear::new();
    let ended = train(&mut task, wild, folder.path());
    assert!(matches!(ended, Err(Error::Diverged { skipped: 3, step: ..20, .. })), "{ended:?}");
    let layout = &Linear::new().layout;
    let kept =
        training::checkpoint::Checkpoint::newest(&folder.path().join("last"), layout).unwrap().unwrap();
    assert!(kept.theta.iter().all(|x| x.is_finite()));
}

#[test]
fn pieces_change_no_update() {
    let with = |accumulate| {
        let folder = tempfile::tempdir().unwrap();
        train(&mut Linear::new(), Settings { accumulate, ..settings(15) }, folder.path()).unwrap().1
    };
    let one = with(1);
    for parts in [2, 3, 8] {
        let worst = with(parts).iter().zip(&one).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-6, "{parts} parts: {worst}");
    }
}

#[test]
fn a_loss_that_is_no_number_is_skipped_and_ten_in_a_row_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = Linear::new();
    task.broken = 5..8;
    train(&mut task, settings(20), folder.path()).unwrap();
    let skipped = lines(folder.path()).iter().filter(|l| l["kind"] == "event").count();
    assert_eq!(skipped, 3);
    let last = lines(folder.path()).iter().rfind(|l| l["kind"] == "update").unwrap()["skipped"].clone();
    assert_eq!(last, 3);

    let folder = tempfile::tempdir().unwrap();
    task = Linear::new();
    task.broken = 5..100;
    match train(&mut task, settings(50), folder.path()) {
        Err(Error::Diverged { skipped: 10, step: 14, parameter }) => assert_eq!(parameter, "`map.bias`"),
        other => assert!(other.is_err(), "10 skipped updates must end the run"),
    }
    assert!(folder.path().join("last/step-0000012.safetensors").exists(), "the last checkpoint is kept");
}

#[test]
fn no_gain_ends_the_run_and_the_best_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = Linear::new();
    task.evaluations = vec![0.5, 0.4999, 0.6, 0.5, 1.0]; // from the back: steps 0, 6, 12, 18, 24
    let (outcome, _) = train(&mut task, Settings { patience: 3, ..settings(600) }, folder.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("patience".to_owned()));
    let end = lines(folder.path()).pop().unwrap();
    assert_eq!((end["step"].as_u64(), end["best_step"].as_u64()), (Some(24), Some(18)));
}

#[test]
fn a_weight_that_is_cut_off_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = Linear::new();
    task.cut = true;
    let refused = train(&mut task, settings(5), folder.path()).unwrap_err().to_string();
    assert!(refused.contains("map.weight"), "{refused}");
}

#[test]
fn a_checkpoint_of_other_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    train(&mut Linear::new(), settings(5), folder.path()).unwrap();
    let other = Settings { data_digest: "e".to_owned(), ..settings(9) };
    let refused = train(&mut Linear::new(), other, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another data set"), "{refused}");
}
