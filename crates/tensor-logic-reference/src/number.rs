//! The numbers of the interpreter: plain ones, dual numbers that carry a derivative along, and
//! counts that carry all digits of an integer along.

use tensor_logic_core::digits::{COUNT_LIMIT, EXACT_LIMIT};
use tensor_logic_core::function::{Function, power};

/// A number that the interpreter can calculate with.
pub(super) trait Number: Copy {
    /// A constant.
    fn new(value: f64) -> Self;
    /// A variable: the derivative by it is 1.
    fn variable(value: f64) -> Self;
    /// The value.
    fn value(self) -> f64;
    /// The derivative; 0 for plain numbers.
    fn slope(self) -> f64;
    /// A number with this value, and this slope where slopes are carried.
    fn with(value: f64, slope: f64) -> Self;

    /// Whether a count may have this value: it stays below 2⁶³.
    fn fits_count(self) -> bool {
        self.value().abs() < COUNT_LIMIT
    }

    /// The integer, for a count.
    fn count(self) -> Option<i64> {
        None
    }

    /// Whether two numbers with equal values differ all the same.
    fn differs(self, _: Self) -> bool {
        false
    }

    /// The sum.
    fn plus(self, other: Self) -> Self {
        Self::with(self.value() + other.value(), self.slope() + other.slope())
    }

    /// The product.
    fn times(self, other: Self) -> Self {
        let slope = weighted(other.value(), self.slope()) + weighted(self.value(), other.slope());
        Self::with(self.value() * other.value(), slope)
    }

    /// The quotient.
    fn over(self, other: Self) -> Self {
        // A 0 has no sign: -0 + 0 is 0.
        let (a, b) = (self.value(), other.value() + 0.0);
        let slope = weighted(1.0 / b, self.slope()) - weighted(a / (b * b), other.slope());
        Self::with(a / b, slope)
    }

    /// The power.
    fn power(self, exponent: Self) -> Self {
        let (a, n) = (self.value(), exponent.value());
        let by_base = if self.slope() == 0.0 || n == 0.0 { 0.0 } else { n * power(a, n - 1.0) };
        let by_exponent = if exponent.slope() == 0.0 { 0.0 } else { power(a, n) * a.ln() };
        let slope = weighted(by_base, self.slope()) + weighted(by_exponent, exponent.slope());
        Self::with(power(a, n), slope)
    }

    /// An elementwise function.
    fn apply(function: &Function, arguments: &[Self]) -> Self {
        let values: Vec<f64> = arguments.iter().map(|argument| argument.value()).collect();
        let sloped = arguments.iter().enumerate().filter(|(_, argument)| argument.slope() != 0.0);
        let slope = sloped.map(|(by, argument)| function.derivative(&values, by) * argument.slope()).sum();
        Self::with(function.value(&values), slope)
    }
}

/// A derivative's part; what does not depend on the variable adds nothing, however steep it is.
fn weighted(factor: f64, slope: f64) -> f64 {
    if slope == 0.0 { 0.0 } else { factor * slope }
}

impl Number for f64 {
    fn new(value: f64) -> f64 {
        value
    }
    fn variable(value: f64) -> f64 {
        value
    }
    fn value(self) -> f64 {
        self
    }
    fn slope(self) -> f64 {
        0.0
    }
    fn with(value: f64, _: f64) -> f64 {
        value
    }
}

/// A value and its derivative by one variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dual {
    value: f64,
    slope: f64,
}

impl Number for Dual {
    fn new(value: f64) -> Dual {
        Dual { value, slope: 0.0 }
    }
    fn variable(value: f64) -> Dual {
        Dual { value, slope: 1.0 }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn slope(self) -> f64 {
        self.slope
    }
    fn with(value: f64, slope: f64) -> Dual {
        Dual { value, slope }
    }
}

/// A value, and the integer that it is as far as sums and products of integers make it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    value: f64,
    whole: Option<i128>,
}

impl Exact {
    fn of(whole: Option<i128>, value: f64) -> Exact {
        Exact { value: whole.map_or(value, |whole| whole as f64), whole }
    }
}

impl Number for Exact {
    fn new(value: f64) -> Exact {
        let whole = value.fract() == 0.0 && value.abs() < COUNT_LIMIT;
        Exact { value, whole: whole.then_some(value as i128) }
    }
    fn variable(value: f64) -> Exact {
        Exact::new(value)
    }
    fn value(self) -> f64 {
        self.value
    }
    fn slope(self) -> f64 {
        0.0
    }
    fn with(value: f64, _: f64) -> Exact {
        // What other operations make is rounded beyond 53 bits.
        if value.abs() < EXACT_LIMIT { Exact::new(value) } else { Exact { value, whole: None } }
    }
    fn fits_count(self) -> bool {
        match self.whole {
            Some(whole) => i64::try_from(whole).is_ok(),
            None => self.value.abs() < EXACT_LIMIT,
        }
    }
    fn count(self) -> Option<i64> {
        i64::try_from(self.whole?).ok()
    }
    fn differs(self, other: Exact) -> bool {
        self.whole != other.whole
    }
    fn plus(self, other: Exact) -> Exact {
        let whole = self.whole.zip(other.whole).and_then(|(a, b)| a.checked_add(b));
        Exact::of(whole, self.value + other.value)
    }
    fn times(self, other: Exact) -> Exact {
        let whole = self.whole.zip(other.whole).and_then(|(a, b)| a.checked_mul(b));
        Exact::of(whole, self.value * other.value)
    }
}
