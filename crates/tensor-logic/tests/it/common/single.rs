//! Programs in 32 bits against the reference in 64.
//!
//! Most programs draw numbers that 32 bits hold exactly; what they give is within [`EXACT`] units. Where that fails, the reference
//! in random arithmetic of 32 bits (`rounding`) says what rounding may do to each element. Where a comparison, a step or a
//! tie hangs on it, or a number does not fit 32 bits, the element says nothing.

use std::collections::BTreeMap;

use tensor_logic::engine::{Parameters, Request, Value};
use tensor_logic::program::{AxisFunction, Expr, Given, Guard, Kind, Operation, Program, TensorId};
use tensor_logic::reference::Kept;

use super::engines::{BUDGET, Wanted, wanted};
use super::rounding::{Answer, Judged, Scattered, judged};

/// Half the distance of neighbours at 1, in 32 bits.
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// So many units are allowed without asking: sums of a few dozen products of numbers near 1.
const EXACT: f64 = 64.0;

/// What is found of a program in 32 bits.
#[derive(Debug, PartialEq)]
pub(crate) enum Single {
    Same,
    /// Nothing can be said, and why.
    Apart(&'static str),
    Differs(String),
}

/// An engine.
pub(crate) type Found<'a> = dyn FnMut(&Program, TensorId) -> Answer + 'a;

/// What is known of answers in random arithmetic of 32 bits.
pub(crate) type Known<'p> = BTreeMap<TensorId, Scattered<'p>>;

/// Compares what an engine of 32 bits says with the reference.
pub(crate) fn single<'p>(
    request: &Request<'p>,
    wanted: &Wanted,
    engine: &mut Found<'_>,
    known: &mut Known<'p>,
) -> Single {
    let (mut apart, program) = (None, request.program);
    for (goal, expected) in wanted {
        let found = engine(program, *goal);
        if judged(&found, expected, None, EXACT * UNIT) == Judged::Near {
            continue;
        }
        let new = || Scattered::new(request.clone(), *goal, Kept::Single);
        let scattered = known.entry(*goal).or_insert_with(new);
        match judged(&found, expected, Some(&*scattered), EXACT * UNIT) {
            Judged::Near => {}
            Judged::Open(why) => apart = apart.or(Some(why)),
            Judged::Differs => {
                let name = program.name(*goal);
                return Single::Differs(format!(
                    "32 bits: {name} ({goal:?}): {found:?}\n instead of {expected:?}"
                ));
            }
        }
    }
    apart.map_or(Single::Same, Single::Apart)
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
            let moved: Vec<f64> = found[0].doubles().iter().map(|x| x + by).collect();
            Ok(vec![Value::Dense(moved.into())])
        };
        let parameters = Parameters::new();
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        single(&request, &expected, &mut engine, &mut Known::new())
    };
    // Numbers near 1 keep their digits; differences of large ones keep those of what they pass through.
    assert_eq!(verdict("A = [1, 2]; Y = A[i]", 1e-6), Single::Same);
    assert!(matches!(verdict("A = [1, 2]; Y = A[i]", 1e-3), Single::Differs(_)));
    assert_eq!(verdict("A = [1000, -999.9]; Y = A[i]", 5e-4), Single::Same);
    assert!(matches!(verdict("A = [1000, -999.9]; Y = A[i]", 5e-2), Single::Differs(_)));
    // What a step makes of a difference that is nearly 0 says nothing.
    let step = "A = [0.1, 0.2, -0.3]; Y = step(A[i])";
    assert!(matches!(verdict(step, -1.0), Single::Apart(_)), "{:?}", verdict(step, -1.0));
    // What is too large is anything, what is too small nearly 0.
    assert!(matches!(verdict("A = [1e300]; Y = A[i]", 1e300), Single::Apart(_)));
    assert!(matches!(verdict("A = [1e-300]; Y = A[i]", 1.0), Single::Differs(_)));
}
