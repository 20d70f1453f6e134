//! Numbers with an exponent of their own: what a product of thousands of probabilities is, long after 64 bits have none of it.
//!
//! Enter at [`Wide`]. A number is `mantissa · 2^exponent`, the mantissa from 1/2 to 1 without its sign; 0, infinities and what
//! is no number have the exponent 0. Sums, products, quotients and powers are off by some last bits, as those of 64 bits are.

use std::cmp::Ordering;

use super::number::{Number, Slope};
use tensor_logic_core::function::{Function, power};

/// Further apart, the smaller of two numbers adds nothing to the larger.
const APART: i64 = 64;
/// Powers with whole exponents up to this are products.
const FACTORS: f64 = 1024.0;

/// A number that keeps its digits however large or small it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wide {
    mantissa: f64,
    exponent: i64,
}

/// `2^n`, for what a number of 64 bits holds in two steps at most.
fn two_to(n: i64) -> f64 {
    2.0_f64.powi(n.clamp(-1022, 1023) as i32)
}

impl Wide {
    /// The number `mantissa · 2^exponent`.
    fn of(mantissa: f64, exponent: i64) -> Wide {
        if mantissa == 0.0 || !mantissa.is_finite() {
            return Wide { mantissa, exponent: 0 };
        }
        // The logarithm is off by one at most, where a power of two is near.
        let mut more = mantissa.abs().log2().floor() as i64 + 1;
        let mut scaled = mantissa * two_to(-more / 2) * two_to(-more - -more / 2);
        while scaled.abs() >= 1.0 {
            (scaled, more) = (scaled / 2.0, more + 1);
        }
        while scaled.abs() < 0.5 {
            (scaled, more) = (scaled * 2.0, more - 1);
        }
        Wide { mantissa: scaled, exponent: exponent.saturating_add(more) }
    }

    /// The mantissa and the exponent.
    pub(super) fn parts(self) -> (f64, i64) {
        (self.mantissa, self.exponent)
    }

    /// The logarithm of its size.
    fn log2(self) -> f64 {
        self.mantissa.abs().log2() + self.exponent as f64
    }

    /// `2^x`
    fn exp2(x: f64) -> Wide {
        match x.is_finite() && x.abs() < i64::MAX as f64 / 4.0 {
            true => Wide::of((x - x.floor()).exp2(), x.floor() as i64),
            false => Wide::of(x.exp2(), 0),
        }
    }

    /// Whether a number of 64 bits holds all its digits.
    fn is_plain(self) -> bool {
        (-1000..=1000).contains(&self.exponent)
    }
}

impl Number for Wide {
    fn new(value: f64) -> Wide {
        Wide::of(value, 0)
    }
    fn variable(value: f64) -> Wide {
        Wide::new(value)
    }
    fn value(self) -> f64 {
        // Whether it is 0, and on which side of it, is asked of this too.
        match self.exponent {
            1024.. => f64::MAX.copysign(self.mantissa),
            ..=-1021 => f64::MIN_POSITIVE.copysign(self.mantissa),
            n => self.mantissa * two_to(n / 2) * two_to(n - n / 2),
        }
    }
    fn slope(self) -> Slope {
        None
    }
    fn with(value: f64, _: Slope) -> Wide {
        Wide::new(value)
    }

    fn sloped(self, _: Slope) -> Wide {
        self
    }
    fn differs(self, other: Wide) -> bool {
        // Two that 64 bits do not hold have the same value there.
        self.exponent != other.exponent || self.mantissa.to_bits() != other.mantissa.to_bits()
    }

    fn order(self, other: Wide) -> Option<Ordering> {
        let (a, b) = (self.mantissa, other.mantissa);
        match a.is_finite() && b.is_finite() {
            true => self.plus(Wide { mantissa: -b, ..other }).mantissa.partial_cmp(&0.0),
            false => a.partial_cmp(&b),
        }
    }

    fn plus(self, other: Wide) -> Wide {
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if large.mantissa == 0.0
            || small.mantissa == 0.0
            || !large.mantissa.is_finite()
            || !small.mantissa.is_finite()
        {
            return match (self.mantissa == 0.0, other.mantissa == 0.0) {
                (true, false) => other,
                (false, true) => self,
                _ => Wide::new(self.mantissa + other.mantissa),
            };
        }
        match large.exponent.saturating_sub(small.exponent) {
            apart @ 0..=APART => Wide::of(large.mantissa + small.mantissa * two_to(-apart), large.exponent),
            _ => large,
        }
    }

    fn times(self, other: Wide) -> Wide {
        Wide::of(self.mantissa * other.mantissa, self.exponent.saturating_add(other.exponent))
    }

    fn over(self, other: Wide) -> Wide {
        // A 0 has no sign: -0 + 0 is 0.
        let divisor = other.mantissa + 0.0;
        Wide::of(self.mantissa / divisor, self.exponent.saturating_sub(other.exponent))
    }

    fn power(self, exponent: Wide) -> Wide {
        let n = exponent.value();
        let plain = power(self.value(), n);
        let fits = plain == 0.0 && self.mantissa == 0.0
            || plain.is_nan()
            || plain.is_infinite() && self.mantissa.is_infinite()
            || plain.is_finite() && Wide::new(plain).is_plain() && plain != 0.0;
        if self.is_plain() && fits || n == 0.0 || self.mantissa == 0.0 {
            return Wide::new(plain);
        }
        if n.fract() == 0.0 && n.abs() <= FACTORS {
            let product = (0..n.abs() as u64).fold(Wide::new(1.0), |product, _| product.times(self));
            return if n < 0.0 { Wide::new(1.0).over(product) } else { product };
        }
        let size = Wide::exp2(n * self.log2());
        match self.mantissa < 0.0 {
            false => size,
            true if n.fract() != 0.0 => Wide::new(f64::NAN),
            true => {
                Wide { mantissa: size.mantissa.copysign(if n % 2.0 == 0.0 { 1.0 } else { -1.0 }), ..size }
            }
        }
    }

    fn apply(function: &Function, arguments: &[Wide]) -> Wide {
        let values: Vec<f64> = arguments.iter().map(|argument| argument.value()).collect();
        let above = |a: Wide, b: Wide| a.order(b) == Some(Ordering::Greater);
        match (function, arguments) {
            (Function::Exp, [x]) if x.mantissa.is_finite() => {
                Wide::exp2(values[0] * std::f64::consts::LOG2_E)
            }
            (Function::Log, [x]) if x.mantissa > 0.0 && !x.is_plain() => {
                Wide::new(x.log2() * std::f64::consts::LN_2)
            }
            (Function::Sqrt, [x]) if x.mantissa > 0.0 && x.mantissa.is_finite() => {
                let odd = x.exponent.rem_euclid(2);
                Wide::of((x.mantissa * two_to(odd)).sqrt(), (x.exponent - odd) / 2)
            }
            (Function::Abs, [x]) => Wide { mantissa: x.mantissa.abs(), ..*x },
            (Function::Relu, [x]) if x.mantissa > 0.0 => *x,
            (Function::Max, [a, b]) if values.iter().all(|x| !x.is_nan()) => {
                if above(*b, *a) {
                    *b
                } else {
                    *a
                }
            }
            (Function::Min, [a, b]) if values.iter().all(|x| !x.is_nan()) => {
                if above(*a, *b) {
                    *b
                } else {
                    *a
                }
            }
            _ => Wide::new(function.value(&values)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Wide, wanted: f64) {
        let found = found.value();
        let same = found == wanted || found.is_nan() && wanted.is_nan();
        assert!(same || (found - wanted).abs() <= 1e-14 * wanted.abs(), "{found} {wanted}");
    }

    /// Where 64 bits hold what comes, it is the same.
    #[test]
    fn they_are_numbers_where_numbers_hold_them() {
        let family = seeded::Family::new("tensor-logic/reference", "wide", seeded::test_seed());
        let mut stream = family.stream(0);
        let special =
            [0.0, 1.0, -1.0, 0.5, 2.0, 1e-300, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324];
        for _ in 0..20_000 {
            let mut number = || match stream.below(4) {
                0 => special[stream.below(special.len() as u64) as usize],
                _ => stream.normal() * 10.0_f64.powi(stream.below(40) as i32 - 20),
            };
            let (a, b) = (number(), number());
            let (x, y) = (Wide::new(a), Wide::new(b));
            let in_range =
                |value: f64| value == 0.0 || !value.is_finite() || (1e-290..1e290).contains(&value.abs());
            assert_eq!(x.order(y), a.partial_cmp(&b), "{a} {b}");
            let whole = stream.below(7) as f64 - 3.0;
            for (found, wanted) in [
                (x.plus(y), a + b),
                (x.times(y), a * b),
                (x.over(y), a / (b + 0.0)),
                (x.power(Wide::new(whole)), power(a, whole)),
                (Wide::apply(&Function::Sqrt, &[x]), Function::Sqrt.value(&[a])),
                (Wide::apply(&Function::Abs, &[x]), a.abs()),
                (Wide::apply(&Function::Relu, &[x]), Function::Relu.value(&[a])),
                (Wide::apply(&Function::Tanh, &[x]), Function::Tanh.value(&[a])),
            ] {
                let lost = wanted == 0.0 && found.mantissa != 0.0
                    || wanted.is_infinite() && found.mantissa.is_finite();
                if in_range(a) && in_range(b) && in_range(wanted) && !lost {
                    let sum = (a.abs() + b.abs()).min(f64::MAX);
                    match (found.value() - wanted).abs() <= 1e-15 * sum {
                        true => {}
                        false => close(found, wanted),
                    }
                }
            }
        }
    }

    /// What 64 bits do not hold comes back.
    #[test]
    fn they_keep_their_digits() {
        let small = (0..1000).fold(Wide::new(0.75), |product, _| product.times(Wide::new(1e-3)));
        let large = (0..1000).fold(Wide::new(4.0), |product, _| product.times(Wide::new(1e3)));
        assert_eq!(small.value(), f64::MIN_POSITIVE);
        assert_eq!(large.value(), f64::MAX);
        let near = |found: Wide, wanted: f64| assert!((found.value() - wanted).abs() < 1e-12 * wanted.abs());
        near(small.times(large), 3.0);
        near(small.plus(small).over(small), 2.0);
        near(Wide::apply(&Function::Sqrt, &[small.times(small)]).over(small), 1.0);
        near(Wide::apply(&Function::Log, &[large]), 4.0_f64.ln() + 3000.0 * 10.0_f64.ln());
        near(
            Wide::apply(&Function::Exp, &[Wide::new(-5000.0)])
                .times(Wide::apply(&Function::Exp, &[Wide::new(5001.0)])),
            1.0_f64.exp(),
        );
        near(small.power(Wide::new(3.0)).over(small).over(small).over(small), 1.0);
        // What 64 bits hold themselves, and whose power they do not.
        let some = Wide::new(1e200);
        near(some.power(Wide::new(2.0)).over(some), 1e200);
        near(some.power(Wide::new(-2.0)).times(some), 1e-200);
        near(some.power(Wide::new(2.5)).over(some).over(some), 1e100);
        assert_eq!(small.order(Wide::new(0.0)), Some(Ordering::Greater));
        assert_eq!(small.order(large), Some(Ordering::Less));
    }
}
