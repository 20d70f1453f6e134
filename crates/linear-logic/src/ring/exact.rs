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
        self.fraction(&BigRational::from_integer(value.clone()))
    }

    fn fraction(&self, value: &BigRational) -> Result<f64, Fault> {
        let found = nearest(value.numer(), value.denom())?;
        Ok(if value.is_negative() { -found } else { found })
    }

    fn decimal(&self, text: &str, _exact: &BigRational) -> Result<f64, Fault> {
        Self::finite(text.parse().map_err(|_| Fault::NotInRing)?)
    }
}

/// The double that is nearest to |p/q|, of two equally near ones the even one. It is rounded once, also where doubles are
/// subnormal.
fn nearest(p: &BigInt, q: &BigInt) -> Result<f64, Fault> {
    /// The exponent of the last place of the smallest doubles, and the bits of a mantissa.
    const LEAST: i64 = -1074;
    const BITS: i64 = f64::MANTISSA_DIGITS as i64;
    let (p, q) = (p.magnitude(), q.magnitude());
    // p/q lies between the powers of two of this exponent, and of the one below it, and twice that.
    let exponent = p.bits() as i64 - q.bits() as i64;
    if p.is_zero() || exponent < LEAST - 2 {
        return Ok(0.0);
    }
    if exponent > f64::MAX_EXP.into() {
        return Err(Fault::Overflow);
    }
    // One or two bits more than a mantissa; where that is finer than the smallest doubles, one bit more than these.
    let place = (exponent - BITS - 1).max(LEAST - 1);
    let shift = place.unsigned_abs();
    let (quotient, rest) = if place >= 0 { p.div_rem(&(q << shift)) } else { (p << shift).div_rem(q) };
    let quotient = quotient.to_u64().ok_or(Fault::Overflow)?;
    let more = (i64::from(u64::BITS - quotient.leading_zeros()) - BITS).max(1);
    let (whole, half) = (quotient >> more, 1 << (more - 1));
    let beyond = quotient & ((1 << more) - 1);
    let is_up = beyond > half || (beyond == half && (!rest.is_zero() || whole & 1 == 1));
    // Both factors are exact, and so is their product, unless it overflows.
    Double::finite((whole + u64::from(is_up)) as f64 * power_of_two(place + more))
}

/// 2ᵉ, where it is a double.
fn power_of_two(exponent: i64) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent + 1074).clamp(0, 51)),
        _ => f64::from_bits((exponent.min(1024) as u64).wrapping_add(1023) << 52),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::{Family, Stream};

    /// A double as a fraction.
    fn exact(x: f64) -> BigRational {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        let (whole, place) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        let power = BigRational::from_integer(BigInt::one() << place.unsigned_abs());
        let whole = BigRational::from_integer(whole.into());
        if place >= 0 { whole * power } else { whole / power }
    }

    /// Half the way to the next double; beyond the last one, as if there were another.
    fn middle(x: f64) -> BigRational {
        let next = f64::from_bits(x.to_bits() + 1);
        let next = if next.is_finite() {
            exact(next)
        } else {
            exact(x) * two() - exact(f64::from_bits(x.to_bits() - 1))
        };
        (exact(x) + next) / two()
    }

    fn two() -> BigRational {
        BigRational::from_integer(2.into())
    }

    /// The double of a fraction is one to which no other is nearer, and the even one of two.
    fn check(value: &BigRational) {
        let (found, size) = (Double.fraction(value), value.abs());
        let Ok(found) = found else {
            assert!(size >= middle(f64::MAX), "{value} is out of range");
            return;
        };
        assert!(found.is_finite());
        assert!(found == 0.0 || (found < 0.0) == value.is_negative(), "{value}: {found:e}");
        let found = found.abs();
        let is_even = found.to_bits() & 1 == 0;
        let above = middle(found);
        assert!(size < above || (size == above && is_even), "{value}: {found:e} is too small");
        if found > 0.0 {
            let below = middle(f64::from_bits(found.to_bits() - 1));
            assert!(size > below || (size == below && is_even), "{value}: {found:e} is too large");
        }
        if value.is_integer() {
            assert_eq!(Double.integer(value.numer()), Double.fraction(value));
        }
    }

    fn digits(stream: &mut Stream, most: u64) -> BigInt {
        let words = 1 + stream.below(most);
        let all = (0..words).fold(BigInt::zero(), |all, _| (all << 32) + stream.below(1 << 32));
        (all >> stream.below(32)) + 1
    }

    #[test]
    fn fractions_are_the_nearest_doubles() {
        for seed in 0..3000 {
            let mut stream = Family::named("linear-logic:nearest").stream(seed);
            let (p, q) = (digits(&mut stream, 40), digits(&mut stream, 40));
            check(&BigRational::new(p.clone(), q.clone()));
            check(&BigRational::new(-p, BigInt::one()));
            // Between two doubles, exactly and nearly; all exponents, so subnormal ones too.
            let x = f64::from_bits(match stream.below(4) {
                0 => stream.below(1 << 53),
                1 => f64::MAX.to_bits() - stream.below(3),
                2 => stream.below(3),
                _ => stream.below(f64::MAX.to_bits()),
            });
            let (half, least) = (middle(x), BigRational::new(BigInt::one(), q << (1100 + stream.below(200))));
            for value in
                [exact(x), half.clone(), &half + &least, &half - &least, -half * (two() + &least) / two()]
            {
                check(&value);
            }
        }
    }

    #[test]
    fn fractions_at_the_ends_of_doubles() {
        let power = |exponent: u64| BigRational::from_integer(BigInt::one() << exponent);
        let one = BigRational::one();
        assert_eq!(Double.fraction(&(&one / power(1075))), Ok(0.0));
        assert_eq!(Double.fraction(&(&one / power(1074))), Ok(f64::from_bits(1)));
        assert_eq!(Double.fraction(&(&one / power(1_000_000))), Ok(0.0));
        assert_eq!(Double.fraction(&power(1_000_000)), Err(Fault::Overflow));
        assert_eq!(Double.fraction(&power(1023)), Ok(2f64.powi(1023)));
        assert_eq!(Double.fraction(&power(1024)), Err(Fault::Overflow));
        let tie = BigRational::from_integer((BigInt::one() << 53_u64) + 1);
        assert_eq!(Double.fraction(&tie), Ok(2f64.powi(53)));
        // Beyond the tie by less than a long quotient shows.
        let beyond = &tie + &one / power(200);
        assert_eq!(Double.fraction(&beyond), Ok(2f64.powi(53) + 2.0));
        for value in [&one / power(1075), tie, beyond, power(1024) - power(970), power(1024) - power(969)] {
            check(&value);
        }
        assert_eq!(Double.fraction(&BigRational::new(1.into(), 3.into())), Ok(1.0 / 3.0));
        assert_eq!(Double.fraction(&BigRational::new((-1).into(), 10.into())), Ok(-0.1));
    }
}
