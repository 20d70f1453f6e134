//! Programs in 32 bits against the reference in 64.
//!
//! Every operation rounds its result by a part of at most [`UNIT`], so what is found is, in first order, the
//! exact answer of a program whose numbers are moved by a few such parts. Most programs draw numbers that 32
//! bits hold exactly; what they give is within [`EXACT`] units. Where that fails the numbers of the program and
//! the elements of its computed tensors are moved by known parts ([`MOVED`]), each by another one, and the
//! largest change that the reference then sees, scaled from there to units, is what rounding may do to that
//! element: sums that cancel change by parts of what they pass through. Where the moved programs
//! have other tuples, another refusal or quite another answer, a comparison, a step or a tie decides, and the
//! program says nothing; where an answer or a number of the text does not fit 32 bits, neither.

use tensor_logic::engine::{Tuples, Value};
use tensor_logic::error::Refusal;
use tensor_logic::program::{
    AxisFunction, Expr, Given, Guard, IndexFn, IndexId, Kind, Operation, Program, Range, Style, TensorId,
};
use tensor_logic::value::{Const, Domain};

use super::engines::{Wanted, wanted};

/// Half the distance of neighbours at 1, in 32 bits.
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// So many units are allowed without asking: sums of a few dozen products of numbers near 1.
const EXACT: f64 = 64.0;
/// By which part numbers are moved.
const MOVED: f64 = 1e-6;
/// How often.
const TIMES: u64 = 4;
/// How many roundings of one part each may meet in one element, the largest of them in the same direction.
const ROUNDINGS: f64 = 32.0;
/// A change by more than this part is no rounding any more: what is decided there says nothing.
const ILL: f64 = 1e-2;
/// What 32 bits hold with all their digits.
const LEAST: f64 = 1e-30;
const MOST: f64 = 1e30;

/// What is found of a program in 32 bits.
#[derive(Debug, PartialEq)]
pub(crate) enum Single {
    Same,
    /// Nothing can be said, and why.
    Apart(&'static str),
    Differs(String),
}

/// What is said of one tensor.
pub(crate) type Answer = Result<Vec<Value>, Refusal>;

/// An engine.
pub(crate) type Found<'a> = dyn FnMut(&Program, TensorId) -> Answer + 'a;

/// Compares what an engine of 32 bits says with the reference.
pub(crate) fn single(program: &Program, wanted: &Wanted, engine: &mut Found<'_>) -> Single {
    let mut samples: Option<Vec<Wanted>> = None;
    for (at, (goal, expected)) in wanted.iter().enumerate() {
        let found = engine(program, *goal);
        if same(&found, expected) {
            continue;
        }
        if beyond(program, wanted) {
            return Single::Apart("a number does not fit");
        }
        let samples = samples.get_or_insert_with(|| samples_of(program, wanted));
        match bounded(&found, expected, samples.iter().map(|sample| &sample[at].1)) {
            Ok(true) => {}
            Err(why) => return Single::Apart(why),
            Ok(false) => {
                let small = smaller(program);
                let expected_small = self::wanted(&small);
                let overflows = numbers(&found).iter().any(|x| !x.is_finite() || *x == 0.0);
                if overflows
                    && expected_small
                        .get(at)
                        .is_some_and(|(goal, expected)| same(&engine(&small, *goal), expected))
                {
                    return Single::Apart("an intermediate number does not fit");
                }
                let name = program.name(*goal);
                return Single::Differs(format!(
                    "32 bits: {name} ({goal:?}): {found:?}\n instead of {expected:?}"
                ));
            }
        }
    }
    Single::Same
}

/// The numbers of an answer.
fn numbers(found: &Answer) -> Vec<f64> {
    match found.as_ref().map(|values| &values[0]) {
        Ok(value) => value.doubles().into_owned(),
        Err(_) => Vec::new(),
    }
}

/// Whether two answers are of one form: the same refusal, tuples, or number of elements.
fn one_form(a: &Answer, b: &Answer) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => match (&a[0], &b[0]) {
            (Value::Dense(a), Value::Dense(b)) => a.len() == b.len(),
            (Value::Tuples(a), Value::Tuples(b)) => a.tuples == b.tuples && a.values.len() == b.values.len(),
            _ => false,
        },
        (Err(a), Err(b)) => a.code == b.code && a.span == b.span,
        _ => false,
    }
}

fn same(found: &Answer, wanted: &Answer) -> bool {
    let close = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= EXACT * UNIT * b.abs().max(1.0)
    };
    one_form(found, wanted) && numbers(found).iter().zip(&numbers(wanted)).all(close)
}

/// Whether tuples are in one answer only, and all of these have a value that is 0 but for rounding: the elements of a
/// square tensor that are not 0 are tuples where they are read so.
fn differ_by_nothing(found: &Answer, wanted: &Answer) -> bool {
    let (Ok(found), Ok(wanted)) = (found, wanted) else { return false };
    let (Value::Tuples(found), Value::Tuples(wanted)) = (&found[0], &wanted[0]) else { return false };
    let alone = |a: &Tuples, b: &Tuples| {
        let values = a.tuples.iter().zip(&a.values).filter(|(tuple, _)| !b.tuples.contains(tuple));
        values.map(|(_, value)| value.abs()).collect::<Vec<f64>>()
    };
    let alone = [alone(found, wanted), alone(wanted, found)].concat();
    !alone.is_empty() && alone.iter().all(|value| *value <= EXACT * UNIT)
}

/// Whether what is found is within what rounding may do, as far as the moved programs tell.
fn bounded<'a>(
    found: &Answer,
    wanted: &Answer,
    samples: impl Iterator<Item = &'a Answer>,
) -> Result<bool, &'static str> {
    if differ_by_nothing(found, wanted) {
        return Err("the presence of what is 0 but for rounding decides");
    }
    let most = changes(wanted, samples)?;
    if numbers(wanted).iter().zip(&most).any(|(b, most)| most.is_nan() || *most > ILL * b.abs().max(1.0)) {
        return Err("a step or a difference decides");
    }
    Ok(fits(found, wanted, &most, UNIT))
}

/// By how much each number of an answer changes in the moved programs.
fn changes<'a>(wanted: &Answer, samples: impl Iterator<Item = &'a Answer>) -> Result<Vec<f64>, &'static str> {
    let exact = numbers(wanted);
    let mut most = vec![0.0_f64; exact.len()];
    for sample in samples {
        if !one_form(sample, wanted) {
            return Err("a comparison decides");
        }
        for ((most, a), b) in most.iter_mut().zip(&numbers(sample)).zip(&exact) {
            let change = if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() };
            *most = if change > *most || change.is_nan() { change } else { *most };
        }
    }
    Ok(most)
}

/// Whether an answer is within what rounding by such units may do.
fn fits(found: &Answer, wanted: &Answer, most: &[f64], unit: f64) -> bool {
    let exact = numbers(wanted);
    let fits = |((a, b), most): ((&f64, &f64), &f64)| {
        let rounding = unit * (EXACT * b.abs().max(1.0) + ROUNDINGS * most / MOVED);
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= rounding
    };
    one_form(found, wanted) && numbers(found).iter().zip(&exact).zip(most).all(fits)
}

/// Whether what an engine of 64 bits says is within what rounding does there to sums that cancel.
pub(crate) fn rounded(program: &Program, wanted: &Wanted, engine: &mut Found<'_>) -> bool {
    let samples = samples_of(program, wanted);
    wanted.iter().enumerate().all(|(at, (goal, expected))| {
        let most = changes(expected, samples.iter().map(|sample| &sample[at].1));
        let found = engine(program, *goal);
        most.is_ok_and(|most| fits(&found, expected, &most, f64::EPSILON / 2.0))
            || same_double(&found, expected)
    })
}

fn same_double(found: &Answer, wanted: &Answer) -> bool {
    let close = |(a, b): (&f64, &f64)| {
        a == b || (a - b).abs() <= 1e-9 * b.abs().max(1.0) || (a.is_nan() && b.is_nan())
    };
    one_form(found, wanted) && numbers(found).iter().zip(&numbers(wanted)).all(close)
}

/// Whether an answer or a number of the text is nearer to 0 or to infinity than 32 bits go.
fn beyond(program: &Program, wanted: &Wanted) -> bool {
    let outside = |x: &f64| x.is_finite() && *x != 0.0 && !(LEAST..MOST).contains(&x.abs());
    let mut found = wanted.iter().any(|(_, value)| numbers(value).iter().any(outside));
    let mut program = program.clone();
    each_number(&mut program, &mut |x| found |= outside(x));
    found
}

/// What the reference says of the program with numbers moved, several times.
fn samples_of(program: &Program, wanted: &Wanted) -> Vec<Wanted> {
    let sample = |nth: u64| {
        let mut stream = seeded::Family::named("32 bits").stream(nth);
        let mut part = || MOVED * (2.0 * stream.uniform() - 1.0);
        let mut moved = program.clone();
        each_number(&mut moved, &mut |x| *x *= 1.0 + part());
        let ranges: Vec<Range> = moved.indices.iter().map(|index| index.range.clone()).collect();
        for equation in &mut moved.equations {
            for term in &mut equation.terms {
                along_axes(&mut term.body, &ranges, &mut part);
            }
        }
        for (goal, value) in wanted {
            let (Some(tensor), Ok(value)) = (moved.tensors.get_mut(goal.0 as usize), value) else { continue };
            let sum = tensor.combine == tensor_logic::program::Combine::Sum && tensor.kind == Kind::Real;
            let shape: Option<Vec<usize>> =
                tensor.places.iter().map(|place| place.domain.as_ref().map(|domain| domain.len())).collect();
            let star = tensor.places.iter().any(|place| place.star);
            let (Value::Dense(values), Some(shape)) = (&value[0], shape) else { continue };
            if !sum || star || tensor.style != Style::Square {
                continue;
            }
            let values = values.doubles();
            if shape.iter().product::<usize>() == values.len() {
                let by = values.iter().map(|x| if x.is_finite() { x * part() } else { 0.0 });
                let span = tensor_logic::ast::Span::default();
                tensor.given.push(Given::Array {
                    fixed: vec![None; shape.len()],
                    shape,
                    values: by.collect(),
                    span,
                });
            }
        }
        self::wanted(&moved)
    };
    (0..TIMES).map(sample).collect()
}

/// Moves what softmax and lnorm compare, each entry along an axis by another part: a large number that all have in
/// common changes nothing, and takes digits.
fn along_axes(expr: &mut Expr, ranges: &[Range], part: &mut dyn FnMut() -> f64) {
    match expr {
        Expr::Number(_) | Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => {}
        Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
            parts.iter_mut().for_each(|inner| along_axes(inner, ranges, part));
        }
        Expr::Quotient(a, b) | Expr::Power(a, b) => {
            along_axes(a, ranges, part);
            along_axes(b, ranges, part);
        }
        Expr::Negate(a) => along_axes(a, ranges, part),
        Expr::Reduce(reduce) => along_axes(&mut reduce.body, ranges, part),
        Expr::Call(call) => call.arguments.iter_mut().for_each(|inner| along_axes(inner, ranges, part)),
        Expr::Axis(axis) => {
            along_axes(&mut axis.argument, ranges, part);
            let integers =
                |index: &&IndexId| matches!(ranges[index.0 as usize], Range::Domain(Domain::Interval { .. }));
            for index in axis.axes.iter().filter(integers) {
                // 0 to 4, in turn.
                let seven = IndexFn::Multiply(Box::new(IndexFn::Index(*index)), Box::new(whole(7)));
                let turn = IndexFn::Remainder(Box::new(seven), Box::new(whole(5)));
                let by = Expr::Product(vec![Expr::Number(part() / 4.0), Expr::Index(turn)]);
                let argument = std::mem::replace(&mut axis.argument, Expr::Number(1.0));
                axis.argument = Expr::Product(vec![argument, Expr::Plus(vec![Expr::Number(1.0), by])]);
            }
        }
    }
}

fn whole(value: i64) -> IndexFn {
    IndexFn::Const(Const::Int(value))
}

/// The program with numbers so near to 0 that exponentials and products of them fit.
fn smaller(program: &Program) -> Program {
    let mut result = program.clone();
    each_number(&mut result, &mut |x| *x = if x.abs() > 1.0 { x.signum() } else { *x } / 8.0);
    result
}

/// A number of moderate size for one that is very large or very near to 0; for one without an inverse only if `all`.
pub(crate) fn brought_nearer(x: f64, all: bool) -> f64 {
    let size = x.abs();
    let small = size > 0.0 && size < 1e-100 && (all || size > 1e-305);
    if size > 1e100 || small { x.signum() * size.log10() / 64.0 } else { x }
}

/// Visits every number that is given and every one that stands in an equation, but exponents.
pub(crate) fn each_number(program: &mut Program, visit: &mut dyn FnMut(&mut f64)) {
    for tensor in &mut program.tensors {
        if tensor.kind == Kind::Bool || tensor.kind == Kind::Count {
            continue;
        }
        for given in &mut tensor.given {
            match given {
                Given::Array { values, .. } => {
                    let mut moved = values.to_vec();
                    moved.iter_mut().for_each(&mut *visit);
                    *values = moved.into();
                }
                Given::Columns(_) => unreachable!("no text gives columns"),
                Given::Facts(facts) => {
                    std::sync::Arc::make_mut(facts).values.iter_mut().for_each(&mut *visit)
                }
            }
        }
    }
    for equation in &mut program.equations {
        for term in &mut equation.terms {
            guards(&mut term.when.guards, visit);
            inside(&mut term.body, visit);
        }
    }
}

fn guards(guards: &mut [Guard], visit: &mut dyn FnMut(&mut f64)) {
    for guard in guards {
        if let Guard::Compare(_, a, b) = guard {
            inside(a, visit);
            inside(b, visit);
        }
    }
}

fn inside(expr: &mut Expr, visit: &mut dyn FnMut(&mut f64)) {
    match expr {
        Expr::Number(x) => visit(x),
        Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => {}
        Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
            parts.iter_mut().for_each(|part| inside(part, visit));
        }
        Expr::Quotient(a, b) => {
            inside(a, visit);
            inside(b, visit);
        }
        Expr::Power(a, _) | Expr::Negate(a) => inside(a, visit),
        Expr::Reduce(reduce) => {
            guards(&mut reduce.when.guards, visit);
            if reduce.operation != Operation::Count {
                inside(&mut reduce.body, visit);
            }
        }
        Expr::Call(call) => {
            guards(&mut call.when.guards, visit);
            call.arguments.iter_mut().for_each(|part| inside(part, visit));
        }
        Expr::Axis(axis) => {
            guards(&mut axis.when.guards, visit);
            inside(&mut axis.argument, visit);
            if let AxisFunction::Lnorm(Some(epsilon)) = &mut axis.function {
                inside(epsilon, visit);
            }
        }
    }
}

/// The comparison itself: what an engine may do wrong is seen, and what says nothing is told apart.
#[test]
fn what_32_bits_may_do_is_told_from_what_is_wrong() {
    // An engine that is wrong by so much, in `Y` alone.
    let verdict = |text: &str, by: f64| {
        let program = super::engines::analysed(text).unwrap();
        let expected = wanted(&program);
        let mut engine = |program: &Program, goal: TensorId| {
            let found = wanted(program).into_iter().find(|(id, _)| *id == goal).unwrap().1?;
            let by = if program.name(goal) == "Y" { by } else { 0.0 };
            let moved: Vec<f64> = numbers(&Ok(found)).iter().map(|x| x + by).collect();
            Ok(vec![Value::Dense(moved.into())])
        };
        single(&program, &expected, &mut engine)
    };
    // Numbers near 1 keep their digits; differences of large ones keep those of what they pass through.
    assert_eq!(verdict("A = [1, 2]; Y = A[i]", 1e-6), Single::Same);
    assert!(matches!(verdict("A = [1, 2]; Y = A[i]", 1e-3), Single::Differs(_)));
    assert_eq!(verdict("A = [1000, -999.9]; Y = A[i]", 5e-4), Single::Same);
    assert!(matches!(verdict("A = [1000, -999.9]; Y = A[i]", 5e-2), Single::Differs(_)));
    // What a step makes of a difference that is nearly 0 says nothing.
    let step = "A = [0.1, 0.2, -0.3]; Y = step(A[i])";
    assert!(matches!(verdict(step, -1.0), Single::Apart(_)), "{:?}", verdict(step, -1.0));
    assert!(matches!(verdict("A = [1e-300]; Y = A[i]", 1.0), Single::Apart(_)));
}
