//! Cross-entropy at the logits of one step of a block: the loss, its gradient, the predicted classes.

use super::lanes::{map, zip};
use super::real::Real;

/// What a block is judged by at one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<const L: usize> {
    /// The class of each sequence.
    pub(super) targets: [u32; L],
    /// 1 where the position counts, else 0.
    pub(super) weights: [f32; L],
}

/// The summed loss in nats; writes its gradient to `gradient`, which has as many rows as there are logits.
#[inline(always)]
pub(super) fn cross_entropy<T: Real, const L: usize>(
    logits: &[T],
    wanted: &Wanted<L>,
    gradient: &mut [T],
) -> f64 {
    if wanted.weights.iter().all(|w| *w == 0.0) {
        gradient.fill(T::ZERO);
        return 0.0;
    }
    let mut greatest = [T::from_f64(f64::NEG_INFINITY); L];
    for row in logits.chunks_exact(L) {
        for (m, x) in greatest.iter_mut().zip(row) {
            *m = x.greater(*m);
        }
    }
    let mut total = [T::ZERO; L];
    for (g, x) in gradient.chunks_exact_mut(L).zip(logits.chunks_exact(L)) {
        zip(g, x, &greatest, false, |x, m| (x - m).exp());
        map(&mut total, g, true, |e| e);
    }
    let mut factor = [T::ZERO; L];
    for l in 0..L {
        factor[l] = T::from_f64(f64::from(wanted.weights[l])) / total[l];
    }
    for g in gradient.chunks_exact_mut(L) {
        for (g, f) in g.iter_mut().zip(&factor) {
            *g = *g * *f;
        }
    }
    let mut loss = 0.0;
    for l in 0..L {
        let weight = f64::from(wanted.weights[l]);
        let at = wanted.targets[l] as usize * L + l;
        if weight > 0.0 && at < logits.len() {
            gradient[at] = gradient[at] - T::from_f64(weight);
            loss += weight * (total[l].to_f64().ln() + (greatest[l] - logits[at]).to_f64());
        }
    }
    loss
}

/// The class of each sequence: the first of the greatest logits.
#[inline(always)]
pub(super) fn classes<T: Real, const L: usize>(logits: &[T]) -> [u32; L] {
    let mut best = [T::from_f64(f64::NEG_INFINITY); L];
    let mut classes = [0; L];
    for (class, row) in logits.chunks_exact(L).enumerate() {
        for l in 0..L {
            if row[l] > best[l] {
                best[l] = row[l];
                classes[l] = class as u32;
            }
        }
    }
    classes
}
