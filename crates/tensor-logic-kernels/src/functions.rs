//! Elementwise functions, written so that a loop over them is vectorised.
//!
//! In numbers of 32 bits their relative error is below 1e-6, where the general way, by 64 bits, rounds once; in numbers of
//! 64 bits (`doubles`) they are within 2 units in the last place, `gelu` and `softplus` within 4. What has no such form here goes the general way.

use training::kernels::{Kernel, exp, gelu, tanh, vectorised};

use tensor_logic_core::function::Function;

mod doubles;

pub(super) use doubles::{doubles, exp_below_zero};

/// Where the exponential of 32 bits is neither 0, nor without its last digits, nor infinite.
const EXPONENTS: std::ops::RangeInclusive<f32> = -87.0..=88.0;

/// 1/(1 + e⁻ˣ), by the exponential of what is below 0.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The logarithm, by that of what is left between ½√2 and √2 of a power of 2: within 2 units in the last place, also
/// near 1 (the polynomial is that of Cephes).
#[inline(always)]
fn log(x: f32) -> f32 {
    const ROOT: f32 = std::f32::consts::FRAC_1_SQRT_2;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Numbers below the least normal one are made larger by 2²⁵.
    let small = x < f32::MIN_POSITIVE;
    let scaled = if small { x * 33_554_432.0 } else { x };
    let bits = scaled.to_bits();
    let exponent = ((bits >> 23) as i32 - 126) as f32 - if small { 25.0 } else { 0.0 };
    let half = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let low = half < ROOT;
    let e = if low { exponent - 1.0 } else { exponent };
    let r = if low { half + half } else { half } - 1.0;
    let mut p = 7.037_683_6e-2_f32;
    for c in [
        -1.151_461e-1,
        1.167_699_87e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        p = p.mul_add(r, c);
    }
    let s = r * r;
    let y = (p * r).mul_add(s, e * LN2_LOW);
    let found = e.mul_add(LN2_HIGH, r + (y - 0.5 * s));
    let found = if x == f32::INFINITY { x } else { found };
    let found = if x == 0.0 { f32::NEG_INFINITY } else { found };
    if x < 0.0 || x.is_nan() { f32::NAN } else { found }
}

/// ln(1 + eˣ) = max(x, 0) + ln(1 + e) with e = e^(-|x|): ln(1 + e) = 2 artanh(e/(2 + e)), whose argument is at most ⅓.
#[inline(always)]
fn softplus(x: f32) -> f32 {
    let e = exp(-x.abs());
    let s = e / (2.0 + e);
    let z = s * s;
    let mut p = 1.0 / 17.0_f32;
    for divisor in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        p = p.mul_add(z, 1.0 / divisor);
    }
    let least = if x < 0.0 { 0.0 } else { x };
    least + 2.0 * (s * z).mul_add(p, s)
}

/// Whether the exponential of 32 bits is right at all of them.
struct Within<'a>(&'a [f32]);

impl Kernel for Within<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let within = |x: &f32| EXPONENTS.start() <= x && x <= EXPONENTS.end();
        let (parts, rest) = self.0.as_chunks::<16>();
        let whole = parts.iter().map(|part| part.iter().fold(true, |all, x| all & within(x)));
        whole.fold(true, |all, part| all & part) && rest.iter().all(within)
    }
}

/// The function at every number, where it has a form here.
pub(super) fn singles(function: &Function, values: &[f32], to: &mut [f32]) -> bool {
    match function {
        Function::Tanh => vectorised(Map { values, to, f: tanh }),
        Function::Sig => vectorised(Map { values, to, f: sigmoid }),
        Function::Gelu => vectorised(Map { values, to, f: gelu }),
        Function::Silu => vectorised(Map { values, to, f: |x| x * sigmoid(x) }),
        Function::Log => vectorised(Map { values, to, f: log }),
        Function::Sqrt => vectorised(Map { values, to, f: f32::sqrt }),
        Function::Floor => vectorised(Map { values, to, f: f32::floor }),
        Function::Softplus => vectorised(Map { values, to, f: softplus }),
        // By 64 bits: their rounding is that of the result.
        Function::Sin => {
            Apart { values, to: &mut *to, f: |x| doubles::sine(f64::from(x)) as f32 }.run();
            doubles::beyond(function, values, to, |x| x as f32);
        }
        Function::Cos => {
            Apart { values, to: &mut *to, f: |x| doubles::cosine(f64::from(x)) as f32 }.run();
            doubles::beyond(function, values, to, |x| x as f32);
        }
        Function::Exp => {
            vectorised(Map { values, to, f: exp });
            // Number by number: what stands beside them, which is a matter of threads, decides no bit of the others.
            if !vectorised(Within(values)) {
                for (slot, x) in to.iter_mut().zip(values).filter(|(_, x)| !EXPONENTS.contains(x)) {
                    *slot = function.value(&[f64::from(*x)]) as f32;
                }
            }
        }
        _ => return false,
    }
    true
}

/// A function of every number.
pub(super) struct Map<'a, T, F> {
    pub(super) values: &'a [T],
    pub(super) to: &'a mut [T],
    pub(super) f: F,
}

impl<T: Copy, F: Fn(T) -> T> Kernel for Map<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Not by `for_each`: with a large function it may stay one of its own, which knows of no wide vectors.
        for (slot, value) in self.to.iter_mut().zip(self.values) {
            *slot = (self.f)(*value);
        }
    }
}

/// A function of every number, in a loop that the compiler leaves in a function of its own: some go by vectors of two numbers
/// there, and by none in a loop that may use wider ones (measured).
pub(super) struct Apart<'a, T, F> {
    pub(super) values: &'a [T],
    pub(super) to: &'a mut [T],
    pub(super) f: F,
}

impl<T: Copy, F: Fn(T) -> T> Apart<'_, T, F> {
    pub(super) fn run(self) {
        self.to.iter_mut().zip(self.values).for_each(|(slot, value)| *slot = (self.f)(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_functions() {
        let functions = [
            Function::Tanh,
            Function::Sig,
            Function::Gelu,
            Function::Silu,
            Function::Sqrt,
            Function::Exp,
            Function::Floor,
            Function::Softplus,
            Function::Sin,
            Function::Cos,
        ];
        for function in functions {
            for at in -12_000..=12_000 {
                let x = at as f32 * 0.01;
                let mut found = [0.0];
                assert!(singles(&function, &[x], &mut found), "{function:?}({x})");
                // What stands beside a number changes nothing.
                for beside in [0.5, -95.0, f32::NAN] {
                    let mut both = [0.0; 2];
                    singles(&function, &[beside, x], &mut both);
                    assert_eq!(both[1].to_bits(), found[0].to_bits(), "{function:?}({x}) beside {beside}");
                }
                let wanted = function.value(&[f64::from(x)]);
                // In the tail of the normal distribution the rounding of x²/2 = |ln Φ| costs digits, up to 2⁻²⁴ of it;
                // below the least normal number all are lost: the exponential is 0 below -87.3, and silu is 87.3 times as much.
                let relative = if matches!(function, Function::Gelu) {
                    1e-6 + 6e-8 * wanted.abs().max(f64::MIN_POSITIVE).ln().abs()
                } else {
                    1e-6
                };
                let apart = (f64::from(found[0]) - wanted).abs();
                let wanted = if wanted > f64::from(f32::MAX) { f64::INFINITY } else { wanted };
                let same = f64::from(found[0]) == wanted || found[0].is_nan() && wanted.is_nan();
                assert!(
                    same || apart <= relative * wanted.abs() + 90.0 * f64::from(f32::MIN_POSITIVE),
                    "{function:?}({x}): {} and {wanted}",
                    found[0]
                );
            }
            for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0] {
                let mut found = [7.0];
                assert!(singles(&function, &[x], &mut found));
                let wanted = function.value(&[f64::from(x)]) as f32;
                let same = found[0] == wanted || found[0].is_nan() && wanted.is_nan();
                assert!(same, "{function:?}({x}): {} and {wanted}", found[0]);
            }
        }
        assert!(!singles(&Function::Step, &[1.0], &mut [0.0]));
    }

    #[test]
    fn logarithms_are_right_everywhere() {
        for at in 0..2_200_000_u32 {
            // Every exponent, and all that lie around 1.
            let x = f32::from_bits(if at < 200_000 { 0x3f7e_795f + at } else { at * 1021 });
            let mut found = [0.0];
            assert!(singles(&Function::Log, &[x], &mut found));
            let wanted = f64::from(x).ln();
            let close = (f64::from(found[0]) - wanted).abs() <= 3e-7 * wanted.abs();
            assert!(
                close || f64::from(found[0]) == wanted || found[0].is_nan() && wanted.is_nan(),
                "log {x}: {} and {wanted}",
                found[0]
            );
        }
    }
}
