//! The few statistics that the tables need.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// A mean with its standard error and a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
    /// value ± 1.96 se.
    pub ci95: [f64; 2],
}

/// The ratio m = Σd/Σn over formulas with sum d over n targets, with se = √Σ(d − m·n)² / Σn.
pub fn mean_interval(sums: impl Iterator<Item = (f64, f64)> + Clone) -> Interval {
    let (total, n) = sums.clone().fold((0.0, 0.0), |a, (d, n)| (a.0 + d, a.1 + n));
    let value = if n > 0.0 { total / n } else { 0.0 };
    let square: f64 = sums.map(|(d, n)| (d - value * n).powi(2)).sum();
    let se = if n > 0.0 { square.sqrt() / n } else { 0.0 };
    Interval { value, se, ci95: [value - 1.96 * se, value + 1.96 * se] }
}

/// The upper tail of a χ² distribution.
pub fn chi_square_p(statistic: f64, degrees: f64) -> f64 {
    if statistic <= 0.0 || degrees <= 0.0 {
        return 1.0;
    }
    ChiSquared::new(degrees).map_or(f64::NAN, |law| law.sf(statistic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_square_tables() {
        for (x, k, p) in [
            (3.841, 1.0, 0.05),
            (7.815, 3.0, 0.05),
            (11.345, 3.0, 0.01),
            (0.352, 3.0, 0.95),
            (61.098, 30.0, 0.0007),
        ] {
            assert!((chi_square_p(x, k) - p).abs() < 2e-4 + 0.01 * p, "{x} {k}: {}", chi_square_p(x, k));
        }
        assert_eq!(chi_square_p(0.0, 3.0), 1.0);
    }

    #[test]
    fn interval_of_equal_formulas() {
        let i = mean_interval([(2.0, 2.0), (4.0, 2.0), (0.0, 2.0), (2.0, 2.0)].into_iter());
        assert_eq!(i.value, 1.0);
        assert!((i.se - 8.0_f64.sqrt() / 8.0).abs() < 1e-15);
    }
}
