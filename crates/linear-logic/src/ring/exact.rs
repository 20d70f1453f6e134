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
        // Scaled so that the quotient has 64 bits or more; the rest decides no rounding but in the last place.
        let shift = 128 + value.denom().bits() as i64 - value.numer().bits() as i64;
        let (scaled, unscaled) = if shift >= 0 {
            ((value.numer().abs() << shift as u64) / value.denom(), shift)
        } else {
            (value.numer().abs() / (value.denom().clone() << shift.unsigned_abs()), shift)
        };
        let mantissa = scaled.to_f64().unwrap_or(f64::INFINITY);
        let exponent = i32::try_from(-unscaled).map_err(|_| Fault::Overflow)?;
        // In two steps, so that neither factor leaves the range of doubles.
        let half = exponent / 2;
        let found = mantissa * 2f64.powi(half) * 2f64.powi(exponent - half);
        Self::finite(if value.is_negative() { -found } else { found })
    }

    fn decimal(&self, text: &str, _exact: &BigRational) -> Result<f64, Fault> {
        Self::finite(text.parse().map_err(|_| Fault::NotInRing)?)
    }
}
