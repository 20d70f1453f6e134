//! The batches of training, validation and test: functions of the seed, the purpose and the item.
//!
//! | purpose | item | draws |
//! |---|---|---|
//! | `train` | the update, from 1 | the length, then the sequences in order |
//! | `train` | 2⁶⁴ − 1 | the order of `split = "enumerate"` |
//! | `valid` | the number of the batch, from 0 | the length, then the sequences in order |
//! | `valid` | 2³² + the number of the batch | sequences of the longest training length |
//! | `test` | length · 2³² + number of the sequence | the sequence |
//!
//! The key is `linear-logic-rnn-v1:PURPOSE:SEED`. Nothing depends on threads or on what was drawn before.

use seeded::{Family, Stream};
use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::pool::Pool;
use super::{Example, LONGEST, Task};
use crate::error::{Refusal, Result};

/// Sequences of a validation.
pub const VALIDATION: usize = 512;
/// The first item of the sequences of the longest training length.
const LONGEST_ITEM: u64 = 1 << 32;
/// Sequences of one length in a batch of the validation.
const VALIDATION_BATCH: usize = 32;
/// Sequences in a batch of the test.
const TEST_BATCH: usize = 128;
/// Symbols beyond which a batch of the test has fewer sequences.
const TEST_SYMBOLS: usize = 1 << 24;
/// Symbols of the largest batch.
const MOST_SYMBOLS: usize = 1 << 28;

/// How the greatest length of training grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Curriculum {
    /// It is `max_length` from the start.
    #[default]
    None,
    /// Linearly from `min_length` during the first half of the updates.
    Linear,
}

/// What training sees.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Split {
    /// Sequences drawn afresh.
    #[default]
    None,
    /// A part of all strings of one length.
    Enumerate {
        /// The share of the strings that train.
        train_fraction: f64,
    },
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The seed of the run.
    pub seed: u64,
    /// Sequences of an update.
    pub batch: usize,
    /// The least length; for tapes of n = L + 2.
    pub min_length: usize,
    /// The greatest length.
    pub max_length: usize,
    /// Updates of the run; the curriculum counts by them.
    pub updates: u64,
    /// How lengths grow.
    pub curriculum: Curriculum,
    /// What training sees.
    pub split: Split,
}

/// Where batches come from.
#[derive(Debug, Clone)]
pub struct Batches {
    task: Task,
    plan: Plan,
    pool: Option<Pool>,
}

impl Batches {
    /// Refused (`config`): lengths that the task does not have, batches that are empty or too large, a split that
    /// cannot be made.
    pub fn new(task: Task, plan: Plan) -> Result<Self> {
        let Plan { min_length: least, max_length: most, batch, .. } = plan;
        let shortest = task.shortest().max(1);
        if least < shortest || most < least || most > LONGEST {
            let message = format!(
                "min_length = {least}, max_length = {most}: `{}` has lengths from {shortest} to {LONGEST}",
                task.name()
            );
            return Err(Refusal::config(message));
        }
        if batch == 0 || batch.saturating_mul(most) > MOST_SYMBOLS {
            let message = format!("batch = {batch} with sequences of {most} symbols is empty or too large");
            return Err(Refusal::config(message));
        }
        let pool = match plan.split {
            Split::None => None,
            Split::Enumerate { .. } if !task.is_binary() || least != most => {
                let message = "split = \"enumerate\" needs a task on two symbols and min_length = max_length";
                return Err(Refusal::config(message));
            }
            Split::Enumerate { train_fraction } => {
                let mut stream = family("train", plan.seed).stream(u64::MAX);
                Some(Pool::new(most, train_fraction, &mut stream)?)
            }
        };
        Ok(Self { task, plan, pool })
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The greatest length of an update, counted from 1.
    pub fn greatest(&self, update: u64) -> usize {
        let Plan { min_length, max_length, updates, curriculum, .. } = self.plan;
        if curriculum == Curriculum::None {
            return max_length;
        }
        let (span, done) = ((max_length - min_length) as u128, u128::from(update.saturating_sub(1)));
        let grown = (2 * span * done).checked_div(u128::from(updates)).unwrap_or(span).min(span);
        min_length + grown as usize
    }

    /// The batch of an update, counted from 1.
    pub fn train(&self, update: u64) -> Result<Batch> {
        let mut stream = family("train", self.plan.seed).stream(update);
        let Some(pool) = &self.pool else {
            return self.drawn(self.greatest(update), self.plan.batch, &mut stream);
        };
        let place = |_| stream.below(pool.train().len() as u64) as usize;
        Ok(self.listed(pool, (0..self.plan.batch).map(place)))
    }

    /// The batches of the validation: always the same sequences of training lengths.
    pub fn valid(&self) -> Result<Vec<Batch>> {
        if let Some(pool) = &self.pool {
            let places: Vec<usize> = pool.valid().take(VALIDATION).collect();
            let batch = |places: &[usize]| self.listed(pool, places.iter().copied());
            return Ok(places.chunks(TEST_BATCH).map(batch).collect());
        }
        let draw = |item: usize| {
            let mut stream = family("valid", self.plan.seed).stream(item as u64);
            self.drawn(self.plan.max_length, VALIDATION_BATCH, &mut stream)
        };
        (0..VALIDATION / VALIDATION_BATCH).map(draw).collect()
    }

    /// Sequences of the longest training length, as many as those of the validation and others.
    ///
    /// # Errors
    /// As for a draw.
    pub fn longest(&self) -> Result<Vec<Batch>> {
        if self.pool.is_some() {
            return self.valid();
        }
        let draw = |item: usize| {
            let mut stream = family("valid", self.plan.seed).stream(LONGEST_ITEM + item as u64);
            let length = self.plan.max_length;
            let examples: Result<Vec<_>> =
                (0..TEST_BATCH).map(|_| self.task.draw(length, &mut stream)).collect();
            Ok(Batch::new(&examples?))
        };
        (0..VALIDATION / TEST_BATCH).map(draw).collect()
    }

    /// The batches of the test at one length, one after the other: `sequences` of them, or, where the split lists the
    /// strings of this length, the test part of the list.
    pub fn test(&self, length: usize, sequences: usize) -> impl Iterator<Item = Result<Batch>> + '_ {
        let pool = self.pool.as_ref().filter(|pool| pool.bits() == length);
        let items = pool.map_or(0..sequences, Pool::test);
        let batch = TEST_BATCH.min(TEST_SYMBOLS / length.max(1)).max(1);
        let starts = items.clone().step_by(batch);
        starts.map(move |start| {
            let range = start..items.end.min(start + batch);
            match pool {
                Some(pool) => Ok(self.listed(pool, range)),
                None => self.tested(length, range),
            }
        })
    }

    fn tested(&self, length: usize, range: std::ops::Range<usize>) -> Result<Batch> {
        Ok(Batch::new(&self.test_examples(length, range)?))
    }

    /// The first sequences of the test at a length, one by one; drawn, whatever the split.
    ///
    /// # Errors
    /// As for a draw.
    pub fn examples(&self, length: usize, sequences: usize) -> Result<Vec<Example>> {
        self.test_examples(length, 0..sequences)
    }

    fn test_examples(&self, length: usize, range: std::ops::Range<usize>) -> Result<Vec<Example>> {
        let family = family("test", self.plan.seed);
        let draw = |item| self.task.draw(length, &mut family.stream(((length as u64) << 32) | item as u64));
        range.map(draw).collect()
    }

    /// Sequences of one length, uniform from the least one to `greatest`.
    fn drawn(&self, greatest: usize, sequences: usize, stream: &mut Stream) -> Result<Batch> {
        let least = self.plan.min_length;
        let length = least + stream.below((greatest - least) as u64 + 1) as usize;
        let examples: Result<Vec<_>> = (0..sequences).map(|_| self.task.draw(length, stream)).collect();
        Ok(Batch::new(&examples?))
    }

    fn listed(&self, pool: &Pool, places: impl Iterator<Item = usize>) -> Batch {
        let examples: Vec<_> = places.map(|place| self.task.stepwise(pool.string(place))).collect();
        Batch::new(&examples)
    }
}

fn family(purpose: &str, seed: u64) -> Family {
    Family::new("linear-logic-rnn-v1", purpose, seed)
}
