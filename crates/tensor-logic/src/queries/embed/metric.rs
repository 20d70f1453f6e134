//! What two objects are to each other: the dot product of their vectors, or a bound on it.

use super::block::matrices;

/// What an object counts where another one is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Metric<'a> {
    /// 1 for itself, 0 for others: orthonormal vectors.
    Exact,
    /// The dot products: the Gram matrix [n, n], 1 on its diagonal.
    Gram(&'a [f64]),
    /// 1 for itself, this much for every other: no dot product of the Gram matrix is larger.
    Coherence(f64),
}

impl Metric<'_> {
    /// Of one object and another.
    pub(super) fn between(self, a: usize, b: usize, objects: usize) -> f64 {
        match self {
            Metric::Gram(gram) => gram.get(a * objects + b).copied().unwrap_or(0.0),
            _ if a == b => 1.0,
            Metric::Exact => 0.0,
            Metric::Coherence(most) => most,
        }
    }

    /// Σ_a x[…, a, …] m(a, b) in place of x[…, b, …], along the axis before the last `inner` numbers.
    pub(super) fn along(self, values: &mut Vec<f64>, objects: usize, inner: usize) {
        let row = objects * inner;
        if row == 0 {
            return;
        }
        match self {
            Metric::Exact => {}
            Metric::Coherence(most) => {
                let mut sums = vec![0.0; inner];
                for row in values.chunks_mut(row) {
                    sums.fill(0.0);
                    for part in row.chunks(inner) {
                        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
                    }
                    for part in row.chunks_mut(inner) {
                        let each = part.iter_mut().zip(&sums);
                        each.for_each(|(value, sum)| *value += most * (sum - *value));
                    }
                }
            }
            Metric::Gram(gram) => {
                let mut out = vec![0.0; values.len()];
                if inner == 1 {
                    let rows = values.len() / objects;
                    matrices(&mut out, values, gram, (rows, objects, objects));
                } else {
                    for (out, row) in out.chunks_mut(row).zip(values.chunks(row)) {
                        matrices(out, gram, row, (objects, objects, inner));
                    }
                }
                *values = out;
            }
        }
    }
}
