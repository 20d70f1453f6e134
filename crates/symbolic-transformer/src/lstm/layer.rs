//! One layer of the recurrence, forward and backward, over rows in packed order.

use training::kernels::{
    LstmSaved, LstmStep, Mat, MatMut, linear, linear_backward_input, lstm_step, lstm_step_backward, product,
};

use super::LayerPlaces;
use super::packing::Packing;
use crate::embedding::weights_backward;

/// What one layer keeps for the way back, in packed order.
#[derive(Debug, Default)]
pub(super) struct SavedLayer {
    pub(super) input: Vec<f32>,  // [rows, h]
    gates: Vec<f32>,             // [rows, 4h]
    cell: Vec<f32>,              // [rows, h]
    squashed: Vec<f32>,          // [rows, h]
    pub(super) output: Vec<f32>, // [rows, h]
}

impl SavedLayer {
    /// `output` from `input`.
    pub(super) fn forward(&mut self, theta: &[f32], places: &LayerPlaces, packing: &Packing) {
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
    pub(super) fn backward(
        &self,
        theta: &[f32],
        places: &LayerPlaces,
        packing: &Packing,
        d: &mut [f32],
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
