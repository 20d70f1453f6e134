//! Exponential, row sums and softmax, written so that the compiler can vectorise them without changing a bit.

use super::multiversion;

/// The instruction set that the kernels run with, from the least to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VectorLevel {
    Plain,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "detected on x86-64 only"))]
    Avx2,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "detected on x86-64 only"))]
    Avx512,
}

impl VectorLevel {
    const ALL: [(&'static str, Self); 3] =
        [("plain", Self::Plain), ("avx2", Self::Avx2), ("avx512", Self::Avx512)];
}

/// The variable that holds the kernels to a narrower set than the processor has.
pub const VECTORS: &str = "CALCULEMUS_VECTORS";

/// What the kernels run with, decided once: the widest set that this processor has, or the one that the environment
/// names if that is narrower. Another word there, or a wider set, changes nothing.
pub(crate) fn vector_level() -> VectorLevel {
    static LEVEL: std::sync::LazyLock<VectorLevel> = std::sync::LazyLock::new(|| {
        let wanted = std::env::var(VECTORS).unwrap_or_default();
        let limit = VectorLevel::ALL.iter().find(|(name, _)| *name == wanted);
        limit.map_or(widest(), |limit| limit.1.min(widest()))
    });
    *LEVEL
}

/// What this processor offers.
fn widest() -> VectorLevel {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("fma")
        {
            return VectorLevel::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return VectorLevel::Avx2;
        }
    }
    VectorLevel::Plain
}

/// The name of the instruction set that the kernels run with: `plain`, `avx2` or `avx512`.
pub fn instruction_set() -> &'static str {
    let level = vector_level();
    VectorLevel::ALL.iter().find(|(_, l)| *l == level).map_or("plain", |(name, _)| name)
}

/// The names of the instruction sets that this processor has, from the least to the widest.
pub fn instruction_sets() -> impl Iterator<Item = &'static str> {
    VectorLevel::ALL.into_iter().filter(|(_, level)| *level <= widest()).map(|(name, _)| name)
}

/// The number of partial sums of a row, whatever the vector width.
pub(crate) const LANES: usize = 16;

/// eˣ with a relative error below 2·10⁻⁷; 0 below −87.3, at most e^88.7 above; NaN stays NaN.
///
/// x = n·ln 2 + r with |r| ≤ ½ ln 2, the Taylor polynomial of degree 7 in r, and 2ⁿ written into the exponent.
/// Adding 1.5·2²³ rounds to an integer and leaves it in the low bits, without a conversion instruction.
#[inline(always)]
pub(crate) fn exp_lane(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = if x > 88.0 { 88.0 } else { x };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, clamped));
    let p = 1.0 / 5040.0_f32;
    let p = p.mul_add(r, 1.0 / 720.0);
    let p = p.mul_add(r, 1.0 / 120.0);
    let p = p.mul_add(r, 1.0 / 24.0);
    let p = p.mul_add(r, 1.0 / 6.0);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r, 1.0);
    let p = p.mul_add(r, 1.0);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    if clamped < -87.3 { 0.0 } else { p * power }
}

/// eˣ as the kernels have it; inlined, so that a loop over it is vectorised.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exp_lane(x)
}

#[inline(always)]
fn fold_lanes(lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    let mut lanes = lanes;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Σ f(xᵢ, yᵢ) in 16 lanes.
#[inline(always)]
pub(crate) fn sum_lanes(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (a, b) in xs.iter().zip(ys) {
        for l in 0..LANES {
            lanes[l] += f(a[l], b[l]);
        }
    }
    let mut sum = fold_lanes(lanes);
    for (&a, &b) in x_rest.iter().zip(y_rest) {
        sum += f(a, b);
    }
    sum
}

/// The largest entry; entries that are NaN are passed over (they reach the sum that follows).
#[inline(always)]
pub(crate) fn max_lanes(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (xs, rest) = x.as_chunks::<LANES>();
    for a in xs {
        for l in 0..LANES {
            lanes[l] = if a[l] > lanes[l] { a[l] } else { lanes[l] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |m, &v| if v > m { v } else { m })
}

/// x ← e^(x − max x), and returns (max x, Σ e^(x − max x)).
#[inline(always)]
pub(crate) fn exp_shifted(x: &mut [f32]) -> (f32, f32) {
    let max = max_lanes(x);
    for v in x.iter_mut() {
        *v = exp_lane(*v - max);
    }
    let sum = sum_lanes(x, x, |a, _| a);
    (max, sum)
}

/// Softmax of one row.
#[inline(always)]
pub(crate) fn softmax_row(x: &mut [f32]) {
    let (_, sum) = exp_shifted(x);
    let inverse = 1.0 / sum;
    for v in x.iter_mut() {
        *v *= inverse;
    }
}

multiversion! {
    /// Softmax of one row, in place.
    pub fn softmax_in_place(x: &mut [f32]) {
        softmax_row(x);
    }
}

multiversion! {
    /// ln Σ e^x over one row.
    pub fn log_sum_exp(x: &[f32]) -> f32 {
        let max = max_lanes(x);
        let sum = sum_lanes(x, x, |a, _| exp_lane(a - max));
        max + sum.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_f64() {
        let mut worst = 0.0_f64;
        for i in -8_700..8_800 {
            let x = i as f32 * 0.01;
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / want - 1.0).abs());
        }
        assert!(worst < 2e-7, "{worst}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn softmax_is_a_distribution_and_keeps_nan() {
        let mut x: Vec<f32> = (0..663).map(|i| ((i * 37) % 100) as f32 * 0.2 - 30.0).collect();
        let reference: f64 = x.iter().map(|&v| f64::from(v).exp()).sum();
        let first = f64::from(x[0]).exp() / reference;
        assert!((f64::from(log_sum_exp(&x)) - reference.ln()).abs() < 1e-5);
        softmax_in_place(&mut x);
        assert!((x.iter().map(|&v| f64::from(v)).sum::<f64>() - 1.0).abs() < 1e-5);
        assert!((f64::from(x[0]) - first).abs() < 1e-7);
        let mut bad = vec![1.0, f32::NAN, 2.0];
        softmax_in_place(&mut bad);
        assert!(bad.iter().any(|v| v.is_nan()));
    }
}
