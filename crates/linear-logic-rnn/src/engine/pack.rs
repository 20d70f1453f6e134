//! Weights as the engine reads them: done to what is done before use, and matrices in tiles.

use super::frame::Code;
use super::lanes::TILE;
use super::real::Real;
use crate::step::{Factor, Norm, Step, View};

/// A matrix in tiles of rows, and its transpose likewise.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed<T> {
    /// For W x.
    pub(super) forward: Vec<T>,
    /// For Wᵀ y.
    pub(super) backward: Vec<T>,
}

/// All weights, ready for a batch.
#[derive(Debug, Clone)]
pub(super) struct Prepared<T> {
    /// Entries after the norm, weight by weight.
    pub(super) weights: Vec<Vec<T>>,
    /// One for each factor of [`Code`].
    pub(super) packed: Vec<Packed<T>>,
}

/// A matrix that the step uses, with the places of its entries in its weight.
#[derive(Debug, Clone)]
pub(super) struct Tiled {
    /// Which.
    pub(super) factor: Factor,
    /// Columns.
    pub(super) columns: usize,
    /// Row by row.
    pub(super) entries: Vec<usize>,
    /// In tiles; `None` fills up the last.
    forward: Vec<Option<usize>>,
    /// The transpose in tiles.
    backward: Vec<Option<usize>>,
}

impl Tiled {
    pub(super) fn new(step: &Step, factor: Factor) -> Self {
        let (rows, columns) = step.shape_of(factor);
        let last = step.weights[factor.weight.index()].shape.last().copied().unwrap_or(1);
        let entry = |row: usize, column: usize| match factor.view {
            View::Plain => row * columns + column,
            View::Transposed => column * rows + row,
            View::Stacked => (column / last * rows + row) * last + column % last,
        };
        let tiles = |rows: usize, columns: usize, get: &dyn Fn(usize, usize) -> usize| {
            let mut packed = vec![None; rows.div_ceil(TILE) * TILE * columns];
            for row in 0..rows {
                for column in 0..columns {
                    packed[row / TILE * TILE * columns + column * TILE + row % TILE] = Some(get(row, column));
                }
            }
            packed
        };
        Self {
            factor,
            columns,
            entries: (0..rows).flat_map(|r| (0..columns).map(move |c| entry(r, c))).collect(),
            forward: tiles(rows, columns, &entry),
            backward: tiles(columns, rows, &|c, r| entry(r, c)),
        }
    }

    fn pack<T: Real>(&self, weight: &[T]) -> Packed<T> {
        let gather =
            |places: &[Option<usize>]| places.iter().map(|at| at.map_or(T::ZERO, |at| weight[at])).collect();
        Packed { forward: gather(&self.forward), backward: gather(&self.backward) }
    }
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
        let pack = |tiled: &Tiled| tiled.pack(&weights[tiled.factor.weight.index()]);
        let packed = code.factors.iter().map(pack).collect();
        Self { weights, packed }
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
