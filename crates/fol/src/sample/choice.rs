//! One draw among weighted alternatives, its sum computed once (F34).

use seeded::Stream;

/// Weights in the order of the alternatives.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    weights: Vec<u64>,
    sum: u64,
}

impl Choice {
    /// The sum of the weights must fit 64 bits, which the law's reader sees to.
    pub(crate) fn new(weights: impl IntoIterator<Item = u64>) -> Self {
        let weights: Vec<u64> = weights.into_iter().collect();
        let sum = weights.iter().fold(0u64, |a, &w| a.saturating_add(w));
        Self { weights, sum }
    }

    /// The first alternative whose running sum exceeds a draw below the sum; 0 if all weights are 0.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> usize {
        let mut r = stream.below(self.sum);
        for (i, &weight) in self.weights.iter().enumerate() {
            if r < weight {
                return i;
            }
            r -= weight;
        }
        0
    }

    /// The draw, and what belongs to the alternative.
    pub(crate) fn pick<'a, T>(&self, of: &'a [T], stream: &mut Stream) -> Option<&'a T> {
        of.get(self.draw(stream))
    }
}
