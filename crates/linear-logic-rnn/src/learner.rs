//! A cell and a task as something that [`training::Trainer`] trains.
//!
//! On the CPU the steps run in [`Engine`], on other devices in [`Composed`].

#[cfg(feature = "candle")]
use candle_core::DType;
use serde::{Deserialize, Serialize};
use training::trainer::{Evaluation, Loss, Piece};
use training::{DeviceSpec, Layout, lines::Lines};

use crate::cell::Cell;
#[cfg(feature = "candle")]
use crate::composed::Composed;
use crate::engine::{self, Engine, Inputs, Objective, Predictions, Sequences, Targets};
use crate::metrics::Score;
use crate::task::batch::{Batch, LossMean};
use crate::task::batches::Batches;

/// What the arithmetic is done in. Weights are kept in f32 in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Precision {
    #[default]
    F32,
    F64,
}

#[derive(Debug)]
enum Computing {
    F32(Engine<f32>),
    F64(Engine<f64>),
    #[cfg(feature = "candle")]
    Composed(Composed),
}

/// The most bytes of the values of all steps, and of their gradients, of the blocks that are computed at once.
const MOST_BYTES: usize = 8 << 30;

impl Computing {
    fn set(&mut self, theta: &[f32]) -> training::Result<()> {
        match self {
            Self::F32(engine) => engine.set(theta),
            Self::F64(engine) => {
                engine.set(&theta.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
            }
            #[cfg(feature = "candle")]
            Self::Composed(composed) => composed.set(theta)?,
        }
        Ok(())
    }

    /// Refuses sequences whose gradient does not fit into memory. Each of `threads` has room for a block of its own.
    fn check(&self, steps: usize, sequences: usize, threads: usize) -> training::Result<()> {
        let bytes = match self {
            Self::F32(engine) => engine.numbers(steps, sequences).saturating_mul(size_of::<f32>()),
            Self::F64(engine) => engine.numbers(steps, sequences).saturating_mul(size_of::<f64>()),
            #[cfg(feature = "candle")]
            Self::Composed(_) => 0,
        };
        let lanes = engine::lanes(sequences);
        let at_once = sequences.div_ceil(lanes).min(threads.max(1));
        let bytes = bytes.saturating_mul(2 * at_once);
        if bytes > MOST_BYTES {
            let message = format!(
                "{steps} steps of this cell are too many to be kept for a gradient: {at_once} blocks of {lanes} sequences at \
                 a time would take {} GB, and at most {} are taken; use shorter sequences or fewer threads",
                bytes.div_ceil(1 << 30),
                MOST_BYTES >> 30
            );
            return Err(training::Refusal::Setting(message));
        }
        Ok(())
    }
}

/// A cell that learns a task.
#[derive(Debug)]
pub struct Learner {
    layout: Layout,
    computing: Computing,
    batches: Batches,
    mean: LossMean,
    valid: Vec<Batch>,
    /// The goal, and the sequences of the longest training length that it is judged on.
    goal: Option<(f64, Vec<Batch>)>,
    scratch: Vec<f32>,
}

/// What a test at one length showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tested {
    /// The three measures.
    pub score: Score,
    /// Nats per counted position.
    pub loss: f64,
}

fn sequences(batch: &Batch) -> Sequences<'_> {
    Sequences { inputs: Inputs::Tokens(&batch.tokens), length: batch.steps, count: batch.sequences }
}

/// The mask of every sequence: [time, sequence].
fn mask(batch: &Batch) -> Vec<bool> {
    batch.mask.iter().flat_map(|counts| std::iter::repeat_n(*counts, batch.sequences)).collect()
}

impl Learner {
    /// A learner; the cell's inputs are the task's symbols, its outputs the classes.
    ///
    /// # Errors
    /// As for [`Batches::valid`].
    pub fn new(
        cell: &Cell,
        batches: Batches,
        precision: Precision,
        mean: LossMean,
    ) -> crate::error::Result<Self> {
        let layout = cell.layout();
        let zeros = vec![0.0; layout.len()];
        let computing = match precision {
            Precision::F32 => Computing::F32(Engine::new(cell.step.clone(), &zeros)),
            Precision::F64 => Computing::F64(Engine::new(cell.step.clone(), &vec![0.0; layout.len()])),
        };
        let valid = batches.valid()?;
        Ok(Self { scratch: zeros, layout, computing, batches, mean, valid, goal: None })
    }

    /// The same with a goal: this share of the sequences of the longest training length right, by the last symbol where
    /// a task follows a state, else by every symbol. Evaluations say so, and their lines hold it as `longest`.
    ///
    /// # Errors
    /// As for [`Batches::valid`].
    pub fn with_goal(mut self, share: f64) -> crate::error::Result<Self> {
        self.goal = Some((share, self.batches.longest()?));
        Ok(self)
    }

    /// The same on a device.
    ///
    /// # Errors
    /// If the device is not there.
    #[cfg(not(feature = "candle"))]
    pub fn on(self, device: DeviceSpec) -> training::Result<Self> {
        device.check_composed().map(|()| self)
    }

    /// The same on a device.
    ///
    /// # Errors
    /// If the device is not there.
    #[cfg(feature = "candle")]
    pub fn on(mut self, device: DeviceSpec) -> training::Result<Self> {
        let (step, dtype) = match &self.computing {
            _ if device == DeviceSpec::Cpu => return Ok(self),
            Computing::F32(engine) => (engine.shared_step(), DType::F32),
            Computing::F64(engine) => (engine.shared_step(), DType::F64),
            Computing::Composed(_) => return Ok(self),
        };
        let device = device.open_exact()?;
        self.computing = Computing::Composed(Composed::new(step, &self.scratch, dtype, &device)?);
        Ok(self)
    }

    /// Where the batches come from.
    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    fn predict(&self, batch: &Batch) -> training::Result<Predictions> {
        let mask = mask(batch);
        let targets = Targets { classes: &batch.targets, mask: &mask };
        Ok(match &self.computing {
            Computing::F32(engine) => engine.predict(sequences(batch), targets),
            Computing::F64(engine) => engine.predict(sequences(batch), targets),
            #[cfg(feature = "candle")]
            Computing::Composed(composed) => composed.predict(sequences(batch), targets)?,
        })
    }

    /// Judges weights on batches. `see` is called after each of them.
    ///
    /// # Errors
    /// If a batch is refused, or the device fails.
    pub fn judge<E: From<training::Refusal>>(
        &mut self,
        theta: &[f32],
        batches: impl Iterator<Item = Result<Batch, E>>,
        mut see: impl FnMut(&Batch),
    ) -> Result<Tested, E> {
        self.computing.set(theta)?;
        let (mut score, mut sum, mut counted) = (Score::default(), 0.0, 0_u64);
        for batch in batches {
            let batch = batch?;
            let found = self.predict(&batch)?;
            score.add(&batch, &found.classes);
            sum += found.loss;
            counted += (batch.counted() * batch.sequences) as u64;
            see(&batch);
        }
        Ok(Tested { score, loss: sum / counted.max(1) as f64 })
    }
}

impl training::Task for Learner {
    type Batch = Batch;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn updates_per_epoch(&self) -> u64 {
        // Sequences are drawn afresh: there is one epoch, and an update is its number.
        u64::MAX
    }

    fn batch(&mut self, _epoch: u64, index: u64) -> training::Result<Batch> {
        self.batches.train(index + 1).map_err(|refusal| training::Refusal::Setting(refusal.to_string()))
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        piece: Piece,
        _update: u64,
        gradient: &mut [f32],
    ) -> training::Result<Loss> {
        self.computing.check(batch.steps, batch.sequences, rayon::current_num_threads())?;
        self.computing.set(theta)?;
        let part;
        let batch = if piece.parts > 1 {
            part = batch.part(piece.range(batch.sequences));
            &part
        } else {
            batch
        };
        let mask = mask(batch);
        let objective = Objective::CrossEntropy(Targets { classes: &batch.targets, mask: &mask });
        let sum = match &self.computing {
            Computing::F32(engine) => engine.gradient(sequences(batch), objective, &mut self.scratch),
            Computing::F64(engine) => {
                let mut wide = vec![0.0; self.scratch.len()];
                let sum = engine.gradient(sequences(batch), objective, &mut wide);
                for (narrow, wide) in self.scratch.iter_mut().zip(wide) {
                    *narrow = wide as f32;
                }
                sum
            }
            #[cfg(feature = "candle")]
            Computing::Composed(composed) => {
                composed.gradient(sequences(batch), objective, &mut self.scratch)?
            }
        };
        for (g, new) in gradient.iter_mut().zip(&self.scratch) {
            *g += *new;
        }
        // Of several pieces, the authors' mean counts the positions once.
        let is_counted = self.mean == LossMean::Mean || piece.part == 0;
        let targets = if is_counted { batch.divisor(self.mean) } else { 0 };
        Ok(Loss { sum, targets })
    }

    fn evaluate(&mut self, theta: &[f32]) -> training::Result<Evaluation> {
        let batches = std::mem::take(&mut self.valid);
        let tested = self.judge(theta, batches.iter().cloned().map(training::Result::Ok), |_| ());
        self.valid = batches;
        let tested = tested?;
        let mut evaluation =
            Evaluation { watched: tested.loss, reached: false, fields: tested.score.fields() };
        if let Some((share, longest)) = self.goal.take() {
            let judged = self.judge(theta, longest.iter().cloned().map(training::Result::Ok), |_| ());
            self.goal = Some((share, longest));
            let score = judged?.score;
            let is_state = self.batches.task().is_state();
            let right = if is_state { score.last_symbol() } else { score.sequence_exact() };
            evaluation.reached = right >= share;
            evaluation.fields.insert("longest".to_owned(), right.into());
        }
        Ok(evaluation)
    }

    fn lines(&self) -> Lines {
        Lines::Sequences
    }

    fn sequence_steps(&self, batch: &Batch) -> u64 {
        batch.sequence_steps()
    }

    fn refuses_silent_weights(&self) -> bool {
        // A relu gate may be closed, and with one step the state that a matrix is applied to is 0.
        false
    }
}

#[cfg(test)]
#[cfg(feature = "candle")]
mod tests {
    use training::Task as _;

    use super::*;
    use crate::options::{CellKind, Options, Sizes};
    use crate::task::batches::{Curriculum, Plan, Split};
    use crate::task::{Settings, Task};

    fn learner(precision: Precision, mean: LossMean) -> Learner {
        let task = Task::new("copy", &Settings::default()).unwrap();
        let plan = Plan {
            seed: 3,
            batch: 5,
            min_length: 2,
            max_length: 6,
            updates: 9,
            curriculum: Curriculum::None,
            split: Split::None,
        };
        let sizes = Sizes { input: Some(10), hidden: Some(4), output: Some(10), ..Sizes::default() };
        let cell = Cell::new(CellKind::Gru, &sizes, &Options::default()).unwrap();
        Learner::new(&cell, Batches::new(task, plan).unwrap(), precision, mean).unwrap()
    }

    fn composed(mut learner: Learner, dtype: DType) -> Learner {
        let step = match &learner.computing {
            Computing::F32(engine) => engine.shared_step(),
            Computing::F64(engine) => engine.shared_step(),
            Computing::Composed(composed) => std::sync::Arc::new(composed.step().clone()),
        };
        let device = candle_core::Device::Cpu;
        learner.computing =
            Computing::Composed(Composed::new(step, &learner.scratch, dtype, &device).unwrap());
        learner
    }

    #[test]
    fn every_engine_learns_the_same() {
        for mean in [LossMean::Mean, LossMean::Authors] {
            let theta = learner(Precision::F32, mean).layout().initialise(3);
            let seen = |mut learner: Learner| {
                let batch = learner.batch(0, 0).unwrap();
                let mut gradient = vec![0.0; theta.len()];
                let piece = Piece { part: 0, parts: 1 };
                let loss = learner.gradient(&theta, &batch, piece, 1, &mut gradient).unwrap();
                (loss, gradient, learner.evaluate(&theta).unwrap())
            };
            let (loss, gradient, evaluation) = seen(learner(Precision::F64, mean));
            for other in [
                learner(Precision::F32, mean),
                composed(learner(Precision::F32, mean), DType::F32),
                composed(learner(Precision::F64, mean), DType::F64),
            ] {
                let (found, others, judged) = seen(other);
                assert_eq!(found.targets, loss.targets);
                assert!((found.sum - loss.sum).abs() < 1e-4 * loss.sum);
                assert!((judged.watched - evaluation.watched).abs() < 1e-5);
                assert_eq!(judged.fields, evaluation.fields);
                assert!(others.iter().zip(&gradient).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0)));
            }
        }
    }

    #[test]
    fn pieces_of_a_batch_add_up() {
        for mean in [LossMean::Mean, LossMean::Authors] {
            let mut learner = learner(Precision::F64, mean);
            let theta = learner.layout().initialise(0);
            let batch = learner.batch(0, 4).unwrap();
            let mut sum = |parts: usize| {
                let mut gradient = vec![0.0; theta.len()];
                let mut loss = Loss::default();
                for part in 0..parts {
                    let piece = Piece { part, parts };
                    let more = learner.gradient(&theta, &batch, piece, 1, &mut gradient).unwrap();
                    loss = Loss { sum: loss.sum + more.sum, targets: loss.targets + more.targets };
                }
                (loss, gradient)
            };
            let (whole, of_whole) = sum(1);
            let (pieces, of_pieces) = sum(3);
            assert_eq!(whole.targets, pieces.targets);
            assert!((whole.sum - pieces.sum).abs() < 1e-9 * whole.sum);
            assert!(of_whole.iter().zip(&of_pieces).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }

    #[test]
    fn sequences_that_do_not_fit_into_memory_are_refused() {
        let learner = learner(Precision::F32, LossMean::Mean);
        let check = |steps, sequences, threads| learner.computing.check(steps, sequences, threads);
        assert!(check(1000, 128, 4).is_ok() && check(usize::MAX, 1, 1).is_err());
        // What one thread may take, several may not each, unless there is no more than one block.
        let Computing::F32(engine) = &learner.computing else { panic!("32 bits") };
        let most = (0..60).map(|power| 1_usize << power);
        let most = most.take_while(|steps| 8 * engine.numbers(*steps, 128) <= MOST_BYTES).last().unwrap();
        assert!(check(most, 128, 1).is_ok() && check(most, 32, 4).is_ok() && check(most, 128, 4).is_err());
        assert!(check(most, 33, 2).is_err() && check(most / 2, 33, 2).is_ok());
        let refusal = check(most, 128, 4).unwrap_err().to_string();
        assert!(refusal.contains("4 blocks of 32 sequences"), "{refusal}");
    }
}
