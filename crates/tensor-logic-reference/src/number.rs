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
    /// The derivative, where the value hangs on the variable at all.
    fn slope(self) -> Slope;
    /// A number with this value, and this slope where slopes are carried.
    fn with(value: f64, slope: Slope) -> Self;

    /// The same number with this slope where slopes are carried.
    fn sloped(self, slope: Slope) -> Self {
        Self::with(self.value(), slope)
    }

    /// Whether a count may have this value: it stays below 2⁶³.
    fn fits_count(self) -> bool {
        self.value().abs() < COUNT_LIMIT
    }

    /// Whether it has no fraction; what is infinite has none.
    fn is_whole(self) -> bool {
        self.value().fract() == 0.0 || self.value().is_infinite()
    }

    /// The integer, for a count.
    fn count(self) -> Option<i64> {
        None
    }

    /// Whether two numbers with equal values differ all the same.
    fn differs(self, _: Self) -> bool {
        false
    }

    /// How two numbers stand to each other; no number stands nowhere.
    fn order(self, other: Self) -> Option<std::cmp::Ordering> {
        self.value().partial_cmp(&other.value())
    }

    /// Said before all equations of a component are computed once.
    fn begin_round(_component: u64) {}

    /// The sum.
    fn plus(self, other: Self) -> Self {
        Self::with(self.value() + other.value(), added(self.slope(), other.slope()))
    }

    /// The product.
    fn times(self, other: Self) -> Self {
        let (a, b) = (self.slope(), other.slope());
        let slope = added(along(other.value(), b.is_none(), a), along(self.value(), a.is_none(), b));
        Self::with(self.value() * other.value(), slope)
    }

    /// The quotient.
    fn over(self, other: Self) -> Self {
        // A 0 has no sign: -0 + 0 is 0.
        let (a, b) = (self.value(), other.value() + 0.0);
        let above = along(1.0 / b, false, self.slope());
        let stays = self.slope().is_none() && a == 0.0;
        Self::with(a / b, added(above, along(-a / (b * b), stays, other.slope())))
    }

    /// The power.
    fn power(self, exponent: Self) -> Self {
        let (a, n) = (self.value(), exponent.value());
        // X^0 is 1 everywhere, and 0^n is 0 for all n near a positive one.
        let by_base = self.slope().filter(|_| n != 0.0).map(|slope| n * power(a, n - 1.0) * slope);
        let by_exponent = exponent.slope().filter(|_| a != 0.0).map(|slope| power(a, n) * a.ln() * slope);
        Self::with(power(a, n), added(by_base, by_exponent))
    }

    /// An elementwise function.
    fn apply(function: &Function, arguments: &[Self]) -> Self {
        let values: Vec<f64> = arguments.iter().map(|argument| argument.value()).collect();
        let mut slope = None;
        for (by, argument) in arguments.iter().enumerate() {
            let fixed = match function {
                Function::Step | Function::Sign | Function::Floor => true,
                Function::Relu | Function::Abs | Function::Max | Function::Min => true,
                // A slope of 0 stays one where the argument stays below 0, and one that is not looked at above.
                Function::Leaky => by == 1 && values[0] > 0.0 || by == 0 && arguments[1].slope().is_none(),
                Function::Sig => values.get(1) == Some(&0.0),
                _ => false,
            };
            slope = added(slope, along(function.derivative(&values, by), fixed, argument.slope()));
        }
        Self::with(function.value(&values), slope)
    }
}

/// A derivative; `None` where a value stays as it is however the variable moves, which is more than a derivative of 0.
pub(super) type Slope = Option<f64>;

/// The sum of two parts of a derivative.
pub(super) fn added(a: Slope, b: Slope) -> Slope {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    }
}

/// A derivative's part. A factor of 0 that stays one adds nothing, however steep the rest is.
fn along(factor: f64, stays: bool, slope: Slope) -> Slope {
    slope.filter(|_| factor != 0.0 || !stays).map(|slope| factor * slope)
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
    fn slope(self) -> Slope {
        None
    }
    fn with(value: f64, _: Slope) -> f64 {
        value
    }
}

/// A value and its derivative by one variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dual {
    value: f64,
    slope: Slope,
}

impl Number for Dual {
    fn new(value: f64) -> Dual {
        Dual { value, slope: None }
    }
    fn variable(value: f64) -> Dual {
        Dual { value, slope: Some(1.0) }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn slope(self) -> Slope {
        self.slope
    }
    fn with(value: f64, slope: Slope) -> Dual {
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
    fn slope(self) -> Slope {
        None
    }
    fn with(value: f64, _: Slope) -> Exact {
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
