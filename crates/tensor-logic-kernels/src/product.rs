//! Products of matrices, on the kernels of the crate `training`.

use std::borrow::Cow;

use rayon::prelude::*;
use training::kernels::{Mat, MatMut, product};

use super::array::{Array, Typed};
use super::number::{Buffer, Number, Pool, volume};
use super::space::buffers;

/// Matrices in an array: steps from one to the next along each dimension of the batch, from row to
/// row and from column to column. One of the last two is 1.
#[derive(Debug, Clone)]
pub struct Matrices {
    /// What holds them.
    pub array: Array,
    /// Where the first entry of the first matrix lies.
    pub offset: usize,
    /// The step along each dimension of the batch.
    pub batch: Vec<usize>,
    /// The step from row to row.
    pub row: usize,
    /// The step from column to column.
    pub column: usize,
}

/// For every position of the batch `scale` times the product of an m × k and a k × n matrix.
#[derive(Debug, Clone)]
pub struct Product {
    /// The size of each dimension of the batch.
    pub batch: Vec<usize>,
    /// Rows of the result.
    pub m: usize,
    /// What is summed over.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// The left factors, m × k each.
    pub a: Matrices,
    /// The right factors, k × n each.
    pub b: Matrices,
    /// What every product is multiplied by.
    pub scale: f64,
}

/// So many multiply-adds are shared among threads.
const PARALLEL: usize = 1 << 20;
/// So few are done in plain loops: the kernel's preparations would cost more.
const SMALL: usize = 1 << 9;

impl Matrices {
    pub(super) fn at<'a, T>(
        &self,
        values: &'a [T],
        offset: usize,
        rows: usize,
        columns: usize,
    ) -> Mat<'a, T> {
        let values = &values[self.offset + offset..];
        match (self.row, self.column) {
            (row, 1) => Mat::strided(values, rows, columns, row),
            (_, column) if rows == 1 => Mat::strided(values, columns, 1, column).t(),
            (row, _) if columns == 1 => Mat::strided(values, rows, 1, row),
            (_, column) => Mat::strided(values, columns, rows, column).t(),
        }
    }
}

/// The numbers of a buffer in the type that is computed with.
pub(super) fn own<T: Number>(buffer: &Buffer) -> Cow<'_, [T]> {
    match T::slice(buffer) {
        Some(values) => Cow::Borrowed(values),
        None => Cow::Owned(buffer.numbers()),
    }
}

impl Typed for Product {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        visit(&self.a.array);
        visit(&self.b.array);
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let buffers = buffers([&self.a.array, &self.b.array].into_iter());
        let (x, y) = (own::<T>(&buffers[0]), own::<T>(&buffers[1]));
        let (m, k, n) = (self.m, self.k, self.n);
        let count = volume(&self.batch);
        let mut result = pool.take::<T>(count * m * n);
        if m * n == 0 || k == 0 {
            result.fill(T::ZERO);
            return T::buffer(result);
        }
        let stopped = pool.stopped();
        let one = |at: usize, out: &mut [T], parallel: bool| {
            if stopped() {
                return;
            }
            let (a, b) = self.offsets(at);
            if m * k * n <= SMALL {
                self.plain(&x[self.a.offset + a..], &y[self.b.offset + b..], out);
            } else {
                let (a, b) = (self.a.at(&x, a, m, k), self.b.at(&y, b, k, n));
                product(MatMut::new(out, m, n), false, T::of(self.scale), a, b, parallel);
                if self.scale < 0.0 {
                    // Nothing times a number below 0 is still nothing.
                    out.iter_mut().for_each(|value| *value += T::ZERO);
                }
            }
        };
        let work = m * k * n;
        let threads = rayon::current_num_threads();
        if threads > 1 && count > 1 && count * work >= PARALLEL && (count >= 8 || work < PARALLEL) {
            let least = (PARALLEL / 4 / work).max(1);
            let each = result.par_chunks_exact_mut(m * n).with_min_len(least).enumerate();
            each.for_each(|(at, out)| one(at, out, false));
        } else {
            result.chunks_exact_mut(m * n).enumerate().for_each(|(at, out)| one(at, out, work >= PARALLEL));
        }
        T::buffer(result)
    }
}

impl Product {
    /// How far the factors at a position of the batch lie from the first ones.
    pub(super) fn offsets(&self, at: usize) -> (usize, usize) {
        let (mut rest, mut a, mut b) = (at, 0, 0);
        for (place, size) in self.batch.iter().enumerate().rev() {
            a += rest % size * self.a.batch[place];
            b += rest % size * self.b.batch[place];
            rest /= size;
        }
        (a, b)
    }

    fn plain<T: Number>(&self, x: &[T], y: &[T], out: &mut [T]) {
        let scale = T::of(self.scale);
        for (i, out) in out.chunks_exact_mut(self.n).enumerate() {
            out.fill(T::ZERO);
            for l in 0..self.k {
                let a = scale * x[i * self.a.row + l * self.a.column];
                let row = &y[l * self.b.row..];
                for (j, slot) in out.iter_mut().enumerate() {
                    *slot += a * row[j * self.b.column];
                }
            }
        }
    }
}
