//! The matrix product of f64, batched: blocks of 4 rows and 8 columns that stay in registers.
//!
//! The loops are plain; where the processor has AVX2 the same loops are compiled for it. No
//! multiplication is fused with an addition, so the bits are the same on every processor.

use rayon::prelude::*;

/// Rows and columns of a block.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
/// Depth that is worked on at once: a packed strip of the right operand stays in the cache.
const DEPTH: usize = 256;
/// Multiply-adds from which rows are shared among threads.
const PARALLEL: usize = 1 << 21;

/// `out[b] = x[b] y[b]` for matrices of m × k and k × n; `out` holds zeros before.
pub(crate) fn matmul(batch: usize, m: usize, k: usize, n: usize, x: &[f64], y: &[f64], out: &mut [f64]) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    for b in 0..batch {
        let (x, y) = (&x[b * m * k..(b + 1) * m * k], &y[b * k * n..(b + 1) * k * n]);
        let out = &mut out[b * m * n..(b + 1) * m * n];
        if n == 1 {
            for (slot, row) in out.iter_mut().zip(x.chunks_exact(k)) {
                *slot = dot(row, y);
            }
        } else if m * k * n >= PARALLEL && rayon::current_num_threads() > 1 {
            // A row is computed in the same order whoever computes it.
            let rows = m.div_ceil(4 * rayon::current_num_threads()).max(4).next_multiple_of(4);
            out.par_chunks_mut(rows * n)
                .zip(x.par_chunks(rows * k))
                .for_each(|(out, x)| panel(k, n, x, y, out));
        } else {
            panel(k, n, x, y, out);
        }
    }
}

/// Terms of a sum that one thread takes.
const TERMS: usize = 1 << 15;

/// The sum of products: of every part in eight lanes, whoever takes it.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    if x.len() <= TERMS {
        return lanes(x, y);
    }
    let parts: Vec<f64> = x.par_chunks(TERMS).zip(y.par_chunks(TERMS)).map(|(x, y)| lanes(x, y)).collect();
    super::block::sum(&parts)
}

/// The sum of products, in eight lanes.
fn lanes(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    for (x, y) in xs.iter().zip(ys) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x * y;
        }
    }
    let tail: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    lanes.iter().sum::<f64>() + tail
}

/// Some rows of the product.
fn panel(k: usize, n: usize, x: &[f64], y: &[f64], out: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the same safe code, compiled for AVX2")]
        // SAFETY: the processor has AVX2; nothing else is asked for.
        unsafe {
            panel_avx2(k, n, x, y, out);
        }
        return;
    }
    blocks(k, n, x, y, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn panel_avx2(k: usize, n: usize, x: &[f64], y: &[f64], out: &mut [f64]) {
    blocks(k, n, x, y, out);
}

#[inline(always)]
fn blocks(k: usize, n: usize, x: &[f64], y: &[f64], out: &mut [f64]) {
    let mut packed = vec![[0.0; COLUMNS]; DEPTH.min(k)];
    for depths in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - depths);
        for columns in (0..n).step_by(COLUMNS) {
            let width = COLUMNS.min(n - columns);
            for (at, strip) in packed.iter_mut().enumerate().take(depth) {
                let from = (depths + at) * n + columns;
                strip[..width].copy_from_slice(&y[from..from + width]);
                strip[width..].fill(0.0);
            }
            for (out, x) in out.chunks_mut(ROWS * n).zip(x.chunks(ROWS * k)) {
                let rows = x.len() / k;
                // Rows that are not there repeat the first and are not written.
                let row = |row: usize| {
                    let from = if row < rows { row * k } else { 0 } + depths;
                    &x[from..from + depth]
                };
                let sums = block([row(0), row(1), row(2), row(3)], &packed[..depth]);
                for (row, sums) in sums.iter().enumerate().take(rows) {
                    let to = &mut out[row * n + columns..row * n + columns + width];
                    to.iter_mut().zip(sums).for_each(|(slot, sum)| *slot += sum);
                }
            }
        }
    }
}

/// 4 × 8 sums over the depth.
#[inline(always)]
fn block(rows: [&[f64]; ROWS], strip: &[[f64; COLUMNS]]) -> [[f64; COLUMNS]; ROWS] {
    let [a, b, c, d] = rows;
    let (mut p, mut q, mut r, mut s) = ([0.0; COLUMNS], [0.0; COLUMNS], [0.0; COLUMNS], [0.0; COLUMNS]);
    for ((((y, a), b), c), d) in strip.iter().zip(a).zip(b).zip(c).zip(d) {
        // Written out, so that all sums stay in registers.
        for at in 0..COLUMNS {
            p[at] += a * y[at];
        }
        for at in 0..COLUMNS {
            q[at] += b * y[at];
        }
        for at in 0..COLUMNS {
            r[at] += c * y[at];
        }
        for at in 0..COLUMNS {
            s[at] += d * y[at];
        }
    }
    [p, q, r, s]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_three_loops() {
        let mut stream = seeded::Family::new("tensor-logic/tests", "matmul", 0).stream(0);
        let shapes =
            [(1, 1, 1, 1), (2, 3, 5, 7), (1, 4, 300, 8), (3, 9, 1, 17), (1, 130, 70, 260), (2, 5, 6, 1)];
        for (batch, m, k, n) in shapes {
            let x: Vec<f64> = (0..batch * m * k).map(|_| stream.uniform() - 0.5).collect();
            let y: Vec<f64> = (0..batch * k * n).map(|_| stream.uniform() - 0.5).collect();
            let mut out = vec![0.0; batch * m * n];
            matmul(batch, m, k, n, &x, &y, &mut out);
            for b in 0..batch {
                for i in 0..m {
                    for j in 0..n {
                        let term = |at: usize| x[(b * m + i) * k + at] * y[(b * k + at) * n + j];
                        let sum: f64 = (0..k).map(term).sum();
                        assert!((out[(b * m + i) * n + j] - sum).abs() < 1e-12, "{batch} {m} {k} {n}");
                    }
                }
            }
        }
    }
}
