//! The baseline that remembers in a state instead of looking back: two layers of long short-term memory.
//!
//! Embedding size and hidden size are both h = `d_model`, each gate has one bias vector, the head is a map of its own:
//! 16h² + 1334h + 663 parameters. Dropout stands between the layers, nowhere else.
//!
//! Enter at [`Lstm`]. A recurrence is slow where it multiplies small matrices one after the other, so as much as
//! possible is done for all steps at once ([`Packing`]): the sequences are sorted by length and their rows laid out
//! step by step, so that the rows of one time step stand together and the sequences still running are always the
//! first ones. The inputs of all steps are projected by one product; each step adds one product of the states of all
//! running sequences; the gradients of all gates stand in one matrix, and one product gives a weight's gradient.

use std::ops::Range;

use training::kernels::{
    Dropout, LstmSaved, LstmStep, Mat, MatMut, cross_entropy, dropout_in_place, linear,
    linear_backward_input, lstm_step, lstm_step_backward, product,
};
use training::{Decay, Error, Initial, Layout, Loss, Result};

use crate::batch::Batch;
use crate::config::{Init, ModelConfig};
use crate::decode::Decoder;
use crate::embedding::weights_backward;
use crate::network::{Network, Noise};
use crate::places::Linear;

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
    let refused = |message: String| Err(Error::Setting(message));
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
                Error::Learner(format!("token {t} is outside the vocabulary of {}", self.vocabulary))
            })?;
            x.extend(row.iter().map(|e| self.scale * e));
        }
        Ok(x)
    }
}

/// The order of rows in which a recurrence is computed: step by step, the longest sequence first.
#[derive(Debug, Default)]
struct Packing {
    /// For each packed row its row in the batch.
    rows: Vec<usize>,
    /// `steps[t]..steps[t + 1]` are the packed rows of time step t.
    steps: Vec<usize>,
}

impl Packing {
    fn new(batch: &Batch) -> Self {
        let mut ranges: Vec<Range<usize>> = batch.ranges().collect();
        ranges.sort_by_key(|r| std::cmp::Reverse(r.len())); // stable
        let mut packing = Self { rows: Vec::with_capacity(batch.rows()), steps: vec![0] };
        for t in 0..batch.longest() {
            packing.rows.extend(ranges.iter().take_while(|r| t < r.len()).map(|r| r.start + t));
            packing.steps.push(packing.rows.len());
        }
        packing
    }

    /// The packed rows of each step, in time order.
    fn steps(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + '_ {
        self.steps.windows(2).map(|w| w[0]..w[1])
    }

    /// The number of sequences.
    fn sequences(&self) -> usize {
        self.steps.get(1).copied().unwrap_or(0)
    }

    /// Rows of the batch in packed order.
    fn pack(&self, x: &[f32], width: usize, packed: &mut Vec<f32>) {
        packed.clear();
        for &row in &self.rows {
            packed.extend_from_slice(&x[row * width..(row + 1) * width]);
        }
    }

    /// Packed rows in the order of the batch.
    fn unpack(&self, packed: &[f32], width: usize, x: &mut Vec<f32>) {
        x.resize(packed.len(), 0.0);
        for (from, &row) in packed.chunks_exact(width).zip(&self.rows) {
            x[row * width..(row + 1) * width].copy_from_slice(from);
        }
    }

    /// For each packed row after the first step, the row of `x` one step earlier: the state that its gates saw.
    fn earlier(&self, x: &[f32], width: usize) -> Vec<f32> {
        let mut rows = Vec::with_capacity(x.len());
        for w in self.steps.windows(3) {
            rows.extend_from_slice(&x[w[0] * width..(w[0] + w[2] - w[1]) * width]);
        }
        rows
    }
}

/// What one layer keeps for the way back, in packed order.
#[derive(Debug, Default)]
struct SavedLayer {
    input: Vec<f32>,    // [rows, h]
    gates: Vec<f32>,    // [rows, 4h]
    cell: Vec<f32>,     // [rows, h]
    squashed: Vec<f32>, // [rows, h]
    output: Vec<f32>,   // [rows, h]
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

impl SavedLayer {
    /// `output` from `input`.
    fn forward(&mut self, theta: &[f32], places: &LayerPlaces, packing: &Packing) {
        let h = places.input.bias.len() / 4;
        let rows = packing.rows.len();
        let Self { input, gates, cell, squashed, output } = self;
        gates.resize(rows * 4 * h, 0.0);
        for buffer in [&mut *cell, &mut *squashed, &mut *output] {
            buffer.resize(rows * h, 0.0);
        }
        let (weight, bias) = (&theta[places.input.weight.clone()], &theta[places.input.bias.clone()]);
        linear(input, weight, bias, gates, rows);
        let recurrent = Mat::new(&theta[places.recurrent.clone()], 4 * h, h);
        let mut before = 0..0;
        for step in packing.steps() {
            let (n, from) = (step.len(), step.start * h);
            let gates = &mut gates[4 * from..4 * step.end * h];
            let (earlier, output) = output.split_at_mut(from);
            let (earlier_cell, cell) = cell.split_at_mut(from);
            let state = before.start * h..(before.start + n.min(before.len())) * h;
            if !before.is_empty() {
                let earlier = Mat::new(&earlier[state.clone()], n, h);
                product(MatMut::new(gates, n, 4 * h), true, 1.0, earlier, recurrent.t(), true);
            }
            let step_buffers = LstmStep {
                gates,
                cell: &mut cell[..n * h],
                squashed: &mut squashed[from..step.end * h],
                output: &mut output[..n * h],
            };
            lstm_step(step_buffers, &earlier_cell[state], h);
            before = step;
        }
    }

    /// From the gradient of `output` to that of `input`, both in `d`, adding that of the weights to `gradient`.
    fn backward(
        &self,
        theta: &[f32],
        places: &LayerPlaces,
        packing: &Packing,
        d: &mut Vec<f32>,
        gradient: &mut [f32],
    ) {
        let h = places.input.bias.len() / 4;
        let rows = packing.rows.len();
        let weight = &theta[places.recurrent.clone()];
        let mut dgates = vec![0.0; rows * 4 * h];
        let mut dcell = vec![0.0; packing.sequences() * h];
        let mut steps = packing.steps().rev().peekable();
        while let Some(step) = steps.next() {
            let (n, from, to) = (step.len(), step.start * h, step.end * h);
            let before = steps.peek().map_or(0..0, |b| b.start * h..(b.start + n) * h);
            let saved = LstmSaved {
                gates: &self.gates[4 * from..4 * to],
                squashed: &self.squashed[from..to],
                before: &self.cell[before.clone()],
            };
            let dstep = &mut dgates[4 * from..4 * to];
            lstm_step_backward(saved, &d[from..to], &mut dcell[..n * h], dstep, h);
            if !before.is_empty() {
                linear_backward_input(dstep, weight, &mut d[before], n, true);
            }
        }
        weights_backward(&places.input, &dgates, &self.input, gradient, rows);
        let first = packing.sequences();
        let (later, earlier) = (&dgates[4 * first * h..], packing.earlier(&self.output, h));
        let dweight = MatMut::new(&mut gradient[places.recurrent.clone()], 4 * h, h);
        let later = Mat::new(later, rows - first, 4 * h);
        product(dweight, true, 1.0, later.t(), Mat::new(&earlier, rows - first, h), true);
        linear_backward_input(&dgates, &theta[places.input.weight.clone()], d, rows, false);
    }
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

    /// Fills `saved` and leaves the logits in `saved.logits`.
    fn forward(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>) -> Result<()> {
        if theta.len() != self.layout.len() {
            return Err(Error::Learner("parameters of another model".to_owned()));
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
        Ok(())
    }

    /// From the gradient of the logits, in `saved.logits`, to that of every parameter.
    fn backward(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) {
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

impl Network for Lstm {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn logits(&mut self, theta: &[f32], batch: &Batch) -> Result<&[f32]> {
        self.forward(theta, batch, None)?;
        Ok(&self.saved.logits)
    }

    fn gradient(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) -> Result<Loss> {
        self.forward(theta, batch, Some(noise))?;
        let ce = cross_entropy(&mut self.saved.logits, &batch.targets, noise.smoothing as f32, true);
        self.backward(theta, batch, noise, gradient);
        Ok(Loss { sum: ce.loss, targets: ce.targets })
    }
}

/// Output and cell of each layer, [h] each.
#[derive(Debug, Clone)]
pub struct LstmState {
    layers: [(Vec<f32>, Vec<f32>); LAYERS],
}

/// The baseline, decoding: its state is all that it remembers.
#[derive(Debug)]
pub struct LstmDecoder<'a> {
    shape: Shape,
    places: Places,
    theta: &'a [f32],
    logits: Vec<f32>,
}

impl<'a> LstmDecoder<'a> {
    /// The decoder of a baseline with these parameters.
    pub fn new(config: &ModelConfig, theta: &'a [f32]) -> Result<Self> {
        check(config)?;
        let (layout, places) = Places::new(config);
        if layout.len() != theta.len() {
            return Err(Error::Learner("parameters of another model".to_owned()));
        }
        Ok(Self { shape: Shape::of(config), places, theta, logits: Vec::new() })
    }

    fn part(&self, range: &Range<usize>) -> &'a [f32] {
        &self.theta[range.clone()]
    }
}

impl Decoder for LstmDecoder<'_> {
    type State = LstmState;

    fn start(&self) -> LstmState {
        let zero = || vec![0.0; self.shape.width];
        LstmState { layers: [(zero(), zero()), (zero(), zero())] }
    }

    fn step(&mut self, states: &mut [&mut LstmState], tokens: &[u32]) -> Result<&[f32]> {
        let (rows, h) = (states.len(), self.shape.width);
        if tokens.len() != rows {
            return Err(Error::Learner(format!("{} tokens for {rows} states", tokens.len())));
        }
        let mut x = self.shape.embed(self.part(&self.places.embedding), tokens)?; // [rows, h]
        let mut gates = vec![0.0; rows * 4 * h];
        let mut squashed = vec![0.0; rows * h];
        for (n, places) in self.places.layers.iter().enumerate() {
            let mut output: Vec<f32> = states.iter().flat_map(|s| &s.layers[n].0).copied().collect();
            let before: Vec<f32> = states.iter().flat_map(|s| &s.layers[n].1).copied().collect();
            linear(&x, self.part(&places.input.weight), self.part(&places.input.bias), &mut gates, rows);
            let recurrent = Mat::new(self.part(&places.recurrent), 4 * h, h);
            let earlier = Mat::new(&output, rows, h);
            product(MatMut::new(&mut gates, rows, 4 * h), true, 1.0, earlier, recurrent.t(), true);
            let mut cell = vec![0.0; rows * h];
            let (gates, squashed) = (&mut gates[..], &mut squashed[..]);
            lstm_step(LstmStep { gates, cell: &mut cell, squashed, output: &mut output }, &before, h);
            for ((state, output), cell) in states.iter_mut().zip(output.chunks(h)).zip(cell.chunks(h)) {
                let (o, c) = &mut state.layers[n];
                o.copy_from_slice(output);
                c.copy_from_slice(cell);
            }
            x = output;
        }
        let Linear { weight, bias } = &self.places.head;
        self.logits.resize(rows * self.shape.vocabulary, 0.0);
        let (weight, bias) = (&self.theta[weight.clone()], &self.theta[bias.clone()]);
        linear(&x, weight, bias, &mut self.logits, rows); // [rows, V]
        Ok(&self.logits)
    }

    fn vocabulary(&self) -> usize {
        self.shape.vocabulary
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

    #[test]
    fn packing_is_by_step_with_the_longest_first() {
        let b = Batch::new([&[1, 2][..], &[1, 2, 3, 4], &[1, 2, 3]]);
        let p = Packing::new(&b); // lengths 1, 3, 2: rows 0, 1..4, 4..6
        assert_eq!(p.rows, [1, 4, 0, 2, 5, 3]);
        assert_eq!(p.steps, [0, 3, 5, 6]);
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        p.pack(&x, 1, &mut packed);
        p.unpack(&packed, 1, &mut back);
        assert_eq!(back, x);
        // Rows 2, 5, 3 of the batch saw the outputs of rows 1, 4, 2.
        assert_eq!(p.earlier(&packed, 1), [1.0, 4.0, 2.0]);
        assert_eq!(Packing::new(&Batch::default()).sequences(), 0);
    }
}
