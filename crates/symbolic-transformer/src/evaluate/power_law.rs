//! Whether sizes follow a power law, how well, and whether a log-normal law does better (Clauset, Shalizi, Newman 2009).
//!
//! Enter at [`fit`]. Sizes are whole numbers. Of each smallest size that is tried the exponent is that of the largest
//! likelihood of p(x) ∝ x^(−α), x ≥ x_min, and the x_min is taken whose law is nearest to the sizes above it. How good
//! that is, is the share of samples drawn from the fitted law itself that are farther from their own fit. The alternative is a
//! log-normal law, cut into whole numbers and cut off at the same x_min; its advantage is a likelihood ratio (Vuong 1989).

use seeded::Stream;
use serde::Serialize;

/// The fewest sizes above a smallest one that are fitted.
const FEWEST: usize = 50;
/// Smallest sizes that are tried, the smallest of all first.
const TRIED: usize = 30;
/// Samples of the fitted law.
const SAMPLES: usize = 100;
/// Terms of ζ that are summed before the integral takes over.
const TERMS: u64 = 32;

/// A power law and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Sizes in all.
    pub sizes: usize,
    /// The smallest size of the law.
    pub smallest: u64,
    /// Sizes from there on.
    pub tail: usize,
    /// α of p(x) ∝ x^(−α).
    pub exponent: f64,
    /// Its standard error, (α − 1) / √tail.
    pub exponent_se: f64,
    /// The largest distance of the two distributions (Kolmogorov and Smirnov).
    pub distance: f64,
    /// The share of samples of the fitted law that are as far from their own fit: below 0.1 the power law is none.
    pub goodness: f64,
    /// μ and σ of the log-normal law over the same tail.
    pub lognormal: [f64; 2],
    /// Σ ln of the power law's probabilities over those of the log-normal law: below 0 the log-normal law is likelier.
    pub log_ratio: f64,
    /// The two-sided probability of such a ratio if both were as near to the truth.
    pub log_ratio_p: f64,
}

/// Σ k^(−s) over k ≥ a, by Euler's and Maclaurin's formula; s > 1, a > 0.
fn zeta(s: f64, a: u64) -> f64 {
    let end = (a + TERMS) as f64;
    let head: f64 = (a..a + TERMS).map(|k| (k as f64).powf(-s)).sum();
    let last = end.powf(-s);
    head + end * last / (s - 1.0) + 0.5 * last + s * last / (12.0 * end)
        - s * (s + 1.0) * (s + 2.0) * last / (720.0 * end.powi(3))
}

/// α of the largest likelihood of a tail with this mean of ln x.
fn exponent(mean_log: f64, smallest: u64) -> f64 {
    let loss = |alpha: f64| alpha * mean_log + zeta(alpha, smallest).ln();
    minimum(loss, 1.0 + 1e-6, 20.0)
}

/// The place of the minimum of a convex function, by golden sections.
fn minimum(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = 0.5 * (5_f64.sqrt() - 1.0);
    for _ in 0..80 {
        let [a, b] = [high - golden * (high - low), low + golden * (high - low)];
        if f(a) < f(b) { high = b } else { low = a }
    }
    0.5 * (low + high)
}

/// The largest distance between the distribution of a sorted tail and the law.
fn distance(tail: &[u64], alpha: f64, smallest: u64) -> f64 {
    let (whole, n) = (zeta(alpha, smallest), tail.len() as f64);
    let (mut worst, mut at) = (0.0_f64, 0);
    while let Some(&x) = tail.get(at) {
        let before = at as f64 / n;
        at += tail.get(at..).map_or(0, |rest| rest.partition_point(|&y| y == x));
        // Between sizes the law goes on growing where the sample does not.
        let below = 1.0 - zeta(alpha, x) / whole;
        let up_to = 1.0 - zeta(alpha, x + 1) / whole;
        worst = worst.max((below - before).abs()).max((up_to - at as f64 / n).abs());
    }
    worst
}

/// x_min, α and their distance; none for too few sizes. `sizes` are sorted.
fn nearest(sizes: &[u64]) -> Option<(u64, f64, f64)> {
    let mut starts: Vec<u64> = sizes.iter().copied().filter(|&x| x > 0).collect();
    starts.dedup();
    let tried = starts.into_iter().take(TRIED).filter_map(|smallest| {
        let tail = tail_of(sizes, smallest);
        // Of one size alone there is no exponent.
        if tail.len() < FEWEST || tail.first() == tail.last() {
            return None;
        }
        let mean_log = tail.iter().map(|&x| (x as f64).ln()).sum::<f64>() / tail.len() as f64;
        let alpha = exponent(mean_log, smallest);
        Some((smallest, alpha, distance(tail, alpha, smallest)))
    });
    tried.min_by(|a, b| a.2.total_cmp(&b.2))
}

fn tail_of(sizes: &[u64], smallest: u64) -> &[u64] {
    sizes.get(sizes.partition_point(|&x| x < smallest)..).unwrap_or_default()
}

/// One size of the law: the first whose share of larger ones is below a uniform number.
fn draw(alpha: f64, smallest: u64, whole: f64, stream: &mut Stream) -> u64 {
    let limit = (1.0 - stream.uniform()) * whole;
    let (mut low, mut high) = (smallest, smallest.saturating_mul(2).max(2));
    while zeta(alpha, high) >= limit && high < 1 << 40 {
        (low, high) = (high, high * 2);
    }
    // ζ(low) ≥ limit > ζ(high)
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if zeta(alpha, middle) >= limit { low = middle } else { high = middle }
    }
    low
}

/// ln of 1 − Φ(z), also far out where the difference would be 0.
fn ln_above(z: f64) -> f64 {
    if z < 5.0 {
        return above(z).ln();
    }
    // Φ's tail by its continued fraction.
    let fraction = (1..=20).rev().fold(z, |rest, k| z + f64::from(k) / rest);
    -0.5 * z * z - 0.5 * (2.0 * std::f64::consts::PI).ln() - fraction.ln()
}

/// 1 − Φ(z)
fn above(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - above(-z);
    }
    if z > 2.0 {
        let fraction = (1..=60).rev().fold(z, |rest, k| z + f64::from(k) / rest);
        return (-0.5 * z * z).exp() / ((2.0 * std::f64::consts::PI).sqrt() * fraction);
    }
    // Φ(z) − 1/2 = φ(z) · (z + z³/3 + z⁵/15 + …)
    let (mut term, mut sum) = (z, z);
    for k in 1..60 {
        term *= z * z / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 - (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

/// ln p(x) of a log-normal law cut into whole numbers, from a smallest one on.
fn ln_lognormal(x: u64, smallest: u64, [mu, sigma]: [f64; 2]) -> f64 {
    let z = |x: f64| (x.ln() - mu) / sigma;
    let (from, to) = (z(x as f64 - 0.5), z(x as f64 + 0.5));
    // Φ(to) − Φ(from), from whichever side it does not cancel.
    let here = if from > 0.0 {
        let (a, b) = (ln_above(from), ln_above(to));
        a + (-(b - a).exp()).ln_1p()
    } else {
        (above(from) - above(to)).max(f64::MIN_POSITIVE).ln()
    };
    here - ln_above(z(smallest as f64 - 0.5))
}

/// μ and σ of the largest likelihood, by narrowing a net around the best pair.
fn lognormal(tail: &[u64], smallest: u64) -> [f64; 2] {
    let mut counts: Vec<(u64, f64)> = Vec::new();
    for &x in tail {
        match counts.last_mut() {
            Some((last, n)) if *last == x => *n += 1.0,
            _ => counts.push((x, 1.0)),
        }
    }
    let logs = || tail.iter().map(|&x| (x as f64).ln());
    let n = tail.len() as f64;
    let mean = logs().sum::<f64>() / n;
    let spread = (logs().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt().max(0.1);
    let likelihood =
        |pair: [f64; 2]| counts.iter().map(|&(x, n)| n * ln_lognormal(x, smallest, pair)).sum::<f64>();
    let (mut best, mut step) = ([mean, spread], [4.0 * spread, 1.0]);
    let mut highest = likelihood(best);
    for _ in 0..60 {
        let [mu, log_sigma] = [best[0], best[1].ln()];
        let mut moved = false;
        for (i, j) in [(-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (-1.0, 1.0), (1.0, -1.0)] {
            let pair = [mu + i * step[0], (log_sigma + j * step[1]).exp()];
            // A law whose body lies so far below its tail is a power law again.
            if pair[1] > 50.0 || pair[0] < mean - 60.0 * spread {
                continue;
            }
            let found = likelihood(pair);
            if found > highest {
                (best, highest, moved) = (pair, found, true);
            }
        }
        if !moved {
            step = step.map(|s| 0.5 * s);
        }
    }
    best
}

/// The power law that is nearest to some sizes, and what speaks for it; none where fewer than 50 differ enough to fit one.
/// Samples are drawn from `stream`.
pub fn fit(sizes: &[u64], stream: &mut Stream) -> Option<Fit> {
    let mut sorted: Vec<u64> = sizes.to_vec();
    sorted.sort_unstable();
    let (smallest, alpha, apart) = nearest(&sorted)?;
    let tail = tail_of(&sorted, smallest);
    let (body, n) = (sorted.len() - tail.len(), tail.len() as f64);
    let whole = zeta(alpha, smallest);
    let mut farther = 0;
    for _ in 0..SAMPLES {
        // Below x_min as it was, from there on by the law.
        let mut sample: Vec<u64> = (0..sorted.len())
            .map(|_| match sorted.get(stream.below(sorted.len() as u64) as usize) {
                Some(&x) if x < smallest && body > 0 => x,
                _ => draw(alpha, smallest, whole, stream),
            })
            .collect();
        sample.sort_unstable();
        farther += usize::from(nearest(&sample).is_none_or(|found| found.2 >= apart));
    }
    let pair = lognormal(tail, smallest);
    let ratios: Vec<f64> = tail
        .iter()
        .map(|&x| -alpha * (x as f64).ln() - whole.ln() - ln_lognormal(x, smallest, pair))
        .collect();
    let sum: f64 = ratios.iter().sum();
    let variance = ratios.iter().map(|r| (r - sum / n).powi(2)).sum::<f64>();
    let z = sum.abs() / variance.sqrt().max(f64::MIN_POSITIVE);
    Some(Fit {
        sizes: sorted.len(),
        smallest,
        tail: tail.len(),
        exponent: alpha,
        exponent_se: (alpha - 1.0) / n.sqrt(),
        distance: apart,
        goodness: farther as f64 / SAMPLES as f64,
        lognormal: pair,
        log_ratio: sum,
        log_ratio_p: 2.0 * above(z),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::{Family, test_seed};

    #[test]
    fn sums_and_tails_are_those_of_tables() {
        assert!((zeta(2.0, 1) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-12);
        assert!((zeta(3.0, 1) - 1.202_056_903_159_594).abs() < 1e-12);
        let plain: f64 = (5..2_000_000).map(|k| f64::from(k).powf(-2.5)).sum();
        assert!((zeta(2.5, 5) - plain).abs() < 1e-8);
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655_254),
            (1.959_964, 0.025),
            (3.0, 0.001_349_898),
            (-1.0, 0.841_344_746),
        ] {
            assert!((above(z) - p).abs() < 1e-8, "{z}: {}", above(z));
        }
        assert!((ln_above(6.0) - 9.865_876e-10_f64.ln()).abs() < 1e-6);
        // A law over whole numbers sums to 1.
        let all: f64 = (3..200_000).map(|x| ln_lognormal(x, 3, [1.0, 1.5]).exp()).sum();
        assert!((all - 1.0).abs() < 1e-9, "{all}");
    }

    fn power(s: &mut Stream, alpha: f64, smallest: u64, n: usize) -> Vec<u64> {
        let whole = zeta(alpha, smallest);
        (0..n).map(|_| draw(alpha, smallest, whole, s)).collect()
    }

    /// Drawn sizes against their probabilities, and the exponent back from them.
    #[test]
    fn a_power_law_is_found() {
        let mut s = Family::new("power", "test", test_seed()).stream(0);
        let mut best = 0.0_f64;
        for (alpha, smallest) in [(1.5, 1), (2.5, 1), (2.2, 4)] {
            let sizes = power(&mut s, alpha, smallest, 3000);
            let first = sizes.iter().filter(|&&x| x == smallest).count() as f64 / 3000.0;
            let p = (smallest as f64).powf(-alpha) / zeta(alpha, smallest);
            assert!((first - p).abs() < 5.0 * (p * (1.0 - p) / 3000.0).sqrt(), "{first} and {p}");
            let found = fit(&sizes, &mut s).unwrap();
            assert!((found.exponent - alpha).abs() < 6.0 * found.exponent_se + 0.01, "{found:?}");
            // Kolmogorov's distance of a sample from its own law is beyond this once in a hundred thousand samples.
            assert!(found.distance * (found.tail as f64).sqrt() < 2.5, "{found:?}");
            best = best.max(found.goodness);
            // The log-normal law has one number more, and is never much worse; nor is it much better here.
            assert!(found.log_ratio > -12.0, "{found:?}");
        }
        // Each is uniform between 0 and 1: all three this small once in a hundred thousand runs.
        assert!(best > 0.02, "{best}");
    }

    #[test]
    fn a_lognormal_law_is_none() {
        let mut s = Family::new("lognormal", "test", test_seed()).stream(0);
        let sizes: Vec<u64> =
            (0..5000).map(|_| (2.5 + 0.5 * s.normal()).exp().round().max(1.0) as u64).collect();
        // Over all of it the power law is far away, and the log-normal law far likelier.
        let mut sorted = sizes.clone();
        sorted.sort_unstable();
        let pair = lognormal(&sorted, 1);
        assert!((pair[0] - 2.5).abs() < 0.05 && (pair[1] - 0.5).abs() < 0.05, "{pair:?}");
        let mean_log = sorted.iter().map(|&x| (x as f64).ln()).sum::<f64>() / 5000.0;
        let alpha = exponent(mean_log, 1);
        assert!(distance(&sorted, alpha, 1) > 0.2);
        let ratio: f64 = sorted
            .iter()
            .map(|&x| -alpha * (x as f64).ln() - zeta(alpha, 1).ln() - ln_lognormal(x, 1, pair))
            .sum();
        assert!(ratio < -500.0, "{ratio}");
        // Where the search may leave out most of it, what is left is not said to be likelier a power law.
        let found = fit(&sizes, &mut s).unwrap();
        assert!(found.smallest > 1 && (found.log_ratio < 0.0 || found.log_ratio_p > 1e-4), "{found:?}");
    }

    #[test]
    fn too_little_is_not_fitted() {
        let mut s = Family::named("few").stream(0);
        assert!(fit(&[], &mut s).is_none());
        assert!(fit(&[7; 500], &mut s).is_none());
        assert!(fit(&[0; 500], &mut s).is_none());
        assert!(fit(&(1..40).collect::<Vec<u64>>(), &mut s).is_none());
    }
}
