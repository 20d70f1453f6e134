//! Small operations on row blocks: adding, scaling, and sums over rows.

use rayon::prelude::*;

use super::{ROW_BLOCK, multiversion};

multiversion! {
    fn add_block(to: &mut [f32], from: &[f32]) {
        for (a, b) in to.iter_mut().zip(from) {
            *a += b;
        }
    }
}

multiversion! {
    fn scale_block(x: &mut [f32], factor: f32) {
        for v in x {
            *v *= factor;
        }
    }
}

multiversion! {
    /// to ← factor·x + to of one row, each entry by one fused multiply-add.
    pub fn add_scaled(to: &mut [f32], x: &[f32], factor: f32) {
        for (t, v) in to.iter_mut().zip(x) {
            *t = factor.mul_add(*v, *t);
        }
    }
}

const CHUNK: usize = 1 << 14;

/// to ← to + from.
pub fn add_into(to: &mut [f32], from: &[f32]) {
    to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(a, b)| add_block(a, b));
}

/// x ← factor·x.
pub fn scale_in_place(x: &mut [f32], factor: f32) {
    x.par_chunks_mut(CHUNK).for_each(|x| scale_block(x, factor));
}

multiversion! {
    /// total\[c\] += Σ over rows of `x[r, c]`, for one block of rows.
    fn column_block(x: &[f32], total: &mut [f32]) {
        for row in x.chunks_exact(total.len().max(1)) {
            for (t, v) in total.iter_mut().zip(row) {
                *t += v;
            }
        }
    }
}

/// total\[c\] ← total\[c\] + Σᵣ x\[r, c\]: the gradient of a bias. Blocks of 64 rows are summed apart, then in order.
pub fn add_columns(x: &[f32], total: &mut [f32]) {
    let width = total.len().max(1);
    let partial: Vec<Vec<f32>> = x
        .par_chunks(ROW_BLOCK * width)
        .map(|block| {
            let mut sum = vec![0.0; total.len()];
            column_block(block, &mut sum);
            sum
        })
        .collect();
    for block in &partial {
        add_block(total, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_rows_are_added_with_one_rounding() {
        let x: Vec<f32> = (0..37).map(|i| 1.0 + i as f32 * f32::EPSILON).collect();
        let mut to: Vec<f32> = (0..37).map(|i| i as f32 / 3.0).collect();
        let right: Vec<f32> = to.iter().zip(&x).map(|(t, v)| 0.1_f32.mul_add(*v, *t)).collect();
        add_scaled(&mut to, &x, 0.1);
        assert_eq!(to, right);
    }

    #[test]
    fn columns_are_summed() {
        let (rows, width) = (200, 7);
        let x: Vec<f32> = (0..rows * width).map(|i| (i % 13) as f32).collect();
        let mut total = vec![1.0; width];
        add_columns(&x, &mut total);
        for c in 0..width {
            let want: f32 = 1.0 + (0..rows).map(|r| x[r * width + c]).sum::<f32>();
            assert_eq!(total[c], want);
        }
    }
}
