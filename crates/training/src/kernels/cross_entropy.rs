//! Cross-entropy of logits in one operation: the loss and the gradient, written over the logits.

use rayon::prelude::*;

use super::math::{exp_lane, exp_shifted, sum_lanes};
use super::{ROW_BLOCK, multiversion};

/// What the rows of one batch cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CrossEntropy {
    /// Σ −ln q(target) over valid targets, in nats: always the plain loss.
    pub loss: f64,
    /// The number of valid targets.
    pub targets: u64,
}

multiversion! {
    fn block(logits: &mut [f32], targets: &[u32], width: usize, smoothing: f32, gradient: bool) -> CrossEntropy {
        let mut total = CrossEntropy::default();
        let share = smoothing / width as f32;
        for (row, &target) in logits.chunks_exact_mut(width).zip(targets) {
            let Some(&logit) = row.get(target as usize) else {
                if gradient {
                    row.fill(0.0);
                }
                continue;
            };
            if gradient {
                // d/dz of (1−s)·CE + s·mean(−ln q) is q − (1−s)·[target] − s/V.
                let (max, sum) = exp_shifted(row);
                total.loss += f64::from(max) + f64::from(sum).ln() - f64::from(logit);
                let inverse = 1.0 / sum;
                for v in row.iter_mut() {
                    *v = v.mul_add(inverse, -share);
                }
                if let Some(v) = row.get_mut(target as usize) {
                    *v -= 1.0 - smoothing;
                }
            } else {
                let max = super::math::max_lanes(row);
                let sum = sum_lanes(row, row, |a, _| exp_lane(a - max));
                total.loss += f64::from(max) + f64::from(sum).ln() - f64::from(logit);
            }
            total.targets += 1;
        }
        total
    }
}

/// The summed loss of `logits` [rows, width] at `targets` \[rows\]; a target of `u32::MAX` (or any that is no
/// column) is left out. With `gradient`, the logits become the gradient of the summed, label-smoothed loss; without,
/// they stay.
pub fn cross_entropy(logits: &mut [f32], targets: &[u32], smoothing: f32, gradient: bool) -> CrossEntropy {
    let width = (logits.len() / targets.len().max(1)).max(1);
    let blocks: Vec<CrossEntropy> = logits
        .par_chunks_mut(ROW_BLOCK * width)
        .zip(targets.par_chunks(ROW_BLOCK))
        .map(|(logits, targets)| block(logits, targets, width, smoothing, gradient))
        .collect();
    blocks.iter().fold(CrossEntropy::default(), |a, b| CrossEntropy {
        loss: a.loss + b.loss,
        targets: a.targets + b.targets,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_logits_cost_ln_663_and_padding_costs_nothing() {
        let mut logits = vec![0.25; 3 * 663];
        let ce = cross_entropy(&mut logits, &[5, u32::MAX, 662], 0.0, true);
        assert_eq!(ce.targets, 2);
        assert!((ce.loss / 2.0 - 6.496775).abs() < 1e-6);
        assert!(logits[663..2 * 663].iter().all(|&g| g == 0.0));
        assert!((logits[5] - (1.0 / 663.0 - 1.0)).abs() < 1e-6);
    }

    #[test]
    fn nan_is_reported() {
        let mut logits = vec![0.0; 663];
        logits[300] = f32::NAN;
        assert!(cross_entropy(&mut logits, &[5], 0.0, true).loss.is_nan());
    }

    #[test]
    fn smoothed_gradient_agrees_with_differences() {
        let x: Vec<f32> = (0..7).map(|i| (i as f32 * 1.7).sin()).collect();
        let s = 0.1;
        let loss = |x: &[f32]| {
            let lse = x.iter().map(|&v| f64::from(v).exp()).sum::<f64>().ln();
            let mean = x.iter().map(|&v| lse - f64::from(v)).sum::<f64>() / 7.0;
            (1.0 - s) * (lse - f64::from(x[2])) + s * mean
        };
        let mut g = x.clone();
        cross_entropy(&mut g, &[2], s as f32, true);
        for i in 0..7 {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[i] += 1e-2;
            down[i] -= 1e-2;
            assert!((f64::from(g[i]) - (loss(&up) - loss(&down)) / 2e-2).abs() < 1e-4);
        }
    }
}
