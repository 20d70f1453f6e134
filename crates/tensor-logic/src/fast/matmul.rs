//! The matrix product of f64, batched: plain loops that the compiler turns into wide arithmetic.

use rayon::prelude::*;

/// Columns of the right operand that are worked on at once.
const WIDTH: usize = 256;
/// Depth that is worked on at once.
const DEPTH: usize = 128;
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

/// The sum of products, in eight lanes.
fn dot(x: &[f64], y: &[f64]) -> f64 {
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
    for columns in (0..n).step_by(WIDTH) {
        let width = WIDTH.min(n - columns);
        for depths in (0..k).step_by(DEPTH) {
            let depth = DEPTH.min(k - depths);
            for (out, x) in out.chunks_mut(4 * n).zip(x.chunks(4 * k)) {
                if let [a, b, c, d] = quarters(out, n).as_mut_slice() {
                    let cut = |row: usize| &x[row * k + depths..row * k + depths + depth];
                    let rows = [cut(0), cut(1), cut(2), cut(3)];
                    let span = columns..columns + width;
                    let (a, b) = (&mut a[span.clone()], &mut b[span.clone()]);
                    let (c, d) = (&mut c[span.clone()], &mut d[span.clone()]);
                    for at in 0..depth {
                        let y = &y[(depths + at) * n + columns..(depths + at) * n + columns + width];
                        let (p, q, r, s) = (rows[0][at], rows[1][at], rows[2][at], rows[3][at]);
                        for ((((a, b), c), d), y) in
                            a.iter_mut().zip(b.iter_mut()).zip(c.iter_mut()).zip(d.iter_mut()).zip(y)
                        {
                            *a += p * y;
                            *b += q * y;
                            *c += r * y;
                            *d += s * y;
                        }
                    }
                } else {
                    for (out, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(k)) {
                        let out = &mut out[columns..columns + width];
                        for at in depths..depths + depth {
                            let y = &y[at * n + columns..at * n + columns + width];
                            out.iter_mut().zip(y).for_each(|(slot, y)| *slot += x[at] * y);
                        }
                    }
                }
            }
        }
    }
}

/// Four rows apart, if there are four.
fn quarters(out: &mut [f64], n: usize) -> Vec<&mut [f64]> {
    if out.len() == 4 * n { out.chunks_exact_mut(n).collect() } else { Vec::new() }
}
