//! The numbers of the interpreter: plain ones, and dual numbers that carry a derivative along.

use crate::function::{Function, power};

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
        let (a, b) = (self.value(), other.value());
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
