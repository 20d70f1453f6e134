//! The values of tuples: semirings given by how derivations are joined and how a body is
//! multiplied.

/// The value of a tuple: the bits of an `f64`, or of an `i64` where the ring counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Value(pub u64);

impl Value {
    /// A real number.
    pub fn real(number: f64) -> Value {
        Value(number.to_bits())
    }

    /// A count.
    pub fn count(number: i64) -> Value {
        Value(number.cast_unsigned())
    }

    /// The real number.
    pub fn as_real(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// The count.
    pub fn as_count(self) -> i64 {
        self.0.cast_signed()
    }
}

/// ⊕: how several derivations of one tuple are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The tuple exists; there are no values.
    Exists,
    /// The smallest real.
    Min,
    /// The largest real.
    Max,
    /// The sum of reals over all bindings. Not in recursion.
    Sum,
    /// The sum of `i64` over all bindings, refused when it overflows. Not in recursion, and with [`Times::Times`]
    /// alone: the 1̄ of the others is no number that a sum could hold.
    Count,
}

/// ⊗: how the values of a body are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Times {
    /// Addition; 1̄ is 0.
    Plus,
    /// Multiplication; 1̄ is 1.
    Times,
    /// The smaller; 1̄ is infinity (the largest `i64` where the ring counts).
    Min,
}

/// A semiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ring {
    /// ⊕
    pub combine: Combine,
    /// ⊗
    pub times: Times,
}

impl Ring {
    /// Tuples without values.
    pub const BOOLEAN: Ring = Ring { combine: Combine::Exists, times: Times::Times };
    /// Shortest paths.
    pub const MIN_PLUS: Ring = Ring { combine: Combine::Min, times: Times::Plus };
    /// Numbers of derivations.
    pub const COUNT: Ring = Ring { combine: Combine::Count, times: Times::Times };
    /// Sums of products of reals.
    pub const REAL: Ring = Ring { combine: Combine::Sum, times: Times::Times };

    /// Most probable derivations.
    pub const MAX_TIMES: Ring = Ring { combine: Combine::Max, times: Times::Times };
    /// Surest derivations, as sure as their weakest part.
    pub const MAX_MIN: Ring = Ring { combine: Combine::Max, times: Times::Min };

    /// Whether tuples have values.
    pub fn valued(self) -> bool {
        self.combine != Combine::Exists
    }

    /// Whether values are counts and not reals.
    pub fn counts(self) -> bool {
        self.combine == Combine::Count
    }

    /// Whether a ⊕ a = a: then a fixpoint may take a derivation twice.
    pub fn idempotent(self) -> bool {
        matches!(self.combine, Combine::Exists | Combine::Min | Combine::Max)
    }

    /// Whether ⊗ distributes over ⊕ for all numbers: products of negative numbers turn their order round.
    pub(crate) fn times_distribute(self) -> bool {
        match self.combine {
            Combine::Exists => true,
            Combine::Min | Combine::Max => self.times != Times::Times,
            Combine::Sum | Combine::Count => self.times == Times::Times,
        }
    }

    /// 1̄
    pub fn one(self) -> Value {
        match (self.times, self.counts()) {
            (Times::Plus, true) => Value::count(0),
            (Times::Plus, false) => Value::real(0.0),
            (Times::Times, true) => Value::count(1),
            (Times::Times, false) => Value::real(1.0),
            (Times::Min, true) => Value::count(i64::MAX),
            (Times::Min, false) => Value::real(f64::INFINITY),
        }
    }

    /// The number 1: the value of a Boolean tuple that stands as a factor.
    pub fn unit(self) -> Value {
        if self.counts() { Value::count(1) } else { Value::real(1.0) }
    }

    /// A value of another ring as a factor in this one: a tuple of a Boolean relation, which has none, is 1, a count a
    /// real number.
    #[inline]
    pub fn factor(self, value: Option<Value>, from: Ring) -> Value {
        match value {
            None => self.unit(),
            Some(value) if from.counts() && !self.counts() => Value::real(value.as_count() as f64),
            Some(value) => value,
        }
    }

    /// a ⊗ b; `None` where a count overflows.
    #[inline]
    pub fn times(self, a: Value, b: Value) -> Option<Value> {
        if self.counts() {
            let (a, b) = (a.as_count(), b.as_count());
            return match self.times {
                Times::Plus => a.checked_add(b),
                Times::Times => a.checked_mul(b),
                Times::Min => Some(a.min(b)),
            }
            .map(Value::count);
        }
        let (a, b) = (a.as_real(), b.as_real());
        Some(Value::real(match self.times {
            Times::Plus => a + b,
            Times::Times => a * b,
            Times::Min => a.min(b),
        }))
    }

    /// a ⊕ b; `None` where a count overflows.
    #[inline]
    pub fn plus(self, a: Value, b: Value) -> Option<Value> {
        match self.combine {
            Combine::Exists => Some(a),
            Combine::Min | Combine::Max => Some(if self.improves(a, b) { b } else { a }),
            Combine::Sum => Some(Value::real(a.as_real() + b.as_real())),
            Combine::Count => a.as_count().checked_add(b.as_count()).map(Value::count),
        }
    }

    /// Whether `new` is a better value than `old` under minimum or maximum.
    #[inline]
    pub fn improves(self, old: Value, new: Value) -> bool {
        match self.combine {
            Combine::Min => new.as_real() < old.as_real(),
            Combine::Max => new.as_real() > old.as_real(),
            Combine::Exists | Combine::Sum | Combine::Count => false,
        }
    }
}
