//! Weights as the engine reads them: done to what is done before use, and matrices in tiles.

use std::sync::OnceLock;

use super::frame::Code;
use super::one_hot::ByToken;
use super::real::Real;
use super::tiled::{Packed, Tiled};
use crate::step::{Norm, Step};

/// All weights, ready for a batch.
#[derive(Debug, Clone)]
pub(super) struct Prepared<T> {
    /// Entries after the norm, weight by weight.
    pub(super) weights: Vec<Vec<T>>,
    /// One for each factor of [`Code`], made when it is used.
    packed: Vec<OnceLock<Packed<T>>>,
    by_token: Vec<OnceLock<ByToken<T>>>,
}

impl<T: Real> Prepared<T> {
    /// The weights of `theta`, weight after weight in the order of the step; fixed ones are not in it.
    pub(super) fn new(step: &Step, code: &Code, theta: &[T]) -> Self {
        let mut at = 0;
        let mut weights = Vec::with_capacity(step.weights.len());
        for weight in &step.weights {
            let entries = match &weight.fixed {
                Some(value) => value.iter().map(|x| T::from_f64(*x)).collect(),
                None => {
                    let entries = theta[at..at + weight.len()].to_vec();
                    at += weight.len();
                    entries
                }
            };
            weights.push(normed(weight.norm, &weight.shape, entries));
        }
        let (packed, by_token) = code.factors.iter().map(|_| (OnceLock::new(), OnceLock::new())).unzip();
        Self { weights, packed, by_token }
    }

    /// A factor in tiles.
    #[inline(always)]
    pub(super) fn packed(&self, code: &Code, factor: usize) -> &Packed<T> {
        self.packed[factor].get_or_init(|| {
            let tiled: &Tiled = &code.factors[factor];
            tiled.pack(&self.weights[tiled.factor.weight.index()])
        })
    }

    /// A factor by token.
    #[inline(always)]
    pub(super) fn by_token(&self, code: &Code, factor: usize) -> &ByToken<T> {
        self.by_token[factor].get_or_init(|| {
            let tiled = &code.factors[factor];
            ByToken::new(tiled, code.input.rows, &self.weights[tiled.factor.weight.index()])
        })
    }
}

/// Rows and columns of the matrices of a stack.
fn matrices(shape: &[usize]) -> (usize, usize) {
    let columns = shape.last().copied().unwrap_or(1);
    (shape.get(shape.len().wrapping_sub(2)).copied().unwrap_or(1), columns)
}

fn normed<T: Real>(norm: Norm, shape: &[usize], mut entries: Vec<T>) -> Vec<T> {
    match norm {
        Norm::None => {}
        Norm::Tanh => entries.iter_mut().for_each(|x| *x = x.tanh()),
        Norm::ColumnSoftmax => {
            let (rows, columns) = matrices(shape);
            for matrix in entries.chunks_exact_mut(rows * columns) {
                for c in 0..columns {
                    let column = (0..rows).map(|r| matrix[r * columns + c]);
                    let greatest = column.fold(T::from_f64(f64::NEG_INFINITY), Real::greater);
                    let mut total = T::ZERO;
                    for r in 0..rows {
                        let e = (matrix[r * columns + c] - greatest).exp();
                        matrix[r * columns + c] = e;
                        total += e;
                    }
                    for r in 0..rows {
                        matrix[r * columns + c] = matrix[r * columns + c] / total;
                    }
                }
            }
        }
    }
    entries
}

/// Turns the gradient of a weight after its norm into that before it, in place.
pub(super) fn norm_backward<T: Real>(norm: Norm, shape: &[usize], after: &[T], gradient: &mut [T]) {
    match norm {
        Norm::None => {}
        Norm::Tanh => {
            for (g, y) in gradient.iter_mut().zip(after) {
                *g = *g * (T::ONE - *y * *y);
            }
        }
        Norm::ColumnSoftmax => {
            let (rows, columns) = matrices(shape);
            for (g, y) in gradient.chunks_exact_mut(rows * columns).zip(after.chunks_exact(rows * columns)) {
                for c in 0..columns {
                    let mut dot = T::ZERO;
                    for r in 0..rows {
                        dot += g[r * columns + c] * y[r * columns + c];
                    }
                    for r in 0..rows {
                        let at = r * columns + c;
                        g[at] = y[at] * (g[at] - dot);
                    }
                }
            }
        }
    }
}
