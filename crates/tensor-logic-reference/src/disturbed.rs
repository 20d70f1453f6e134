//! Random arithmetic: every operation that rounds is off by some units of the last bit, so that what changes from one evaluation
//! to the next is what hangs on rounding (Vignes 1993, A stochastic arithmetic for reliable scientific computation; Parker 1997,
//! Monte Carlo arithmetic).
//!
//! Enter at [`Disturbed`]. A sum is off by a part of what it adds, not of what is left, as it may be in another order. What is
//! exact stays exact: small whole numbers, halves and quarters as long as the bits hold them with some to spare. A sum that is 0
//! but for rounding is now and then just 0, so that it is not always there, or of the size of 1, however large what it adds. A product of which some factors together leave the
//! range, in whatever order, is anything.

use std::cell::Cell;

use super::number::{Number, Slope};
use tensor_logic_core::function::{Function, power};

thread_local! {
    /// Which disturbances these are.
    static SEED: Cell<u64> = const { Cell::new(1) };
    /// The state of the disturbance.
    static STATE: Cell<u64> = const { Cell::new(1) };
}

/// The disturbances that follow are others.
pub(super) fn begin(seed: u64) {
    SEED.with(|own| own.set(seed));
    restart(0);
}

/// The disturbances that follow are those that followed the last time: operations of a round are off as they were in the round
/// before, so that what comes to rest does.
fn restart(part: u64) {
    let seed = SEED.with(Cell::get).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let state = seed.wrapping_add(part.wrapping_mul(0xd1b5_4a32_d192_ed03));
    STATE.with(|own| own.set(state | 1));
    for _ in 0..4 {
        Drawn::new();
    }
}

/// What one operation draws: as much, whatever comes of it.
#[derive(Clone, Copy)]
struct Drawn(u64);

impl Drawn {
    /// The next 64 random bits, by xorshift.
    fn new() -> Drawn {
        STATE.with(|state| {
            let mut x = state.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            Drawn(x.wrapping_mul(0x2545_f491_4f6c_dd1d))
        })
    }

    /// A random number from -1 to 1.
    fn part(self) -> f64 {
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// One of three: of every eight evaluations the same one throughout in three, so that each is met by all elements, and of each
    /// operation another one in five, so that any two meet.
    fn third(self) -> u64 {
        match SEED.with(Cell::get) % 8 {
            always @ 0..3 => always,
            _ => (self.0 & 0x7ff) % 3,
        }
    }
}

/// By so many units an operation is off at most: sums of a few dozen in any order.
const UNITS: f64 = 16.0;
/// What is added was off itself by so many times as much.
const BEFORE: f64 = 4.0;
/// So many bits are left for sums: those of up to two to this of exact numbers are exact in every order.
const SPARE: i32 = 6;

/// A number that is kept with so many bits, its exponent below `RANGE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disturbed<const BITS: i32, const RANGE: i32> {
    value: f64,
    /// What was added to make it, without signs.
    mass: f64,
    /// How far it may be off already, in the same units as what an operation adds to that.
    error: f64,
    /// The exponents of the largest and of the smallest product of some of its factors.
    reach: (f64, f64),
}

/// The exponent of a number; 0 has none.
fn exponent(x: f64) -> Option<i32> {
    (x != 0.0 && x.is_finite()).then(|| x.abs().log2().floor() as i32)
}

/// The exponent of the last bit that is set; 0 has none.
fn last_bit(x: f64) -> Option<i32> {
    exponent(x)?;
    let (stored, mantissa) = ((x.to_bits() >> 52 & 0x7ff) as i32, x.to_bits() & ((1 << 52) - 1));
    let (lowest, mantissa) =
        if stored == 0 { (-1074, mantissa) } else { (stored - 1075, mantissa | 1 << 52) };
    Some(lowest + mantissa.trailing_zeros() as i32)
}

/// How many bits a number has from its first to its last.
fn length(x: f64) -> i32 {
    exponent(x).zip(last_bit(x)).map_or(0, |(first, last)| first - last + 1)
}

/// The exponents above and below 0 that a number has by itself.
fn alone(x: f64) -> (f64, f64) {
    let size = if x != 0.0 && x.is_finite() { x.abs().log2() } else { 0.0 };
    (size.max(0.0), size.min(0.0))
}

impl<const BITS: i32, const RANGE: i32> Disturbed<BITS, RANGE> {
    const UNIT: f64 = 1.0 / (1_u64 << BITS) as f64;

    /// A result that is off by up to [`UNITS`] of units of `size`.
    fn off(value: f64, size: f64, error: f64) -> f64 {
        let drawn = Drawn::new();
        if !value.is_finite() || !size.is_finite() {
            return value;
        }
        let most = UNITS * Self::UNIT * size;
        // Rounding alone makes it differ from 0, or does not: that of this operation, or of those before it.
        let before = UNITS * Self::UNIT * (2.0 * error).max(BEFORE * size);
        match drawn.third() {
            _ if value.abs() > before => value + most * drawn.part(),
            0 => 0.0,
            // Where the large ones cancel first, those are left that are lost beside them.
            1 => most.min(1.0) * drawn.part(),
            _ => value + most * drawn.part(),
        }
    }

    /// The same number, which may be off so far.
    fn since(self, error: f64) -> Self {
        Disturbed { error: if error.is_finite() { error } else { self.value.abs() }, ..self }
    }

    /// A product with what is no number is none, whatever else there is; and one with an infinity that did not come of large
    /// factors is no number that is finite.
    fn of_factors(self, a: Self, b: Self) -> Self {
        let infinite = |x: Self| x.value.is_infinite() && x.reach.0 <= f64::from(RANGE);
        let none = a.value.is_nan() || b.value.is_nan();
        match none || self.value.is_finite() && (infinite(a) || infinite(b)) {
            true => Self::with(f64::NAN, None),
            false => self,
        }
    }

    /// A result with these factors: anything, where some of them leave the range.
    fn within(value: f64, reach: (f64, f64)) -> Self {
        let (drawn, (up, down)) = (Drawn::new(), reach);
        if up <= f64::from(RANGE) && down >= f64::from(-RANGE) {
            return Disturbed { value, mass: value.abs(), error: 0.0, reach };
        }
        let value = match drawn.third() {
            0 => 0.0,
            // What is too small alone is 0, or is not.
            _ if up <= f64::from(RANGE) => value,
            1 => f64::INFINITY.copysign(value),
            _ => f64::NAN,
        };
        Disturbed { value, mass: value.abs(), error: 0.0, reach }
    }

    fn plain(value: f64) -> Self {
        Self::within(value, alone(value))
    }
}

impl<const BITS: i32, const RANGE: i32> Number for Disturbed<BITS, RANGE> {
    fn new(value: f64) -> Self {
        let size = if length(value) <= BITS { 0.0 } else { value.abs() / UNITS };
        let kept = Self::off(value, size, 0.0);
        // What is given in 64 bits is there, however large or small.
        let kept = if BITS == 53 { Self::with(kept, None) } else { Self::plain(kept) };
        kept.since(size)
    }
    fn variable(value: f64) -> Self {
        Self::new(value)
    }
    fn begin_round(component: u64) {
        restart(component + 1);
    }
    fn value(self) -> f64 {
        self.value
    }
    fn slope(self) -> Slope {
        None
    }
    fn with(value: f64, _: Slope) -> Self {
        Disturbed { value, mass: value.abs(), error: 0.0, reach: alone(value) }
    }

    fn order(self, other: Self) -> Option<std::cmp::Ordering> {
        // As their difference: what is equal but for rounding is now and then just equal.
        if !self.value.is_finite() || !other.value.is_finite() {
            return self.value.partial_cmp(&other.value);
        }
        self.plus(Disturbed { value: -other.value, ..other }).value.partial_cmp(&0.0)
    }

    fn plus(self, other: Self) -> Self {
        let (a, b, value) = (self.value, other.value, self.value + other.value);
        let parts = [a, b, value];
        let first = parts.into_iter().filter_map(exponent).max();
        let last = parts.into_iter().filter_map(last_bit).min();
        let exact = first.zip(last).is_none_or(|(first, last)| first - last < BITS - SPARE);
        // In another order, all of what was added may stand on one side of what is left.
        let mass = self.mass + other.mass;
        let error = self.error + other.error;
        let value = Self::off(value, if exact { 0.0 } else { mass }, error);
        let error = if exact { error } else { error + mass };
        let up = self.reach.0.max(other.reach.0);
        match up > f64::from(RANGE) && !value.is_finite() {
            // Two that overflow may not do so together.
            true if value.is_nan() && !a.is_nan() && !b.is_nan() => Self::within(value, (up, 0.0)),
            true => Disturbed { value, mass, error: 0.0, reach: (up, 0.0) },
            false => Disturbed { mass, ..Self::plain(value) }.since(error),
        }
    }

    fn times(self, other: Self) -> Self {
        let value = self.value * other.value;
        let reach = (self.reach.0 + other.reach.0, self.reach.1 + other.reach.1);
        let exact = length(self.value) + length(other.value) <= BITS;
        let size = if exact { 0.0 } else { value.abs() };
        let error = self.value.abs() * other.error + other.value.abs() * self.error;
        Self::within(Self::off(value, size, 0.0), reach).since(error + size).of_factors(self, other)
    }

    fn over(self, other: Self) -> Self {
        // A 0 has no sign: -0 + 0 is 0.
        let (a, b) = (self.value, other.value + 0.0);
        let value = a / b;
        if b == 0.0 || !value.is_finite() {
            // Summed before it is divided, it may stay below.
            let overflows = b != 0.0 && a.is_finite();
            let up = if overflows { f64::INFINITY } else { self.reach.0 };
            return Disturbed { reach: (up, self.reach.1), ..Self::with(value, None) };
        }
        // The divisor may be taken as a factor, if it has an inverse.
        let reach = match (1.0 / b).is_finite() {
            true => (self.reach.0 - other.reach.1, self.reach.1 - other.reach.0),
            false => (self.reach.0.max(alone(value).0), self.reach.1.min(alone(value).1)),
        };
        let exact = length(value) + length(b) <= BITS && value * b == a;
        let size = if exact { 0.0 } else { value.abs() };
        let error = (self.error + value.abs() * other.error) / b.abs();
        Self::within(Self::off(value, size, 0.0), reach).since(error + size)
    }

    fn power(self, exponent: Self) -> Self {
        let (drawn, a, mut n) = (Drawn::new(), self.value, exponent.value);
        // Below 0 it is a number where the exponent is whole, which rounding makes it or not.
        let near = BEFORE * UNITS * Self::UNIT * exponent.mass;
        if a < 0.0 && (n - n.round()).abs() <= near && drawn.third() == 0 {
            n = n.round();
        }
        let value = power(a, n);
        if n == 0.0 {
            return Self::new(1.0);
        }
        if n.fract() == 0.0 && (1.0..=8.0).contains(&n) {
            return (1..n as u32).fold(self, |product, _| product.times(self));
        }
        let most = self.reach.0.max(-self.reach.1) * n.abs();
        let reach = if most.is_finite() { (most, -most) } else { (0.0, 0.0) };
        let error = value.abs() * (1.0 + n.abs() * self.error / a.abs());
        Self::within(Self::off(value, value.abs(), 0.0), reach).since(error)
    }

    fn apply(function: &Function, arguments: &[Self]) -> Self {
        let values: Vec<f64> = arguments.iter().map(|argument| argument.value).collect();
        let value = function.value(&values);
        let exact = matches!(
            function,
            Function::Step
                | Function::Relu
                | Function::Abs
                | Function::Sign
                | Function::Floor
                | Function::Max
                | Function::Min
        );
        // An exponential may be beyond all numbers in one precision only.
        let most = std::f64::consts::LN_2 * f64::from(RANGE);
        let reach = match (function, values.first()) {
            (Function::Exp, Some(x)) if *x > most => (f64::INFINITY, 0.0),
            (Function::Exp, Some(x)) if *x < -most => (0.0, f64::NEG_INFINITY),
            _ => alone(value),
        };
        let size = if exact { 0.0 } else { value.abs() };
        // How far what it is made of may be off, by how steep it is there.
        let passed = |(at, argument): (usize, &Self)| {
            let by = 1e-6 * argument.value.abs().max(1e-6);
            let mut moved = values.clone();
            moved[at] += by;
            argument.error * (function.value(&moved) - value).abs() / by
        };
        let off = arguments.iter().enumerate().filter(|(_, argument)| argument.error > 0.0);
        let error = off.map(passed).sum::<f64>();
        Self::within(Self::off(value, size, error), reach).since(error + size)
    }
}
