//! The exponential of many numbers at once, and softmax of a row.
//!
//! eˣ = 2ⁿ eʳ with x = n ln 2 + r, |r| ≤ ½ ln 2, and eʳ by its Taylor polynomial of degree 13: within
//! 2 units in the last place. Without branches the loops are vectorised; nothing is fused, so the bits
//! are the same on every processor.

/// Below, results lose digits: they are left to the general function.
const LEAST: f64 = -700.0;

/// 1.5 · 2⁵²: added, it rounds to an integer and leaves it in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// eˣ for `LEAST` ≤ x ≤ 0; NaN stays NaN.
#[inline(always)]
fn exp(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.0 / 6_227_020_800.0;
    for divisor in [
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0,
    ] {
        p = p * r + 1.0 / divisor;
    }
    p * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// Softmax of a row, in place.
pub(crate) fn softmax(row: &mut [f64]) {
    if let [one] = row {
        // One entry alone is 1, also an infinite one.
        *one = 1.0;
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        #[expect(unsafe_code, reason = "the same safe code, compiled for AVX-512")]
        // SAFETY: the processor has AVX-512F; nothing else is asked for.
        unsafe {
            softmax_avx512(row);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the same safe code, compiled for AVX2")]
        // SAFETY: the processor has AVX2; nothing else is asked for.
        unsafe {
            softmax_avx2(row);
        }
        return;
    }
    normalise(row);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn softmax_avx2(row: &mut [f64]) {
    normalise(row);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn softmax_avx512(row: &mut [f64]) {
    normalise(row);
}

#[inline(always)]
fn normalise(row: &mut [f64]) {
    let (mut most, mut least) = ([f64::NEG_INFINITY; 8], [f64::INFINITY; 8]);
    let (chunks, rest) = row.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            most[lane] = if chunk[lane] > most[lane] { chunk[lane] } else { most[lane] };
            least[lane] = if chunk[lane] < least[lane] { chunk[lane] } else { least[lane] };
        }
    }
    let most = most.iter().chain(rest).fold(f64::NEG_INFINITY, |most, value| most.max(*value));
    let least = least.iter().chain(rest).fold(f64::INFINITY, |least, value| least.min(*value));
    if least - most >= LEAST {
        row.iter_mut().for_each(|value| *value = exp(*value - most));
    } else {
        row.iter_mut().for_each(|value| *value = (*value - most).exp());
    }
    let sum = super::block::sum(row);
    row.iter_mut().for_each(|value| *value /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for at in 0..200_000 {
            let x = -700.0 * f64::from(at) / 200_000.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 5e-16, "{x}");
            let x = -f64::from(at) / 200_000.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 5e-16, "{x}");
        }
        assert!(exp(f64::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn rows_add_up_to_one() {
        let mut stream = seeded::Family::new("tensor-logic/tests", "softmax", 0).stream(0);
        for len in [1_usize, 2, 7, 8, 9, 100] {
            for scale in [1.0, 30.0, 1000.0] {
                let values: Vec<f64> = (0..len).map(|_| scale * stream.normal()).collect();
                let mut row = values.clone();
                softmax(&mut row);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = values.iter().map(|value| (value - most).exp()).sum();
                for (value, weight) in values.iter().zip(&row) {
                    assert!((weight - (value - most).exp() / total).abs() < 1e-15);
                }
            }
        }
        let mut infinite = [f64::INFINITY, 0.0];
        softmax(&mut infinite);
        assert!(infinite.iter().all(|weight| weight.is_nan()));
    }
}
