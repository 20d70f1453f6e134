//! Matrices in tiles of rows, as the engine multiplies with them.

use super::lanes::TILE;
use super::real::Real;
use crate::step::{Factor, Step, View};

/// A matrix in tiles of rows, and its transpose likewise.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed<T> {
    /// For W x.
    pub(super) forward: Vec<T>,
    /// For Wᵀ y.
    pub(super) backward: Vec<T>,
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

    pub(super) fn pack<T: Real>(&self, weight: &[T]) -> Packed<T> {
        let gather =
            |places: &[Option<usize>]| places.iter().map(|at| at.map_or(T::ZERO, |at| weight[at])).collect();
        Packed { forward: gather(&self.forward), backward: gather(&self.backward) }
    }
}
