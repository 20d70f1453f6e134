//! Anything that gives a distribution over the next symbol: a network, a baseline, or the law itself.

use rayon::prelude::*;
use training::Result;

use crate::batch::Batch;
use crate::network::Network;

/// A predictor of the next symbol.
pub trait Predictor {
    /// q of every row, [rows, V] in row order; each row sums to 1.
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>>;
}

/// A network with its weights.
pub struct Weighted<'a> {
    /// The model.
    pub network: &'a mut dyn Network,
    /// Its parameters.
    pub theta: &'a [f32],
}

impl Predictor for Weighted<'_> {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let logits = self.network.logits(self.theta, batch)?;
        let width = (logits.len() / batch.rows().max(1)).max(1);
        let mut q = vec![0.0; logits.len()];
        q.par_chunks_exact_mut(width).zip(logits.par_chunks_exact(width)).for_each(|(q, z)| softmax(z, q));
        Ok(q)
    }
}

/// Softmax in f64.
pub(crate) fn softmax(logits: &[f32], q: &mut [f64]) {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (q, &z) in q.iter_mut().zip(logits) {
        *q = (f64::from(z) - f64::from(max)).exp();
        sum += *q;
    }
    for q in q {
        *q /= sum;
    }
}

/// 1/663 for every symbol.
pub struct Uniform;

impl Predictor for Uniform {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let v = fol::symbol::VOCABULARY;
        Ok(vec![1.0 / v as f64; batch.rows() * v])
    }
}
