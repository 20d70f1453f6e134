//! What a ring is: the functions that a user's own ring has.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;

use crate::error::{Kind, Refusal};

/// Why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The result is outside the range of the machine's numbers.
    #[error("the result of an operation is out of range")]
    Overflow,
    /// The result is too large to be worked with.
    #[error("a number, polynomial or word grows too large")]
    TooLarge,
    /// The products take more operations than are allowed.
    #[error("the products take too many operations")]
    TooLong,
    /// There is no such element.
    #[error("the scalar is not an element of the ring")]
    NotInRing,
}

/// What mends a scalar that is not in the ring.
const NEEDS_INVERSE: &str =
    "a fraction needs a ring in which its denominator has an inverse, such as `--ring rat`";

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let kind = match fault {
            Fault::Overflow => Kind::Overflow,
            Fault::TooLarge | Fault::TooLong => Kind::Limit,
            Fault::NotInRing => Kind::NotInRing,
        };
        let refusal = Self::new(kind, fault.to_string());
        match fault {
            Fault::Overflow => refusal.help("`--ring int` and `--ring rat` have no bounds".to_owned()),
            Fault::TooLarge | Fault::TooLong => refusal,
            Fault::NotInRing => refusal.found("a scalar").help(NEEDS_INVERSE.to_owned()),
        }
    }
}

/// The name of an infinitesimal ε, with ε² = 0.
pub type Name = u64;

/// A commutative ring. The value holds what all elements share, such as a modulus.
pub trait Ring {
    /// An element.
    type Element: Clone + PartialEq + std::fmt::Debug;

    /// 0
    fn zero(&self) -> Self::Element;

    /// 1
    fn one(&self) -> Self::Element;

    /// `a + b`
    ///
    /// # Errors
    /// If the result cannot be represented; nothing is ever wrapped.
    fn add(&self, a: &Self::Element, b: &Self::Element) -> Result<Self::Element, Fault>;

    /// `a · b`
    ///
    /// # Errors
    /// As for [`Ring::add`].
    fn mul(&self, a: &Self::Element, b: &Self::Element) -> Result<Self::Element, Fault>;

    /// The image of an integer.
    ///
    /// # Errors
    /// As for [`Ring::add`].
    fn integer(&self, value: &BigInt) -> Result<Self::Element, Fault>;

    /// The image of a fraction, if its denominator is invertible.
    ///
    /// # Errors
    /// [`Fault::NotInRing`], or as for [`Ring::add`].
    fn fraction(&self, value: &BigRational) -> Result<Self::Element, Fault> {
        if value.denom().is_one() { self.integer(value.numer()) } else { Err(Fault::NotInRing) }
    }

    /// The element that a decimal number means; `exact` is its value.
    ///
    /// # Errors
    /// As for [`Ring::fraction`].
    fn decimal(&self, _text: &str, exact: &BigRational) -> Result<Self::Element, Fault> {
        self.fraction(exact)
    }

    /// Whether the ring has variables.
    fn has_variables(&self) -> bool {
        false
    }

    /// The variable of a name, in a ring that has variables.
    fn variable(&self, _name: &str) -> Option<Self::Element> {
        None
    }

    /// ε, in a ring that has infinitesimals.
    fn epsilon(&self, _name: Name) -> Option<Self::Element> {
        None
    }

    /// Calls `visit` with every ε of every term, as often as it occurs.
    fn epsilons(&self, _a: &Self::Element, _visit: &mut dyn FnMut(Name)) {}

    /// The coefficient of the product of the ε's in `take`, with 0 for those in `kill`.
    fn coefficient(&self, a: &Self::Element, _take: &[Name], _kill: &[Name]) -> Self::Element {
        a.clone()
    }

    /// Other ε's for some: a homomorphism, so terms that become alike are added, and one in which two ε's become the
    /// same is 0, as ε² is.
    ///
    /// # Errors
    /// As for [`Ring::add`].
    fn rename(&self, a: &Self::Element, _names: &[(Name, Name)]) -> Result<Self::Element, Fault> {
        Ok(a.clone())
    }

    /// Whether an element is 0.
    fn is_zero(&self, a: &Self::Element) -> bool {
        *a == self.zero()
    }

    /// Whether an element is 1.
    fn is_one(&self, a: &Self::Element) -> bool {
        *a == self.one()
    }
}
