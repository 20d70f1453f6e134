//! Whether vectors of numbers lie in the order of the numbers: the rank correlation of their distances.

use seeded::Family;
use serde::Serialize;

/// The pairs of numbers, where there are so many.
const PAIRS: usize = 10_000;

/// Random renamings of the numbers, for the standard error.
const RENAMED: u64 = 99;

/// Vectors of numbers.
pub(super) struct Vectors {
    /// Each with its number.
    pub(super) vectors: Vec<(u64, Vec<f32>)>,
    /// How many of them occur in the training texts.
    pub(super) occurred: usize,
    /// What they are vectors of.
    pub(super) of: &'static str,
}

/// The rank correlation of ‖e(i) − e(j)‖ with |i − j|.
#[derive(Debug, Clone, Serialize)]
pub struct Numerals {
    /// Spearman's correlation, ties at their mean rank; none for fewer than three numbers or equal distances.
    pub spearman: Option<f64>,
    /// Its root mean square when the numbers are renamed at random: pairs share numbers, so this is no 1/√pairs.
    pub se: Option<f64>,
    /// The number of pairs: all, or 10,000 drawn ones.
    pub pairs: usize,
    /// What the vectors are of: `numerals`, or `names of variables`.
    pub of: &'static str,
    /// How many the law can write.
    pub numbers: usize,
    /// How many of them occur in the training texts.
    pub occurred: usize,
}

/// Correlates the distances of vectors with those of their numbers.
pub(super) fn numerals(given: &Vectors, seed: u64) -> Numerals {
    let family = Family::new("symbolic-transformer", "numerals", seed);
    let vectors = &given.vectors;
    let n = vectors.len();
    let pairs = pairs(n, &family);
    let number = |i: usize| vectors.get(i).map_or(0, |v| v.0);
    let far: Vec<f64> = pairs
        .iter()
        .filter_map(|&(i, j)| {
            let (a, b) = (vectors.get(i)?, vectors.get(j)?);
            let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
            Some(a.1.iter().zip(&b.1).map(square).sum::<f64>().sqrt())
        })
        .collect();
    let far = ranks(&far);
    let apart = |name: &dyn Fn(usize) -> u64| -> Vec<f64> {
        pairs.iter().map(|&(i, j)| name(i).abs_diff(name(j)) as f64).collect()
    };
    let spearman = correlation(&far, &ranks(&apart(&number)));
    let renamed = (1..=RENAMED).filter_map(|item| {
        let mut order: Vec<usize> = (0..n).collect();
        let mut stream = family.stream(item);
        for i in (1..n).rev() {
            order.swap(i, stream.below(i as u64 + 1) as usize);
        }
        correlation(&far, &ranks(&apart(&|i| number(order.get(i).copied().unwrap_or(0)))))
    });
    let squares: Vec<f64> = renamed.map(|r| r * r).collect();
    let se = (!squares.is_empty()).then(|| (squares.iter().sum::<f64>() / squares.len() as f64).sqrt());
    Numerals {
        spearman: spearman.filter(|_| n > 2),
        se: se.filter(|_| n > 2),
        pairs: pairs.len(),
        of: given.of,
        numbers: n,
        occurred: given.occurred,
    }
}

/// All pairs of n things, or so many drawn ones.
fn pairs(n: usize, family: &Family) -> Vec<(usize, usize)> {
    if n * n.saturating_sub(1) / 2 <= PAIRS {
        return (0..n).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
    }
    let mut stream = family.stream(0);
    let draw = |_| {
        let i = stream.below(n as u64) as usize;
        let j = stream.below(n as u64 - 1) as usize;
        if j < i { (j, i) } else { (i, j + 1) }
    };
    (0..PAIRS).map(draw).collect()
}

/// The ranks of values, equal ones at their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|a, b| a.1 == b.1) {
        let rank = before as f64 + (equal.len() as f64 - 1.0) / 2.0;
        for (i, _) in equal {
            if let Some(slot) = ranks.get_mut(*i) {
                *slot = rank;
            }
        }
        before += equal.len();
    }
    ranks
}

/// Pearson's correlation; none where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len().max(1) as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        ab += (a - mean_a) * (b - mean_b);
        aa += (a - mean_a).powi(2);
        bb += (b - mean_b).powi(2);
    }
    (aa > 0.0 && bb > 0.0).then(|| ab / (aa * bb).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::test_seed;

    fn of(vectors: Vec<(u64, Vec<f32>)>) -> Numerals {
        numerals(&Vectors { vectors, occurred: 0, of: "numerals" }, 0)
    }

    #[test]
    fn numbers_on_a_line_are_in_order_and_random_vectors_are_not() {
        for n in [3_u64, 50, 625] {
            let line = of((0..n).map(|i| (i, vec![2.0 * i as f32, 1.0])).collect());
            assert!((line.spearman.unwrap() - 1.0).abs() < 1e-12, "{n}");
            assert_eq!(line.pairs, (n * (n - 1) / 2).min(10_000) as usize);
            // Equal in rank, not in distance.
            let convex = of((0..n).map(|i| (i, vec![(1.0 + i as f32).sqrt()])).collect());
            assert!(convex.spearman.unwrap() > 0.4);
        }
        let mut stream = Family::named("numerals-test").stream(test_seed());
        let random = of((0..625).map(|i| (i, (0..32).map(|_| stream.normal() as f32).collect())).collect());
        let (rho, se) = (random.spearman.unwrap(), random.se.unwrap());
        assert!(rho.abs() < 5.0 * se && se < 0.1, "{rho} {se}");
    }

    /// By the textbook formula where there are no ties: 1 − 6Σd²/(n(n² − 1)).
    #[test]
    fn ranks_and_the_formula_of_the_textbook() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [3.0, 0.0, 3.0, 1.0, 3.0]);
        let (a, b) = ([1.0, 5.0, 2.0, 8.0, 4.0], [0.2, 0.1, 0.9, 0.8, 0.5]);
        let (ra, rb) = (ranks(&a), ranks(&b));
        let d: f64 = ra.iter().zip(&rb).map(|(a, b)| (a - b).powi(2)).sum();
        assert!((correlation(&ra, &rb).unwrap() - (1.0 - 6.0 * d / 120.0)).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 1.0], &[0.0, 1.0]), None);
    }

    #[test]
    fn pairs_are_of_different_numbers_and_all_of_them_where_they_are_few() {
        let family = Family::named("pairs");
        assert_eq!(pairs(3, &family), [(0, 1), (0, 2), (1, 2)]);
        assert!(pairs(0, &family).is_empty() && pairs(1, &family).is_empty());
        let many = pairs(625, &family);
        assert!(many.len() == 10_000 && many.iter().all(|&(i, j)| i < j && j < 625));
        assert!(many.iter().any(|p| p.0 == 0) && many.iter().any(|p| p.1 == 624));
        assert!(of(vec![(0, vec![1.0]), (1, vec![2.0])]).spearman.is_none());
    }
}
