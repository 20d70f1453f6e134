//! Numbers: integers and rationals of any size, checked 64-bit integers, residues, doubles.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::interface::{Fault, Ring};

/// The most bits of an integer, of a numerator and of a denominator.
const MAX_BITS: u64 = 1 << 23;

/// ℤ
#[derive(Debug, Clone, Copy, Default)]
pub struct Integers;

impl Ring for Integers {
    type Element = BigInt;

    fn zero(&self) -> BigInt {
        BigInt::zero()
    }

    fn one(&self) -> BigInt {
        BigInt::one()
    }

    fn add(&self, a: &BigInt, b: &BigInt) -> Result<BigInt, Fault> {
        Ok(a + b)
    }

    fn mul(&self, a: &BigInt, b: &BigInt) -> Result<BigInt, Fault> {
        if a.bits() + b.bits() > MAX_BITS { Err(Fault::TooLarge) } else { Ok(a * b) }
    }

    fn integer(&self, value: &BigInt) -> Result<BigInt, Fault> {
        Ok(value.clone())
    }

    fn is_zero(&self, a: &BigInt) -> bool {
        a.is_zero()
    }
}

/// ℤ as far as 64 bits hold it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Word64;

impl Ring for Word64 {
    type Element = i64;

    fn zero(&self) -> i64 {
        0
    }

    fn one(&self) -> i64 {
        1
    }

    fn add(&self, a: &i64, b: &i64) -> Result<i64, Fault> {
        a.checked_add(*b).ok_or(Fault::Overflow)
    }

    fn mul(&self, a: &i64, b: &i64) -> Result<i64, Fault> {
        a.checked_mul(*b).ok_or(Fault::Overflow)
    }

    fn integer(&self, value: &BigInt) -> Result<i64, Fault> {
        value.to_i64().ok_or(Fault::Overflow)
    }
}

/// ℚ
#[derive(Debug, Clone, Copy, Default)]
pub struct Rationals;

impl Ring for Rationals {
    type Element = BigRational;

    fn zero(&self) -> BigRational {
        BigRational::zero()
    }

    fn one(&self) -> BigRational {
        BigRational::one()
    }

    fn add(&self, a: &BigRational, b: &BigRational) -> Result<BigRational, Fault> {
        let bits = |x: &BigRational| x.numer().bits() + x.denom().bits();
        if bits(a) + bits(b) > MAX_BITS { Err(Fault::TooLarge) } else { Ok(a + b) }
    }

    fn mul(&self, a: &BigRational, b: &BigRational) -> Result<BigRational, Fault> {
        let bits = |x: &BigRational| x.numer().bits().max(x.denom().bits());
        if bits(a) + bits(b) > MAX_BITS { Err(Fault::TooLarge) } else { Ok(a * b) }
    }

    fn integer(&self, value: &BigInt) -> Result<BigRational, Fault> {
        Ok(BigRational::from_integer(value.clone()))
    }

    fn fraction(&self, value: &BigRational) -> Result<BigRational, Fault> {
        Ok(value.clone())
    }

    fn is_zero(&self, a: &BigRational) -> bool {
        a.is_zero()
    }
}

/// ℤ/P
#[derive(Debug, Clone, Copy)]
pub struct Modular {
    modulus: u64,
}

impl Modular {
    /// ℤ/P for 2 ≤ P < 2⁶².
    pub fn new(modulus: u64) -> Option<Self> {
        (2..1 << 62).contains(&modulus).then_some(Self { modulus })
    }

    /// P
    pub fn modulus(self) -> u64 {
        self.modulus
    }
}

impl Ring for Modular {
    type Element = u64;

    fn zero(&self) -> u64 {
        0
    }

    fn one(&self) -> u64 {
        1
    }

    fn add(&self, a: &u64, b: &u64) -> Result<u64, Fault> {
        // Both are below 2⁶².
        let sum = a + b;
        Ok(if sum >= self.modulus { sum - self.modulus } else { sum })
    }

    fn mul(&self, a: &u64, b: &u64) -> Result<u64, Fault> {
        Ok((u128::from(*a) * u128::from(*b) % u128::from(self.modulus)) as u64)
    }

    fn integer(&self, value: &BigInt) -> Result<u64, Fault> {
        value.mod_floor(&BigInt::from(self.modulus)).to_u64().ok_or(Fault::Overflow)
    }

    fn fraction(&self, value: &BigRational) -> Result<u64, Fault> {
        let modulus = BigInt::from(self.modulus);
        let found = value.denom().mod_floor(&modulus).extended_gcd(&modulus);
        if !found.gcd.is_one() {
            return Err(Fault::NotInRing);
        }
        self.integer(&(value.numer() * found.x))
    }
}

/// The double nearest to a fraction of positive numbers, of two the even one; `None` beyond all of them.
fn nearest(numerator: &BigInt, denominator: &BigInt) -> Option<f64> {
    // The quotient has 100 bits or 101, which lie in a u128, and what is left of it is a bit behind them.
    let shift = 100 + denominator.bits() as i64 - numerator.bits() as i64;
    let (scaled, divisor) = if shift >= 0 {
        (numerator << shift as u64, denominator.clone())
    } else {
        (numerator.clone(), denominator << shift.unsigned_abs())
    };
    let (quotient, rest) = scaled.div_rem(&divisor);
    let quotient = quotient.to_u128()? << 1 | u128::from(!rest.is_zero());
    let shift = shift + 1;
    // The place of its first bit, and the last place that a double of this size has.
    let first = i64::from(u128::BITS - quotient.leading_zeros()) - 1 - shift;
    let last = (first - 52).max(-1074);
    let drop = last + shift;
    if drop >= 128 {
        // Less than half of the smallest.
        return Some(0.0);
    }
    let (kept, cut) = (quotient >> drop, quotient & ((1 << drop) - 1));
    let half = 1_u128 << (drop - 1);
    let kept = kept + u128::from(cut > half || (cut == half && kept & 1 == 1));
    // In two steps, of which only the last may leave the normal numbers, where it is exact.
    let exponent = i32::try_from(last).ok()?;
    let step = exponent / 2;
    let found = kept as f64 * 2f64.powi(step) * 2f64.powi(exponent - step);
    found.is_finite().then_some(found)
}

/// Doubles, for comparison with exact rings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Double;

impl Double {
    fn finite(value: f64) -> Result<f64, Fault> {
        if value.is_finite() { Ok(value) } else { Err(Fault::Overflow) }
    }
}

impl Ring for Double {
    type Element = f64;

    fn zero(&self) -> f64 {
        0.0
    }

    fn one(&self) -> f64 {
        1.0
    }

    fn add(&self, a: &f64, b: &f64) -> Result<f64, Fault> {
        Self::finite(a + b)
    }

    fn mul(&self, a: &f64, b: &f64) -> Result<f64, Fault> {
        Self::finite(a * b)
    }

    fn integer(&self, value: &BigInt) -> Result<f64, Fault> {
        Self::finite(value.to_f64().unwrap_or(f64::INFINITY))
    }

    fn fraction(&self, value: &BigRational) -> Result<f64, Fault> {
        if value.denom().is_one() {
            return self.integer(value.numer());
        }
        let found = nearest(&value.numer().abs(), value.denom()).ok_or(Fault::Overflow)?;
        Self::finite(if value.is_negative() { -found } else { found })
    }

    fn decimal(&self, text: &str, _exact: &BigRational) -> Result<f64, Fault> {
        Self::finite(text.parse().map_err(|_| Fault::NotInRing)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far a double is from a fraction.
    fn distance(found: f64, value: &BigRational) -> BigRational {
        let found = BigRational::from_float(found).unwrap_or_else(BigRational::zero);
        (found - value).abs()
    }

    fn check(numerator: &BigInt, denominator: &BigInt) {
        let value = BigRational::new(numerator.clone(), denominator.clone());
        let Ok(found) = Double.fraction(&value) else {
            assert!(
                value.abs() >= BigRational::from_float(f64::MAX).unwrap_or_else(BigRational::zero),
                "{value}"
            );
            return;
        };
        let own = distance(found, &value);
        for other in [found.next_up(), found.next_down()] {
            if other.is_finite() {
                let further = distance(other, &value);
                assert!(own <= further, "{value}: {found:e} and {other:e}");
                assert!(own < further || found.to_bits() & 1 == 0, "{value}: {found:e} is odd");
            }
        }
    }

    /// Fractions of all sizes, and such that lie at or beside the middle of two doubles.
    #[test]
    fn fractions_go_to_the_nearest_double() {
        let mut draw = seeded::Family::new("linear-logic", "fractions", seeded::test_seed()).stream(0);
        let mut number =
            |bits: u64| (BigInt::from(draw.below(u64::MAX)) << bits) + BigInt::from(draw.below(u64::MAX));
        for turn in 0..3000_u64 {
            let (a, b) = (number(turn % 1200), number(turn * 7 % 1300));
            check(&(a + 1), &(b + 1));
        }
        for turn in 0..3000_u64 {
            // Two of 53 bits beside each other, their middle, and a little more or less.
            let low = (BigInt::from(1) << 52) + number(0).mod_floor(&(BigInt::from(1) << 52));
            let middle: BigInt = low * 2 + 1;
            let scale = number(turn % 900) | BigInt::from(1);
            for beside in [-1, 0, 1] {
                let numerator: BigInt = &middle * &scale + beside;
                check(&numerator, &(&scale << 40_u64));
                // Among the subnormal ones, too, where fewer places are left.
                check(&numerator, &(&scale << (1000 + turn % 160)));
            }
        }
    }
}
