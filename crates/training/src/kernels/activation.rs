//! The activation of a feed-forward block: the value and the slope in one pass.
//!
//! The slope is kept instead of the input, so the backward pass is one multiplication.

use rayon::prelude::*;

use super::math::exp_lane;
use super::{ROW_BLOCK, multiversion};

/// Which activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x·Φ(x), the exact form with the error function.
    Gelu,
    /// The tanh approximation of GELU (Hendrycks & Gimpel 2016).
    GeluTanh,
    /// max(x, 0), with slope 0 at 0.
    Relu,
}

/// Φ(x), the standard normal distribution function, and e^(−x²/2).
///
/// With z = |x|/√2 and t = 1/(1 + 0.35 z), erfcx(z) = e^(z²)·erfc(z) is t times a polynomial of degree 9 in t,
/// fitted by weighted least squares at 400 Chebyshev nodes of t(10)..1: relative error 8·10⁻⁹ in exact
/// arithmetic, 3·10⁻⁷ in f32 (measured). The tail Φ(−|x|) = ½ erfcx(z) e^(−z²) so keeps its relative accuracy.
#[inline(always)]
fn normal_cdf(x: f32) -> (f32, f32) {
    const C: [f32; 10] = [
        0.197_481_42,
        0.197_184,
        0.187_524_37,
        0.152_947_3,
        0.140_951_54,
        0.096_501_8,
        -0.039_110_75,
        0.190_017_54,
        -0.162_569,
        0.039_071_803,
    ];
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let bell = exp_lane(-0.5 * x * x);
    let t = 1.0 / 0.35_f32.mul_add(z, 1.0);
    let mut p = C[9];
    p = p.mul_add(t, C[8]);
    p = p.mul_add(t, C[7]);
    p = p.mul_add(t, C[6]);
    p = p.mul_add(t, C[5]);
    p = p.mul_add(t, C[4]);
    p = p.mul_add(t, C[3]);
    p = p.mul_add(t, C[2]);
    p = p.mul_add(t, C[1]);
    p = p.mul_add(t, C[0]);
    let tail = 0.5 * p * t * bell;
    (if x < 0.0 { tail } else { 1.0 - tail }, bell)
}

#[inline(always)]
fn gelu_lane(x: f32) -> (f32, f32) {
    const INV_SQRT_2PI: f32 = 0.398_942_3;
    let (cdf, bell) = normal_cdf(x);
    (x * cdf, (x * INV_SQRT_2PI).mul_add(bell, cdf))
}

/// x·Φ(x) as [`activate`] has it; inlined, so that a loop over it is vectorised.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    gelu_lane(x).0
}

#[inline(always)]
fn gelu_tanh_lane(x: f32) -> (f32, f32) {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    const CUBIC: f32 = 0.044_715;
    let u = ROOT_2_OVER_PI * x * (CUBIC * x).mul_add(x, 1.0);
    // ½(1 + tanh u) = 1/(1 + e^(−2u)), and its slope e^(−2|u|)/(1 + e^(−2|u|))²: nothing is taken from a number near it,
    // so that both tails keep their digits.
    let tail = exp_lane(-2.0 * u.abs());
    let inverse = 1.0 / (1.0 + tail);
    let half = if u < 0.0 { tail * inverse } else { inverse };
    let du = ROOT_2_OVER_PI * (3.0 * CUBIC * x).mul_add(x, 1.0);
    (x * half, (2.0 * x * tail * inverse * inverse).mul_add(du, half))
}

multiversion! {
    fn gelu_block(x: &mut [f32], slope: &mut [f32]) {
        for (x, s) in x.iter_mut().zip(slope) {
            (*x, *s) = gelu_lane(*x);
        }
    }
}

multiversion! {
    fn gelu_tanh_block(x: &mut [f32], slope: &mut [f32]) {
        for (x, s) in x.iter_mut().zip(slope) {
            (*x, *s) = gelu_tanh_lane(*x);
        }
    }
}

multiversion! {
    fn relu_block(x: &mut [f32], slope: &mut [f32]) {
        for (x, s) in x.iter_mut().zip(slope) {
            // A NaN is passed on, not made 0.
            *s = if *x > 0.0 { 1.0 } else { 0.0 };
            *x = if *x <= 0.0 { 0.0 } else { *x };
        }
    }
}

multiversion! {
    fn multiply_block(g: &mut [f32], slope: &[f32]) {
        for (g, s) in g.iter_mut().zip(slope) {
            *g *= s;
        }
    }
}

/// x ← f(x) and slope ← f′(x), elementwise.
pub fn activate(kind: Activation, x: &mut [f32], slope: &mut [f32], width: usize) {
    let block = match kind {
        Activation::Gelu => gelu_block,
        Activation::GeluTanh => gelu_tanh_block,
        Activation::Relu => relu_block,
    };
    let chunk = (ROW_BLOCK * width).max(1);
    x.par_chunks_mut(chunk).zip(slope.par_chunks_mut(chunk)).for_each(|(x, s)| block(x, s));
}

/// gradient ← gradient · slope, elementwise.
pub fn activate_backward(gradient: &mut [f32], slope: &[f32], width: usize) {
    let chunk = (ROW_BLOCK * width).max(1);
    gradient.par_chunks_mut(chunk).zip(slope.par_chunks(chunk)).for_each(|(g, s)| multiply_block(g, s));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// erfc by its continued fraction and series, in f64 (Abramowitz & Stegun 7.1.5, 7.1.14).
    fn erfc(x: f64) -> f64 {
        if x < 0.0 {
            return 2.0 - erfc(-x);
        }
        if x < 2.0 {
            let (mut term, mut sum, mut n) = (x, x, 0.0);
            while term.abs() > 1e-18 {
                n += 1.0;
                term *= -x * x / n;
                sum += term / (2.0 * n + 1.0);
            }
            return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
        }
        let mut f = 0.0;
        for k in (1..200).rev() {
            f = f64::from(k) / 2.0 / (x + f);
        }
        (-x * x).exp() / std::f64::consts::PI.sqrt() / (x + f)
    }

    #[test]
    fn gelu_value_and_slope_agree_with_f64() {
        for i in -1200..=1200 {
            let x = f64::from(i as f32 * 0.01);
            let cdf = 0.5 * erfc(-x / std::f64::consts::SQRT_2);
            let pdf = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let (y, s) = gelu_lane(x as f32);
            let y_error = (f64::from(y) - x * cdf).abs();
            // In the tail the rounding of x² costs relative digits: half an ulp of x²/2, ½·6·10⁻⁸·x² at most.
            let relative = 6e-7 + 3e-8 * x * x;
            assert!(y_error <= relative * (x * cdf).abs() + 1e-30, "gelu({x}) = {y}, want {}", x * cdf);
            assert!((f64::from(s) - (cdf + x * pdf)).abs() < 6e-7, "slope at {x}");
        }
    }

    #[test]
    fn tanh_gelu_value_and_slope_agree_with_f64() {
        let root = (2.0 / std::f64::consts::PI).sqrt();
        for i in -900..=900 {
            let x = f64::from(i as f32 * 0.01);
            let u = root * (x + 0.044715 * x.powi(3));
            let half = 1.0 / (1.0 + (-2.0 * u).exp());
            let want =
                half + 2.0 * x * half / (1.0 + (2.0 * u).exp()) * root * (1.0 + 3.0 * 0.044715 * x * x);
            let (y, s) = gelu_tanh_lane(x as f32);
            // In the tail the rounding of 2u costs relative digits: a few halves of its ulp.
            let relative = 6e-7 + 5e-7 * u.abs();
            assert!(
                (f64::from(y) - x * half).abs() <= relative * (x * half).abs() + 1e-30,
                "gelu({x}) = {y}"
            );
            assert!((f64::from(s) - want).abs() < 6e-7, "slope at {x}");
        }
    }

    #[test]
    fn extremes() {
        let mut x = vec![-100.0, -10.0, 0.0, 100.0, f32::NAN];
        let mut s = vec![0.0; 5];
        for kind in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
            let mut y = x.clone();
            activate(kind, &mut y, &mut s, 1);
            assert_eq!(y[2], 0.0);
            assert_eq!(y[3], 100.0);
            assert!(y[0].abs() < 1e-30 && y[4].is_nan(), "{kind:?} {y:?}");
            assert_eq!(s[3], 1.0);
        }
        x.clear();
        activate(Activation::Gelu, &mut x, &mut [], 3);
    }
}
