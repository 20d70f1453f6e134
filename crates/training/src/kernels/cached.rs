//! Attention of one query over keys and values that were kept, one head of it at a time.

use super::math::sum_lanes;
use super::multiversion;

multiversion! {
    /// scores\[j\] ← scale · q·k_j, for as many keys as there are scores.
    ///
    /// Shapes: q \[size\]; keys [time, width], of which the head has the columns from `from` on.
    pub fn cached_scores(q: &[f32], keys: &[f32], width: usize, from: usize, scale: f32, scores: &mut [f32]) {
        for (score, key) in scores.iter_mut().zip(keys.chunks_exact(width.max(1))) {
            *score = scale * sum_lanes(q, &key[from..from + q.len()], |a, b| a * b);
        }
    }
}

multiversion! {
    /// context += Σ weights\[j\] · v_j, for as many values as there are weights.
    ///
    /// Shapes: context \[size\]; values [time, width], of which the head has the columns from `from` on.
    pub fn cached_values(weights: &[f32], values: &[f32], width: usize, from: usize, context: &mut [f32]) {
        let size = context.len();
        for (w, value) in weights.iter().zip(values.chunks_exact(width.max(1))) {
            for (c, v) in context.iter_mut().zip(&value[from..from + size]) {
                *c = w.mul_add(*v, *c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loops in f64, at sizes that fill lanes and that do not.
    #[test]
    fn scores_and_values_agree_with_loops() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 40) as f32 / (1 << 23) as f32) - 1.0
        };
        for (time, width, from, size) in [(1, 1, 0, 1), (5, 12, 4, 4), (9, 96, 32, 32), (33, 51, 17, 17)] {
            let mut draw = |n: usize| (0..n).map(|_| next()).collect::<Vec<f32>>();
            let (q, keys, values) = (draw(size), draw(time * width), draw(time * width));
            let mut scores = vec![9.0; time];
            cached_scores(&q, &keys, width, from, 0.5, &mut scores);
            let start = draw(size);
            let mut context = start.clone();
            cached_values(&scores, &values, width, from, &mut context);
            for (j, score) in scores.iter().enumerate() {
                let right: f64 =
                    (0..size).map(|c| f64::from(q[c]) * f64::from(keys[j * width + from + c])).sum();
                assert!((f64::from(*score) - 0.5 * right).abs() < 1e-5);
            }
            for (c, found) in context.iter().enumerate() {
                let right: f64 = (0..time)
                    .map(|j| f64::from(scores[j]) * f64::from(values[j * width + from + c]))
                    .sum::<f64>()
                    + f64::from(start[c]);
                assert!((f64::from(*found) - right).abs() < 1e-5);
            }
        }
    }
}
