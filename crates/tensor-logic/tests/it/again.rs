//! Random programs whose data are parameters, evaluated again and again with other numbers by one engine, beside an
//! engine of its own for each time: what is kept between evaluations changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tensor_logic::engine::{Engine, Parameters, Request, Tuples, Value};
use tensor_logic::error::Refusal;
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::program::{Combine, Given, Program, Role, Style, TensorId};
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, analysed, goals, value_difference};
use crate::common::single::{brought_nearer, each_number};

/// What is made of every number, time after time: some numbers are 0 or get another sign, others overflow in products.
const TIMES: [fn(usize, f64) -> f64; 10] = [
    |_, x| x,
    |_, x| -1.5 * x,
    |_, x| x + 0.25,
    |_, x| 0.75 * x,
    |_, x| x - 0.5,
    |at, x| if at.is_multiple_of(2) { 0.0 } else { x },
    |at, x| if at.is_multiple_of(3) { 1e200 * x } else { x },
    |at, x| if at == 1 { f64::INFINITY } else { x },
    |_, x| 0.5 * x,
    |_, x| 1.25 * x,
];

/// The program with its square arrays as parameters, and their numbers.
fn open(mut program: Program) -> (Program, Vec<(u32, Vec<f64>)>) {
    let mut given = Vec::new();
    // Rounds that never rest are as many in each evaluation.
    program.settings.rounds = program.settings.rounds.min(300);
    for (id, tensor) in (0..).zip(&mut program.tensors) {
        let sizes: Option<Vec<usize>> =
            tensor.places.iter().map(|place| place.domain.as_ref().map(|domain| domain.len())).collect();
        let [Given::Array { fixed, shape, values, .. }] = tensor.given.as_slice() else { continue };
        let whole = fixed.iter().all(Option::is_none) && sizes.as_ref() == Some(shape);
        // Also where equations add to it.
        if whole && (tensor.style, tensor.combine) == (Style::Square, Combine::Sum) {
            given.push((id, values.to_vec()));
            tensor.role = Role::Parameter;
            tensor.given.clear();
        }
    }
    (program, given)
}

/// Whether goals are asked for one by one, or all together, as steps of learning do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Apart,
    Together,
}

fn answers(
    engine: &mut Fast,
    program: &Program,
    parameters: &Parameters,
    asked: Asked,
) -> Vec<Result<Vec<Value>, Refusal>> {
    let request = Request { program, parameters, budget: BUDGET };
    let goals = goals(program);
    if asked == Asked::Together
        && let Ok(values) = engine.values(&request, &goals)
    {
        return values.into_iter().map(|value| Ok(vec![value])).collect();
    }
    goals.into_iter().map(|goal| engine.values(&request, &[goal])).collect()
}

/// `lnorm` divides by the root of a variance and 1e-5: what is the same but for rounding comes out as many times as far apart.
const STEEP: f64 = 316.0;

/// How two values differ by more than some last bits. Sums that were once infinite are taken in the order of the text from
/// then on: their last bits are others, also those of an element in which large numbers cancel, which stand beside it.
fn rounded_difference(found: &Value, wanted: &Value, precision: Precision, is_steep: bool) -> Option<String> {
    let how = value_difference(found, wanted)?;
    let (near, bits) = match precision {
        Precision::Double => (1e-9, 1e-14),
        Precision::Single if is_steep => (1e-4 * STEEP, 1e-5),
        Precision::Single => (1e-4, 1e-5),
    };
    let all = |a: &[f64], b: &[f64]| {
        let finite = a.iter().chain(b).filter(|number| number.is_finite());
        let largest = finite.fold(1.0, |largest: f64, number| largest.max(number.abs()));
        let close = |(a, b): (&f64, &f64)| {
            let within = (near * a.abs().max(b.abs()).max(1.0)).max(bits * largest);
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= within
        };
        a.len() == b.len() && a.iter().zip(b).all(close)
    };
    let same = match (found, wanted) {
        (Value::Dense(a), Value::Dense(b)) => all(&a.doubles(), &b.doubles()),
        (Value::Tuples(a), Value::Tuples(b)) if a.tuples == b.tuples => all(&a.values, &b.values),
        // What a sum is but for rounding may be 0 on one side, where a tensor asked with round brackets has no tuple.
        (Value::Tuples(a), Value::Tuples(b)) => {
            let of = |tuples: &Tuples| -> BTreeMap<_, _> {
                tuples.tuples.iter().cloned().zip(tuples.values.iter().copied()).collect()
            };
            let (a, b) = (of(a), of(b));
            let either: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            let values = |of: &BTreeMap<_, f64>| -> Vec<f64> {
                either.iter().map(|tuple| of.get(*tuple).copied().unwrap_or(0.0)).collect()
            };
            // A tuple whose value is 0 is there or not whatever is rounded.
            let alone = |a: &BTreeMap<_, f64>, b: &BTreeMap<_, f64>| {
                a.iter().any(|(tuple, value)| *value == 0.0 && !b.contains_key(tuple))
            };
            !alone(&a, &b) && !alone(&b, &a) && all(&values(&a), &values(&b))
        }
        _ => false,
    };
    (!same).then_some(how)
}

/// What is made of every number, of the program and of what is given.
type Numbers = fn(f64) -> f64;

fn disagreement(
    program: &Program,
    given: &[(u32, Vec<f64>)],
    storage: Storage,
    asked: Asked,
    numbers: Numbers,
) -> Option<String> {
    let is_steep = format!("{:?}", program.equations).contains("Lnorm");
    let mut program = program.clone();
    each_number(&mut program, &mut |x| *x = numbers(*x));
    let program = &program;
    for precision in [Precision::Double, Precision::Single] {
        let engine = || Fast::with_storage(storage).with_precision(precision);
        let mut same = engine();
        for (time, of) in TIMES.iter().enumerate() {
            let values = |given: &[f64]| {
                Arc::new(given.iter().enumerate().map(|(at, x)| numbers(of(at, *x))).collect())
            };
            let parameters: Parameters =
                given.iter().map(|(id, given)| (TensorId(*id), values(given))).collect();
            let found = answers(&mut same, program, &parameters, asked);
            let wanted = answers(&mut engine(), program, &parameters, asked);
            for (goal, (found, wanted)) in goals(program).into_iter().zip(found.iter().zip(&wanted)) {
                let how = match (found, wanted) {
                    (Ok(found), Ok(wanted)) => rounded_difference(&found[0], &wanted[0], precision, is_steep),
                    (Err(found), Err(wanted)) if found.code == wanted.code => None,
                    _ => Some(format!("{found:?} instead of {wanted:?}")),
                };
                if let Some(how) = how {
                    let name = program.name(goal);
                    return Some(format!("{storage:?}, {precision:?}, time {time}, {name}: {how}"));
                }
            }
        }
    }
    None
}

/// What is said of values of which a tuple or a number that is not 0 is only on one side.
const COMES_OR_GOES: [&str; 3] = ["instead of Tuples(", ": 0 instead of ", " instead of 0 in "];

/// Whether the disagreement is an overflow that one order of the operations meets and another does not: sums that were once
/// infinite are taken in the order of the text from then on. Numbers of moderate size show none, nor a sine of 1e300, which hangs
/// on the last digit of what one order makes; nor one of an exponential, where numbers are small. Or a function that jumps, where both agree in 64 bits: the sum of what `lnorm` makes is 0 but for rounding, and in that order it may be above.
fn overflows(
    (program, text): (&Program, &str),
    given: &[(u32, Vec<f64>)],
    (storage, asked): (Storage, Asked),
    how: &str,
) -> bool {
    let turns = ["sin(", "cos("].iter().any(|function| text.contains(function));
    let infinite = how.contains("NaN") || how.contains("inf") || turns;
    let jumps = ["step(", "sign(", "floor("].iter().any(|function| text.contains(function));
    // A sum that cancels is 0 in one order and 1e-18 in the other, and a relation has a tuple only of the latter: of other numbers
    // it does not cancel.
    let cancels = || disagreement(program, given, storage, asked, |x| x * (1.0 + 1e-3 * (977.0 * x).sin()));
    (jumps && how.contains("Single"))
        || (COMES_OR_GOES.iter().any(|part| how.contains(part)) && cancels().is_none())
        || (turns && disagreement(program, given, storage, asked, |x| x / 16.0).is_none())
        || (infinite && disagreement(program, given, storage, asked, |x| brought_nearer(x, true)).is_none())
}

#[test]
fn what_is_kept_between_evaluations_changes_nothing() {
    let count = common::drawn(150);
    let first = seeded::test_seed();
    let (mut compared, mut overflowed) = (0, 0);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "again", seed).stream(0);
        let text = common::generator::program(&mut stream).join("\n");
        let Ok(program) = analysed(&text) else { continue };
        let (program, given) = open(program);
        compared += u64::from(!given.is_empty());
        let ways =
            STORAGES.into_iter().flat_map(|storage| [(storage, Asked::Apart), (storage, Asked::Together)]);
        for (storage, asked) in ways {
            let Some(how) = disagreement(&program, &given, storage, asked, |x| x) else { continue };
            if overflows((&program, &text), &given, (storage, asked), &how) {
                overflowed += 1;
            } else {
                failures.push(format!("seed {seed}\n{text}\n{asked:?}: {how}\n"));
            }
            break;
        }
    }
    println!("{compared} of {count} have parameters; {overflowed} overflow in one order of the operations");
    assert!(
        overflowed * 100 <= count + 100,
        "{overflowed} of {compared} overflow in one order of the operations"
    );
    assert!(failures.is_empty(), "{} of {compared}\n{}", failures.len(), failures.join("\n"));
    assert!(compared * 4 > count, "{compared} of {count} have parameters");
}

/// Numbers that were looked at on the way, as those of a sum that may not be finite, are not taken for what is given.
#[test]
fn what_was_computed_early_is_computed_again() {
    let text = "i, j, k : 5
A[i, j] ~ normal(0, 1); B[j, k] ~ normal(0, 1); C[k] ~ normal(0, 1)
T[i] = relu(A[i, j] B[j, k] C[k]) + 1
R[i] = sin(T[i]) + 0.5
Loss = R[i] C[i]
Loss?";
    let program = analysed(text).unwrap();
    let mut same: Vec<Fast> = STORAGES.into_iter().map(Fast::with_storage).collect();
    for time in 1..8_u32 {
        let value = |at: usize| (at as f64 * 0.37 + f64::from(time)).sin() * f64::from(time);
        let tensors = (0..).map(TensorId).zip(&program.tensors);
        let given = tensors.filter(|(_, tensor)| tensor.role == Role::Parameter).map(|(id, tensor)| {
            let len = 5_usize.pow(tensor.places.len() as u32);
            (id, Arc::new((0..len).map(value).collect()))
        });
        let parameters: Parameters = given.collect();
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        // Nobody asks for what lies between.
        let loss = program.tensors.iter().position(|tensor| tensor.name == "Loss").unwrap();
        let goal = TensorId(loss as u32);
        let wanted = Reference::default().values(&request, &[goal]).unwrap();
        for engine in &mut same {
            let found = engine.values(&request, &[goal]).unwrap();
            assert_eq!(value_difference(&found[0], &wanted[0]), None, "{time}");
        }
    }
}

/// What is read twice is the same, for who goes on with a program (`carry`): the numbers of its nodes are no part of it.
#[test]
fn a_program_read_again_says_the_same() {
    let text =
        "A = [1, 2]\nE(1, 2); E(2, 1)\nB[i] = softmax(A[i])\nR(x) <- E(x, y), not E(y, 3)\nB?\nR(x)?\n";
    let (one, other) = (analysed(text).unwrap(), analysed(text).unwrap());
    let same = tensor_logic::carry::same(&one, &other);
    assert!(["A", "E", "B", "R"].iter().all(|name| same.iter().any(|id| one.name(*id) == *name)), "{same:?}");
}

/// `B` is described anew when `A` has another element that is not 0, and `C`, which took the operations of `B` over as they
/// were, has to be as well.
#[test]
fn what_took_operations_over_is_described_with_them() {
    for (rows, sums) in [
        ("A(n) R(n) + S(n)", "C = B[n]"),
        ("A(n) R(n) + S(n)", "C[j] = B[n] A[j]"),
        ("A(n) R(n) + S(n)", "C[j] avg= B[n] R(j)"),
        ("S(n) + A(n) R(n) X[n]", "C = tanh(B[n])"),
        ("X[n] + R(n) A(n)", "D[n] = 2 B[n]\nC = D[n]"),
    ] {
        let text =
            format!("j, n : 3\nA = [4, 0, 2]\nX = [1, 2, 3]\nS(2)\nR(1)\nB[n] = {rows}\n{sums}\nB?\nC?\n");
        let (program, given) = open(analysed(&text).unwrap());
        for storage in STORAGES {
            for asked in [Asked::Apart, Asked::Together] {
                assert_eq!(disagreement(&program, &given, storage, asked, |x| x), None, "{text}");
            }
        }
    }
}
