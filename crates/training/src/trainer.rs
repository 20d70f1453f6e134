//! The training loop: gradient, clipping, guard, update, average, metrics, evaluation, checkpoint.
//!
//! A learner implements [`Task`]; [`Trainer::run`] does the rest in the order of the steps below. Killed at any
//! moment and resumed, a run ends in the same weights and the same metrics, bit for bit on one kind of processor.

mod stacks;
mod task;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Map, Value, json};

use self::stacks::{Here, There, Work};
pub use self::task::{Evaluation, Loss, Piece, Ready, Task};
use crate::checkpoint::{self, Checkpoint, State};
use crate::collective::{self, Alone, Collective, Stack};
use crate::error::{Refusal, Result};
use crate::files;
use crate::lines::{Interval, object};
use crate::metrics::{self, From, Metrics};
use crate::optimiser::{Optimiser, Update, clip_factor, global_norm};
use crate::parameters::Layout;
use crate::progress::Progress;
use crate::schedule::Schedule;

/// Skipped updates in a row that end a run, if nothing else is said.
pub const MAX_SKIPPED: u64 = 10;

/// How to train.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The learning rate; its `total` is the number of updates of the run.
    pub schedule: Schedule,
    /// Largest global norm of a gradient; 0: no clipping.
    pub clip: f64,
    /// Skipped updates in a row that end the run; [`MAX_SKIPPED`] is usual.
    pub max_skipped: u64,
    /// Pieces of a batch, one after the other.
    pub accumulate: usize,
    /// Pieces of a batch whose gradients are summed in a fixed tree, whoever computes them ([`collective`]);
    /// 0: none, `accumulate` says how a batch is cut.
    pub pieces: usize,
    /// Evaluations without a gain that end the run; 0: never.
    pub patience: u64,
    /// What counts as a gain, in nats per token.
    pub min_delta: f64,
    /// Evaluations in a row that [reached](Evaluation::reached) the goal and end the run; 0: none do.
    pub goal: u64,
    /// Updates between evaluations.
    pub eval_every: u64,
    /// Updates between `update` lines.
    pub log_every: u64,
    /// Updates between checkpoints.
    pub save_every: u64,
    /// The seed.
    pub seed: u64,
    /// BLAKE3 of the configuration, without the keys that a resumed run may change.
    pub config_digest: String,
    /// The digest of the data set.
    pub data_digest: String,
    /// The known optimum in nats per token, for the progress line.
    pub optimum: Option<f64>,
    /// The weights that the run begins with; without them each parameter is drawn.
    pub initial: Option<Vec<f32>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is finished; the reason is `steps`, `patience` or `goal`.
    Finished(String),
    /// A signal stopped it after a checkpoint; its number.
    Interrupted(usize),
}

/// A run in progress.
#[derive(Debug)]
pub struct Trainer<'a, T: Task> {
    task: &'a mut T,
    settings: Settings,
    folder: PathBuf,
    /// The state of the run; while the parameters lie on a device its weights and moments are those of the last time that
    /// they came back.
    at: Checkpoint,
    /// Empty where the gradient lies on a device.
    gradient: Vec<f32>,
    /// The parameters lie on a device, which has what `at` does not.
    away: bool,
    /// None where another process writes.
    metrics: Option<Metrics>,
    watch: Watch,
    /// The other processes of the run.
    others: Option<&'a mut dyn Collective>,
}

/// What was done since the last `update` line by this process: its clock knows of no other.
#[derive(Debug)]
struct Watch {
    clock: Instant,
    /// Seconds of evaluations, which have lines of their own.
    elsewhere: f64,
    /// Seconds of conversations with other ranks, waiting for them included.
    waited: f64,
    /// Seconds of these in which numbers went between ranks: from when the last of them had its gradients.
    summed: f64,
    /// The targets and the sequence-steps when the clock started.
    targets: u64,
    sequence_steps: u64,
}

impl Watch {
    fn start(state: &State) -> Self {
        let State { targets, sequence_steps, .. } = *state;
        Self { clock: Instant::now(), elsewhere: 0.0, waited: 0.0, summed: 0.0, targets, sequence_steps }
    }
}

impl<'a, T: Task> Trainer<'a, T> {
    /// The newest checkpoint of a folder, checked: one that is damaged, or was made with another configuration or
    /// other data, is refused, and so is a run that had one. No file is changed.
    pub fn find(layout: &Layout, settings: &Settings, folder: &Path) -> Result<Option<Checkpoint>> {
        let found = Checkpoint::newest(&folder.join("last"), layout)?;
        if found.is_none() {
            check_is_new(folder, settings.save_every)?;
        }
        if let Some(found) = &found {
            check_digest(folder, "configuration", &found.state.config_digest, &settings.config_digest)?;
            check_digest(folder, "data set", &found.state.data_digest, &settings.data_digest)?;
        }
        Ok(found)
    }

    /// [`find`](Self::find) and [`begin`](Self::begin) in one.
    pub fn open(
        task: &'a mut T,
        settings: Settings,
        folder: &Path,
        start: Map<String, Value>,
    ) -> Result<Self> {
        let found = Self::find(task.layout(), &settings, folder)?;
        Self::begin(task, settings, folder, found, start)
    }

    /// Begins a run in an existing folder, or goes on from the checkpoint that [`find`](Self::find) has found there.
    /// Removes what a kill left behind.
    pub fn begin(
        task: &'a mut T,
        settings: Settings,
        folder: &Path,
        found: Option<Checkpoint>,
        start: Map<String, Value>,
    ) -> Result<Self> {
        files::remove_leftovers(folder)?;
        let last = folder.join("last");
        std::fs::create_dir_all(&last).map_err(Refusal::io(&last))?;
        files::remove_leftovers(&last)?;
        // A kill may have come between the newest one and the removal of the oldest.
        checkpoint::keep_two(&last)?;
        let from = match found.as_ref().map(|c| &c.state) {
            None => From::Start,
            Some(state) if end_of(state, &settings).is_some() => From::End(state.step),
            Some(state) => From::Step(state.step),
        };
        let mut metrics = Metrics::open(&folder.join("metrics.jsonl"), from)?;
        let at = match found {
            Some(checkpoint) => checkpoint,
            None => {
                metrics.write("start", start)?;
                Self::first(task.layout(), &settings)
            }
        };
        if let Some(memory) = &at.state.learner {
            task.recall(memory)?;
        }
        let gradient = vec![0.0; if task.resident().is_some() { 0 } else { at.theta.len() }];
        let watch = Watch::start(&at.state);
        Ok(Self {
            task,
            settings,
            folder: folder.to_owned(),
            at,
            gradient,
            away: false,
            metrics: Some(metrics),
            watch,
            others: None,
        })
    }

    /// Goes on with others: those who [`follow`](Self::follow) get the state from this one.
    ///
    /// # Errors
    /// Pieces that the ranks do not divide, or a rank that does not come.
    pub fn lead(mut self, others: &'a mut dyn Collective) -> Result<Self> {
        collective::check_pieces(self.settings.pieces, others.world())?;
        let state = self.at.write_bytes(self.task.layout(), Path::new("what rank 0 says"))?;
        others.gather(&state)?;
        self.others = Some(others);
        Ok(self)
    }

    /// Trains with others, and writes nothing: rank 0 does.
    ///
    /// # Errors
    /// As of [`lead`](Self::lead), and a state that is none.
    pub fn follow(task: &'a mut T, settings: Settings, others: &'a mut dyn Collective) -> Result<Self> {
        collective::check_pieces(settings.pieces, others.world())?;
        let said = others.gather(&[])?;
        let said = said.first().map(Vec::as_slice).unwrap_or_default();
        let at = Checkpoint::from_bytes(said, Path::new("what rank 0 says"), task.layout())?;
        if let Some(memory) = &at.state.learner {
            task.recall(memory)?;
        }
        let gradient = vec![0.0; if task.resident().is_some() { 0 } else { at.theta.len() }];
        let watch = Watch::start(&at.state);
        let (folder, metrics, others) = (PathBuf::new(), None, Some(others));
        Ok(Self { task, settings, folder, at, gradient, away: false, metrics, watch, others })
    }

    /// Whether this process writes what the run leaves.
    fn leads(&self) -> bool {
        self.metrics.is_some()
    }

    fn write(&mut self, kind: &str, fields: Map<String, Value>) -> Result<()> {
        match &mut self.metrics {
            Some(metrics) => metrics.write(kind, fields),
            None => Ok(()),
        }
    }

    fn first(layout: &Layout, settings: &Settings) -> Checkpoint {
        let drawn = || layout.initialise(settings.seed);
        let theta = settings.initial.clone().filter(|t| t.len() == layout.len()).unwrap_or_else(drawn);
        let moments = settings.optimiser.start(&theta);
        let state = State {
            seed: settings.seed,
            config_digest: settings.config_digest.clone(),
            data_digest: settings.data_digest.clone(),
            ..State::default()
        };
        Checkpoint { state, theta, moments }
    }

    /// The counters.
    pub fn state(&self) -> &State {
        &self.at.state
    }

    /// The weights that are trained: the average where there is one.
    pub fn weights(&self) -> &[f32] {
        self.at.moments.ema.as_deref().unwrap_or(&self.at.theta)
    }

    /// Trains to the end, or until `stop` holds a signal number.
    pub fn run(&mut self, stop: &AtomicUsize, progress: &Progress) -> Result<Outcome> {
        let total = self.settings.schedule.total;
        if let Some(reason) = end_of(&self.at.state, &self.settings) {
            if let Some(metrics) = &mut self.metrics
                && !metrics.has_end()?
            {
                self.write_end(reason)?;
            }
            return Ok(Outcome::Finished(reason.to_owned()));
        }
        self.at.state.ended = None;
        self.watch = Watch::start(&self.at.state);
        if self.at.state.step == 0 && self.at.state.best.is_none() && self.leads() {
            self.evaluate(progress)?;
        }
        loop {
            self.update()?;
            let step = self.at.state.step;
            progress.set(step);
            if step.is_multiple_of(self.settings.log_every) || step == total {
                self.log_interval(progress)?;
            }
            let judged = step.is_multiple_of(self.settings.eval_every) || step == total;
            if judged {
                self.come_back()?;
            }
            let early = if judged && self.leads() { self.evaluate(progress)? } else { None };
            let (early, signal) = self.agree(early, stop.load(Ordering::Relaxed), judged)?;
            if let Some(reason) = if step == total { Some("steps") } else { early } {
                return self.end(reason);
            }
            if step.is_multiple_of(self.settings.save_every) || signal != 0 {
                if !judged {
                    self.come_back()?;
                }
                self.save()?;
            }
            if signal != 0 {
                return Ok(Outcome::Interrupted(signal));
            }
        }
    }

    /// What all ranks do after an update: why the run ends, if rank 0 says so, and the signal that came to any of them. With
    /// `weights` they compare theirs: processors or devices that do not round alike would drift apart unseen.
    fn agree(
        &mut self,
        early: Option<&'static str>,
        signal: usize,
        weights: bool,
    ) -> Result<(Option<&'static str>, usize)> {
        const REASONS: [&str; 2] = ["goal", "patience"];
        let Some(others) = &mut self.others else { return Ok((early, signal)) };
        let reason = early.map_or(0, |early| 1 + u8::from(early == REASONS[1]));
        let digest = if weights { digest(&self.at.theta) } else { Vec::new() };
        let said = others.gather(&[&[reason][..], &(signal as u64).to_le_bytes(), &digest].concat())?;
        let reason = said.first().and_then(|said| said.first()).copied().unwrap_or(0);
        let early = usize::from(reason).checked_sub(1).and_then(|i| REASONS.get(i).copied());
        let signal = |said: &Vec<u8>| Some(u64::from_le_bytes(said.get(1..9)?.try_into().ok()?));
        let of = |said: &Vec<u8>| said.get(9..).map(<[u8]>::to_vec);
        if let Some(rank) = said.iter().position(|now| of(now) != said.first().and_then(of)) {
            return Err(Refusal::Others(format!(
                "after update {} rank {rank} has other weights than rank 0: its processor or device rounds in another \
                 way; the run goes on from its last checkpoint, on ranks of one kind",
                self.at.state.step
            )));
        }
        Ok((early, said.iter().filter_map(signal).max().unwrap_or(0) as usize))
    }

    /// One update: accumulate, clip, guard, step, average.
    fn update(&mut self) -> Result<()> {
        let state = &mut self.at.state;
        let update = state.step + 1;
        let batch = self.task.batch(state.epoch, state.position)?;
        let parts = self.settings.accumulate.max(self.settings.pieces).max(1);
        let mut loss = Loss::default();
        if let (Some(there), false) = (self.task.resident(), self.away) {
            there.load(&self.at.theta, &self.at.moments)?;
            self.away = true;
        }
        let theta: &[f32] = if self.away { &[] } else { &self.at.theta };
        if self.settings.pieces > 0 {
            let (parts, mut alone) = (self.settings.pieces, Alone::default());
            let others = self.others.as_deref_mut().unwrap_or(&mut alone);
            let (len, clock, away) = (self.at.theta.len(), Instant::now(), self.away);
            let work = Work { task: &mut *self.task, batch: &batch, parts, update, theta, seconds: 0.0 };
            let ((cost, summed), own) = if away {
                let mut there = There { work, targets: Vec::new() };
                let found = collective::sum_of_pieces(others, parts, len, &mut there)?;
                there.resident()?.pop()?;
                (found, there.work.seconds)
            } else {
                let mut here = Here { work, sums: Vec::new(), losses: Vec::new() };
                let found = collective::sum_of_pieces(others, parts, len, &mut here)?;
                self.gradient = here.take()?;
                (found, here.work.seconds)
            };
            self.watch.summed += summed;
            self.watch.waited += (clock.elapsed().as_secs_f64() - own).max(0.0);
            loss = Loss { sum: cost.0, targets: cost.1 };
        } else {
            for part in 0..parts {
                let piece = Piece { part, parts };
                let l = self.task.gradient(theta, &batch, piece, update, &mut self.gradient)?;
                loss = Loss { sum: loss.sum + l.sum, targets: loss.targets + l.targets };
            }
        }
        let mut norm = None;
        if let Some(there) = self.task.resident() {
            let (sums, found) = there.measure()?;
            // Those of pieces were asked for before.
            loss.sum += sums.iter().sum::<f64>();
            norm = Some(found);
        }
        let state = &mut self.at.state;
        state.learner = self.task.memory();
        state.step = update;
        state.position += 1;
        if state.position >= self.task.updates_per_epoch() {
            (state.epoch, state.position) = (state.epoch + 1, 0);
        }
        state.targets += loss.targets;
        state.sequence_steps += self.task.sequence_steps(&batch);

        let norm = norm.unwrap_or_else(|| global_norm(self.task.layout(), &self.gradient));
        let norm = norm / loss.targets.max(1) as f64;
        if !loss.sum.is_finite() || !norm.is_finite() {
            return self.skip(loss);
        }
        if update == 1 && self.task.refuses_silent_weights() {
            self.check_gradient()?;
        }
        let state = &mut self.at.state;
        state.skipped_in_a_row = 0;
        state.interval.0 += loss.sum;
        state.interval.1 += loss.targets;
        state.interval.2 += norm * loss.targets as f64;
        // Clipped as a mean over its own targets, as it is logged, then weighted by them: clipping after the weight
        // would take it away again.
        let per = self.task.mean_targets().unwrap_or(loss.targets as f64).max(1.0);
        let factor = clip_factor(norm, self.settings.clip) / per;
        let rate = self.settings.schedule.rate(update);
        let at = &mut self.at;
        let done = update - at.state.skipped; // the bias correction counts real updates
        let step = Update { number: done, lr: rate, factor };
        if self.away {
            let layout = self.task.layout().clone();
            if let Some(there) = self.task.resident() {
                there.update(&layout, &self.settings.optimiser, step)?;
            }
            return Ok(());
        }
        let layout = self.task.layout();
        self.settings.optimiser.update(layout, &mut at.theta, &mut at.moments, &mut self.gradient, step);
        Ok(())
    }

    /// Weights and moments come back from where they lie, and stay there too.
    fn come_back(&mut self) -> Result<()> {
        if let (Some(there), true) = (self.task.resident(), self.away) {
            there.store(&mut self.at.theta, &mut self.at.moments)?;
        }
        Ok(())
    }

    /// The gradient, from wherever it lies.
    fn gradient_now(&mut self) -> Result<Vec<f32>> {
        match self.task.resident() {
            Some(there) => there.gradient(),
            None => Ok(self.gradient.clone()),
        }
    }

    /// A weight matrix whose gradient is zero everywhere was cut off from the loss.
    fn check_gradient(&mut self) -> Result<()> {
        let gradient = self.gradient_now()?;
        let cut = self.task.layout().iter().find(|p| {
            p.shape.len() > 1 && gradient.get(p.range.clone()).is_some_and(|g| g.iter().all(|&x| x == 0.0))
        });
        match cut {
            Some(p) => Err(Refusal::MissingGradient { name: p.name.clone() }),
            None => Ok(()),
        }
    }

    fn skip(&mut self, loss: Loss) -> Result<()> {
        let state = &mut self.at.state;
        state.skipped += 1;
        state.skipped_in_a_row += 1;
        let step = state.step;
        let reason = if loss.sum.is_finite() { "gradient is not finite" } else { "loss is not finite" };
        let skipped = state.skipped_in_a_row;
        self.write("event", object(json!({"step": step, "event": "skipped_update", "reason": reason})))?;
        if skipped >= self.settings.max_skipped {
            let bad = |g: &[f32]| g.iter().any(|x| !x.is_finite());
            let gradient = self.gradient_now()?;
            let by_name = self.task.layout().by_name();
            let first = by_name.iter().find(|p| gradient.get(p.range.clone()).is_some_and(bad));
            let parameter = first.map_or_else(|| "none".to_owned(), |p| format!("`{}`", p.name));
            return Err(Refusal::Diverged { skipped, step, parameter });
        }
        self.gradient.fill(0.0);
        if let Some(there) = self.task.resident() {
            there.clear();
        }
        Ok(())
    }

    fn log_interval(&mut self, progress: &Progress) -> Result<()> {
        let state = &mut self.at.state;
        let watch = std::mem::replace(&mut self.watch, Watch::start(state));
        let seconds = (watch.clock.elapsed().as_secs_f64() - watch.elsewhere).max(0.0);
        let (sum, targets, norms) = std::mem::take(&mut state.interval);
        // Where every update was skipped nothing is known: 0/0, which is `null` in the line.
        let n = targets as f64;
        let (loss, lr) = (sum / n, self.settings.schedule.rate(state.step));
        let interval = Interval {
            loss,
            lr,
            grad_norm: norms / n,
            targets: state.targets - watch.targets,
            sequence_steps: state.sequence_steps - watch.sequence_steps,
            seconds,
        };
        let lines = self.task.lines();
        let mut fields = lines.update(state, interval);
        fields.extend(self.task.sensed());
        if self.others.is_some() {
            fields.insert("waited".to_owned(), json!(watch.waited));
            fields.insert("summed".to_owned(), json!(watch.summed));
        }
        self.write("update", fields)?;
        let state = &self.at.state;
        let (step, total) = (state.step, self.settings.schedule.total);
        let loss = if loss.is_finite() { self.shown(loss) } else { "loss – (all skipped)".to_owned() };
        let speed = interval.speed(lines);
        progress.note(format!("update {step}/{total}  {loss}  lr {lr:.2e}  {speed}"));
        Ok(())
    }

    /// A loss for people, beside the known optimum.
    fn shown(&self, loss: f64) -> String {
        let excess = self
            .settings
            .optimum
            .map_or_else(String::new, |o| format!("  {:+.4} over the optimum", loss - o));
        format!("loss {loss:.4}{excess}")
    }

    /// Evaluates, writes the line, keeps the best weights. The reason to end early, if there is one.
    fn evaluate(&mut self, progress: &Progress) -> Result<Option<&'static str>> {
        let clock = Instant::now();
        let weights = self.at.moments.ema.as_deref().unwrap_or(&self.at.theta);
        let judged = self.task.judged(weights);
        let weights = judged.as_deref().unwrap_or(weights);
        let evaluation = self.task.evaluate(weights)?;
        let (watched, state) = (evaluation.watched, &mut self.at.state);
        let which = if self.at.moments.ema.is_some() { "ema" } else { "raw" };
        let mut fields = self.task.lines().eval(state.step, which, watched);
        fields.extend(evaluation.fields);
        let excess = fields.get("excess").and_then(Value::as_f64);
        let excess = excess.map_or_else(String::new, |e| format!("  {e:+.4} over the optimum"));
        let (step, total) = (state.step, self.settings.schedule.total);
        progress.say(&format!("update {step}/{total}  validation {watched:.4}{excess}"));
        let seconds = clock.elapsed().as_secs_f64();
        self.watch.elsewhere += seconds;
        fields.insert("seconds".to_owned(), json!(seconds));
        self.write("eval", fields)?;
        let weights = judged.as_deref().or(self.at.moments.ema.as_deref()).unwrap_or(&self.at.theta);
        let state = &mut self.at.state;
        // A value that is not finite is never the best, and never leaves JSON; nor are weights that are not, though
        // validation may not have touched them.
        let whole = || weights.iter().all(|x| x.is_finite());
        if watched.is_finite() && state.best.is_none_or(|(best, _)| watched < best) && whole() {
            state.best = Some((watched, state.step));
            let path = self.folder.join("model.safetensors");
            checkpoint::save_weights(&path, self.task.layout(), weights)?;
        }
        let gained = state.plateau.is_none_or(|plateau| watched < plateau - self.settings.min_delta);
        if watched.is_finite() && gained {
            (state.plateau, state.waited) = (Some(watched), 0);
        } else {
            state.waited += 1;
        }
        state.reached = if evaluation.reached { state.reached + 1 } else { 0 };
        Ok(early_end(state, &self.settings))
    }

    /// Writes the checkpoint, unless the weights have left the numbers: the last good one stays then.
    fn save(&mut self) -> Result<()> {
        if !self.leads() || self.at.theta.iter().any(|x| !x.is_finite()) {
            return Ok(());
        }
        self.at.save(&self.folder.join("last"), self.task.layout())
    }

    fn end(&mut self, reason: &str) -> Result<Outcome> {
        self.at.state.ended = Some(reason.to_owned());
        self.write_end(reason)?;
        self.save()?;
        Ok(Outcome::Finished(reason.to_owned()))
    }

    fn write_end(&mut self, reason: &str) -> Result<()> {
        let state = &self.at.state;
        let (best, best_step) = state.best.unzip();
        let fields = json!({"step": state.step, "reason": reason, "best_step": best_step, "best": best});
        self.write("end", object(fields))
    }
}

/// BLAKE3 of numbers, bit for bit.
fn digest(numbers: &[f32]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for some in numbers.chunks(1 << 12) {
        let bytes: Vec<u8> = some.iter().flat_map(|x| x.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize().as_bytes().to_vec()
}

/// What ends a run before its last update: the goal, or patience that has run out.
fn early_end(state: &State, settings: &Settings) -> Option<&'static str> {
    if settings.goal > 0 && state.reached >= settings.goal {
        Some("goal")
    } else if settings.patience > 0 && state.waited >= settings.patience {
        Some("patience")
    } else {
        None
    }
}

/// Why a run is over, if it is under these settings: all its updates are done, patience has run out, or its goal is
/// reached. A resumed run may ask for more of each than it had, and goes on then.
fn end_of(state: &State, settings: &Settings) -> Option<&'static str> {
    if state.step >= settings.schedule.total {
        return Some("steps");
    }
    early_end(state, settings).filter(|_| matches!(state.ended.as_deref(), Some("patience" | "goal")))
}

/// Refuses a run without a checkpoint whose record goes beyond the update behind which the first one was written: to begin it
/// anew would throw away what it has learned.
fn check_is_new(folder: &Path, save_every: u64) -> Result<()> {
    let path = folder.join("metrics.jsonl");
    if !path.is_file() {
        return Ok(());
    }
    let steps = metrics::read(&path)?.into_iter().filter_map(|line| line.get("step")?.as_u64());
    let steps = steps.max().unwrap_or(0);
    if steps <= save_every {
        return Ok(());
    }
    let reason = format!(
        "{steps} updates were made, and there is no checkpoint to go on from: put one back, or train under another name"
    );
    Err(Refusal::bad_file(folder.join("last"), reason))
}

fn check_digest(folder: &Path, what: &str, found: &str, now: &str) -> Result<()> {
    if found == now {
        return Ok(());
    }
    let reason = format!("its checkpoint was made with another {what} (digest {found}, now {now})");
    Err(Refusal::bad_file(folder, reason))
}
