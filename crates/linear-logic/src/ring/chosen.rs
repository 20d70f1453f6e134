//! A ring that is chosen when the program runs, so that the evaluator is compiled once for all of them.

use num_bigint::BigInt;
use num_rational::BigRational;

use super::exact::{Double, Integers, Modular, Rationals, Word64};
use super::interface::{Fault, Ring};

macro_rules! rings {
    ($($(#[$doc:meta])* $name:ident($ring:ty),)+) => {
        /// One of the rings of the command.
        #[derive(Debug, Clone, Copy)]
        pub enum Chosen { $($(#[$doc])* $name($ring)),+ }

        /// An element of a [`Chosen`] ring.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Number { $($(#[$doc])* $name(<$ring as Ring>::Element)),+ }

        impl Ring for Chosen {
            type Element = Number;

            fn zero(&self) -> Number {
                match self { $(Self::$name(ring) => Number::$name(ring.zero())),+ }
            }

            fn one(&self) -> Number {
                match self { $(Self::$name(ring) => Number::$name(ring.one())),+ }
            }

            fn add(&self, a: &Number, b: &Number) -> Result<Number, Fault> {
                match (self, a, b) {
                    $((Self::$name(ring), Number::$name(a), Number::$name(b)) => ring.add(a, b).map(Number::$name),)+
                    _ => Err(Fault::NotInRing),
                }
            }

            fn mul(&self, a: &Number, b: &Number) -> Result<Number, Fault> {
                match (self, a, b) {
                    $((Self::$name(ring), Number::$name(a), Number::$name(b)) => ring.mul(a, b).map(Number::$name),)+
                    _ => Err(Fault::NotInRing),
                }
            }

            fn integer(&self, value: &BigInt) -> Result<Number, Fault> {
                match self { $(Self::$name(ring) => ring.integer(value).map(Number::$name)),+ }
            }

            fn fraction(&self, value: &BigRational) -> Result<Number, Fault> {
                match self { $(Self::$name(ring) => ring.fraction(value).map(Number::$name)),+ }
            }

            fn decimal(&self, text: &str, exact: &BigRational) -> Result<Number, Fault> {
                match self { $(Self::$name(ring) => ring.decimal(text, exact).map(Number::$name)),+ }
            }

            fn is_zero(&self, a: &Number) -> bool {
                match (self, a) {
                    $((Self::$name(ring), Number::$name(a)) => ring.is_zero(a),)+
                    _ => false,
                }
            }
        }
    };
}

rings! {
    /// ℤ
    Int(Integers),
    /// ℤ as far as 64 bits hold it.
    I64(Word64),
    /// ℚ
    Rat(Rationals),
    /// ℤ/P
    Mod(Modular),
    /// Doubles.
    F64(Double),
}

impl std::str::FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let modular = || text.strip_prefix("mod:")?.parse().ok().and_then(Modular::new).map(Self::Mod);
        match text {
            "int" => Ok(Self::Int(Integers)),
            "i64" => Ok(Self::I64(Word64)),
            "rat" => Ok(Self::Rat(Rationals)),
            "f64" => Ok(Self::F64(Double)),
            _ => {
                modular().ok_or_else(|| "a ring is int, i64, rat, mod:P with 2 ≤ P < 2^62, or f64".to_owned())
            }
        }
    }
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(_) => write!(f, "int"),
            Self::I64(_) => write!(f, "i64"),
            Self::Rat(_) => write!(f, "rat"),
            Self::Mod(ring) => write!(f, "mod:{}", ring.modulus()),
            Self::F64(_) => write!(f, "f64"),
        }
    }
}
