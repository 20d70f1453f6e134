//! Products of numbers that are rounded to bf16 first, with sums in f32 (`precision = "bf16"`).
//!
//! The instruction `vdpbf16ps` adds two products to each of sixteen sums: twice what a multiply-add of f32 does. The right
//! operand is packed into panels of 32 columns, pairs of terms beside each other; the left one into rows of pairs. A tile of 12 × 32
//! sums stays in registers. Each sum has one order, whatever the number of threads. Where the processor has no such
//! instruction, the operands are rounded and the product is that of f32.

use rayon::prelude::*;

use super::multiversion;
use super::product::{Mat, MatMut, product};

/// Columns of a panel, rows of a tile, pairs of terms of a block, rows of a task.
const COLUMNS: usize = 32;
const ROWS: usize = 12;
const DEPTH: usize = 512;
const TASK: usize = 8 * ROWS;

/// Whether this processor multiplies numbers of bf16.
pub fn multiplies_half() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        super::math::vector_level() == super::math::VectorLevel::Avx512
            && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// The bits of the nearest number of bf16, ties to even; a NaN stays one.
#[inline(always)]
fn round(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if x.is_nan() { (bits >> 16) | 0x40 } else { rounded }
}

/// Two numbers as the instruction wants them.
#[inline(always)]
fn pair(first: f32, second: f32) -> u32 {
    round(first) | (round(second) << 16)
}

multiversion! {
    /// Rows whose terms stand beside each other.
    fn pack_row(from: &[f32], to: &mut [u32]) {
        let (whole, rest) = from.as_chunks::<2>();
        for (to, [a, b]) in to.iter_mut().zip(whole) {
            *to = pair(*a, *b);
        }
        if let (Some(to), [last]) = (to.get_mut(whole.len()), rest) {
            *to = pair(*last, 0.0);
        }
    }
}

multiversion! {
    /// Two rows of terms, whose columns stand beside each other.
    fn pack_columns(first: &[f32], second: &[f32], to: &mut [u32]) {
        for ((to, a), b) in to.iter_mut().zip(first).zip(second) {
            *to = pair(*a, *b);
        }
    }
}

impl Mat<'_> {
    /// Terms of a row, or of a column if the matrix is turned, where they stand beside each other.
    fn along(&self, line: usize, turned: bool) -> Option<&[f32]> {
        let (step, stride, len) = if turned {
            (self.row_stride, self.column_stride, self.rows)
        } else {
            (self.column_stride, self.row_stride, self.columns)
        };
        (step == 1 || len <= 1).then(|| self.data.get(line * stride..line * stride + len)).flatten()
    }

    fn entry(&self, row: usize, column: usize) -> f32 {
        self.data.get(row * self.row_stride + column * self.column_stride).copied().unwrap_or(0.0)
    }
}

/// The left operand as rows of pairs, [m, pairs].
fn pack_left(a: Mat<'_>, pairs: usize, parallel: bool) -> Vec<u32> {
    let mut packed = vec![0; a.rows * pairs];
    let fill = |(block, to): (usize, &mut [u32])| {
        let first = block * TASK;
        if a.along(first, false).is_some() {
            for (r, to) in to.chunks_exact_mut(pairs).enumerate() {
                pack_row(a.along(first + r, false).unwrap_or_default(), to);
            }
            return;
        }
        // Turned: pairs of the matrix's lines are read together, some rows at a time.
        let rows = to.len() / pairs.max(1);
        for p in 0..pairs {
            for r in 0..rows {
                let second = if 2 * p + 1 < a.columns { a.entry(first + r, 2 * p + 1) } else { 0.0 };
                if let Some(to) = to.get_mut(r * pairs + p) {
                    *to = pair(a.entry(first + r, 2 * p), second);
                }
            }
        }
    };
    let size = (TASK * pairs).max(1);
    if parallel {
        packed.par_chunks_mut(size).enumerate().for_each(fill);
    } else {
        packed.chunks_mut(size).enumerate().for_each(fill);
    }
    packed
}

/// The right operand in panels, [panels, pairs, 32], with zeros beyond its columns.
fn pack_right(b: Mat<'_>, pairs: usize, parallel: bool) -> Vec<u32> {
    let panels = b.columns.div_ceil(COLUMNS);
    let mut packed = vec![0; panels * pairs * COLUMNS];
    let fill = |(panel, to): (usize, &mut [u32])| {
        let first = panel * COLUMNS;
        let width = COLUMNS.min(b.columns - first);
        if b.along(0, false).is_some() {
            let line = |l: usize| b.along(l, false).and_then(|line| line.get(first..first + width));
            let zeros = [0.0; COLUMNS];
            for (p, to) in to.chunks_exact_mut(COLUMNS).enumerate() {
                let second = if 2 * p + 1 < b.rows { line(2 * p + 1) } else { None };
                pack_columns(line(2 * p).unwrap_or_default(), second.unwrap_or(&zeros), to);
            }
            return;
        }
        let mut row = vec![0; pairs];
        for c in 0..width {
            match b.along(first + c, true) {
                Some(terms) => pack_row(terms, &mut row),
                None => {
                    for (p, to) in row.iter_mut().enumerate() {
                        let second = if 2 * p + 1 < b.rows { b.entry(2 * p + 1, first + c) } else { 0.0 };
                        *to = pair(b.entry(2 * p, first + c), second);
                    }
                }
            }
            for (to, from) in to.iter_mut().skip(c).step_by(COLUMNS).zip(&row) {
                *to = *from;
            }
        }
    };
    let size = (pairs * COLUMNS).max(1);
    if parallel {
        packed.par_chunks_mut(size).enumerate().for_each(fill);
    } else {
        packed.chunks_mut(size).enumerate().for_each(fill);
    }
    packed
}

/// out ← a·b, or out + a·b if `accumulate`, of operands that are rounded to bf16. With `parallel`, on the threads of rayon's
/// pool; the bits do not depend on their number.
///
/// # Panics
/// If the shapes do not match: a fault of the caller, never of an input.
pub fn product_half(out: MatMut<'_>, accumulate: bool, a: Mat<'_>, b: Mat<'_>, parallel: bool) {
    assert!(out.rows == a.rows && out.columns == b.columns && a.columns == b.rows, "shapes of a product");
    if !multiplies_half() {
        return product_rounded(out, accumulate, a, b, parallel);
    }
    let pairs = a.columns.div_ceil(2);
    let MatMut { data, rows, columns, row_stride } = out;
    if rows == 0 || columns == 0 {
        return;
    }
    if pairs == 0 {
        if !accumulate {
            data.chunks_mut(row_stride)
                .take(rows)
                .for_each(|row| row.iter_mut().take(columns).for_each(|v| *v = 0.0));
        }
        return;
    }
    let (left, right) = (pack_left(a, pairs, parallel), pack_right(b, pairs, parallel));
    let task = |(left, out): (&[u32], &mut [f32])| {
        for from in (0..pairs).step_by(DEPTH) {
            let depth = DEPTH.min(pairs - from);
            for (panel, right) in right.chunks_exact(pairs * COLUMNS).enumerate() {
                let right = right.get(from * COLUMNS..(from + depth) * COLUMNS).unwrap_or_default();
                let width = COLUMNS.min(columns - panel * COLUMNS);
                let tiles = left.chunks(ROWS * pairs).zip(out.chunks_mut(ROWS * row_stride));
                for (left, out) in tiles {
                    let sums = out.get_mut(panel * COLUMNS..).unwrap_or_default();
                    tile(left, pairs, from, right, sums, row_stride, width, accumulate || from > 0);
                }
            }
        }
    };
    if parallel {
        let tasks = left.par_chunks(TASK * pairs).zip(data.par_chunks_mut(TASK * row_stride));
        tasks.for_each(task);
    } else {
        left.chunks(TASK * pairs).zip(data.chunks_mut(TASK * row_stride)).for_each(task);
    }
}

/// The same without the instruction.
fn product_rounded(out: MatMut<'_>, accumulate: bool, a: Mat<'_>, b: Mat<'_>, parallel: bool) {
    let rounded = |m: Mat<'_>| -> Vec<f32> {
        let entries = (0..m.rows).flat_map(|r| (0..m.columns).map(move |c| (r, c)));
        entries.map(|(r, c)| f32::from_bits(round(m.entry(r, c)) << 16)).collect()
    };
    let (left, right) = (rounded(a), rounded(b));
    let (a, b) = (Mat::new(&left, a.rows, a.columns), Mat::new(&right, b.rows, b.columns));
    product(out, accumulate, 1.0, a, b, parallel);
}

/// One tile: rows of pairs [≤ 12, pairs] from pair `from` on, by a panel [depth, 32].
#[expect(clippy::too_many_arguments, reason = "a tile has this many sides")]
fn tile(
    left: &[u32],
    pairs: usize,
    from: usize,
    right: &[u32],
    sums: &mut [f32],
    stride: usize,
    width: usize,
    add: bool,
) {
    let rows = left.len() / pairs;
    let depth = right.len() / COLUMNS;
    assert!(rows <= ROWS && from + depth <= pairs && width <= COLUMNS && width > 0 && rows > 0);
    assert!((rows - 1) * stride + width <= sums.len());
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the asserts above keep every access inside the slices, and `product_half` has found the instructions.
        #[expect(unsafe_code, reason = "the instruction has no safe form")]
        unsafe {
            x86::tile(
                rows,
                left.as_ptr().add(from),
                pairs,
                right.as_ptr(),
                depth,
                sums.as_mut_ptr(),
                stride,
                width,
                add,
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (sums, stride, add);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_loadu_si512,
        _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_set1_epi32, _mm512_setzero_ps,
    };
    use std::mem::transmute;

    use super::COLUMNS;

    /// # Safety
    /// The processor has AVX-512 and its bf16 instructions; `left` has `rows` rows `pairs` apart with `depth` pairs each, `right`
    /// `depth` times 32 pairs, `sums` `rows` rows `stride` apart with `width` entries each.
    #[expect(clippy::too_many_arguments, reason = "a tile has this many sides")]
    #[expect(unsafe_code, reason = "pointers, checked by the caller")]
    pub(super) unsafe fn tile(
        rows: usize,
        left: *const u32,
        pairs: usize,
        right: *const u32,
        depth: usize,
        sums: *mut f32,
        stride: usize,
        width: usize,
        add: bool,
    ) {
        macro_rules! of {
            ($($n:literal)*) => {
                match rows {
                    // SAFETY: as of this function.
                    $($n => unsafe { of_rows::<$n>(left, pairs, right, depth, sums, stride, width, add) },)*
                    _ => {}
                }
            };
        }
        of!(1 2 3 4 5 6 7 8 9 10 11 12);
    }

    /// # Safety
    /// As [`tile`], with `R` rows.
    #[expect(clippy::too_many_arguments, reason = "a tile has this many sides")]
    #[expect(unsafe_code, reason = "pointers, checked by the caller")]
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn of_rows<const R: usize>(
        left: *const u32,
        pairs: usize,
        right: *const u32,
        depth: usize,
        sums: *mut f32,
        stride: usize,
        width: usize,
        add: bool,
    ) {
        let mut acc: [[__m512; 2]; R] = [[_mm512_setzero_ps(); 2]; R];
        for p in 0..depth {
            // SAFETY: p < depth.
            let b: [__m512bh; 2] = unsafe {
                let at = right.add(p * COLUMNS);
                [
                    transmute::<__m512i, __m512bh>(_mm512_loadu_si512(at.cast())),
                    transmute::<__m512i, __m512bh>(_mm512_loadu_si512(at.add(16).cast())),
                ]
            };
            for (r, acc) in acc.iter_mut().enumerate() {
                // SAFETY: r < rows and p < depth.
                let a = unsafe {
                    let pair = *left.add(r * pairs + p);
                    transmute::<__m512i, __m512bh>(_mm512_set1_epi32(pair.cast_signed()))
                };
                acc[0] = _mm512_dpbf16_ps(acc[0], a, b[0]);
                acc[1] = _mm512_dpbf16_ps(acc[1], a, b[1]);
            }
        }
        let mask = |first: usize| {
            let left = width.saturating_sub(first).min(16);
            ((1_u32 << left) - 1) as u16
        };
        for (r, acc) in acc.iter().enumerate() {
            for (half, sum) in acc.iter().enumerate() {
                let (mask, first) = (mask(16 * half), 16 * half);
                if mask == 0 {
                    continue;
                }
                // SAFETY: r < rows, and the mask keeps inside the width.
                unsafe {
                    let at = sums.add(r * stride + first);
                    let old = if add { _mm512_maskz_loadu_ps(mask, at) } else { _mm512_setzero_ps() };
                    _mm512_mask_storeu_ps(at, mask, _mm512_add_ps(old, *sum));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use seeded::Family;

    use super::*;

    #[test]
    fn rounding_is_to_the_nearest_and_to_even() {
        for (x, right) in [
            (1.0, 1.0),
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.0 + 4.0 / 256.0),
            (1.0 + 1.01 / 256.0, 1.0 + 2.0 / 256.0),
            (-0.0, -0.0),
            (f32::INFINITY, f32::INFINITY),
            (f32::MAX, f32::INFINITY),
        ] {
            assert_eq!(f32::from_bits(round(x) << 16).to_bits(), f32::to_bits(right), "{x}");
        }
        assert!(f32::from_bits(round(f32::NAN) << 16).is_nan());
        assert!(f32::from_bits(round(f32::from_bits(0x7f80_0001)) << 16).is_nan());
    }

    #[test]
    fn products_agree_with_loops_over_rounded_numbers() {
        let mut s = Family::named("half").stream(seeded::test_seed());
        for case in 0..150 {
            let most = if case % 10 == 0 { 1100 } else { 90 };
            let (m, n, k) =
                (1 + s.below(130) as usize, 1 + s.below(100) as usize, 1 + s.below(2 * most) as usize);
            let a: Vec<f32> = (0..m * k).map(|_| s.normal() as f32).collect();
            let b: Vec<f32> = (0..k * n).map(|_| s.normal() as f32).collect();
            let start: Vec<f32> = (0..m * (n + 3)).map(|_| s.normal() as f32).collect();
            let (ta, tb, accumulate) = (s.below(2) == 1, s.below(2) == 1, s.below(2) == 1);
            let left = if ta { Mat::new(&a, k, m).t() } else { Mat::new(&a, m, k) };
            let right = if tb { Mat::new(&b, n, k).t() } else { Mat::new(&b, k, n) };
            let mut out = start.clone();
            product_half(MatMut::strided(&mut out, m, n, n + 3), accumulate, left, right, false);
            let half = |x: f32| f64::from(f32::from_bits(round(x) << 16));
            for i in 0..m {
                for j in 0..n + 3 {
                    let (mut want, mut size) = (f64::from(start[i * (n + 3) + j]), 1.0);
                    if j < n {
                        want = if accumulate { want } else { 0.0 };
                        for l in 0..k {
                            let x = if ta { a[l * m + i] } else { a[i * k + l] };
                            let y = if tb { b[j * k + l] } else { b[l * n + j] };
                            want += half(x) * half(y);
                            size += (half(x) * half(y)).abs();
                        }
                    }
                    let far = (f64::from(out[i * (n + 3) + j]) - want).abs();
                    assert!(far < 1e-6 * size, "{case} {i} {j}: {far}");
                }
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let mut s = Family::named("half").stream(1);
        let (m, n, k) = (300, 70, 1500);
        let a: Vec<f32> = (0..m * k).map(|_| s.normal() as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|_| s.normal() as f32).collect();
        let run = |threads: usize| {
            let mut out = vec![0.0; m * n];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (a, b) = (Mat::new(&a, m, k), Mat::new(&b, k, n));
                product_half(MatMut::new(&mut out, m, n), false, a, b, true);
            });
            out
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}
