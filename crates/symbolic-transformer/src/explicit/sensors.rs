//! The sensors of the moderator: one pass without dropout, and after each layer its way back once, alone.

use seeded::{Family, Stream};
use training::Result;
use training::kernels::{Precision, add_scaled};

use super::{Explicit, Pass, Saved, SavedLayer};
use crate::batch::Batch;
use crate::network::{Reading, Sensing};
use crate::places::Block;

/// Steps of the power iteration; the growth of the last half counts.
const ITERATIONS: usize = 10;

impl Explicit {
    pub(super) fn read_sensors(&mut self, theta: &[f32], batch: &Batch, how: Sensing) -> Result<Reading> {
        self.check(theta, batch)?;
        let mut saved = std::mem::take(&mut self.saved);
        let pass = Pass { theta, batch, noise: None, precision: Precision::Single };
        let mut draws = Family::new("moderator", "sensors", how.seed).stream(how.update);
        let mut gradient = vec![0.0; theta.len()]; // of the weights, which nobody asks for
        let mut reading = Reading::default();
        self.begin(theta, batch, None, &mut saved);
        reading.active.push(self.active(&saved, how.threshold));
        for n in 0..self.config.n_layers {
            let slot = self.keep_layer(pass, n, &mut saved);
            reading.active.push(self.active(&saved, how.threshold));
            let block = &self.places.layers[n];
            let direction: Vec<f32> = saved.h.iter().map(|_| draws.normal() as f32).collect(); // [rows, d]
            let whole = square(&direction);
            let state = std::mem::replace(&mut saved.h, direction);
            let layer = std::mem::take(&mut saved.layers[slot]);
            self.layer_backward(pass, n, block, &layer, &mut saved, &mut gradient);
            reading.chi.push(square(&saved.h) / whole.max(f64::MIN_POSITIVE));
            reading.rho.push(self.radius(pass, block, &layer, &mut draws));
            saved.layers[slot] = layer;
            saved.h = state;
        }
        self.saved = saved;
        Ok(reading)
    }

    /// For each row how many components of its normalised state are beyond the threshold.
    fn active(&self, saved: &Saved, threshold: f64) -> Vec<u32> {
        let d = self.config.d_model;
        saved.h.chunks_exact(d).map(|row| active(row, threshold)).collect()
    }

    /// The growth of X ↦ A X Vᵀ Oᵀ: A the attention weights of the longest text, averaged over heads, V and O the maps of
    /// values and of outputs.
    fn radius(&self, pass: Pass<'_>, block: &Block, layer: &SavedLayer, draws: &mut Stream) -> f64 {
        let (heads, d) = (self.config.n_heads, self.config.d_model);
        let (mut at, mut longest) = (0, (0, 0));
        for range in pass.batch.ranges() {
            let n = range.len();
            if n > longest.1 {
                longest = (at, n);
            }
            at += heads * n * n;
        }
        let (from, n) = longest;
        let mut attention = vec![0.0_f32; n * n];
        for head in 0..heads {
            let weights = &layer.weights[from + head * n * n..][..n * n];
            attention.iter_mut().zip(weights).for_each(|(a, w)| *a += w / heads as f32);
        }
        let values = &pass.theta[block.qkv.weight.clone()][2 * d * d..]; // [d, d]
        let outputs = &pass.theta[block.output.weight.clone()]; // [d, d]
        let none = vec![0.0; d];
        let mut x: Vec<f32> = (0..n * d).map(|_| draws.normal() as f32).collect(); // [n, d]
        let (mut a, mut b) = (vec![0.0; n * d], vec![0.0; n * d]);
        let mut growth = 0.0;
        for step in 0..ITERATIONS {
            let before = square(&x).sqrt();
            if before <= 0.0 || !before.is_finite() {
                return 0.0;
            }
            x.iter_mut().for_each(|x| *x = (f64::from(*x) / before) as f32);
            Precision::Single.linear(&x, values, &none, &mut a, n);
            Precision::Single.linear(&a, outputs, &none, &mut b, n);
            for (weights, x) in attention.chunks_exact(n).zip(x.chunks_exact_mut(d)) {
                x.fill(0.0);
                for (weight, b) in weights.iter().zip(b.chunks_exact(d)).filter(|(weight, _)| **weight > 0.0)
                {
                    add_scaled(x, b, *weight);
                }
            }
            if step >= ITERATIONS / 2 {
                growth += square(&x).sqrt().ln();
            }
        }
        (growth / (ITERATIONS - ITERATIONS / 2) as f64).exp()
    }
}

fn square(x: &[f32]) -> f64 {
    x.iter().map(|x| f64::from(*x).powi(2)).sum()
}

/// Components of (x − mean) / deviation that are beyond the threshold.
fn active(row: &[f32], threshold: f64) -> u32 {
    let n = row.len().max(1) as f64;
    let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let variance = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
    let limit = threshold * (variance + 1e-5).sqrt();
    row.iter().filter(|x| (f64::from(**x) - mean).abs() > limit).count() as u32
}
