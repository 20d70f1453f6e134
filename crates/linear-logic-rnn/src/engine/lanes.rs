//! Operations on blocks of sequences.
//!
//! A *row* is one feature of all sequences of a block, side by side, so the batch fills the vector registers
//! whatever the size of the cell, and a weight is one number that multiplies a row. A value is some rows. The two
//! loops that cost most, the product with a matrix and the gradient of a matrix, keep a tile of sums in registers;
//! all else is one pass over memory that the first-level cache holds. Everything is inlined into a function that is
//! compiled for the widest registers ([`training::kernels::vectorised`]).
//!
//! A block has `L` sequences, [`LANES`] or [`NARROW`]: a small batch is cut into narrow ones, so that it keeps two threads
//! busy and a single sequence does not compute for 32. Sums over sequences are made block by block, so the width
//! depends on the size of the batch alone, never on the number of threads.

use super::real::Real;

/// Sequences of a block: two registers of AVX-512 in f32.
pub const LANES: usize = 32;

/// Sequences of a block of a small batch: one such register.
pub const NARROW: usize = 16;

/// The largest batch that is cut into narrow blocks.
const SMALL: usize = 32;

/// The sequences of each block of a batch.
pub fn lanes(count: usize) -> usize {
    if count <= SMALL { NARROW } else { LANES }
}

/// Sequences whose sums are made together: one register of AVX-512 in f32.
const HALF: usize = 16;

/// Rows of a packed matrix that are computed together.
pub(super) const TILE: usize = 4;

type Half<T> = [T; HALF];

/// The rows of a value, to be changed.
#[inline(always)]
pub(super) fn rows_mut<T, const L: usize>(x: &mut [T]) -> &mut [[T; L]] {
    x.as_chunks_mut().0
}

#[inline(always)]
fn halves<T>(x: &[T]) -> &[Half<T>] {
    x.as_chunks().0
}

/// sum ← w·x + sum. The sums are locals of their own, not an array: arrays of arrays stay in memory.
#[inline(always)]
fn scaled<T: Real>(sum: &mut Half<T>, w: T, x: &Half<T>) {
    for l in 0..HALF {
        sum[l] = w.fma(x[l], sum[l]);
    }
}

/// sum ← a ∘ x + sum
#[inline(always)]
fn multiplied<T: Real>(sum: &mut Half<T>, a: &Half<T>, x: &Half<T>) {
    for l in 0..HALF {
        sum[l] = a[l].fma(x[l], sum[l]);
    }
}

/// y ← W x, or y ← y + W x. `packed` holds W in tiles of [`TILE`] rows, column by column, the last tile filled up
/// with zeros.
#[inline(always)]
pub(super) fn product<T: Real, const L: usize>(y: &mut [T], packed: &[T], x: &[T], adds: bool) {
    if L == HALF {
        narrow_product(y, packed, x, adds);
    } else {
        wide_product(y, packed, x, adds);
    }
}

/// The same for rows of two halves.
#[inline(always)]
fn wide_product<T: Real>(y: &mut [T], packed: &[T], x: &[T], adds: bool) {
    let columns = x.len() / LANES;
    for (y, tile) in y.chunks_mut(TILE * LANES).zip(packed.chunks_exact((TILE * columns).max(1))) {
        let mut start = [[T::ZERO; HALF]; 2 * TILE];
        if adds {
            for (sum, y) in start.iter_mut().zip(halves(y)) {
                *sum = *y;
            }
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
        for (x, w) in halves(x).chunks_exact(2).zip(tile.as_chunks::<TILE>().0) {
            let (low, high) = (x[0], x[1]);
            scaled(&mut a, w[0], &low);
            scaled(&mut b, w[0], &high);
            scaled(&mut c, w[1], &low);
            scaled(&mut d, w[1], &high);
            scaled(&mut e, w[2], &low);
            scaled(&mut f, w[2], &high);
            scaled(&mut g, w[3], &low);
            scaled(&mut h, w[3], &high);
        }
        for (y, sum) in y.as_chunks_mut::<HALF>().0.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *y = sum;
        }
    }
}

/// The same for rows of one half: two tiles at a time, so that as many sums are on their way.
#[inline(always)]
fn narrow_product<T: Real>(y: &mut [T], packed: &[T], x: &[T], adds: bool) {
    let size = TILE * (x.len() / HALF);
    for (y, tiles) in y.chunks_mut(2 * TILE * HALF).zip(packed.chunks((2 * size).max(1))) {
        let mut start = [[T::ZERO; HALF]; 2 * TILE];
        if adds {
            for (sum, y) in start.iter_mut().zip(halves(y)) {
                *sum = *y;
            }
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
        let (first, second) = tiles.split_at(size.min(tiles.len()));
        let (first, second) = (first.as_chunks::<TILE>().0, second.as_chunks::<TILE>().0);
        if second.len() == first.len() {
            for ((x, w), v) in halves(x).iter().zip(first).zip(second) {
                scaled(&mut a, w[0], x);
                scaled(&mut b, w[1], x);
                scaled(&mut c, w[2], x);
                scaled(&mut d, w[3], x);
                scaled(&mut e, v[0], x);
                scaled(&mut f, v[1], x);
                scaled(&mut g, v[2], x);
                scaled(&mut h, v[3], x);
            }
        } else {
            for (x, w) in halves(x).iter().zip(first) {
                scaled(&mut a, w[0], x);
                scaled(&mut b, w[1], x);
                scaled(&mut c, w[2], x);
                scaled(&mut d, w[3], x);
            }
        }
        for (y, sum) in y.as_chunks_mut::<HALF>().0.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *y = sum;
        }
    }
}

/// Sums of one row against four.
struct Four<T>(Half<T>, Half<T>, Half<T>, Half<T>);

impl<T: Real> Four<T> {
    #[inline(always)]
    fn new() -> Self {
        let zero = [T::ZERO; HALF];
        Self(zero, zero, zero, zero)
    }

    #[inline(always)]
    fn add(&mut self, a: &Half<T>, x: &[Half<T>; 4]) {
        multiplied(&mut self.0, a, &x[0]);
        multiplied(&mut self.1, a, &x[1]);
        multiplied(&mut self.2, a, &x[2]);
        multiplied(&mut self.3, a, &x[3]);
    }

    #[inline(always)]
    fn sums(&self) -> [T; 4] {
        [sum(&self.0), sum(&self.1), sum(&self.2), sum(&self.3)]
    }
}

/// The sum of a row, in halves.
#[inline(always)]
fn sum<T: Real>(row: &Half<T>) -> T {
    let mut row = *row;
    let mut width = HALF / 2;
    while width > 0 {
        for l in 0..width {
            row[l] += row[l + width];
        }
        width /= 2;
    }
    row[0]
}

/// The same value at every step: its first row at the first step, and the distance between steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series<'a, T, const L: usize> {
    /// All frames.
    pub(super) frames: &'a [T],
    /// Where the first step's rows begin.
    pub(super) start: usize,
    /// From step to step.
    pub(super) stride: usize,
    /// Rows.
    pub(super) rows: usize,
}

impl<'a, T, const L: usize> Series<'a, T, L> {
    #[inline(always)]
    fn four(&self, row: usize, step: usize) -> &'a [Half<T>] {
        let at = self.start + step * self.stride + row * L;
        halves(&self.frames[at..at + 4 * L])
    }

    #[inline(always)]
    fn one(&self, row: usize, step: usize) -> &'a [Half<T>] {
        let at = self.start + step * self.stride + row * L;
        halves(&self.frames[at..at + L])
    }
}

/// dW[r, c] += Σ over steps and sequences of dy_r x_c. `add` gets (r, c, sum).
#[inline(always)]
pub(super) fn outer_sums<T: Real, const L: usize>(
    dy: Series<'_, T, L>,
    x: Series<'_, T, L>,
    steps: usize,
    add: impl FnMut(usize, usize, T),
) {
    // The halves of four rows and of one: as numbers, so that no place is looked up with a check.
    if L == HALF {
        outer_sums_of::<T, L, 4, 1>(dy, x, steps, add);
    } else {
        outer_sums_of::<T, L, 8, 2>(dy, x, steps, add);
    }
}

#[inline(always)]
fn outer_sums_of<T: Real, const L: usize, const FOUR: usize, const ONE: usize>(
    dy: Series<'_, T, L>,
    x: Series<'_, T, L>,
    steps: usize,
    mut add: impl FnMut(usize, usize, T),
) {
    let (whole_rows, whole_columns) = (dy.rows / 4 * 4, x.rows / 4 * 4);
    for r in (0..whole_rows).step_by(4) {
        for c in (0..whole_columns).step_by(4) {
            let (mut p, mut q, mut u, mut v) = (Four::new(), Four::new(), Four::new(), Four::new());
            for step in 0..steps {
                let (a, b) = (dy.four(r, step), x.four(c, step));
                let (Ok(a), Ok(b)) = (<&[Half<T>; FOUR]>::try_from(a), <&[Half<T>; FOUR]>::try_from(b))
                else {
                    return;
                };
                for half in 0..ONE {
                    let x = [b[half], b[ONE + half], b[2 * ONE + half], b[3 * ONE + half]];
                    p.add(&a[half], &x);
                    q.add(&a[ONE + half], &x);
                    u.add(&a[2 * ONE + half], &x);
                    v.add(&a[3 * ONE + half], &x);
                }
            }
            for (i, four) in [p, q, u, v].iter().enumerate() {
                for (j, sum) in four.sums().into_iter().enumerate() {
                    add(r + i, c + j, sum);
                }
            }
        }
    }
    for r in 0..dy.rows {
        let from = if r < whole_rows { whole_columns } else { 0 };
        for c in from..x.rows {
            let mut sums = [[T::ZERO; HALF]; ONE];
            for step in 0..steps {
                let (a, b) = (dy.one(r, step), x.one(c, step));
                let (Ok(a), Ok(b)) = (<&[Half<T>; ONE]>::try_from(a), <&[Half<T>; ONE]>::try_from(b)) else {
                    return;
                };
                for half in 0..ONE {
                    multiplied(&mut sums[half], &a[half], &b[half]);
                }
            }
            let mut total = T::ZERO;
            for half in &sums {
                total += sum(half);
            }
            add(r, c, total);
        }
    }
}

/// Σ over sequences of one row.
#[inline(always)]
pub(super) fn row_sum<T: Real, const L: usize>(row: &[T]) -> T {
    let mut total = T::ZERO;
    for half in halves(row).iter().take(L / HALF) {
        total += sum(half);
    }
    total
}

/// Every lane of row r is `w[r]`.
#[inline(always)]
pub(super) fn spread<T: Real, const L: usize>(y: &mut [T], w: &[T]) {
    for (row, w) in rows_mut::<_, L>(y).iter_mut().zip(w) {
        *row = [*w; L];
    }
}

/// y ← f(a), or y ← y + f(a).
#[inline(always)]
pub(super) fn map<T: Real>(y: &mut [T], a: &[T], adds: bool, f: impl Fn(T) -> T) {
    if adds {
        for (y, a) in y.iter_mut().zip(a) {
            *y += f(*a);
        }
    } else {
        for (y, a) in y.iter_mut().zip(a) {
            *y = f(*a);
        }
    }
}

/// y ← f(a, b), or y ← y + f(a, b).
#[inline(always)]
pub(super) fn zip<T: Real>(y: &mut [T], a: &[T], b: &[T], adds: bool, f: impl Fn(T, T) -> T) {
    if adds {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y += f(*a, *b);
        }
    } else {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = f(*a, *b);
        }
    }
}

/// y ← g·x for every row of x, or y ← y + g·x; g is one row.
#[inline(always)]
pub(super) fn gate<T: Real, const L: usize>(y: &mut [T], g: &[T], x: &[T], adds: bool) {
    for (y, x) in y.chunks_exact_mut(L).zip(x.chunks_exact(L)) {
        if adds {
            for ((y, g), x) in y.iter_mut().zip(g).zip(x) {
                *y = g.fma(*x, *y);
            }
        } else {
            zip(y, g, x, false, |g, x| g * x);
        }
    }
}

/// y ← Σ over rows of a ∘ b, or y ← y + that; y is one row.
#[inline(always)]
pub(super) fn inner<T: Real, const L: usize>(y: &mut [T], a: &[T], b: &[T], adds: bool) {
    if !adds {
        y.fill(T::ZERO);
    }
    for (a, b) in a.chunks_exact(L).zip(b.chunks_exact(L)) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a.fma(*b, *y);
        }
    }
}
