//! What a model's logits cost on given targets: nats, and whether the target is among the best.

use rayon::prelude::*;
use training::kernels::log_sum_exp;

/// Sums over targets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scores {
    /// Σ −ln q(target), in nats.
    pub nll: f64,
    /// Targets among the 1, 5 and 10 largest logits; ties go to the smaller id.
    pub top: [u64; 3],
    /// The number of targets.
    pub targets: u64,
}

impl Scores {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.nll += other.nll;
        self.targets += other.targets;
        for (a, b) in self.top.iter_mut().zip(other.top) {
            *a += b;
        }
    }
}

/// The number of symbols that a model prefers to `target`: larger logits, and equal ones of smaller id. Where one is no number
/// there is no order, and the target is behind all.
pub fn rank(logits: &[f32], target: usize) -> usize {
    let Some(&own) = logits.get(target).filter(|_| !logits.iter().any(|l| l.is_nan())) else {
        return logits.len();
    };
    let (before, after) = logits.split_at(target);
    before.iter().filter(|&&l| l >= own).count() + after.iter().filter(|&&l| l > own).count()
}

/// The sums for logits [rows, V] at targets \[rows\]; `u32::MAX` is no target.
pub fn score(logits: &[f32], targets: &[u32]) -> Scores {
    let width = (logits.len() / targets.len().max(1)).max(1);
    let rows: Vec<Scores> = logits
        .par_chunks_exact(width)
        .zip(targets)
        .filter(|(_, t)| **t != u32::MAX)
        .map(|(row, &target)| {
            let own = row.get(target as usize).copied().unwrap_or(f32::NAN);
            let rank = rank(row, target as usize);
            let top = [1, 5, 10].map(|k| u64::from(rank < k));
            Scores { nll: f64::from(log_sum_exp(row)) - f64::from(own), top, targets: 1 }
        })
        .collect();
    let mut total = Scores::default();
    for row in &rows {
        total.add(row);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_smaller_id() {
        let mut logits = vec![0.0; 20];
        logits[7] = 1.0;
        let s = score(&[logits.clone(), logits.clone(), logits].concat(), &[7, 3, 9]);
        assert_eq!(s.top, [1, 2, 3]);
        assert_eq!(s.targets, 3);
        assert_eq!(rank(&[1.0, 1.0, 1.0], 1), 1);
    }

    #[test]
    fn uniform_logits_cost_ln_663() {
        let s = score(&vec![0.5; 663 * 4], &[0, 5, u32::MAX, 662]);
        assert_eq!(s.targets, 3);
        assert!((s.nll / 3.0 - 6.496775).abs() < 1e-6);
    }
}
