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
/// So many multiply-adds of one product are.
const LARGE: usize = 1 << 21;
/// So many rows at least, and at most, are one task of a large product: each packs the right factor for itself.
const ROWS: (usize, usize) = (64, 512);
/// A product of no more elements than this has its sums cut, if they are long.
const NARROW: usize = 1 << 14;
/// So long is each part of a sum, and so many there are at most.
const LONG: usize = 1 << 11;
const PARTS: usize = 32;
/// So few are done in plain loops: the kernel's preparations would cost more.
const SMALL: usize = 1 << 9;

impl Matrices {
    fn at<'a, T>(&self, values: &'a [T], offset: usize, rows: usize, columns: usize) -> Mat<'a, T> {
        let values = &values[self.offset + offset..];
        match (self.row, self.column) {
            (row, 1) => Mat::strided(values, rows, columns, row),
            (_, column) if rows == 1 => Mat::strided(values, columns, 1, column).t(),
            (row, _) if columns == 1 => Mat::strided(values, rows, 1, row),
            (_, column) => Mat::strided(values, columns, rows, column).t(),
        }
    }
}

fn own<T: Number>(buffer: &Buffer) -> Cow<'_, [T]> {
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

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        visit(&mut self.a.array, Some(&mut self.a.offset));
        visit(&mut self.b.array, Some(&mut self.b.offset));
    }

    fn is_even(&self) -> bool {
        true
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
        let offsets = |at: usize| {
            let (mut rest, mut a, mut b) = (at, 0, 0);
            for (place, size) in self.batch.iter().enumerate().rev() {
                a += rest % size * self.a.batch[place];
                b += rest % size * self.b.batch[place];
                rest /= size;
            }
            (a, b)
        };
        let stopped = pool.stopped();
        let one = |at: usize, out: &mut [T]| {
            if stopped() {
                return;
            }
            let (a, b) = offsets(at);
            if m * k * n <= SMALL {
                self.plain(&x[self.a.offset + a..], &y[self.b.offset + b..], out);
            } else {
                let (a, b) = (self.a.at(&x, a, m, k), self.b.at(&y, b, k, n));
                product(MatMut::new(out, m, n), false, T::of(self.scale), a, b, false);
                if self.scale < 0.0 {
                    // Nothing times a number below 0 is still nothing.
                    out.iter_mut().for_each(|value| *value += T::ZERO);
                }
            }
        };
        let work = m * k * n;
        // Which of these it is depends on the shape alone: another cut has other bits.
        if work < LARGE || (count >= 8 && work < LARGE * 64) {
            if count > 1 && count * work >= PARALLEL && rayon::current_num_threads() > 1 {
                let least = (PARALLEL / 4 / work).max(1);
                let each = result.par_chunks_exact_mut(m * n).with_min_len(least).enumerate();
                each.for_each(|(at, out)| one(at, out));
            } else {
                result.chunks_exact_mut(m * n).enumerate().for_each(|(at, out)| one(at, out));
            }
        } else {
            let matrices = result.chunks_exact_mut(m * n).enumerate();
            matrices.for_each(|(at, out)| self.large(offsets(at), (&x, &y), out, pool));
        }
        T::buffer(result)
    }
}

impl Product {
    /// One product by several threads, cut by its shape alone: into rows, or, if it is narrow, into parts of its sums.
    fn large<T: Number>(&self, (a, b): (usize, usize), (x, y): (&[T], &[T]), out: &mut [T], pool: &Pool) {
        let (m, k, n) = (self.m, self.k, self.n);
        let stopped = pool.stopped();
        let threads = rayon::current_num_threads();
        let part =
            |(from, rows): (usize, usize), (first, len): (usize, usize), out: &mut [T], tasks: usize| {
                if stopped() {
                    return;
                }
                let a = self.a.at(x, a + from * self.a.row + first * self.a.column, rows, len);
                let b = self.b.at(y, b + first * self.b.row, len, n);
                product(MatMut::new(out, rows, n), false, T::of(self.scale), a, b, tasks < threads);
                if self.scale < 0.0 {
                    // Nothing times a number below 0 is still nothing.
                    out.iter_mut().for_each(|value| *value += T::ZERO);
                }
            };
        if m * n <= NARROW && k >= 2 * LONG {
            let len = k.div_ceil((k / LONG).min(PARTS));
            let parts = k.div_ceil(len);
            let mut partial = pool.take::<T>((parts - 1) * m * n);
            let pieces = std::iter::once(&mut *out).chain(partial.chunks_exact_mut(m * n)).enumerate();
            let pieces: Vec<(usize, &mut [T])> = pieces.collect();
            pieces.into_par_iter().for_each(|(at, out)| {
                part((0, m), (at * len, len.min(k - at * len)), out, parts);
            });
            for other in partial.chunks_exact(m * n) {
                out.iter_mut().zip(other).for_each(|(slot, value)| *slot += *value);
            }
            return pool.give(partial);
        }
        let rows = m.div_ceil(2).next_multiple_of(16).clamp(ROWS.0, ROWS.1);
        let tasks = m.div_ceil(rows);
        out.par_chunks_mut(rows * n).enumerate().for_each(|(at, out)| {
            part((at * rows, out.len() / n), (0, k), out, tasks);
        });
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
