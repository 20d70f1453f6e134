//! Gradients of weights: sums over steps and sequences, once all gradients of values are there.

use super::forward::Machine;
use super::frame::Place;
use super::lanes::{Series, outer_sums, row_sum};
use super::one_hot::{Chosen, chosen_sums};
use super::real::Real;
use crate::step::{Op, Start};

impl<T: Real, const L: usize> Machine<'_, T, L> {
    /// Adds the gradient of every weight, after its norm, to `sums`. Frame 0 stands before the first step.
    #[inline(always)]
    pub(super) fn weights_backward(&self, frames: &[T], gradients: &[T], steps: usize, sums: &mut [Vec<T>]) {
        let stride = self.frame();
        let series = |frames, place: Place| Series::<'_, T, L> {
            frames,
            start: self.start(place, stride),
            stride,
            rows: place.rows,
        };
        let mut scratch = Vec::new();
        for (number, line) in self.code.lines.iter().enumerate().filter(|(_, line)| line.carries) {
            let out = series(gradients, line.out);
            match &self.step.node(line.value).op {
                Op::Affine { bias, .. } => {
                    for (at, factor) in line.factors.iter().enumerate() {
                        let tiled = &self.code.factors[*factor];
                        let sum = &mut sums[tiled.factor.weight.index()];
                        if let Some((hot, tokens)) = self.hot
                            && hot.terms[number][at] != Chosen::No
                        {
                            for time in 1..=steps {
                                let here = time * stride;
                                let dy = self.get(gradients, line.out, here);
                                match hot.terms[number][at] {
                                    Chosen::No => {}
                                    Chosen::Column { back } => {
                                        let entries = |row: usize| &tiled.entries[row * tiled.columns..];
                                        for (lane, token) in tokens[time - back].iter().enumerate() {
                                            let token = *token as usize;
                                            if token < tiled.columns {
                                                for (row, dy) in dy.chunks_exact(L).enumerate() {
                                                    sum[entries(row)[token]] += dy[lane];
                                                }
                                            }
                                        }
                                    }
                                    Chosen::Operator { back, z } => {
                                        let z = self.get(frames, z, here);
                                        chosen_sums::<_, L>(sum, dy, z, &tokens[time - back], &mut scratch);
                                    }
                                }
                            }
                            continue;
                        }
                        let x = series(frames, line.operands[at]);
                        outer_sums::<_, L>(out, x, steps, |r, c, g| {
                            sum[tiled.entries[r * tiled.columns + c]] += g
                        });
                    }
                    if let Some(bias) = bias {
                        self.rows_backward(gradients, line.out, steps, |_, r| r, &mut sums[bias.index()]);
                    }
                }
                Op::Vector(weight) => {
                    self.rows_backward(gradients, line.out, steps, |_, r| r, &mut sums[weight.index()]);
                }
                Op::Row(weight) => {
                    let sum = &mut sums[weight.index()];
                    let (rows, len) = (line.out.rows, sum.len() / line.out.rows);
                    self.rows_backward(gradients, line.out, steps, |t, r| t % len * rows + r, sum);
                }
                _ => {}
            }
        }
        let starts =
            self.step.states.iter().zip(&self.code.next).map(|(state, place)| (&state.start, *place));
        for (start, place) in starts.chain([(&self.step.previous, self.code.input)]) {
            if let Start::Weight(weight) = start {
                let sum = &mut sums[weight.index()];
                for (r, sum) in sum.iter_mut().enumerate() {
                    *sum += row_sum::<_, L>(&gradients[(place.at + r) * L..]);
                }
            }
        }
    }

    /// Adds the sums of the rows of a place at every step (from 0) to the entries that `entry` names.
    #[inline(always)]
    fn rows_backward(
        &self,
        gradients: &[T],
        place: Place,
        steps: usize,
        entry: impl Fn(usize, usize) -> usize,
        sums: &mut [T],
    ) {
        for step in 0..steps {
            let start = self.start(place, (step + 1) * self.frame());
            for row in 0..place.rows {
                sums[entry(step, row)] += row_sum::<_, L>(&gradients[start + row * L..]);
            }
        }
    }
}
