//! Products of matrices, on the kernels of the crate `training`.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use training::kernels::{Mat, MatMut, instruction_set, product, vectorised};

use super::array::{Along, Array, Typed, Ways};
use super::code::Unsigned;
use super::number::{Buffer, Number, Pool, volume};
use super::space::{Run, Scratch, TILE, buffers};
use super::threads::shared;
use super::tiles::{self, Right, SUMS, Stands, TALL, packed_len};

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
/// So many multiply-adds of one product are cut into tasks of rows, of so many at least and at most, which pack the right
/// factor each for itself; a batch of products smaller than the last number is shared out whole.
const LARGE: usize = 1 << 21;
const ROWS: (usize, usize) = (64, 512);
const MATRIX: usize = 1 << 27;
/// So few are done in plain loops: the kernel's preparations would cost more.
const SMALL: usize = 1 << 9;
/// What is summed over is cut into parts of at least this length, at most so many, where all their results together
/// are no larger than this: a product of long sides that makes little has too few rows to be shared out. (64 × 100,000
/// × 64 takes 7 ms of two threads instead of 18, 200 × 40,000 × 32 takes 3.1 instead of 4.5.)
const PART: usize = 256;
const PARTS: usize = 32;
const PARTIAL: usize = 1 << 20;
/// Products of so few columns, whose right factor takes so few entries when it is packed, are done by tiles.
const WIDEST: usize = 64;
const PACKED: usize = 1 << 11;
/// Right factors up to so many entries stay in the cache while strips of rows with so many results go by.
const HELD: usize = 1 << 16;
const STRIP: usize = 1 << 16;
const LEAST: usize = 256;
/// Products of so many rows and columns at most are done without packing where they are long sums.
const MOST: usize = 16;
/// So many entries of the left factor are one task of tiles.
const TASK: usize = 1 << 15;

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

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        visit(&mut self.a.array, Some(&mut self.a.offset));
        visit(&mut self.b.array, Some(&mut self.b.offset));
    }

    fn is_even(&self) -> bool {
        true
    }

    fn unsigned_zeros(&self) -> bool {
        true
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let mut result = pool.take::<T>(volume(&self.batch) * self.m * self.n);
        self.multiply(&mut result, pool);
        T::buffer(result)
    }

    fn run_into<T: Number>(&self, to: &mut [T], _: Option<&Ways>, pool: &Pool) -> bool {
        self.multiply(to, pool);
        true
    }

    fn is_free(&self) -> bool {
        true
    }

    fn run_on<T: Number>(&self, from: &[&[T]], to: &mut [T], _: Option<&Ways>, _: bool, pool: &Pool) {
        match from {
            [x, y] => self.multiply_on(x, (y, None), to, pool),
            [x, y, packed] => self.multiply_on(x, (y, Some(packed)), to, pool),
            _ => {}
        }
    }

    fn cut(&self, lanes: usize, to: usize) -> Option<(Product, Vec<Along>)> {
        let outermost = self.batch.iter().position(|size| *size != 1);
        let (size, a, b) = match outermost {
            Some(at) => (self.batch[at], self.a.batch[at], self.b.batch[at]),
            None => (self.m, self.a.row, 0),
        };
        let each = size.checked_div(lanes).filter(|each| each * lanes == size)?;
        let parts = |count: usize| {
            let mut own = self.clone();
            *outermost.map_or(&mut own.m, |at| &mut own.batch[at]) = each * count;
            own
        };
        let (one, own) = (parts(1), parts(to));
        let along = |factor: &Matrices, step: usize, rows: usize, columns: usize| {
            let far = |size: usize, step: usize| size.saturating_sub(1) * step;
            let batch = one.batch.iter().zip(&factor.batch).map(|(size, step)| far(*size, *step));
            let reach = batch.sum::<usize>() + far(rows, factor.row) + far(columns, factor.column);
            Along { step: each * step, reach }
        };
        let along = vec![along(&self.a, a, one.m, one.k), along(&self.b, b, one.k, one.n)];
        (self.chains().is_some() && self.chains() == own.chains()).then_some((own, along))
    }

    fn ordered<T: Number>(&self) -> Option<usize> {
        let matrices = if self.right_is_one() { 1 } else { volume(&self.batch) };
        let some = !self.batch.contains(&0) && self.n > 0;
        (some && self.is_thin(self.m, self.k)).then(|| matrices * packed_len::<T>(self.k, self.n))
    }

    fn order<T: Number>(&self, from: &[&[T]], to: &mut [T]) {
        let [_, y] = from else { return };
        for (at, to) in to.chunks_exact_mut(packed_len::<T>(self.k, self.n)).enumerate() {
            let y = &y[self.b.offset + self.offsets(at).1..];
            tiles::pack(y, (self.b.row, self.b.column), (self.k, self.n), to);
        }
    }
}

impl Product {
    fn multiply<T: Number>(&self, result: &mut [T], pool: &Pool) {
        let buffers = buffers([&self.a.array, &self.b.array].into_iter());
        let (x, y) = (own::<T>(&buffers[0]), own::<T>(&buffers[1]));
        self.multiply_on(&x, (&y, None), result, pool);
    }

    /// Whether all of the batch are multiplied by the same right factor.
    fn right_is_one(&self) -> bool {
        self.batch.iter().zip(&self.b.batch).all(|(size, step)| *size == 1 || *step == 0)
    }

    fn multiply_on<T: Number>(
        &self,
        x: &[T],
        (y, packed): (&[T], Option<&[T]>),
        result: &mut [T],
        pool: &Pool,
    ) {
        let (m, k, n) = (self.m, self.k, self.n);
        let count = volume(&self.batch);
        if m * n == 0 || k == 0 {
            return result.fill(T::ZERO);
        }
        let stopped = pool.stopped_within((count * m * n).saturating_mul(k));
        // Some rows, and some of what is summed over.
        let piece = |at: usize, rows: Range<usize>, sum: Range<usize>, out: &mut [T], parallel: bool| {
            if stopped() {
                return;
            }
            let (a, b) = self.offsets(at);
            let (a, b) =
                (a + rows.start * self.a.row + sum.start * self.a.column, b + sum.start * self.b.row);
            let (rows, sum) = (rows.len(), sum.len());
            let of = |packed: &'_ [T]| -> Range<usize> {
                let one = packed_len::<T>(k, n);
                let at = if packed.len() == one { 0 } else { at };
                at * one..(at + 1) * one
            };
            let (left, right) = (&x[self.a.offset + a..], &y[self.b.offset + b..]);
            if rows * sum * n <= SMALL {
                self.plain(left, right, (rows, sum), out);
            } else if let (true, Some(packed)) = (self.is_thin(rows, sum) && sum == k, packed) {
                self.by_tiles(Right::Packed(&packed[of(packed)]), left, (rows, sum), out);
            } else if self.is_thin(rows, sum) {
                self.thin(left, right, (rows, sum), out);
            } else if self.is_long(rows, sum) {
                let (a, b) = ((left, self.a.column), (right, self.b.row));
                tiles::Long { a, b, sizes: (rows, sum, n), scale: T::of(self.scale), out }.multiply();
            } else {
                let (a, b) = (self.a.at(x, a, rows, sum), self.b.at(y, b, sum, n));
                product(MatMut::new(out, rows, n), false, T::of(self.scale), a, b, parallel);
                // Nothing times a number below 0 is still nothing, and so is what is too small for a number.
                match parallel {
                    true => out.par_chunks_mut(STRIP).for_each(|part| vectorised(Unsigned(part))),
                    false => vectorised(Unsigned(out)),
                }
            }
        };
        let work = m * k * n;
        let threads = rayon::current_num_threads();
        let parts = self.parts();
        if parts > 1 {
            let step = k.div_ceil(parts);
            let mut sums = pool.take::<T>(count * parts * m * n);
            let one = |(nth, out): (usize, &mut [T])| {
                let from = nth % parts * step;
                piece(nth / parts, 0..m, from..k.min(from + step), out, false);
            };
            if threads > 1 {
                sums.par_chunks_exact_mut(m * n).enumerate().for_each(one);
            } else {
                sums.chunks_exact_mut(m * n).enumerate().for_each(one);
            }
            // In order, whoever made them.
            for (out, parts) in result.chunks_exact_mut(m * n).zip(sums.chunks_exact(parts * m * n)) {
                let (first, others) = parts.split_at(m * n);
                out.copy_from_slice(first);
                for part in others.chunks_exact(m * n) {
                    out.iter_mut().zip(part).for_each(|(slot, value)| *slot += *value);
                }
            }
            pool.give(sums);
        } else if work >= LARGE && !(count >= 8 && work < MATRIX) {
            let rows = self.rows();
            let parallel = m.div_ceil(rows) < threads;
            for (at, out) in result.chunks_exact_mut(m * n).enumerate() {
                let one = |(nth, out): (usize, &mut [T])| {
                    piece(at, nth * rows..nth * rows + out.len() / n, 0..k, out, parallel);
                };
                if threads > 1 {
                    out.par_chunks_mut(rows * n).enumerate().for_each(one);
                } else {
                    out.chunks_mut(rows * n).enumerate().for_each(one);
                }
            }
        } else if threads > 1 && count > 1 && count * work >= PARALLEL {
            let least = (PARALLEL / 4 / work).max(1);
            let each = result.par_chunks_exact_mut(m * n).with_min_len(least).enumerate();
            each.for_each(|(at, out)| piece(at, 0..m, 0..k, out, false));
        } else if let Some(rows) = self.tiles() {
            for (at, out) in result.chunks_exact_mut(m * n).enumerate() {
                let one = |(nth, out): (usize, &mut [T])| {
                    piece(at, nth * rows..nth * rows + out.len() / n, 0..k, out, false);
                };
                out.par_chunks_mut(rows * n).enumerate().for_each(one);
            }
        } else {
            let each = result.chunks_exact_mut(m * n).enumerate();
            each.for_each(|(at, out)| piece(at, 0..m, 0..k, out, false));
        }
    }

    /// Whether its entries are what the general kernel makes of one run through what is summed over, or come of plain loops, where
    /// it does not matter how many rows there are.
    fn chains(&self) -> Option<bool> {
        let small = self.m * self.k * self.n <= SMALL;
        (self.parts() == 1 && self.k <= *SUMS.end()).then_some(!small)
    }

    /// In how many parts it is summed, by its sizes alone.
    fn parts(&self) -> usize {
        let (m, k, n) = (self.m, self.k, self.n);
        let results = volume(&self.batch) * m * n;
        if results * k < 1 << 22 || k < 4 * m.max(n) {
            return 1;
        }
        (k / PART).min(PARTIAL / results).clamp(1, PARTS)
    }

    /// How many rows of a large product are one task, by its sizes alone: other cuts have other bits.
    fn rows(&self) -> usize {
        let (m, k, n) = (self.m, self.k, self.n);
        let strip = (STRIP / n).max(LEAST);
        match k * n <= HELD && m >= 4 * strip {
            true => strip,
            false => m.div_ceil(2).next_multiple_of(16).clamp(ROWS.0, ROWS.1),
        }
    }

    /// Into tasks of how many rows what tiles do is cut: every entry is made as it is without tasks.
    fn tiles(&self) -> Option<usize> {
        let (m, k, n) = (self.m, self.k, self.n);
        let task = shared(m * k, TASK).filter(|_| self.is_thin(m, k))?;
        let by_tiles = |rows: usize| rows == 0 || (rows >= TALL && rows * k * n > SMALL);
        let least = (task / k).next_multiple_of(TALL);
        (least..m).step_by(TALL).find(|rows| by_tiles(*rows) && by_tiles(m % rows))
    }

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

    /// Whether tiles are faster than the general kernel, which allocates and packs for every call.
    fn is_thin(&self, rows: usize, sum: usize) -> bool {
        rows >= TALL
            && SUMS.contains(&sum)
            && self.n <= WIDEST
            && packed_len::<f32>(sum, self.n) <= PACKED
            && (self.a.column == 1 || self.a.row == 1)
            && instruction_set() != "plain"
    }

    /// Whether it has so few results, which are so long sums, that to pack what is read takes longer than to multiply it.
    fn is_long(&self, rows: usize, sum: usize) -> bool {
        let stand = (self.a.row == 1 || rows == 1) && (self.b.column == 1 || self.n == 1);
        stand
            && instruction_set() != "plain"
            && (2..=MOST).contains(&rows)
            && (2..=MOST).contains(&self.n)
            && sum > *SUMS.end()
    }

    fn thin<T: Number>(&self, x: &[T], y: &[T], sizes: (usize, usize), out: &mut [T]) {
        if self.b.column == 1 && tiles::are_panels::<T>(self.n) {
            return self.by_tiles(Right::ByRows(y, self.b.row), x, sizes, out);
        }
        // To clear what is not used takes as long as a small product.
        if packed_len::<T>(sizes.1, self.n) <= TILE {
            let mut scratch = Scratch::<T>::new();
            let mut tile = scratch.tile();
            self.thin_in(&mut tile[..], x, y, sizes, out);
            scratch.give(Run::Tile(tile));
        } else {
            self.thin_in(&mut [T::ZERO; PACKED], x, y, sizes, out);
        }
    }

    fn thin_in<T: Number>(
        &self,
        packed: &mut [T],
        x: &[T],
        y: &[T],
        (rows, sum): (usize, usize),
        out: &mut [T],
    ) {
        let packed = &mut packed[..packed_len::<T>(sum, self.n)];
        tiles::pack(y, (self.b.row, self.b.column), (sum, self.n), packed);
        self.by_tiles(Right::Packed(packed), x, (rows, sum), out);
    }

    fn by_tiles<T: Number>(&self, b: Right<'_, T>, x: &[T], (rows, sum): (usize, usize), out: &mut [T]) {
        let stands = match self.a.column {
            1 => Stands::ByRows(self.a.row),
            column => Stands::ByColumns(column),
        };
        let (sizes, scale) = ((rows, sum, self.n), T::of(self.scale));
        tiles::Strip { a: x, stands, b, sizes, scale, adds: false, out }.multiply();
    }

    fn plain<T: Number>(&self, x: &[T], y: &[T], sizes: (usize, usize), out: &mut [T]) {
        match self.n {
            1 => self.plain_of::<T, 1>(x, y, sizes, out),
            2 => self.plain_of::<T, 2>(x, y, sizes, out),
            3 => self.plain_of::<T, 3>(x, y, sizes, out),
            _ => self.plain_of::<T, 4>(x, y, sizes, out),
        }
    }

    /// So many columns at a time, whose sums stand in registers.
    fn plain_of<T: Number, const WIDE: usize>(
        &self,
        x: &[T],
        y: &[T],
        (rows, sum): (usize, usize),
        out: &mut [T],
    ) {
        let scale = T::of(self.scale);
        for (i, out) in out.chunks_exact_mut(self.n).enumerate().take(rows) {
            for (nth, out) in out.chunks_mut(WIDE).enumerate() {
                let mut sums = [T::ZERO; WIDE];
                for l in 0..sum {
                    let a = scale * x[i * self.a.row + l * self.a.column];
                    let row = &y[l * self.b.row + nth * WIDE * self.b.column..];
                    if out.len() == WIDE {
                        (0..WIDE).for_each(|j| sums[j] += a * row[j * self.b.column]);
                    } else {
                        (0..out.len()).for_each(|j| sums[j] += a * row[j * self.b.column]);
                    }
                }
                out.copy_from_slice(&sums[..out.len()]);
            }
        }
    }
}
