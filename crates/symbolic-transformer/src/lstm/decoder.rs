//! The baseline decoding: a token at a time, its state being all that it remembers.

use std::ops::Range;

use training::kernels::{LstmStep, Mat, MatMut, linear, lstm_step, product};
use training::{Refusal, Result};

use super::{LAYERS, Places, Shape, check};
use crate::config::ModelConfig;
use crate::decode::Decoder;
use crate::places::Linear;

/// Output and cell of each layer, \[h\] each.
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
            return Err(Refusal::Learner("parameters of another model".to_owned()));
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
            return Err(Refusal::Learner(format!("{} tokens for {rows} states", tokens.len())));
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
