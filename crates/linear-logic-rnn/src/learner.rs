//! A cell and a task as something that [`training::Trainer`] trains.

use serde::{Deserialize, Serialize};
use training::trainer::{Evaluation, Loss, Piece};
use training::{Layout, lines::Lines};

use crate::cell::Cell;
use crate::engine::{Engine, Inputs, Objective, Predictions, Sequences, Targets};
use crate::metrics::Score;
use crate::task::batch::{Batch, LossMean};
use crate::task::source::Source;

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
}

impl Computing {
    fn set(&mut self, theta: &[f32]) {
        match self {
            Self::F32(engine) => engine.set(theta),
            Self::F64(engine) => {
                engine.set(&theta.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
            }
        }
    }
}

/// A cell that learns a task.
#[derive(Debug)]
pub struct Learner {
    layout: Layout,
    computing: Computing,
    source: Source,
    mean: LossMean,
    valid: Vec<Batch>,
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
    /// As for [`Source::valid`].
    pub fn new(
        cell: &Cell,
        source: Source,
        precision: Precision,
        mean: LossMean,
    ) -> crate::error::Result<Self> {
        let layout = cell.layout();
        let zeros = vec![0.0; layout.len()];
        let computing = match precision {
            Precision::F32 => Computing::F32(Engine::new(cell.step.clone(), &zeros)),
            Precision::F64 => Computing::F64(Engine::new(cell.step.clone(), &vec![0.0; layout.len()])),
        };
        let valid = source.valid()?;
        Ok(Self { scratch: zeros, layout, computing, source, mean, valid })
    }

    /// Where the batches come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn predict(&self, batch: &Batch) -> Predictions {
        let mask = mask(batch);
        let targets = Targets { classes: &batch.targets, mask: &mask };
        match &self.computing {
            Computing::F32(engine) => engine.predict(sequences(batch), targets),
            Computing::F64(engine) => engine.predict(sequences(batch), targets),
        }
    }

    /// Judges weights on batches. `see` is called after each of them.
    ///
    /// # Errors
    /// If a batch is.
    pub fn judge<E>(
        &mut self,
        theta: &[f32],
        batches: impl Iterator<Item = Result<Batch, E>>,
        mut see: impl FnMut(&Batch),
    ) -> Result<Tested, E> {
        self.computing.set(theta);
        let (mut score, mut sum, mut counted) = (Score::default(), 0.0, 0_u64);
        for batch in batches {
            let batch = batch?;
            let found = self.predict(&batch);
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
        self.source.train(index + 1).map_err(|refusal| training::Error::Setting(refusal.to_string()))
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        piece: Piece,
        _update: u64,
        gradient: &mut [f32],
    ) -> training::Result<Loss> {
        self.computing.set(theta);
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
        Ok(Evaluation { watched: tested.loss, fields: tested.score.fields() })
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
