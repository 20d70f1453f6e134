//! Tiles of products in registers of 512 bits.
//!
//! Which sums stand in registers [`tiles`](super) leave to the compiler, and it decides for the worse where a row of 32-bit numbers
//! fills exactly one: it writes every sum back at every step (25 GFLOP/s of one core of an Intel Xeon, where this does 115). So
//! the registers are named here.

use pulp::{Simd, WithSimd};

use super::super::lanes::Lanes;
use super::super::number::Number;
use super::{LOW, Right, Stands, Strip, TALL, wide};

/// Numbers that a register holds.
#[inline(always)]
fn lanes<T: Number, S: Simd>() -> usize {
    size_of::<T::Register<S>>() / size_of::<T>()
}

/// A strip by tiles of `HIGH` rows, [`TALL`] or [`LOW`], and of up to [`MOST`] registers.
pub(super) struct Tiles<'a, T, const HIGH: usize>(pub(super) Strip<'a, T>);

/// So many registers side by side make 18 sums of six rows: with what they are made of they fill the 32 that there are.
const MOST: usize = 3;

impl<T: Number, const HIGH: usize> WithSimd for Tiles<'_, T, HIGH> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // From the last columns to the first: the last register of a row may be written over the beginning of the next row,
        // which is written after it.
        let mut end = self.0.sizes.2.div_ceil(lanes::<T, S>());
        while end > 0 {
            // One register alone has too few sums to keep the processor busy.
            let some = if end == MOST + 1 { 2 } else { end.min(MOST) };
            end -= some;
            match some {
                1 => self.columns::<S, 1>(simd, end),
                2 => self.columns::<S, 2>(simd, end),
                _ => self.columns::<S, MOST>(simd, end),
            }
        }
    }
}

impl<T: Number, const HIGH: usize> Tiles<'_, T, HIGH> {
    /// The columns of so many registers, from one on.
    #[inline(always)]
    fn columns<S: Simd, const REGISTERS: usize>(&mut self, simd: S, first: usize) {
        let Strip { a, stands, b, sizes: (m, k, n), scale, adds, ref mut out } = self.0;
        let out = &mut out[..m * n];
        let wide = wide::<T>();
        let (b, below, apart) = match b {
            Right::Packed(b) => (b, wide, k * wide),
            Right::ByRows(b, step) => (b, step, wide),
        };
        let b = std::array::from_fn(|nth| {
            let column = (first + nth) * lanes::<T, S>();
            &b[column / wide * apart + column % wide..]
        });
        let right = Columns::<T, REGISTERS> { b, below, k };
        let mut done = 0;
        while done < m {
            // The last tile begins where it still has all its rows.
            let from = done.min(m - HIGH);
            let to = Rows {
                out: &mut out[from * n..],
                n,
                first: first * lanes::<T, S>(),
                skip: done - from,
                scale: T::everywhere(simd, scale),
                adds,
                simd,
            };
            let row = |nth: usize, step: usize| &a[(from + nth) * step..][..k];
            match stands {
                Stands::ByRows(step) if HIGH == TALL => {
                    six(ByRows(std::array::from_fn(|nth| row(nth, step))), right, to);
                }
                Stands::ByRows(step) => four(ByRows(std::array::from_fn(|nth| row(nth, step))), right, to),
                Stands::ByColumns(step) if HIGH == TALL => six(ByColumns(&a[from..], step), right, to),
                Stands::ByColumns(step) => four(ByColumns(&a[from..], step), right, to),
            }
            done = from + HIGH;
        }
    }
}

/// Some rows of a left factor.
trait Left<T, const HIGH: usize> {
    /// Their entries of one column.
    fn column(&self, l: usize) -> [T; HIGH];
}

struct ByRows<'a, T, const HIGH: usize>([&'a [T]; HIGH]);

struct ByColumns<'a, T>(&'a [T], usize);

impl<T: Number, const HIGH: usize> Left<T, HIGH> for ByRows<'_, T, HIGH> {
    #[inline(always)]
    fn column(&self, l: usize) -> [T; HIGH] {
        self.0.map(|row| row[l])
    }
}

impl<T: Number, const HIGH: usize> Left<T, HIGH> for ByColumns<'_, T> {
    #[inline(always)]
    fn column(&self, l: usize) -> [T; HIGH] {
        let column = &self.0[l * self.1..][..HIGH];
        std::array::from_fn(|row| column[row])
    }
}

/// Some columns of a right factor: where the first register of each stands, and how far below it the next row is, of k rows.
#[derive(Clone, Copy)]
struct Columns<'a, T, const REGISTERS: usize> {
    b: [&'a [T]; REGISTERS],
    below: usize,
    k: usize,
}

impl<T: Number, const REGISTERS: usize> Columns<'_, T, REGISTERS> {
    #[inline(always)]
    fn row<S: Simd>(&self, l: usize) -> [T::Register<S>; REGISTERS] {
        self.b.map(|column| T::registers::<S>(&column[l * self.below..])[0])
    }
}

// Sums stand in registers where each has a name: of an array that a loop goes over the compiler makes memory.

#[inline(always)]
fn six<T: Number, S: Simd, const REGISTERS: usize>(
    left: impl Left<T, TALL>,
    right: Columns<'_, T, REGISTERS>,
    mut to: Rows<'_, T, S>,
) {
    let zero = [T::everywhere(to.simd, T::ZERO); REGISTERS];
    let (mut first, mut second, mut third) = (zero, zero, zero);
    let (mut fourth, mut fifth, mut sixth) = (zero, zero, zero);
    for l in 0..right.k {
        let (b, x) = (right.row::<S>(l), left.column(l));
        first = add_row(to.simd, first, x[0], b);
        second = add_row(to.simd, second, x[1], b);
        third = add_row(to.simd, third, x[2], b);
        fourth = add_row(to.simd, fourth, x[3], b);
        fifth = add_row(to.simd, fifth, x[4], b);
        sixth = add_row(to.simd, sixth, x[5], b);
    }
    to.write(0, first);
    to.write(1, second);
    to.write(2, third);
    to.write(3, fourth);
    to.write(4, fifth);
    to.write(5, sixth);
}

#[inline(always)]
fn four<T: Number, S: Simd, const REGISTERS: usize>(
    left: impl Left<T, LOW>,
    right: Columns<'_, T, REGISTERS>,
    mut to: Rows<'_, T, S>,
) {
    let zero = [T::everywhere(to.simd, T::ZERO); REGISTERS];
    let (mut first, mut second, mut third, mut fourth) = (zero, zero, zero, zero);
    for l in 0..right.k {
        let (b, x) = (right.row::<S>(l), left.column(l));
        first = add_row(to.simd, first, x[0], b);
        second = add_row(to.simd, second, x[1], b);
        third = add_row(to.simd, third, x[2], b);
        fourth = add_row(to.simd, fourth, x[3], b);
    }
    to.write(0, first);
    to.write(1, second);
    to.write(2, third);
    to.write(3, fourth);
}

/// sums + x b
#[inline(always)]
fn add_row<R: Copy, T: Number + Lanes<Register<S> = R>, S: Simd, const REGISTERS: usize>(
    simd: S,
    mut sums: [R; REGISTERS],
    x: T,
    b: [R; REGISTERS],
) -> [R; REGISTERS] {
    let x = T::everywhere(simd, x);
    sums[0] = T::fused(simd, x, b[0], sums[0]);
    if REGISTERS > 1 {
        sums[1] = T::fused(simd, x, b[1], sums[1]);
    }
    if REGISTERS > 2 {
        sums[2] = T::fused(simd, x, b[2], sums[2]);
    }
    sums
}

/// Where the rows of a tile go.
struct Rows<'a, T: Number, S: Simd> {
    /// From the first row of the tile on, n entries each.
    out: &'a mut [T],
    n: usize,
    /// The first column.
    first: usize,
    /// So many rows are done already.
    skip: usize,
    scale: T::Register<S>,
    adds: bool,
    simd: S,
}

impl<T: Number, S: Simd> Rows<'_, T, S> {
    /// Writes the sums of a row, times the scale; -0 becomes 0.
    #[inline(always)]
    fn write<const REGISTERS: usize>(&mut self, row: usize, sums: [T::Register<S>; REGISTERS]) {
        if row < self.skip {
            return;
        }
        let (simd, scale, zero) = (self.simd, self.scale, T::everywhere(self.simd, T::ZERO));
        let last = |sum| T::plus(simd, T::times(simd, scale, sum), zero);
        let slots = T::registers_mut::<S>(&mut self.out[row * self.n + self.first..]);
        if let (false, Some(slots)) = (self.adds, slots.first_chunk_mut::<REGISTERS>()) {
            slots[0] = last(sums[0]);
            if REGISTERS > 1 {
                slots[1] = last(sums[1]);
            }
            if REGISTERS > 2 {
                slots[2] = last(sums[2]);
            }
            return;
        }
        self.write_within(row, 0, last(sums[0]));
        if REGISTERS > 1 {
            self.write_within(row, 1, last(sums[1]));
        }
        if REGISTERS > 2 {
            self.write_within(row, 2, last(sums[2]));
        }
    }

    /// Writes what of a register lies in its row.
    #[inline(always)]
    fn write_within(&mut self, row: usize, nth: usize, register: T::Register<S>) {
        let simd = self.simd;
        let column = self.first + nth * lanes::<T, S>();
        let width = lanes::<T, S>().min(self.n - column);
        let slots = &mut self.out[row * self.n + column..][..width];
        let sum = if self.adds { T::plus(simd, T::read_first(simd, slots), register) } else { register };
        T::write_first(simd, slots, sum);
    }
}
