//! Distributions over indices, read digit by digit.
//!
//! Digits come most significant first, so after some digits the index is one of a union of ranges: the value v
//! itself, then all that continue it by one digit, by two, and so on. [`IndexWeights`] knows the weight of a
//! range; [`IndexWeights::prefix`] sums the union, and the weight of v alone is that the index ends here.

use crate::codec::{BASE_U64, shifted};
use crate::symbol::{BASE, Numeral};

/// A range of indices, the second excluded, each of the same weight.
pub(crate) type Block = (u64, u64, f64);

/// Weights of indices: blocks, and single points that add or take away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexWeights<'a> {
    pub(crate) blocks: &'a [Block],
    pub(crate) points: &'a [u64],
    /// The weight of each point.
    pub(crate) point: f64,
    /// One occurrence of a point that does not count.
    pub(crate) without: Option<u64>,
}

impl IndexWeights<'_> {
    /// The weight of the indices from `from` up to `to`, excluded.
    pub(crate) fn range(&self, from: u64, to: u64) -> f64 {
        let mut sum = 0.0;
        for &(start, end, weight) in self.blocks {
            let (start, end) = (start.max(from), end.min(to));
            if start < end {
                sum += (end - start) as f64 * weight;
            }
        }
        let inside = |p: u64| from <= p && p < to;
        sum += self.points.iter().filter(|&&p| inside(p)).count() as f64 * self.point;
        if self.without.is_some_and(inside) {
            sum -= self.point;
        }
        sum
    }

    /// The weight of all indices.
    pub(crate) fn total(&self) -> f64 {
        self.range(0, u64::MAX)
    }

    /// All weight is below this index.
    pub(crate) fn end(&self) -> u64 {
        let blocks = self.blocks.iter().map(|b| b.1);
        blocks.chain(self.points.iter().map(|p| p.saturating_add(1))).max().unwrap_or(0)
    }

    /// The weight of the indices whose digits begin with those of `value`.
    pub(crate) fn prefix(&self, value: u64) -> f64 {
        let mut sum = self.range(value, value.saturating_add(1));
        if value > 0 {
            sum += self.longer(value);
        }
        sum
    }

    /// The weight of the indices that continue `value` by at least one digit.
    pub(crate) fn longer(&self, value: u64) -> f64 {
        let (end, mut sum, mut from, mut width) = (self.end(), 0.0, value, 1u64);
        loop {
            let next = from.checked_mul(BASE_U64).filter(|&next| value > 0 && next < end);
            let (Some(next), Some(wider)) = (next, width.checked_mul(BASE_U64)) else { return sum };
            (from, width) = (next, wider);
            sum += self.range(from, from.saturating_add(width));
        }
    }

    /// Calls with each digit that may follow the digits of `value` (`None`: it is the first), and its weight.
    pub(crate) fn digits(&self, value: Option<u64>, mut digit: impl FnMut(Numeral, f64)) {
        for numeral in (0..BASE).filter_map(Numeral::new) {
            let next = shifted(value.unwrap_or(0), numeral);
            let weight =
                next.filter(|&next| next < self.end() || next == 0).map_or(0.0, |next| self.prefix(next));
            if weight > 0.0 {
                digit(numeral, weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_weights_agree_with_enumeration() {
        let blocks = [(0, 3, 2.0), (600, 1300, 1.0), (390_000, 400_000, 0.5)];
        let points = [1, 700, 700, 400_001];
        let weights = IndexWeights { blocks: &blocks, points: &points, point: 3.0, without: Some(700) };
        for prefix in [vec![0], vec![1], vec![1, 75], vec![2], vec![624], vec![624, 3], vec![1, 15, 1]] {
            let value = prefix.iter().fold(0, |v, &d| v * 625 + u64::from(d));
            let slow: f64 = (0..401_000)
                .filter(|&i| crate::codec::digits(i).starts_with(&prefix))
                .map(|i| weights.range(i, i + 1))
                .sum();
            assert!((weights.prefix(value) - slow).abs() < 1e-9, "{prefix:?}");
        }
        let mut sum = 0.0;
        weights.digits(None, |_, w| sum += w);
        assert!((sum - weights.total()).abs() < 1e-9);
    }
}
