//! A linear layer y = x·Wᵀ + b with W of shape [out, in], and its three gradients.

use rayon::prelude::*;

use super::half::product_half;
use super::{Mat, MatMut, ROW_BLOCK, add_columns, multiversion, product};

multiversion! {
    fn fill_rows(y: &mut [f32], bias: &[f32]) {
        for row in y.chunks_exact_mut(bias.len().max(1)) {
            row.copy_from_slice(bias);
        }
    }
}

/// What the products of a layer are made of. All else, sums of products included, is f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// f32
    #[default]
    Single,
    /// Numbers that are rounded to bf16 first.
    Half,
}

impl Precision {
    fn product(self, out: MatMut<'_>, accumulate: bool, a: Mat<'_>, b: Mat<'_>) {
        match self {
            Self::Single => product(out, accumulate, 1.0, a, b, true),
            Self::Half => product_half(out, accumulate, a, b, true),
        }
    }

    /// As [`linear`].
    pub fn linear(self, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32], rows: usize) {
        let out = bias.len();
        let inner = weight.len() / out.max(1);
        y.par_chunks_mut((ROW_BLOCK * out).max(1)).for_each(|y| fill_rows(y, bias));
        let (x, weight) = (Mat::new(x, rows, inner), Mat::new(weight, out, inner));
        self.product(MatMut::new(y, rows, out), true, x, weight.t());
    }

    /// As [`linear_backward_input`].
    pub fn linear_backward_input(
        self,
        dy: &[f32],
        weight: &[f32],
        dx: &mut [f32],
        rows: usize,
        accumulate: bool,
    ) {
        let inner = dx.len() / rows.max(1);
        let out = weight.len() / inner.max(1);
        let (dy, weight) = (Mat::new(dy, rows, out), Mat::new(weight, out, inner));
        self.product(MatMut::new(dx, rows, inner), accumulate, dy, weight);
    }

    /// As [`linear_backward_weights`].
    pub fn linear_backward_weights(
        self,
        dy: &[f32],
        x: &[f32],
        dweight: &mut [f32],
        dbias: &mut [f32],
        rows: usize,
    ) {
        let out = dbias.len();
        let inner = dweight.len() / out.max(1);
        let (dy_rows, x) = (Mat::new(dy, rows, out), Mat::new(x, rows, inner));
        self.product(MatMut::new(dweight, out, inner), true, dy_rows.t(), x);
        add_columns(dy, dbias);
    }
}

/// y ← x·Wᵀ + b. Shapes: x [rows, in], weight [out, in], bias \[out\], y [rows, out].
pub fn linear(x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32], rows: usize) {
    Precision::Single.linear(x, weight, bias, y, rows);
}

/// dx ← dy·W, or dx ← dx + dy·W. Shapes as in [`linear`].
pub fn linear_backward_input(dy: &[f32], weight: &[f32], dx: &mut [f32], rows: usize, accumulate: bool) {
    Precision::Single.linear_backward_input(dy, weight, dx, rows, accumulate);
}

/// dW ← dW + dyᵀ·x and db ← db + Σ dy. Shapes as in [`linear`].
pub fn linear_backward_weights(dy: &[f32], x: &[f32], dweight: &mut [f32], dbias: &mut [f32], rows: usize) {
    Precision::Single.linear_backward_weights(dy, x, dweight, dbias, rows);
}
