//! Counts have 64 bits; numbers with a point hold every integer up to 2⁵³ and some beyond.
//!
//! A count is never rounded. A literal of more digits is two numbers that do have theirs ([`halves`]); an answer whose numbers
//! would be rounded carries the integers beside them.

use crate::ast::{Number, Span};
use crate::error::{Code, Refusal};

/// 2⁵³: integers below are numbers of 64 bits with all their digits.
pub const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// 2⁶³: counts stay below.
pub const COUNT_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Whether a number with a point holds this integer.
pub fn are_kept(whole: i128) -> bool {
    whole as f64 as i128 == whole
}

/// The integer that a number is written as, where [`Number::value`] does not have all its digits: `Err` beyond 64 bits.
pub fn lost(number: &Number) -> Option<Result<i64, &str>> {
    let digits = number.text.strip_prefix('-').unwrap_or(&number.text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match number.text.parse::<i64>() {
        Ok(value) => (!are_kept(i128::from(value))).then_some(Ok(value)),
        Err(_) => Some(Err(number.text.as_str())),
    }
}

/// Two numbers with a point that hold all their digits and add up to this integer.
pub fn halves(whole: i64) -> [f64; 2] {
    let low = whole % (1 << 11);
    [(whole - low) as f64, low as f64]
}

/// The refusal of a count that is written in the program, at the left side of its statement.
pub fn written(name: &str, left: Span, number: &Number) -> Refusal {
    too_large(name, left, &number.text).label(number.span, "too large")
}

/// The refusal of a given count that cannot be kept.
pub fn too_large(name: &str, place: Span, count: &str) -> Refusal {
    let message = format!("the count {count} of `{name}` has more digits than are kept here");
    let help = format!("sums of counts have 64 bits; `: real` instead of `: count` rounds `{name}`");
    Refusal::new(Code::Overflow, place, message).help(help)
}
