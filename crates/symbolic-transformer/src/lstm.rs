//! The baseline that remembers in a state instead of looking back: two layers of long short-term memory.
//!
//! Embedding size and hidden size are both h = `d_model`, each gate has one bias vector, the head is a map of its own:
//! 16h² + 1334h + 663 parameters. Dropout stands between the layers, nowhere else.
//!
//! Enter at [`Lstm`]. A recurrence is slow where it multiplies small matrices one after the other, so as much as
//! possible is done for all steps at once (`Packing`): the sequences are sorted by length and their rows laid out
//! step by step, so that the rows of one time step stand together and the sequences still running are always the
//! first ones. The inputs of all steps are projected by one product; each step adds one product of the states of all
//! running sequences; the gradients of all gates stand in one matrix, and one product gives a weight's gradient.

mod decoder;
mod layer;
mod packing;

use std::ops::Range;

use training::kernels::{Dropout, dropout_in_place, linear, linear_backward_input};
use training::{Decay, Initial, Layout, Ready, Refusal, Result};

use crate::batch::Batch;
use crate::config::{Init, ModelConfig};
use crate::embedding::weights_backward;
use crate::network::{ByHand, Noise};
use crate::places::Linear;

pub use decoder::{LstmDecoder, LstmState};
use layer::SavedLayer;
use packing::Packing;

/// Layers of the baseline.
pub const LAYERS: usize = 2;

/// Where the tensors of one layer stand.
#[derive(Debug, Clone)]
struct LayerPlaces {
    /// [4h, h] and [4h]: input, forget, candidate, output.
    input: Linear,
    /// [4h, h]
    recurrent: Range<usize>,
}

#[derive(Debug, Clone)]
struct Places {
    embedding: Range<usize>,
    layers: [LayerPlaces; LAYERS],
    head: Linear,
}

/// The keys of a model's configuration that an LSTM has.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    vocabulary: usize,
    width: usize,
    scale: f32,
    dropout: f64,
}

/// 16h² + 1334h + 663 for h = `d_model` and 663 symbols.
pub fn parameters(config: &ModelConfig) -> usize {
    let (v, h) = (config.vocab_size, config.d_model);
    2 * v * h + v + LAYERS * (8 * h * h + 4 * h)
}

/// Refuses a shape that cannot be built. Of a [`ModelConfig`] an LSTM has `vocab_size`, `d_model`, `scale_embedding`,
/// `init` and `dropout`.
pub fn check(config: &ModelConfig) -> Result<()> {
    let refused = |message: String| Err(Refusal::Setting(message));
    if !(1..=65_536).contains(&config.d_model) {
        return refused(format!("d_model = {}: 1 to 65536 is possible", config.d_model));
    }
    if !(0.0..1.0).contains(&config.dropout) {
        return refused(format!("dropout = {}: 0 to below 1 is possible", config.dropout));
    }
    Ok(())
}

impl Places {
    fn new(config: &ModelConfig) -> (Layout, Self) {
        let (v, h) = (config.vocab_size, config.d_model);
        let mut layout = Layout::default();
        let deviation = if config.init == Init::Scaled { 1.0 / (h as f64).sqrt() } else { 0.02 };
        let embedding = layout.add("embed.weight", &[v, h], Decay::No, Initial::Normal(deviation));
        // Each gate is a map of its own: h inputs and h outputs.
        let matrix = match config.init {
            Init::Gpt2 => Initial::Normal(0.02),
            Init::Document | Init::Scaled => Initial::XavierUniform { fan_in: h, fan_out: h },
        };
        let layers = [0, 1].map(|n| {
            // A weight stands right before its bias: see `weights_backward`.
            let recurrent = layout.add(format!("lstm.{n}.recurrent.weight"), &[4 * h, h], Decay::Yes, matrix);
            let weight = layout.add(format!("lstm.{n}.input.weight"), &[4 * h, h], Decay::Yes, matrix);
            let bias = layout.add(format!("lstm.{n}.bias"), &[4 * h], Decay::No, Initial::Constant(0.0));
            LayerPlaces { input: Linear { weight, bias }, recurrent }
        });
        let weight = layout.add("head.weight", &[v, h], Decay::Yes, Initial::Normal(0.02));
        let bias = layout.add("head.bias", &[v], Decay::No, Initial::Constant(0.0));
        (layout, Self { embedding, layers, head: Linear { weight, bias } })
    }
}

impl Shape {
    fn of(config: &ModelConfig) -> Self {
        let scale = config.embedding_scale() as f32;
        Self { vocabulary: config.vocab_size, width: config.d_model, scale, dropout: config.dropout }
    }

    /// The scaled vectors of tokens, [tokens, h].
    fn embed(self, table: &[f32], tokens: &[u32]) -> Result<Vec<f32>> {
        let mut x = Vec::with_capacity(tokens.len() * self.width);
        for &t in tokens {
            let row = table.get(t as usize * self.width..(t as usize + 1) * self.width);
            let row = row.ok_or_else(|| {
                Refusal::Learner(format!("token {t} is outside the vocabulary of {}", self.vocabulary))
            })?;
            x.extend(row.iter().map(|e| self.scale * e));
        }
        Ok(x)
    }
}

/// Buffers that live from step to step.
#[derive(Debug, Default)]
struct Saved {
    packing: Packing,
    layers: [SavedLayer; LAYERS],
    x: Vec<f32>,      // [rows, h], in the order of the batch
    logits: Vec<f32>, // [rows, V]
}

/// The baseline with its buffers.
#[derive(Debug)]
pub struct Lstm {
    shape: Shape,
    layout: Layout,
    places: Places,
    saved: Saved,
}

impl Lstm {
    /// A baseline of this width.
    pub fn new(config: &ModelConfig) -> Result<Self> {
        check(config)?;
        let (layout, places) = Places::new(config);
        Ok(Self { shape: Shape::of(config), layout, places, saved: Saved::default() })
    }

    /// The masks between layer `n` and the next.
    fn dropout(&self, noise: Option<Noise>, n: usize) -> Option<Dropout> {
        noise.and_then(|noise| Dropout::new(self.shape.dropout, noise.seed, noise.update, n as u64))
    }
}

impl ByHand for Lstm {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn forward(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>) -> Result<&mut [f32]> {
        if theta.len() != self.layout.len() {
            return Err(Refusal::Learner("parameters of another model".to_owned()));
        }
        let mut saved = std::mem::take(&mut self.saved);
        let (rows, h) = (batch.rows(), self.shape.width);
        saved.packing = Packing::new(batch);
        saved.x = self.shape.embed(&theta[self.places.embedding.clone()], &batch.tokens)?;
        for (n, (layer, places)) in saved.layers.iter_mut().zip(&self.places.layers).enumerate() {
            if n > 0 {
                dropout_in_place(self.dropout(noise, n - 1), &mut saved.x, h, batch.first_row);
            }
            saved.packing.pack(&saved.x, h, &mut layer.input);
            layer.forward(theta, places, &saved.packing);
            saved.packing.unpack(&layer.output, h, &mut saved.x);
        }
        let Linear { weight, bias } = &self.places.head;
        saved.logits.resize(rows * bias.len(), 0.0);
        linear(&saved.x, &theta[weight.clone()], &theta[bias.clone()], &mut saved.logits, rows);
        self.saved = saved;
        Ok(&mut self.saved.logits)
    }

    fn backward(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
        ready: Ready<'_>,
    ) {
        let mut saved = std::mem::take(&mut self.saved);
        let (rows, h) = (batch.rows(), self.shape.width);
        weights_backward(&self.places.head, &saved.logits, &saved.x, gradient, rows);
        let mut d = Vec::new();
        linear_backward_input(
            &saved.logits,
            &theta[self.places.head.weight.clone()],
            &mut saved.x,
            rows,
            false,
        );
        for (n, (layer, places)) in saved.layers.iter().zip(&self.places.layers).enumerate().rev() {
            saved.packing.pack(&saved.x, h, &mut d);
            layer.backward(theta, places, &saved.packing, &mut d, gradient);
            // Behind a layer stand those after it and the head, which are done.
            ready(gradient, places.recurrent.start);
            saved.packing.unpack(&d, h, &mut saved.x);
            if n > 0 {
                dropout_in_place(self.dropout(Some(noise), n - 1), &mut saved.x, h, batch.first_row);
            }
        }
        let table = &mut gradient[self.places.embedding.clone()];
        let tokens: Vec<usize> = batch.tokens.iter().map(|&t| t as usize).collect();
        crate::explicit::scatter(&saved.x, &tokens, self.shape.scale, h, table);
        self.saved = saved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_counts() {
        for (h, count) in [(151, 566_913), (428, 3_502_559), (1066, 19_604_403), (2278, 86_068_059)] {
            let tiny = ModelConfig::size("tiny").unwrap();
            let config = ModelConfig { d_model: h, ..tiny };
            assert_eq!(parameters(&config), count);
            assert_eq!(16 * h * h + 1334 * h + 663, count);
            assert_eq!(Places::new(&config).0.len(), count);
        }
    }
}
