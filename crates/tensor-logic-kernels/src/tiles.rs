//! Products of a strip of rows with a factor that is packed once and read by every strip.
//!
//! The general kernels pack what they read at every call, which for a few rows costs as much as the product. Here the
//! right factor stands in panels of as many columns as two registers hold (one of 512 bits, for which
//! [`registers`] makes the tiles), and a tile of six rows of the result stays in registers from the first
//! summand to the last. Each entry is one chain of fused multiply-adds in the order of the sum, as in the general kernels.

use std::ops::Range;

use pulp::Simd;
use training::kernels::{Kernel, instruction_set, registers_of_512_bits, vectorised};

use super::number::Number;

mod registers;

/// Sums of so many products are one chain of fused multiply-adds in the general kernels too.
pub(super) const SUMS: std::ops::RangeInclusive<usize> = 3..=512;
/// Rows of a tile.
pub(super) const TALL: usize = 6;
/// Columns of a tile, of 32 and of 64 bits.
const SINGLE: usize = 16;
const DOUBLE: usize = 8;

/// Whether strips of a group are faster by these too. With registers of 512 bits the general kernels are as fast there.
pub(super) fn are_fast() -> bool {
    instruction_set() == "avx2"
}

/// Columns of a panel.
pub(super) fn wide<T: Number>() -> usize {
    if size_of::<T>() == 4 { SINGLE } else { DOUBLE }
}

/// So many entries a factor of k × n takes when it is packed.
pub(super) fn packed_len<T: Number>(k: usize, n: usize) -> usize {
    k * n.next_multiple_of(wide::<T>())
}

/// Packs a k × n matrix with these steps from row to row and from column to column.
pub(super) fn pack<T: Number>(
    values: &[T],
    (row, column): (usize, usize),
    (k, n): (usize, usize),
    to: &mut [T],
) {
    if size_of::<T>() == 4 {
        pack_panels::<T, SINGLE>(values, (row, column), (k, n), to);
    } else {
        pack_panels::<T, DOUBLE>(values, (row, column), (k, n), to);
    }
}

fn pack_panels<T: Number, const WIDE: usize>(
    values: &[T],
    (row, column): (usize, usize),
    (k, n): (usize, usize),
    to: &mut [T],
) {
    let wide = WIDE;
    for (nth, panel) in to.chunks_exact_mut(k * wide).enumerate() {
        let first = nth * wide;
        let width = wide.min(n - first);
        if column == 1 {
            let (slots, _) = panel.as_chunks_mut::<WIDE>();
            for (l, slots) in slots.iter_mut().enumerate() {
                let from = &values[l * row + first..];
                // Blocks of a length that is known are moved by one instruction; what stands behind the last column makes
                // columns that nobody reads.
                match from.first_chunk::<WIDE>() {
                    Some(from) => *slots = *from,
                    None => {
                        slots.fill(T::ZERO);
                        end(slots, &from[..width]);
                    }
                }
            }
            continue;
        }
        if row == 1 && width == wide {
            transpose::<T, WIDE>(&values[first * column..], column, k, panel);
            continue;
        }
        if width < wide {
            panel.fill(T::ZERO);
        }
        if row == 1 {
            for j in 0..width {
                let from = &values[(first + j) * column..][..k];
                panel[j..].iter_mut().step_by(wide).zip(from).for_each(|(slot, value)| *slot = *value);
            }
        } else {
            for (l, slots) in panel.chunks_exact_mut(wide).enumerate() {
                let from = values[l * row + first * column..].iter().step_by(column);
                slots[..width].iter_mut().zip(from).for_each(|(slot, value)| *slot = *value);
            }
        }
    }
}

/// A panel of columns that lie so far from each other, k entries each: by squares that are turned in registers. Entry by entry it
/// takes twice as long.
fn transpose<T: Number, const WIDE: usize>(values: &[T], apart: usize, k: usize, panel: &mut [T]) {
    const SQUARE: usize = 4;
    let (rows, _) = panel.as_chunks_mut::<WIDE>();
    let whole = k - k % SQUARE;
    for (nth, rows) in rows[..whole].chunks_exact_mut(SQUARE).enumerate() {
        for j in (0..WIDE).step_by(SQUARE) {
            let mut square = [[T::ZERO; SQUARE]; SQUARE];
            for (at, column) in square.iter_mut().enumerate() {
                if let Some(from) = values[(j + at) * apart + nth * SQUARE..].first_chunk() {
                    *column = *from;
                }
            }
            for (at, row) in rows.iter_mut().enumerate() {
                if let Some(to) = row[j..].first_chunk_mut() {
                    *to = square.map(|column| column[at]);
                }
            }
        }
    }
    for (l, row) in rows.iter_mut().enumerate().skip(whole) {
        for (j, slot) in row.iter_mut().enumerate() {
            *slot = values[j * apart + l];
        }
    }
}

/// How a left factor stands: so many entries from row to row, or from column to column; the other step is 1.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stands {
    ByRows(usize),
    ByColumns(usize),
}

/// How a right factor stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Right<'a, T> {
    /// In panels.
    Packed(&'a [T]),
    /// By rows, which are whole panels long and so many entries from each other.
    ByRows(&'a [T], usize),
}

/// Whether rows of so many columns are whole panels long.
pub(super) fn are_panels<T: Number>(n: usize) -> bool {
    n.is_multiple_of(wide::<T>())
}

/// out ← scale · a · b, or out ← out + scale · a · b: m × n, with at least [`TALL`] rows; no result is -0.
pub(super) struct Strip<'a, T> {
    pub(super) a: &'a [T],
    pub(super) stands: Stands,
    pub(super) b: Right<'a, T>,
    /// The sizes m, k and n.
    pub(super) sizes: (usize, usize, usize),
    pub(super) scale: T,
    pub(super) adds: bool,
    pub(super) out: &'a mut [T],
}

impl<T: Number> Strip<'_, T> {
    pub(super) fn multiply(self) {
        let low = is_low(self.sizes.0);
        match registers_of_512_bits() {
            Some(simd) if low => simd.vectorize(registers::Tiles::<T, LOW>(self)),
            Some(simd) => simd.vectorize(registers::Tiles::<T, TALL>(self)),
            None if size_of::<T>() == 4 => self.by_panels::<SINGLE>(low),
            None => self.by_panels::<DOUBLE>(low),
        }
    }

    fn by_panels<const WIDE: usize>(self, low: bool) {
        match low {
            false => vectorised(Tiles::<T, WIDE, TALL>(self)),
            true => vectorised(Tiles::<T, WIDE, LOW>(self)),
        }
    }
}

/// Rows of a low tile.
pub(super) const LOW: usize = 4;

/// Whether so many rows are done by low tiles: the last tile of high ones would do too many rows once more. The bits are the
/// same.
fn is_low(m: usize) -> bool {
    10 * m.next_multiple_of(TALL) > 11 * m.next_multiple_of(LOW)
}

/// Tiles of `HIGH` rows and `WIDE` columns.
struct Tiles<'a, T, const WIDE: usize, const HIGH: usize>(Strip<'a, T>);

impl<T: Number, const WIDE: usize, const HIGH: usize> Kernel for Tiles<'_, T, WIDE, HIGH> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (k, n) = (self.0.sizes.1, self.0.sizes.2);
        // The step from row to row of a panel is one that is known, if it is packed.
        match self.0.b {
            Right::Packed(b) if !self.0.adds && n <= FEW * WIDE && !n.is_multiple_of(WIDE) => self.few(b),
            Right::Packed(b) => self.panels(b, WIDE, k * WIDE),
            Right::ByRows(b, step) => self.panels(b, step, WIDE),
        }
    }
}

impl<T: Number, const WIDE: usize, const HIGH: usize> Tiles<'_, T, WIDE, HIGH> {
    /// Panels whose rows lie so far from each other, and which lie so far from each other.
    #[inline(always)]
    fn panels(self, b: &[T], step: usize, apart: usize) {
        let Strip { a, stands, sizes: (m, k, n), scale, adds, out, .. } = self.0;
        let mut sums = [[T::ZERO; WIDE]; HIGH];
        for first in (0..n).step_by(WIDE) {
            let width = WIDE.min(n - first);
            let mut done = 0;
            while done < m {
                // The last tile begins where it still has all its rows.
                let from = done.min(m - HIGH);
                let panel = Panel { rest: &b[first / WIDE * apart..], step };
                tile((a, stands, from), k, panel, scale, &mut sums);
                for (row, sums) in sums.iter().enumerate().skip(done - from) {
                    let slots = &mut out[(from + row) * n + first..][..width];
                    match (adds, slots.as_mut_array::<WIDE>()) {
                        (false, Some(slots)) => *slots = *sums,
                        (true, Some(slots)) => (0..WIDE).for_each(|at| slots[at] += sums[at]),
                        (false, None) => end(slots, &sums[..width]),
                        (true, None) => slots.iter_mut().zip(sums).for_each(|(slot, sum)| *slot += *sum),
                    }
                }
                done = from + HIGH;
            }
        }
    }

    /// The product where its results are few panels wide: a row of a tile is written whole, also where it ends in the next
    /// row, which is written later. To write rows of odd lengths took as long as to compute them.
    #[inline(always)]
    fn few(self, b: &[T]) {
        let Strip { a, stands, sizes: (m, k, n), scale, out, .. } = self.0;
        let out = &mut out[..m * n];
        let mut tiles = [[[T::ZERO; WIDE]; HIGH]; FEW];
        let mut done = 0;
        while done < m {
            // The last tile begins where it still has all its rows.
            let from = done.min(m - HIGH);
            for (rest, sums) in b.chunks_exact(k * WIDE).zip(&mut tiles) {
                tile((a, stands, from), k, Panel { rest, step: WIDE }, scale, sums);
            }
            for row in done - from..HIGH {
                for (first, tile) in (0..n).step_by(WIDE).zip(&tiles) {
                    let slots = &mut out[(from + row) * n + first..];
                    match slots.first_chunk_mut::<WIDE>() {
                        Some(slots) => *slots = tile[row],
                        None => end(slots, &tile[row][..WIDE.min(n - first)]),
                    }
                }
            }
            done = from + HIGH;
        }
    }
}

/// The rows of a panel, so far from each other.
struct Panel<'a, T, const WIDE: usize> {
    rest: &'a [T],
    step: usize,
}

impl<'a, T, const WIDE: usize> Iterator for Panel<'a, T, WIDE> {
    type Item = &'a [T; WIDE];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rest.first_chunk()?;
        self.rest = self.rest.get(self.step..).unwrap_or(&[]);
        Some(row)
    }
}

/// A tile with the rows of the left factor from one on.
#[inline(always)]
fn tile<T: Number, const WIDE: usize, const HIGH: usize>(
    (a, stands, from): (&[T], Stands, usize),
    k: usize,
    panel: Panel<'_, T, WIDE>,
    scale: T,
    tile: &mut [[T; WIDE]; HIGH],
) {
    match stands {
        Stands::ByRows(step) => by_rows(k, &a[from * step..], step, panel, scale, tile),
        Stands::ByColumns(step) => by_columns(k, &a[from..], step, panel, scale, tile),
    }
}

/// Results of so few panels are written row by row.
const FEW: usize = 4;

/// The end of a row where no register has room. It stands apart: the compiler would make one copy of some length of this and of
/// the rows that fill a register.
#[cold]
#[inline(never)]
fn end<T: Number>(slots: &mut [T], tile: &[T]) {
    slots[..tile.len()].copy_from_slice(tile);
}

// Sums stand in registers as long as nothing but constants says which of them is meant: so a tile is written to one place
// at its end, with a multiplication in between, and from there to where it belongs. Written at once it takes half again
// as long (91 against 55 GFLOP/s on a Zen 3, in 32 bits).

#[inline(always)]
fn by_rows<T: Number, const WIDE: usize, const HIGH: usize>(
    k: usize,
    a: &[T],
    step: usize,
    panel: Panel<'_, T, WIDE>,
    scale: T,
    tile: &mut [[T; WIDE]; HIGH],
) {
    let row = |nth: usize| a[nth * step..][..k].iter();
    let mut sums = [[T::ZERO; WIDE]; HIGH];
    // Iterators side by side ask once how long they are, not at every number.
    if HIGH == TALL {
        let rows = row(0).zip(row(1)).zip(row(2)).zip(row(3)).zip(row(4)).zip(row(5));
        for (b, (((((x0, x1), x2), x3), x4), x5)) in panel.zip(rows) {
            add_row(&mut sums, &[*x0, *x1, *x2, *x3, *x4, *x5], b);
        }
    } else {
        let rows = row(0).zip(row(1)).zip(row(2)).zip(row(3));
        for (b, (((x0, x1), x2), x3)) in panel.zip(rows) {
            add_row(&mut sums, &[*x0, *x1, *x2, *x3], b);
        }
    }
    finish(&sums, scale, tile);
}

#[inline(always)]
fn by_columns<T: Number, const WIDE: usize, const HIGH: usize>(
    k: usize,
    a: &[T],
    step: usize,
    panel: Panel<'_, T, WIDE>,
    scale: T,
    tile: &mut [[T; WIDE]; HIGH],
) {
    let mut sums = [[T::ZERO; WIDE]; HIGH];
    for (l, b) in panel.take(k).enumerate() {
        let Some(x) = a[l * step..].first_chunk::<HIGH>() else { break };
        add_row(&mut sums, x, b);
    }
    finish(&sums, scale, tile);
}

/// out ← scale · a · b, where a is m × k by columns and b is k × n by rows, each so many entries from the next: for few results
/// that are long sums. No result is -0.
pub(super) struct Long<'a, T> {
    pub(super) a: (&'a [T], usize),
    pub(super) b: (&'a [T], usize),
    /// The sizes m, k and n.
    pub(super) sizes: (usize, usize, usize),
    pub(super) scale: T,
    pub(super) out: &'a mut [T],
}

impl<T: Number> Long<'_, T> {
    pub(super) fn multiply(self) {
        match size_of::<T>() {
            4 => vectorised(Sums::<T, SINGLE>(self)),
            _ => vectorised(Sums::<T, DOUBLE>(self)),
        }
    }
}

struct Sums<'a, T, const WIDE: usize>(Long<'a, T>);

impl<T: Number, const WIDE: usize> Kernel for Sums<'_, T, WIDE> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Long { a: (a, below), b: (b, beside), sizes: (m, k, n), scale, out } = self.0;
        for row in (0..m).step_by(LOW) {
            for column in (0..n).step_by(WIDE) {
                let mut total = [[T::ZERO; WIDE]; LOW];
                for first in (0..k).step_by(*SUMS.end()) {
                    let of = first..k.min(first + SUMS.end());
                    let sums: [[T; WIDE]; LOW] = part((&a[row..], below), (&b[column..], beside), of);
                    for (total, sum) in total.iter_mut().flatten().zip(sums.as_flattened()) {
                        *total += *sum;
                    }
                }
                let mut tile = [[T::ZERO; WIDE]; LOW];
                finish(&total, scale, &mut tile);
                for (tile, out) in tile.iter().zip(out.chunks_exact_mut(n).skip(row)) {
                    out.iter_mut().skip(column).zip(tile).for_each(|(slot, sum)| *slot = *sum);
                }
            }
        }
    }
}

/// A part of the sums of a tile; what stands beside its rows and columns makes sums that nobody reads.
#[inline(always)]
fn part<T: Number, const WIDE: usize>(
    (a, below): (&[T], usize),
    (b, beside): (&[T], usize),
    of: Range<usize>,
) -> [[T; WIDE]; LOW] {
    let mut sums = [[T::ZERO; WIDE]; LOW];
    for l in of {
        let (x, y) = (&a[l * below..], &b[l * beside..]);
        match (x.first_chunk::<LOW>(), y.first_chunk::<WIDE>()) {
            (Some(x), Some(y)) => add_row(&mut sums, x, y),
            _ => add_row(&mut sums, &padded::<T, LOW>(x), &padded::<T, WIDE>(y)),
        }
    }
    sums
}

/// The first numbers, and zeros where there are none.
#[cold]
#[inline(never)]
fn padded<T: Number, const LEN: usize>(numbers: &[T]) -> [T; LEN] {
    let mut padded = [T::ZERO; LEN];
    padded.iter_mut().zip(numbers).for_each(|(slot, number)| *slot = *number);
    padded
}

#[inline(always)]
fn add_row<T: Number, const WIDE: usize, const HIGH: usize>(
    sums: &mut [[T; WIDE]; HIGH],
    x: &[T],
    b: &[T; WIDE],
) {
    for row in 0..HIGH {
        for column in 0..WIDE {
            sums[row][column] = x[row].times_plus(b[column], sums[row][column]);
        }
    }
}

/// -0 becomes 0.
#[inline(always)]
fn finish<T: Number, const WIDE: usize, const HIGH: usize>(
    sums: &[[T; WIDE]; HIGH],
    scale: T,
    tile: &mut [[T; WIDE]; HIGH],
) {
    for row in 0..HIGH {
        for column in 0..WIDE {
            tile[row][column] = scale * sums[row][column] + T::ZERO;
        }
    }
}
