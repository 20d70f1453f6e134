//! A network with its data, as a [`Task`] for the trainer.

use serde_json::{Map, Value, json};
use training::{Evaluation, Layout, Loss, Piece, Ready, Refusal, Result, Task};

use crate::batch::Batch;
pub use crate::corpus::Corpus;
use crate::corpus::evaluation_batches;
use crate::moderator::Moderator;
use crate::network::{Network, Noise};
use crate::order::Order;
use crate::score::{Scores, score};
use crate::texts::Texts;

/// A network that learns a corpus.
pub struct Learner<'a> {
    /// The model.
    pub network: Box<dyn Network + 'a>,
    /// What it learns.
    pub train: Texts,
    /// What it is judged on between updates.
    pub validation: Corpus,
    /// The batches.
    pub order: Order,
    /// The seed of dropout.
    pub seed: u64,
    /// Label smoothing.
    pub smoothing: f64,
    /// What reads the sensors and sets the gains of the layers, if there is one.
    pub moderator: Option<Moderator>,
}

impl Task for Learner<'_> {
    type Batch = Batch;

    fn layout(&self) -> &Layout {
        self.network.layout()
    }

    fn updates_per_epoch(&self) -> u64 {
        self.order.batches() as u64
    }

    /// Batches differ in their targets, most of all those of similar length; each target of an epoch weighs the same.
    fn mean_targets(&self) -> Option<f64> {
        Some(self.train.targets() as f64 / self.order.batches() as f64)
    }

    fn batch(&mut self, epoch: u64, index: u64) -> Result<Batch> {
        self.train.batch(&mut self.order, epoch, index as usize)
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
    ) -> Result<Loss> {
        self.gradient_as_it_comes(theta, batch, piece, update, gradient, &mut |_, _| {})
    }

    fn gradient_as_it_comes(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
        ready: Ready<'_>,
    ) -> Result<Loss> {
        if let Some(moderator) = &mut self.moderator {
            moderator.moderate(self.network.as_mut(), theta, batch, self.seed, update)?;
        }
        let part;
        let batch = if piece.parts > 1 {
            part = batch.piece(piece.range(batch.sequences()));
            &part
        } else {
            batch
        };
        if batch.rows() == 0 {
            return Ok(Loss::default());
        }
        let noise = Noise { seed: self.seed, update, smoothing: self.smoothing };
        match &self.moderator {
            // It scales the gradient once all of it is there.
            Some(moderator) => moderator.gradient(self.network.as_mut(), theta, batch, noise, gradient),
            None => self.network.gradient_as_it_comes(theta, batch, noise, gradient, ready),
        }
    }

    fn judged(&self, theta: &[f32]) -> Option<Vec<f32>> {
        self.moderator.as_ref().and_then(|moderator| moderator.folded(theta))
    }

    fn memory(&self) -> Option<Value> {
        self.moderator.as_ref().map(Moderator::memory)
    }

    fn recall(&mut self, memory: &Value) -> Result<()> {
        self.moderator.as_mut().map_or(Ok(()), |moderator| moderator.recall(memory))
    }

    fn sensed(&self) -> Map<String, Value> {
        self.moderator.as_ref().map_or_else(Map::new, Moderator::fields)
    }

    fn resident(&mut self) -> Option<&mut dyn training::Resident> {
        self.network.resident()
    }

    fn evaluate(&mut self, theta: &[f32]) -> Result<Evaluation> {
        let scores = validate(self.network.as_mut(), theta, &self.validation)?;
        let n = scores.targets.max(1) as f64;
        let optimum: f64 = (0..self.validation.len()).map(|i| self.validation.nll(i)).sum();
        let watched = scores.nll / n;
        let fields = json!({
            "excess": (scores.nll - optimum) / n,
            "top1": scores.top[0] as f64 / n, "top5": scores.top[1] as f64 / n, "top10": scores.top[2] as f64 / n,
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => return Err(Refusal::Learner("no fields".to_owned())),
        };
        Ok(Evaluation { watched, reached: false, fields })
    }
}

/// Sums over all targets of a corpus.
pub fn validate(network: &mut dyn Network, theta: &[f32], corpus: &Corpus) -> Result<Scores> {
    let mut total = Scores::default();
    for range in evaluation_batches(corpus) {
        let batch = corpus.batch(range);
        let logits = network.logits(theta, &batch)?;
        total.add(&score(logits, &batch.targets));
    }
    Ok(total)
}
