//! Layer normalisation in two passes: y = (x − mean)/√(variance + ε) · weight + bias.

use rayon::prelude::*;

use super::math::sum_lanes;
use super::{ROW_BLOCK, add_into, multiversion};

/// ε of every norm.
pub(crate) const EPSILON: f32 = 1e-5;

/// The parameters of a norm over rows of `weight.len()` entries.
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm<'a> {
    /// \[width\]
    pub weight: &'a [f32],
    /// \[width\]
    pub bias: &'a [f32],
}

multiversion! {
    /// Normalises rows in place to x̂ and writes y; `deviation` receives 1/√(variance + ε) for each row.
    fn forward_block(x: &mut [f32], y: &mut [f32], inverse: &mut [f32], weight: &[f32], bias: &[f32]) {
        let width = weight.len().max(1);
        let scale = 1.0 / width as f32;
        for ((x, y), inverse) in x.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)).zip(inverse) {
            let mean = sum_lanes(x, x, |a, _| a) * scale;
            for v in x.iter_mut() {
                *v -= mean;
            }
            // The second pass sums deviations, so a large mean costs no digits.
            let variance = sum_lanes(x, x, |a, b| a * b) * scale;
            *inverse = 1.0 / (variance + EPSILON).sqrt();
            for (((x, y), w), b) in x.iter_mut().zip(y).zip(weight).zip(bias) {
                *x *= *inverse;
                *y = x.mul_add(*w, *b);
            }
        }
    }
}

multiversion! {
    /// dx from dy in place, and the sums for the weight and the bias of this block of rows.
    fn backward_block(
        dy: &mut [f32], normal: &[f32], inverse: &[f32], weight: &[f32], dweight: &mut [f32], dbias: &mut [f32],
    ) {
        let width = weight.len().max(1);
        let scale = 1.0 / width as f32;
        for ((dy, n), &inverse) in dy.chunks_exact_mut(width).zip(normal.chunks_exact(width)).zip(inverse) {
            for (((g, n), dw), db) in dy.iter().zip(n).zip(dweight.iter_mut()).zip(dbias.iter_mut()) {
                *dw = g.mul_add(*n, *dw);
                *db += g;
            }
            for (g, w) in dy.iter_mut().zip(weight) {
                *g *= w;
            }
            let mean = sum_lanes(dy, dy, |a, _| a) * scale;
            let along = sum_lanes(dy, n, |a, b| a * b) * scale;
            for (g, n) in dy.iter_mut().zip(n) {
                *g = (*g - n.mul_add(along, mean)) * inverse;
            }
        }
    }
}

/// y ← the norm of x. Shapes: x and y [rows, width], inverse \[rows\]. `x` becomes x̂, the normalised input, which
/// [`layer_norm_backward`] wants back.
pub fn layer_norm(norm: LayerNorm<'_>, x: &mut [f32], y: &mut [f32], inverse: &mut [f32]) {
    let chunk = (ROW_BLOCK * norm.weight.len()).max(1);
    x.par_chunks_mut(chunk)
        .zip(y.par_chunks_mut(chunk))
        .zip(inverse.par_chunks_mut(ROW_BLOCK))
        .for_each(|((x, y), inverse)| forward_block(x, y, inverse, norm.weight, norm.bias));
}

/// dy becomes dx; dweight and dbias are added to. Shapes as in [`layer_norm`].
pub fn layer_norm_backward(
    weight: &[f32],
    dy: &mut [f32],
    normal: &[f32],
    inverse: &[f32],
    dweight: &mut [f32],
    dbias: &mut [f32],
) {
    let width = weight.len().max(1);
    let chunk = ROW_BLOCK * width;
    let partial: Vec<(Vec<f32>, Vec<f32>)> = dy
        .par_chunks_mut(chunk)
        .zip(normal.par_chunks(chunk))
        .zip(inverse.par_chunks(ROW_BLOCK))
        .map(|((dy, normal), inverse)| {
            let (mut dw, mut db) = (vec![0.0; width], vec![0.0; width]);
            backward_block(dy, normal, inverse, weight, &mut dw, &mut db);
            (dw, db)
        })
        .collect();
    for (dw, db) in &partial {
        add_into(dweight, dw);
        add_into(dbias, db);
    }
}
