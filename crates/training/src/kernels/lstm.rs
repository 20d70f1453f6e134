//! One time step of a long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al.
//! 2000), from the sums of its gates to its output.
//!
//! Gates stand in the order input, forget, candidate, output, `width` entries each. Rows are independent.

use rayon::prelude::*;

use super::math::exp_lane;
use super::multiversion;

/// Rows of one task: a step is short, and its rows depend on nothing but themselves.
const ROWS: usize = 16;

/// What one step keeps and gives; all but the gates are [rows, width].
#[derive(Debug)]
pub struct LstmStep<'a> {
    /// [rows, 4·width]; sums before, activations after.
    pub gates: &'a mut [f32],
    /// The cell after the step.
    pub cell: &'a mut [f32],
    /// tanh of the cell.
    pub squashed: &'a mut [f32],
    /// The output.
    pub output: &'a mut [f32],
}

/// What the way back reads of a step; shapes as in [`LstmStep`].
#[derive(Debug, Clone, Copy)]
pub struct LstmSaved<'a> {
    /// The activations of the gates.
    pub gates: &'a [f32],
    /// tanh of the cell.
    pub squashed: &'a [f32],
    /// The cell before the step; empty at the first one, where it is 0.
    pub before: &'a [f32],
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp_lane(-x))
}

/// tanh x = 1 − 2/(e^(2x) + 1): saturates correctly at both ends; below ¼ its Taylor series, so that no digits are
/// lost at small x (the first term left out is 9·10⁻⁹ of x). Inlined, so that a loop over it is vectorised.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let far = 1.0 - 2.0 / (exp_lane(2.0 * x) + 1.0);
    let s = x * x;
    let p = 62.0 / 2835.0_f32;
    let p = p.mul_add(s, -17.0 / 315.0);
    let p = p.mul_add(s, 2.0 / 15.0);
    let p = p.mul_add(s, -1.0 / 3.0);
    let near = (p * s).mul_add(x, x);
    if x.abs() < 0.25 { near } else { far }
}

multiversion! {
    fn step_row(gates: &mut [f32], before: &[f32], cell: &mut [f32], squashed: &mut [f32], output: &mut [f32]) {
        let width = cell.len();
        let (input, rest) = gates.split_at_mut(width);
        let (forget, rest) = rest.split_at_mut(width);
        let (candidate, out) = rest.split_at_mut(width);
        for v in input.iter_mut().chain(forget.iter_mut()).chain(out.iter_mut()) {
            *v = sigmoid(*v);
        }
        for v in candidate.iter_mut() {
            *v = tanh(*v);
        }
        for ((c, i), g) in cell.iter_mut().zip(&*input).zip(&*candidate) {
            *c = i * g;
        }
        for ((c, f), b) in cell.iter_mut().zip(&*forget).zip(before) {
            *c = f.mul_add(*b, *c);
        }
        for (((s, h), c), o) in squashed.iter_mut().zip(output).zip(&*cell).zip(&*out) {
            *s = tanh(*c);
            *h = o * *s;
        }
    }
}

multiversion! {
    fn back_row(gates: &[f32], squashed: &[f32], before: &[f32], dh: &[f32], dcell: &mut [f32], dgates: &mut [f32]) {
        let width = dcell.len();
        let part = |n: usize| gates.get(n * width..(n + 1) * width).unwrap_or_default();
        let (input, forget, candidate, out) = (part(0), part(1), part(2), part(3));
        let (di, rest) = dgates.split_at_mut(width);
        let (df, rest) = rest.split_at_mut(width);
        let (dg, d_out) = rest.split_at_mut(width);
        for ((((dc, d_o), dh), s), o) in dcell.iter_mut().zip(d_out).zip(dh).zip(squashed).zip(out) {
            *d_o = dh * s * o * (1.0 - o);
            *dc = (dh * o).mul_add(1.0 - s * s, *dc);
        }
        for ((((dc, di), dg), i), g) in dcell.iter().zip(di).zip(dg).zip(input).zip(candidate) {
            *di = dc * g * i * (1.0 - i);
            *dg = dc * i * (1.0 - g * g);
        }
        df.fill(0.0);
        for (((dc, df), f), b) in dcell.iter().zip(df).zip(forget).zip(before) {
            *df = dc * b * f * (1.0 - f);
        }
        for (dc, f) in dcell.iter_mut().zip(forget) {
            *dc *= f;
        }
    }
}

/// One step of `width` cells: c ← f·`before` + i·g and h ← o·tanh c. `before` is [rows, width], or empty for 0.
pub fn lstm_step(step: LstmStep<'_>, before: &[f32], width: usize) {
    let width = width.max(1);
    let chunk = ROWS * width;
    let LstmStep { gates, cell, squashed, output } = step;
    gates
        .par_chunks_mut(4 * chunk)
        .zip(cell.par_chunks_mut(chunk))
        .zip(squashed.par_chunks_mut(chunk))
        .zip(output.par_chunks_mut(chunk))
        .enumerate()
        .for_each(|(n, (((gates, cell), squashed), output))| {
            let mut before = before.get(n * chunk..).unwrap_or_default().chunks(width);
            let rows = gates.chunks_exact_mut(4 * width).zip(cell.chunks_exact_mut(width));
            let kept = squashed.chunks_exact_mut(width).zip(output.chunks_exact_mut(width));
            for ((gates, cell), (squashed, output)) in rows.zip(kept) {
                step_row(gates, before.next().unwrap_or_default(), cell, squashed, output);
            }
        });
}

/// The way back through one step: from the output's gradient `dh` and that of the cell after it, in `dcell`, to that
/// of the gates' sums; `dcell` becomes the gradient of the cell before.
pub fn lstm_step_backward(
    saved: LstmSaved<'_>,
    dh: &[f32],
    dcell: &mut [f32],
    dgates: &mut [f32],
    width: usize,
) {
    let width = width.max(1);
    let chunk = ROWS * width;
    dgates
        .par_chunks_mut(4 * chunk)
        .zip(dcell.par_chunks_mut(chunk))
        .zip(saved.gates.par_chunks(4 * chunk))
        .zip(saved.squashed.par_chunks(chunk))
        .zip(dh.par_chunks(chunk))
        .enumerate()
        .for_each(|(n, ((((dgates, dcell), gates), squashed), dh))| {
            let mut before = saved.before.get(n * chunk..).unwrap_or_default().chunks(width);
            let to = dgates.chunks_exact_mut(4 * width).zip(dcell.chunks_exact_mut(width));
            let from =
                gates.chunks_exact(4 * width).zip(squashed.chunks_exact(width)).zip(dh.chunks_exact(width));
            for ((dgates, dcell), ((gates, squashed), dh)) in to.zip(from) {
                back_row(gates, squashed, before.next().unwrap_or_default(), dh, dcell, dgates);
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_agree_with_f64() {
        for i in -4000..=4000 {
            let x = i as f32 * 0.005;
            let (wide, s) = (f64::from(x), f64::from(sigmoid(x)));
            assert!((f64::from(tanh(x)) - wide.tanh()).abs() <= 4e-7 * wide.tanh().abs() + 1e-30, "tanh {x}");
            assert!((s * (1.0 + (-wide).exp()) - 1.0).abs() < 1e-6, "sigmoid {x}");
        }
        assert!(tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
        assert_eq!((tanh(200.0), tanh(-200.0), sigmoid(200.0)), (1.0, -1.0, 1.0));
        assert!((0.0..1e-30).contains(&sigmoid(-200.0)));
    }
}
