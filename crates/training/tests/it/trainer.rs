//! The loop on a task small enough to be obvious: a linear map learned from noise-free pairs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seeded::Family;
use serde_json::{Map, Value};
use training::optimiser::{AdamW, RmsProp};
use training::schedule::{Decline, Schedule};
use training::trainer::MAX_SKIPPED;
use training::{
    Decay, Evaluation, Initial, Layout, Lines, Loss, Outcome, Piece, Progress, Refusal, Result, Settings,
    Task, Trainer,
};

const IN: usize = 4;
const OUT: usize = 3;

/// y = W·x + b with a known W and b.
pub(crate) struct Linear {
    layout: Layout,
    pub(crate) stop: Arc<AtomicUsize>,
    pub(crate) stop_at: u64,
    /// Updates whose loss is not a number.
    pub(crate) broken: std::ops::Range<u64>,
    /// Whether the weight is cut off from the loss.
    cut: bool,
    pub(crate) evaluations: Vec<f64>,
    /// What the goal is.
    goal_below: f64,
    /// How long a judgement takes.
    judged_in: std::time::Duration,
    lines: Lines,
}

impl Linear {
    pub(crate) fn new() -> Self {
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
            goal_below: 0.0,
            judged_in: std::time::Duration::ZERO,
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
        std::thread::sleep(self.judged_in);
        let x = vec![1.0; IN];
        let watched = (0..OUT).map(|o| f64::from(Self::error(theta, &x, o)).powi(2)).sum();
        let watched = self.evaluations.pop().unwrap_or(watched);
        Ok(Evaluation { watched, reached: watched < self.goal_below, fields: Map::new() })
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

pub(crate) fn settings(total: u64) -> Settings {
    Settings {
        optimiser: AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.9 }.into(),
        schedule: Schedule { lr: 0.05, warmup: 2, total, min_lr: 0.0, decline: Decline::Cosine },
        clip: 1.0,
        max_skipped: MAX_SKIPPED,
        accumulate: 2,
        pieces: 0,
        patience: 0,
        min_delta: 1e-3,
        goal: 0,
        eval_every: 6,
        log_every: 4,
        save_every: 3,
        seed: 1,
        config_digest: "c".to_owned(),
        data_digest: "d".to_owned(),
        optimum: None,
        initial: None,
    }
}

fn train(task: &mut Linear, settings: Settings, folder: &Path) -> Result<(Outcome, Vec<f32>)> {
    let stop = Arc::clone(&task.stop);
    let start = Map::from_iter([("step".to_owned(), Value::from(0))]);
    let mut trainer = Trainer::open(task, settings, folder, start)?;
    let outcome = trainer.run(&stop, &Progress::Quiet)?;
    Ok((outcome, trainer.weights().to_vec()))
}

pub(crate) fn lines(folder: &Path) -> Vec<Map<String, Value>> {
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
    assert!(matches!(ended, Err(Refusal::Diverged { skipped: 3, step: ..20, .. })), "{ended:?}");
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
    let ended = train(&mut task, settings(50), folder.path()).unwrap_err();
    let Refusal::Diverged { skipped, step, parameter } = &ended else {
        panic!("10 skipped updates must end the run as diverged: {ended}")
    };
    assert_eq!((*skipped, *step, parameter.as_str()), (10, 14, "`map.bias`"));
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
fn a_goal_that_is_reached_twice_in_a_row_ends_the_run_wherever_it_was_stopped() {
    // From the back: reached at updates 6, 18 and 24.
    let task = |values: &[f64]| Linear { evaluations: values.to_vec(), goal_below: 0.5, ..Linear::new() };
    let values = [0.1, 0.3, 0.2, 0.9, 0.1, 0.9];
    let wanted = Settings { goal: 2, ..settings(600) };
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (outcome, expected) = train(&mut task(&values), wanted.clone(), whole.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("goal".to_owned()));
    assert_eq!(lines(whole.path()).pop().unwrap()["step"], 24);
    let mut first = Linear { stop_at: 20, ..task(&values) };
    let (outcome, _) = train(&mut first, wanted.clone(), broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Interrupted(2));
    let (outcome, weights) = train(&mut task(&values[..2]), wanted.clone(), broken.path()).unwrap();
    assert_eq!((outcome, weights), (Outcome::Finished("goal".to_owned()), expected));
    assert_eq!(lines(broken.path()), lines(whole.path()));
    // Asked again it is over, and with a goal that takes more it goes on.
    let (outcome, _) = train(&mut task(&[]), wanted, broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("goal".to_owned()));
    let further = Settings { goal: 3, ..settings(40) };
    let (outcome, _) = train(&mut task(&values[..1]), further, broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("goal".to_owned()));
    assert_eq!(lines(broken.path()).pop().unwrap()["step"], 30);
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

/// The files of a folder with their bytes, all levels.
fn files(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
fn a_finished_run_that_is_resumed_keeps_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    train(&mut Linear::new(), settings(20), folder.path()).unwrap();
    let whole = files(folder.path());
    assert_eq!(lines(folder.path()).last().unwrap()["kind"], "end");
    for _ in 0..2 {
        let (outcome, _) = train(&mut Linear::new(), settings(20), folder.path()).unwrap();
        assert_eq!(outcome, Outcome::Finished("steps".to_owned()));
        assert!(files(folder.path()) == whole);
    }
    // A kill between the last checkpoint and the removal of the oldest leaves three.
    let last = folder.path().join("last");
    std::fs::copy(last.join("step-0000018.safetensors"), last.join("step-0000015.safetensors")).unwrap();
    train(&mut Linear::new(), settings(20), folder.path()).unwrap();
    assert!(files(folder.path()) == whole);
    // A run whose end an earlier version lost gets it back.
    let metrics = folder.path().join("metrics.jsonl");
    let text = std::fs::read_to_string(&metrics).unwrap();
    let (head, _) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&metrics, format!("{head}\n")).unwrap();
    train(&mut Linear::new(), settings(20), folder.path()).unwrap();
    assert!(files(folder.path()) == whole);
    // One that goes on has one end, at its own.
    train(&mut Linear::new(), settings(30), folder.path()).unwrap();
    let ends: Vec<_> = lines(folder.path()).into_iter().filter(|l| l["kind"] == "end").collect();
    assert_eq!((ends.len(), ends[0]["step"].as_u64()), (1, Some(30)));
}

#[test]
fn a_run_that_patience_ended_goes_on_with_more_patience() {
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // From the back: no gain from update 6 on, and patience for two evaluations.
    let values = || vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5];
    let task = || Linear { evaluations: values(), ..Linear::new() };
    let (_, expected) = train(&mut task(), settings(40), whole.path()).unwrap();
    let impatient = Settings { patience: 2, ..settings(40) };
    let (outcome, _) = train(&mut task(), impatient.clone(), broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("patience".to_owned()));
    let ended = files(broken.path());
    let again = train(&mut task(), impatient.clone(), broken.path()).unwrap();
    assert_eq!(again.0, Outcome::Finished("patience".to_owned()));
    assert!(files(broken.path()) == ended, "the same patience changes nothing");
    let rest = Linear { evaluations: values()[..5].to_vec(), ..Linear::new() };
    let (outcome, weights) = train(&mut { rest }, settings(40), broken.path()).unwrap();
    assert_eq!(outcome, Outcome::Finished("steps".to_owned()));
    assert_eq!(weights, expected);
    assert_eq!(lines(broken.path()), lines(whole.path()));
}

#[test]
fn where_every_update_was_skipped_nothing_is_said_of_the_loss() {
    let folder = tempfile::tempdir().unwrap();
    let mut task = Linear { broken: 3..6, ..Linear::new() };
    train(&mut task, Settings { log_every: 1, ..settings(8) }, folder.path()).unwrap();
    for line in lines(folder.path()).iter().filter(|l| l["kind"] == "update") {
        let skipped = (3..6).contains(&line["step"].as_u64().unwrap());
        assert_eq!(line["loss"].is_null(), skipped, "{line:?}");
        assert_eq!(line["grad_norm"].is_null(), skipped, "{line:?}");
    }
}

#[test]
fn time_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let slow = std::time::Duration::from_millis(60);
    let mut task = Linear { judged_in: slow, ..Linear::new() };
    let clock = std::time::Instant::now();
    train(&mut task, settings(20), folder.path()).unwrap();
    let whole = clock.elapsed().as_secs_f64();
    let lines = training::metrics::read(&folder.path().join("metrics.jsonl")).unwrap();
    let sum = |kind: &str| -> f64 {
        lines.iter().filter(|l| l["kind"] == kind).map(|l| l["seconds"].as_f64().unwrap()).sum()
    };
    assert!(sum("eval") >= 5.0 * slow.as_secs_f64());
    // The lines together say no more than the clock on the wall.
    assert!(sum("update") + sum("eval") <= whole, "{} {} {whole}", sum("update"), sum("eval"));
}

#[test]
fn a_refused_resume_changes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    train(&mut Linear { stop_at: 7, ..Linear::new() }, settings(20), folder.path()).unwrap();
    std::fs::write(folder.path().join("left.tmp"), "by a kill").unwrap();
    let before = files(folder.path());
    let other = || Settings { data_digest: "e".to_owned(), ..settings(20) };
    assert!(train(&mut Linear::new(), other(), folder.path()).is_err());
    assert!(files(folder.path()) == before);
    let checkpoint = folder.path().join("last/step-0000007.safetensors");
    std::fs::write(checkpoint, "damaged").unwrap();
    let before = files(folder.path());
    assert!(train(&mut Linear::new(), settings(20), folder.path()).is_err());
    assert!(files(folder.path()) == before);
}

/// A loss that is linear in the weights: each target has a gradient of its own, whatever the weights are.
struct Sloped {
    layout: Layout,
    /// The targets of each batch of an epoch.
    sizes: Vec<u64>,
    weighted: bool,
}

impl Sloped {
    const WIDTH: usize = 5;

    fn new(sizes: &[u64], weighted: bool) -> Self {
        let mut layout = Layout::default();
        layout.add("slope", &[Self::WIDTH], Decay::Yes, Initial::Constant(0.0));
        Self { layout, sizes: sizes.to_vec(), weighted }
    }

    /// The gradient of the summed loss of a batch: long sequences pull elsewhere than short ones.
    fn slope(&self, index: usize) -> Vec<f64> {
        let mut stream = Family::named("slope").stream(index as u64);
        (0..Self::WIDTH).map(|_| self.sizes[index] as f64 * (stream.normal() + index as f64)).collect()
    }
}

impl Task for Sloped {
    type Batch = usize;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn updates_per_epoch(&self) -> u64 {
        self.sizes.len() as u64
    }

    fn batch(&mut self, _epoch: u64, index: u64) -> Result<usize> {
        Ok(index as usize)
    }

    fn gradient(&mut self, _: &[f32], batch: &usize, _: Piece, _: u64, gradient: &mut [f32]) -> Result<Loss> {
        let slope = self.slope(*batch);
        gradient.iter_mut().zip(slope).for_each(|(g, s)| *g += s as f32);
        Ok(Loss { sum: 1.0, targets: self.sizes[*batch] })
    }

    fn evaluate(&mut self, _: &[f32]) -> Result<Evaluation> {
        Ok(Evaluation { watched: 1.0, reached: false, fields: Map::new() })
    }

    fn mean_targets(&self) -> Option<f64> {
        self.weighted.then(|| self.sizes.iter().sum::<u64>() as f64 / self.sizes.len() as f64)
    }
}

#[test]
fn an_epoch_of_unequal_batches_moves_along_the_gradient_of_its_mean() {
    // With these constants RMSProp is plain descent: the mean square stays at 1.
    let descent = RmsProp { decay: 1.0, momentum: 0.0, eps: 0.0 };
    let sizes = [3, 4, 4, 9, 12, 40, 41];
    let rate = 1.0 / 64.0;
    let moved = |weighted| {
        let folder = tempfile::tempdir().unwrap();
        let mut task = Sloped::new(&sizes, weighted);
        let schedule = Schedule { lr: rate, warmup: 0, total: 7, min_lr: 0.0, decline: Decline::Constant };
        let settings =
            Settings { optimiser: descent.into(), schedule, clip: 0.0, accumulate: 1, ..settings(7) };
        let start = Map::from_iter([("step".to_owned(), Value::from(0))]);
        let mut trainer = Trainer::open(&mut task, settings, folder.path(), start).unwrap();
        trainer.run(&AtomicUsize::new(0), &Progress::Quiet).unwrap();
        trainer.weights().iter().map(|&w| -f64::from(w) / (7.0 * rate)).collect::<Vec<f64>>()
    };
    let task = Sloped::new(&sizes, true);
    let all = sizes.iter().sum::<u64>() as f64;
    let mean: Vec<f64> =
        (0..Sloped::WIDTH).map(|i| (0..sizes.len()).map(|b| task.slope(b)[i]).sum::<f64>() / all).collect();
    let far = |found: &[f64]| found.iter().zip(&mean).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(far(&moved(true)) < 1e-5, "{:?} {mean:?}", moved(true));
    assert!(far(&moved(false)) > 0.5, "these batches cannot tell the two apart");
}
