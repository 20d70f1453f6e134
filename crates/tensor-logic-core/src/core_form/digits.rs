//! Counts have 64 bits; an answer is a number with a point, which holds every integer up to 2⁵³ and
//! some beyond. A count is never rounded: it is refused where its digits do not fit.

use crate::ast::{Number, Span};
use crate::error::{Code, Refusal};
use crate::program::{Kind, Program, TensorId};

/// 2⁵³: integers below are numbers of 64 bits with all their digits.
pub const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Whether a number with a point holds this integer.
pub fn are_kept(whole: i128) -> bool {
    whole as f64 as i128 == whole
}

/// The integer that a number is written as, where a count cannot have it with all its digits.
pub fn lost(number: &Number) -> Option<&str> {
    let digits = number.text.strip_prefix('-').unwrap_or(&number.text);
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let held = digits.parse::<i64>().is_ok_and(|value| are_kept(i128::from(value)));
    (whole && !held).then_some(number.text.as_str())
}

/// The refusal of a count that is written in the program, at the left side of its statement.
pub fn written(name: &str, left: Span, number: &Number, digits: &str) -> Refusal {
    let message = format!("the count {digits} of `{name}` has more digits than a number holds exactly");
    let help = format!("numbers are exact up to 2^53; `: real` instead of `: count` rounds `{name}`");
    Refusal::new(Code::Overflow, left, message).label(number.span, "rounded").help(help)
}

/// The refusal of a count of a goal (of the tensor that it reads, if the goal is a query's own).
pub fn refused(program: &Program, goal: Option<TensorId>, count: i128) -> Refusal {
    let counts = |id: &TensorId| program.tensor(*id).kind == Kind::Count;
    let below = |goal: TensorId| program.reads_of(goal).into_iter().find(counts);
    let tensor = goal.map(|goal| below(goal).filter(|_| program.tensor(goal).hidden).unwrap_or(goal));
    let first = program.equations.iter().find(|equation| Some(equation.tensor) == tensor);
    let written = tensor.map_or(Span::default(), |id| program.tensor(id).span);
    let name = tensor.map_or("?", |id| program.name(id));
    let message = format!("the count {count} of `{name}` has more digits than an answer holds exactly");
    let help = format!("counts are exact up to 2^53; `: real` instead of `: count` rounds `{name}`");
    Refusal::new(Code::Overflow, first.map_or(written, |equation| equation.head_span), message).help(help)
}
