//! What tuples are tagged with, as one trait: [`Semiring`].
//!
//! The rings that the engine is made for are instances ([`Ring`], by the operations that it runs on), and [`AddMult`]. Others are
//! the caller's: where provenance is wanted, sets of facts are tags. [`evaluate_tagged`](crate::evaluate_tagged) finds the
//! tags of all that follows by rules.

use std::fmt::Debug;

use crate::ring::{Combine, Ring, Times, Value};
use crate::rule::RelationId;

/// A given tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact<'a> {
    /// Its number: facts are numbered from 0, relation by relation, in the order of [`Relation::rows`](crate::Relation::rows).
    pub number: usize,
    /// Its relation.
    pub relation: RelationId,
    /// Its constants.
    pub tuple: &'a [u32],
    /// Its value, if its relation has values.
    pub value: Option<Value>,
}

/// Tags, how those of a body are multiplied (⊗) and those of several derivations joined (⊕).
///
/// ⊕ and ⊗ are associative and commutative, 0̄ and 1̄ are their neutral elements, and ⊗ distributes over ⊕; otherwise a
/// tag depends on how rules are written. Operations are `None` where the result is no tag any more, as when a count overflows:
/// an evaluation is then refused.
pub trait Semiring {
    /// What a tuple is tagged with.
    type Tag: Clone + PartialEq + Debug;

    /// 0̄: the tag of what has no derivation.
    fn zero(&self) -> Self::Tag;

    /// 1̄: the tag of an empty body.
    fn one(&self) -> Self::Tag;

    /// a ⊕ b
    fn plus(&self, a: &Self::Tag, b: &Self::Tag) -> Option<Self::Tag>;

    /// a ⊗ b
    fn times(&self, a: &Self::Tag, b: &Self::Tag) -> Option<Self::Tag>;

    /// The tag of `not R(x)` where `R(x)` has this one. Without such an operation, which is the default, a denied literal asks
    /// whether there is no such tuple, and has the tag 1̄.
    fn negate(&self, _tag: &Self::Tag) -> Option<Self::Tag> {
        None
    }

    /// The c with b ⊕ c = a, if there is such an operation: then a sum is moved by what one of its terms has gained, and not
    /// added up anew.
    fn minus(&self, _a: &Self::Tag, _b: &Self::Tag) -> Option<Self::Tag> {
        None
    }

    /// Whether a tag has come to rest, so that what follows from it need not be found again.
    fn saturated(&self, old: &Self::Tag, new: &Self::Tag) -> bool {
        old == new
    }

    /// Whether a ⊕ a = a.
    fn idempotent(&self) -> bool;

    /// The tag of a number: of a rule's weight, of a factor made from constants, of a tuple's value. `None` where the number
    /// has no tag.
    fn number(&self, value: Value) -> Option<Self::Tag>;

    /// The tag of a given tuple: that of its value, or 1̄.
    fn fact(&self, fact: &Fact<'_>) -> Option<Self::Tag> {
        fact.value.map_or_else(|| Some(self.one()), |value| self.number(value))
    }

    /// What a tag says as a number; `None` where it says none.
    fn answer(&self, tag: &Self::Tag) -> Option<f64>;
}

impl Semiring for Ring {
    type Tag = Value;

    /// The neutral element of ⊕; under maximum and product, which are for numbers from 0 on, that is 0.
    fn zero(&self) -> Value {
        match (self.combine, self.times) {
            (Combine::Exists | Combine::Sum, _) | (Combine::Max, Times::Times) => Value::real(0.0),
            (Combine::Count, _) => Value::count(0),
            (Combine::Min, _) => Value::real(f64::INFINITY),
            (Combine::Max, _) => Value::real(f64::NEG_INFINITY),
        }
    }

    fn one(&self) -> Value {
        Ring::one(*self)
    }

    fn plus(&self, a: &Value, b: &Value) -> Option<Value> {
        match self.combine {
            // Where tuples have no values, one that exists is true.
            Combine::Exists if *a == self.zero() => Some(*b),
            _ => Ring::plus(*self, *a, *b),
        }
    }

    fn times(&self, a: &Value, b: &Value) -> Option<Value> {
        Ring::times(*self, *a, *b)
    }

    fn minus(&self, a: &Value, b: &Value) -> Option<Value> {
        // Differences of reals are rounded, and would stay in the sum.
        match self.combine {
            Combine::Count => a.as_count().checked_sub(b.as_count()).map(Value::count),
            _ => None,
        }
    }

    fn idempotent(&self) -> bool {
        Ring::idempotent(*self)
    }

    fn number(&self, value: Value) -> Option<Value> {
        Some(if self.valued() { value } else { self.unit() })
    }

    fn answer(&self, tag: &Value) -> Option<f64> {
        Some(if self.counts() { tag.as_count() as f64 } else { tag.as_real() })
    }
}

/// Probabilities whose sums end at 1: min(1, a + b) and a · b over [0, 1]. An upper bound of how probable it is that one of
/// several derivations holds, since what they share is counted for each. ⊗ distributes over ⊕ only where the sum is below 1;
/// else a ⊗ (b ⊕ c) is the smaller side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddMult {
    /// Tags that change by no more are at rest: a sum along a cycle has infinitely many terms.
    pub tolerance: f64,
}

impl Default for AddMult {
    /// At rest within 10⁻¹².
    fn default() -> Self {
        AddMult { tolerance: 1e-12 }
    }
}

impl Semiring for AddMult {
    type Tag = f64;

    fn zero(&self) -> f64 {
        0.0
    }

    fn one(&self) -> f64 {
        1.0
    }

    fn plus(&self, a: &f64, b: &f64) -> Option<f64> {
        Some((a + b).min(1.0))
    }

    fn times(&self, a: &f64, b: &f64) -> Option<f64> {
        Some(a * b)
    }

    fn saturated(&self, old: &f64, new: &f64) -> bool {
        (old - new).abs() <= self.tolerance
    }

    fn idempotent(&self) -> bool {
        false
    }

    fn number(&self, value: Value) -> Option<f64> {
        Some(value.as_real()).filter(|number| (0.0..=1.0).contains(number))
    }

    fn answer(&self, tag: &f64) -> Option<f64> {
        Some(*tag)
    }
}
