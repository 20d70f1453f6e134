//! What tables say of seeds and of formulas: intervals of Student's distribution, paired differences, two one-sided
//! tests, Holm's correction, and the bootstrap over formulas.

use seeded::Stream;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// Half the width of the 95 % interval; none for one seed.
    pub(crate) half: Option<f64>,
}

/// Mean ± t₀.₉₇₅(n−1)·s/√n.
pub(crate) fn mean(values: &[f64]) -> Option<Mean> {
    let sample = Sample::of(values)?;
    Some(Mean { value: sample.mean, half: sample.half(0.975) })
}

/// Values of seeds, or differences of two systems seed by seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) mean: f64,
    /// The standard error s/√n; none for one value.
    se: Option<f64>,
    /// n − 1.
    degrees: usize,
}

impl Sample {
    /// None without a value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let degrees = n.checked_sub(1)?;
        let mean = values.iter().sum::<f64>() / n as f64;
        let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let se = (degrees > 0).then(|| (square / degrees as f64 / n as f64).sqrt());
        Some(Self { mean, se, degrees })
    }

    /// Half the width of the interval between the quantiles 1 − p and p.
    pub(crate) fn half(&self, p: f64) -> Option<f64> {
        let student = StudentsT::new(0.0, 1.0, self.degrees as f64).ok()?;
        Some(student.inverse_cdf(p) * self.se?)
    }

    /// The probability, were the true mean `at`, of a mean as far above it or further.
    fn above(&self, at: f64) -> Option<f64> {
        let distance = self.mean - at;
        let t = match self.se? {
            // All seeds agree: there is nothing to doubt but at the point itself.
            0.0 if distance == 0.0 => return Some(0.5),
            0.0 => return Some(if distance > 0.0 { 0.0 } else { 1.0 }),
            se => distance / se,
        };
        Some(StudentsT::new(0.0, 1.0, self.degrees as f64).ok()?.sf(t))
    }

    /// p of the two-sided test against a true mean of 0.
    pub(crate) fn p_differs(&self) -> Option<f64> {
        let above = self.above(0.0)?;
        Some(2.0 * above.min(1.0 - above))
    }

    /// p of the two one-sided tests that the true mean lies within ± `margin`: the larger of both (Schuirmann 1987).
    pub(crate) fn p_within(&self, margin: f64) -> Option<f64> {
        Some(self.above(-margin)?.max(1.0 - self.above(margin)?))
    }
}

/// Holm's step-down correction: p of each test such that rejecting those up to α errs on the whole family with α at
/// most (Holm 1979).
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let at = |i: usize| p.get(i).copied().unwrap_or(f64::NAN);
    order.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut least: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        least = least.max((at(i) * (p.len() - rank) as f64).min(1.0));
        if let Some(adjusted) = adjusted.get_mut(i) {
            *adjusted = least;
        }
    }
    adjusted
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

/// The 95 % interval of a mean over formulas by the percentile bootstrap (Efron 1979). None without a value.
pub(crate) fn bootstrap(values: &[f64], stream: &mut Stream) -> Option<[f64; 2]> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mut draw = || values.get(stream.below(n as u64) as usize).copied().unwrap_or(f64::NAN);
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| (0..n).map(|_| draw()).sum::<f64>() / n as f64).collect();
    means.sort_by(f64::total_cmp);
    let quantile = |q: f64| means.get((q * (RESAMPLES - 1) as f64).round() as usize).copied();
    Some([quantile(0.025)?, quantile(0.975)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_over_seeds() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[2.0]), Some(Mean { value: 2.0, half: None }));
        let found = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        // s = √2.5, so 2.776·√2.5/√5.
        assert!((found.value - 3.0).abs() < 1e-12 && (found.half.unwrap() - 1.9632).abs() < 1e-3);
        // The usual tables: t₀.₉₇₅ and t₀.₉₅ of 1, 4 and 30 degrees.
        for (n, p, quantile) in
            [(2, 0.975, 12.706), (5, 0.975, 2.776), (31, 0.975, 2.042), (5, 0.95, 2.132), (31, 0.95, 1.697)]
        {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let sample = Sample::of(&values).unwrap();
            let of_table = quantile * sample.se.unwrap();
            assert!((sample.half(p).unwrap() - of_table).abs() < 1e-3 * of_table, "{n} {p}");
        }
    }

    #[test]
    fn tests_of_differences() {
        // t = 2.776 with 4 degrees has p = .05 on two sides.
        let spread: Vec<f64> = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|x| x + 2.776 * 0.5_f64.sqrt()).to_vec();
        let sample = Sample::of(&spread).unwrap();
        assert!((sample.p_differs().unwrap() - 0.05).abs() < 1e-4);
        // The two one-sided tests at 5 % agree with the 90 % interval.
        let edge = sample.mean + sample.half(0.95).unwrap();
        assert!((sample.p_within(edge).unwrap() - 0.05).abs() < 1e-6);
        assert!(sample.p_within(1.01 * edge).unwrap() < 0.05 && sample.p_within(0.99 * edge).unwrap() > 0.05);
        // Seeds that agree to the last digit.
        let same = |x: f64| Sample::of(&[x; 5]).unwrap();
        assert_eq!((same(0.0).p_differs(), same(1.0).p_differs()), (Some(1.0), Some(0.0)));
        assert_eq!((same(1.0).p_within(2.0), same(1.0).p_within(0.5)), (Some(0.0), Some(1.0)));
        let one = Sample::of(&[1.0]).unwrap();
        assert_eq!((one.p_differs(), one.p_within(1.0), one.half(0.975)), (None, None, None));
    }

    #[test]
    fn the_correction_of_holm() {
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn the_bootstrap_finds_the_standard_error() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 20)).collect();
        let mut stream = fol::sample::family("bootstrap-test", 0).stream(0);
        let [low, high] = bootstrap(&values, &mut stream).unwrap();
        // Deviation √33.25, so 1.96 · √33.25/20 around 9.5; the ends are known to some percent.
        let half = 1.96 * 33.25_f64.sqrt() / 20.0;
        assert!((low - (9.5 - half)).abs() < 0.06 * half && (high - (9.5 + half)).abs() < 0.06 * half);
        assert_eq!(bootstrap(&[3.0], &mut stream), Some([3.0, 3.0]));
        assert_eq!(bootstrap(&[], &mut stream), None);
    }
}
