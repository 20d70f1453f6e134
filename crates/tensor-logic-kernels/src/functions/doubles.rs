//! Elementwise functions of numbers of 64 bits.
//!
//! Without branches, tables and fused multiply-adds: every processor gives the same bits, one number at a time or many.

use training::kernels::vectorised;

use super::{Apart, Map};
use tensor_logic_core::function::Function;

/// A polynomial by Horner's rule, the highest coefficient first. Written out: a loop of so many turns inside a loop over numbers
/// keeps the compiler from doing several numbers at once.
macro_rules! horner {
    ($x:expr; $first:expr $(, $next:expr)*) => {{
        let p = $first;
        $(let p = p * $x + $next;)*
        p
    }};
}

/// 1.5 · 2⁵²: added, it rounds to an integer and leaves it in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// 2⁵²: its low bits are those of an integer that is added.
const SHIFT: f64 = 4_503_599_627_370_496.0;
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// x = n ln 2 + r with |r| ≤ ½ ln 2: n beside [`ROUND`], and r.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    (shifted, (x - n * LN2_HIGH) - n * LN2_LOW)
}

/// Σ rⁱ/(i + 2)!, so that eʳ = 1 + r + r² of it, for |r| ≤ ½ ln 2: what is left out is below 2⁻⁵⁶ of eʳ.
#[inline(always)]
fn beyond_linear(r: f64) -> f64 {
    let mut p = 1.0 / 87_178_291_200.0;
    for divisor in [
        6_227_020_800.0,
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
    ] {
        p = p * r + 1.0 / divisor;
    }
    p
}

/// 2ⁿ for -1022 ≤ n ≤ 1023 beside [`ROUND`].
#[inline(always)]
fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// eˣ for -700 ≤ x ≤ 0; NaN stays NaN.
#[inline(always)]
pub(in super::super) fn exp_below_zero(x: f64) -> f64 {
    let (shifted, r) = reduced(x);
    (1.0 + (r + r * r * beyond_linear(r))) * power_of_two(shifted)
}

/// eˣ.
#[inline(always)]
fn exp(x: f64) -> f64 {
    // Beyond, it is infinite or 0.
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (shifted, r) = reduced(x);
    // 2ⁿ may be no number of 64 bits where eˣ is one: half of it, and the other half.
    let half = (shifted - ROUND) * 0.5 + ROUND;
    let rest = (shifted - ROUND) - (half - ROUND) + ROUND;
    (1.0 + (r + r * r * beyond_linear(r))) * power_of_two(half) * power_of_two(rest)
}

/// 1/(1 + e⁻ˣ), by the exponential of what is below 0.
#[inline(always)]
fn sigmoid(x: f64) -> f64 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The hyperbolic tangent: e/(e + 2) with e = e²ˣ - 1, which near 0 is not a difference.
#[inline(always)]
fn tanh(x: f64) -> f64 {
    let y = 2.0 * x.abs();
    // Beyond, it is 1.
    let y = if y > 44.0 { 44.0 } else { y };
    let (shifted, r) = reduced(y);
    let power = power_of_two(shifted);
    let e = power * (r + r * r * beyond_linear(r)) + (power - 1.0);
    (e / (e + 2.0)).copysign(x)
}

/// The logarithm: x = 2ⁿ (1 + f) with √½ ≤ 1 + f < √2, ln(1 + f) = f - ½f² + s (½f² + R(s²)), s = f/(2 + f). The polynomial
/// R is that of fdlibm's `e_log.c`.
#[inline(always)]
fn log(x: f64) -> f64 {
    const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;
    // Numbers below the least normal one are made larger by 2⁵⁴.
    let small = x < f64::MIN_POSITIVE;
    let scaled = if small { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits();
    let exponent =
        f64::from_bits(SHIFT.to_bits() | (bits >> 52)) - SHIFT - if small { 1076.0 } else { 1022.0 };
    let half = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000);
    let low = half < ROOT;
    let n = if low { exponent - 1.0 } else { exponent };
    let f = if low { half + half } else { half } - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut p = 1.479_819_860_511_658_6e-1;
    for c in [
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1,
    ] {
        p = p * z + c;
    }
    let square = 0.5 * f * f;
    let found = n * LN2_HIGH - ((square - (s * (square + p * z) + n * LN2_LOW)) - f);
    let found = if x == f64::INFINITY { x } else { found };
    let found = if x == 0.0 { f64::NEG_INFINITY } else { found };
    if x < 0.0 || x.is_nan() { f64::NAN } else { found }
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e) with e = e^(-|x|): ln(1 + e) = 2 artanh(e/(2 + e)), whose argument is at most ⅓.
#[inline(always)]
fn softplus(x: f64) -> f64 {
    let e = exp(-x.abs());
    let s = e / (2.0 + e);
    let z = s * s;
    let p = horner!(z;
        1.0 / 37.0, 1.0 / 35.0, 1.0 / 33.0, 1.0 / 31.0, 1.0 / 29.0, 1.0 / 27.0, 1.0 / 25.0, 1.0 / 23.0, 1.0 / 21.0,
        1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0);
    let least = if x < 0.0 { 0.0 } else { x };
    least + 2.0 * (s + s * z * p)
}

/// x·Φ(x), by Φ(-|x|) = ½ erfcx(z) e^(-x²/2) with z = |x|/√2: (1 + 2z) erfcx(z) is a polynomial in (z - 4)/(z + 4), the
/// interpolation at Chebyshev's nodes of 0 ≤ z ≤ 40, to 5·10⁻¹⁷ of it.
#[inline(always)]
fn gelu(x: f64) -> f64 {
    // Beyond, Φ(-|x|) is 0.
    let a = x.abs();
    let a = if a > 50.0 { 50.0 } else { a };
    let z = a * std::f64::consts::FRAC_1_SQRT_2;
    let t = (z - 4.0) / (z + 4.0);
    let mut p = -7.436_866_022_080_466e-10;
    for c in [
        -1.061_601_982_025_120_1e-8,
        -8.163_001_746_209_258e-9,
        1.070_414_511_744_871_9e-7,
        5.872_385_947_769_382e-8,
        -8.257_747_266_711_686e-7,
        3.085_028_729_226_472_4e-7,
        5.712_230_133_144_589_4e-6,
        -1.123_049_198_256_365e-5,
        -2.440_124_489_139_681_3e-5,
        1.506_248_260_693_576e-4,
        -1.992_558_559_105_793_7e-4,
        -7.577_740_475_868_649e-4,
        5.031_969_778_190_285_5e-3,
        -1.619_773_394_273_265_8e-2,
        3.716_751_556_487_727_5e-2,
        -6.633_036_582_250_824e-2,
        9.373_283_499_634_137e-2,
        -1.010_390_660_358_261e-1,
        6.809_705_425_475_879e-2,
        1.537_965_210_261_094_5e-2,
        -1.396_211_168_405_631_4e-1,
        1.232_995_118_625_552_6,
    ] {
        p = p * t + c;
    }
    // Its first 26 bits have an exact square: the rounding of x² would cost the exponential its last digits.
    let high = f64::from_bits(a.to_bits() & !0x07ff_ffff);
    let rest = -0.5 * (a - high) * (a + high);
    let bell = exp(-0.5 * high * high) * (1.0 + (rest + rest * rest * (0.5 + rest * (1.0 / 6.0))));
    let tail = 0.5 * p / (1.0 + 2.0 * z) * bell;
    x * if x < 0.0 { tail } else { 1.0 - tail }
}

/// π/2 in parts of 33 bits, of which 2²⁰ are taken away without rounding, and what is left of it.
const QUARTER: [f64; 4] = [
    1.570_796_326_734_125_6,
    6.077_100_506_303_966e-11,
    2.022_266_248_711_166_5e-21,
    8.478_427_660_368_9e-32,
];
/// Up to here so many quarters of a turn fit into 20 bits.
const TURNS: f64 = 1_048_576.0;

/// a - b, and what its rounding took away.
#[inline(always)]
fn difference(a: f64, b: f64) -> (f64, f64) {
    let whole = a - b;
    let back = whole - a;
    (whole, (a - (whole - back)) - (b + back))
}

/// sin(x + `quarters` π/2) for |x| ≤ [`TURNS`]: by the Taylor series of the sine or the cosine of what is left of x when the
/// nearest multiple of π/2 is taken away, as a sum of two numbers.
#[inline(always)]
fn wave(x: f64, quarters: u64) -> f64 {
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let turned = shifted.to_bits().wrapping_add(quarters);
    let (rest, first) = difference(x - n * QUARTER[0], n * QUARTER[1]);
    let (rest, second) = difference(rest, n * QUARTER[2]);
    let low = (first + second) - n * QUARTER[3];
    let y = rest + low;
    let low = (rest - y) + low;
    let z = y * y;
    // (sin y - y)/y³ and (cos y - 1 + y²/2)/y⁴
    let odd = horner!(z; 1.0 / 355_687_428_096_000.0, -1.0 / 1_307_674_368_000.0, 1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0);
    let even = horner!(z; 1.0 / 20_922_789_888_000.0, -1.0 / 87_178_291_200.0, 1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0, 1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0);
    // The low part by the derivatives: sin'(y) = 1 - y²/2, cos'(y) = -y.
    let half = 0.5 * z;
    let sine = y + (z * y * odd + (low - low * half));
    let most = 1.0 - half;
    let cosine = most + (((1.0 - most) - half) + (z * z * even - y * low));
    let value = if turned & 1 == 1 { cosine } else { sine };
    f64::from_bits(value.to_bits() ^ ((turned & 2) << 62))
}

/// The sine, for 0 < |x| ≤ [`TURNS`].
#[inline(always)]
pub(super) fn sine(x: f64) -> f64 {
    wave(x, 0)
}

/// The cosine, for |x| ≤ [`TURNS`].
#[inline(always)]
pub(super) fn cosine(x: f64) -> f64 {
    wave(x, 1)
}

/// Writes what a function of turns is of a number that is beyond [`TURNS`], or 0, which keeps its sign, or none.
pub(super) fn beyond<T: Copy + Into<f64>>(
    function: &Function,
    values: &[T],
    to: &mut [T],
    narrow: impl Fn(f64) -> T,
) {
    for (slot, x) in to.iter_mut().zip(values) {
        let x: f64 = (*x).into();
        if !(0.0 < x.abs() && x.abs() <= TURNS) {
            *slot = narrow(function.value(&[x]));
        }
    }
}

/// The function at every number, where it has a form here.
pub(in super::super) fn doubles(function: &Function, values: &[f64], to: &mut [f64]) -> bool {
    match function {
        Function::Exp => vectorised(Map { values, to, f: exp }),
        Function::Tanh => vectorised(Map { values, to, f: tanh }),
        Function::Sig => vectorised(Map { values, to, f: sigmoid }),
        Function::Silu => vectorised(Map { values, to, f: |x| x * sigmoid(x) }),
        Function::Log => vectorised(Map { values, to, f: log }),
        Function::Sqrt => vectorised(Map { values, to, f: f64::sqrt }),
        Function::Floor => vectorised(Map { values, to, f: f64::floor }),
        Function::Gelu => Apart { values, to, f: gelu }.run(),
        Function::Softplus => vectorised(Map { values, to, f: softplus }),
        Function::Sin => {
            Apart { values, to: &mut *to, f: sine }.run();
            beyond(function, values, to, |x| x);
        }
        Function::Cos => {
            Apart { values, to: &mut *to, f: cosine }.run();
            beyond(function, values, to, |x| x);
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far apart two numbers are, in units in the last place of the second.
    fn apart(found: f64, wanted: f64) -> f64 {
        if found == wanted || found.is_nan() && wanted.is_nan() {
            return 0.0;
        }
        let unit = (wanted.abs() * f64::EPSILON).max(f64::from_bits(1));
        (found - wanted).abs() / unit
    }

    #[test]
    fn they_are_the_functions() {
        let functions = [
            Function::Exp,
            Function::Tanh,
            Function::Sig,
            Function::Silu,
            Function::Log,
            Function::Sqrt,
            Function::Floor,
            Function::Softplus,
            Function::Gelu,
            Function::Sin,
            Function::Cos,
        ];
        let mut arguments: Vec<f64> = (-80_000..=80_000).map(|at| f64::from(at) * 0.01).collect();
        // Every exponent of either sign, with some fractions; and where there are edges.
        for exponent in 0..2047_u64 {
            for fraction in [0, 1, 0x5_5555_5555_5555, 0x6_a09e_667f_3bcd, 0xf_ffff_ffff_ffff] {
                let value = f64::from_bits(exponent << 52 | fraction);
                arguments.extend([value, -value]);
            }
        }
        // Near multiples of π/2 nearly all digits cancel.
        for quarters in (0..2000).chain((0..600_000).step_by(997)).chain([667_543, 667_544, 667_545, 1 << 20])
        {
            let near = f64::from(quarters) * std::f64::consts::FRAC_PI_2;
            arguments.extend([near, -near, near.next_up(), near.next_down(), near * 0.5]);
        }
        arguments.extend([
            TURNS,
            TURNS.next_up(),
            TURNS.next_down(),
            -TURNS,
            6_381_956_970_095_103.0 * 2_f64.powi(797),
        ]);
        for edge in [1.0, 709.782_712_893_384, 745.133_219_101_941_1, 708.4, 22.0, 19.06, 0.173_286_795] {
            for bits in -40..=40 {
                let value = f64::from_bits(f64::to_bits(edge).wrapping_add_signed(bits));
                arguments.extend([value, -value]);
            }
        }
        for function in &functions {
            let mut found = vec![0.0; arguments.len()];
            assert!(doubles(function, &arguments, &mut found));
            for (x, found) in arguments.iter().zip(&found) {
                let wanted = function.value(&[*x]);
                let mut off = apart(*found, wanted);
                if matches!(function, Function::Silu) && wanted.abs() < x.abs() * f64::MIN_POSITIVE {
                    // The sigmoid has lost digits there, and x times its last one is lost.
                    off = (found - wanted).abs() / (x.abs() * f64::from_bits(1));
                }
                let most = match function {
                    Function::Gelu | Function::Softplus => 4.0,
                    _ => 2.0,
                };
                if matches!(function, Function::Gelu) && wanted.abs() < x.abs() * 1e-307 {
                    // Φ has lost digits there.
                    off = (found - wanted).abs() / (x.abs() * 1e-322);
                }
                assert!(off <= most, "{function:?}({x:e}): {found:e} and {wanted:e}, {off} units");
                assert!(
                    found.is_nan() || found.is_sign_negative() == wanted.is_sign_negative(),
                    "{function:?}({x:e})"
                );
                // One alone has the same bits.
                let mut alone = [7.0];
                assert!(doubles(function, &[*x], &mut alone));
                assert!(alone[0].to_bits() == found.to_bits() || found.is_nan(), "{function:?}({x:e})");
            }
        }
        for (function, x, wanted) in [
            (Function::Exp, 0.0, 1.0),
            (Function::Exp, f64::NEG_INFINITY, 0.0),
            (Function::Exp, f64::INFINITY, f64::INFINITY),
            (Function::Tanh, f64::INFINITY, 1.0),
            (Function::Tanh, f64::NEG_INFINITY, -1.0),
            (Function::Sig, 0.0, 0.5),
            (Function::Sig, f64::NEG_INFINITY, 0.0),
            (Function::Log, 1.0, 0.0),
            (Function::Log, f64::INFINITY, f64::INFINITY),
            (Function::Log, 0.0, f64::NEG_INFINITY),
            (Function::Softplus, f64::NEG_INFINITY, 0.0),
            (Function::Softplus, f64::INFINITY, f64::INFINITY),
            (Function::Gelu, f64::INFINITY, f64::INFINITY),
            (Function::Gelu, -60.0, 0.0),
            (Function::Gelu, 0.0, 0.0),
        ] {
            let mut found = [7.0];
            assert!(
                doubles(&function, &[x], &mut found) && found[0] == wanted,
                "{function:?}({x}): {found:?}"
            );
        }
        for function in functions {
            let mut found = [7.0];
            assert!(doubles(&function, &[f64::NAN], &mut found) && found[0].is_nan(), "{function:?}");
        }
        assert!(!doubles(&Function::Step, &[1.0], &mut [0.0]));
    }

    /// Values with 60 digits, rounded once.
    #[test]
    fn tails_keep_their_digits() {
        let gelu = [
            (-38.0, -1.096_462_777e-314, 1e-8),
            (-30.0, -1.472_014_178_144_456e-196, 1e-15),
            (-20.0, -5.507_248_237_212_468e-88, 1e-15),
            (-10.0, -7.619_853_024_160_526e-23, 1e-15),
            (-5.0, -1.433_257_859_395_969_5e-6, 1e-15),
            (-2.5, -0.015_524_163_314_440_337, 1e-15),
            (-1.0, -0.158_655_253_931_457_05, 1e-15),
            (-0.5, -0.154_268_769_362_993_44, 1e-15),
            (-0.001, -0.000_499_601_057_786_089, 1e-15),
            (0.001, 0.000_500_398_942_213_911, 1e-15),
            (0.5, 0.345_731_230_637_006_56, 1e-15),
            (1.0, 0.841_344_746_068_542_9, 1e-15),
            (3.0, 2.995_950_305_905_11, 1e-15),
            (8.0, 7.999_999_999_999_995, 1e-15),
        ];
        let softplus = [
            (-700.0, 9.859_676_543_759_77e-305, 1e-15),
            (-40.0, 4.248_354_255_291_589e-18, 1e-15),
            (-10.0, 4.539_889_921_686_465e-5, 1e-15),
            (-1.0, 0.313_261_687_518_222_8, 1e-15),
            (-0.001, 0.692_647_305_559_940_1, 1e-15),
            (0.0, std::f64::consts::LN_2, 1e-15),
            (0.5, 0.974_076_984_180_106_7, 1e-15),
            (3.0, 3.048_587_351_573_742, 1e-15),
            (30.0, 30.000_000_000_000_092, 1e-15),
            (40.0, 40.0, 1e-15),
        ];
        let gelu = gelu.into_iter().map(|case| (Function::Gelu, case));
        let softplus = softplus.into_iter().map(|case| (Function::Softplus, case));
        for (function, (x, wanted, within)) in gelu.chain(softplus) {
            let mut found = [7.0];
            assert!(doubles(&function, &[x], &mut found));
            let apart = (found[0] / wanted - 1.0_f64).abs();
            assert!(apart <= within, "{function:?}({x}): {:e} and {wanted:e}, {apart:e}", found[0]);
        }
    }
}
