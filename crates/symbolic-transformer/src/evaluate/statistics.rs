//! The few statistics that the tables need.

use serde::Serialize;

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

/// ln Γ(x) for x > 0 (Lanczos, g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let mut sum = C[0];
    for (i, c) in C.iter().enumerate().skip(1) {
        sum += c / (x + i as f64);
    }
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The upper tail of a χ² distribution: the regularised incomplete gamma function Q(k/2, x/2), by its series below
/// the mean and its continued fraction above (Abramowitz & Stegun 6.5.29, 6.5.31).
pub fn chi_square_p(statistic: f64, degrees: f64) -> f64 {
    let (a, x) = (degrees / 2.0, statistic / 2.0);
    if x <= 0.0 || a <= 0.0 {
        return 1.0;
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-16 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - sum * scale;
    }
    let (mut b, mut c) = (x + 1.0 - a, 1e300);
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..500 {
        let an = -f64::from(i) * (f64::from(i) - a);
        b += 2.0;
        d = 1.0 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h * scale
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
