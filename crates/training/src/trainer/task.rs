//! What a learner gives to the trainer.

use serde_json::{Map, Value};

use crate::error::Result;
use crate::lines::Lines;
use crate::parameters::Layout;
use crate::resident::Resident;

/// What a piece of a batch cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loss {
    /// Summed over valid targets, in nats.
    pub sum: f64,
    /// The number of valid targets.
    pub targets: u64,
}

/// What an evaluation found.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The loss on the validation set: lower is better, and the best checkpoint is chosen by it.
    pub watched: f64,
    /// Whether what the run is for was reached: so many times in a row as [`Settings::goal`](super::Settings::goal) says end it.
    pub reached: bool,
    /// Further fields of the `eval` line.
    pub fields: Map<String, Value>,
}

/// Who hears of a gradient and of the place from which on it changes no more.
pub type Ready<'a> = &'a mut dyn FnMut(&[f32], usize);

/// What a learner gives to the trainer.
pub trait Task {
    /// The items of one update.
    type Batch;

    /// The parameters.
    fn layout(&self) -> &Layout;

    /// The number of updates in each epoch; at least 1.
    fn updates_per_epoch(&self) -> u64;

    /// Batch number `index` of an epoch: a function of (seed, epoch, index).
    fn batch(&mut self, epoch: u64, index: u64) -> Result<Self::Batch>;

    /// Adds the gradient of the *summed* loss of piece `part` of `parts` to `gradient`. What is random (dropout) is
    /// a function of (seed, `update`, place in the whole batch).
    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Self::Batch,
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
    ) -> Result<Loss>;

    /// As [`gradient`](Self::gradient). `ready` is told of the gradient, whose numbers from a place on change no more, as often
    /// as that is known: they can go to others while the rest is computed.
    fn gradient_as_it_comes(
        &mut self,
        theta: &[f32],
        batch: &Self::Batch,
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
        _ready: Ready<'_>,
    ) -> Result<Loss> {
        self.gradient(theta, batch, piece, update, gradient)
    }

    /// Where the parameters lie, if they are not in this process's memory. Then [`gradient`](Self::gradient) is called with
    /// empty slices and adds to the gradient there; what it returns has the number of targets, and the loss comes from
    /// [`Resident::measure`].
    fn resident(&mut self) -> Option<&mut dyn Resident> {
        None
    }

    /// Judges weights on the validation set.
    fn evaluate(&mut self, theta: &[f32]) -> Result<Evaluation>;

    /// The targets of an update on average over an epoch, where batches differ in size and every *target* shall
    /// weigh the same: an update then counts by its targets over this number. Without it every *update* weighs the
    /// same, whatever its size.
    ///
    /// Let S(b) be the summed loss of batch b, n(b) its targets, and n̄ their mean over the N batches of an epoch.
    /// The gradient of the epoch's mean loss is Σ ∇S(b) / Σ n(b) = 1/N · Σ n(b)/n̄ · ∇S(b)/n(b): the mean over the
    /// updates of each update's own mean, weighted by n(b)/n̄. Unweighted, a batch of short sequences pulls as much
    /// as one of long ones, and each of its targets more.
    fn mean_targets(&self) -> Option<f64> {
        None
    }

    /// The weights that others judge and load, where the learner trains them through something that is no part of its
    /// model; none where they are the trained ones.
    fn judged(&self, _theta: &[f32]) -> Option<Vec<f32>> {
        None
    }

    /// What the learner remembers from update to update beside weights and moments: a part of every checkpoint.
    fn memory(&self) -> Option<Value> {
        None
    }

    /// Goes on with what a checkpoint remembers.
    ///
    /// # Errors
    /// A memory that is none of this learner.
    fn recall(&mut self, _memory: &Value) -> Result<()> {
        Ok(())
    }

    /// Further fields of the `update` line.
    fn sensed(&self) -> Map<String, Value> {
        Map::new()
    }

    /// What the lines of `metrics.jsonl` are called.
    fn lines(&self) -> Lines {
        Lines::Tokens
    }

    /// Steps of all sequences of a batch, for a learner that counts them.
    fn sequence_steps(&self, _batch: &Self::Batch) -> u64 {
        0
    }

    /// Whether a weight matrix without any gradient at the first update is a fault. It is none where a gate may be
    /// closed or a sequence may have one step.
    fn refuses_silent_weights(&self) -> bool {
        true
    }
}

/// Piece `part` of `parts` of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// From 0.
    pub part: usize,
    /// At least 1.
    pub parts: usize,
}

impl Piece {
    /// The share of `n` items that belongs to this piece.
    pub fn range(self, n: usize) -> std::ops::Range<usize> {
        let parts = self.parts.max(1);
        self.part * n / parts..(self.part + 1) * n / parts
    }
}
