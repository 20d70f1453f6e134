//! Weighted facts: circuits against the sum over all worlds, gradients against dual numbers, and what the worlds do not say.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Parameters, Request, Slopes, Value};
use tensor_logic::error::Code;
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::gradient::adjoint;
use tensor_logic::program::{Program, Style, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;

use crate::common;
use crate::common::answers::calculated;
use crate::common::engines::{BUDGET, STORAGES, analysed, auto_difference, value_difference, wanted};
use crate::common::generator::with_word;

const CONSTANTS: [&str; 3] = ["A", "B", "C"];

fn constant(stream: &mut Stream) -> &'static str {
    CONSTANTS[stream.below(3) as usize]
}

pub(crate) fn pick(stream: &mut Stream, from: &[&'static str]) -> &'static str {
    from[stream.below(from.len() as u64) as usize]
}

/// Rules over `E(x, y)`, `R(x)` with weights, `G(x, y)` without, `V(x)` and `P[i, j]` with numbers.
const FIRST: &[&str] = &[
    "S(x, y) <- E(x, y)\nS(x, z) <- S(x, y), E(y, z)",
    "S(x, y) <- E(x, y)\nS(x, z) <- S(x, y), S(y, z)",
    "S(x, y) <- E(x, y), not R(x)\nS(x, z) <- S(y, z), S(x, y)\nS(x, y) <- G(y, x), R(y)",
    "S(x, y) <- E(x, y), R(x)\nS(x, z) <- S(x, y), S(z, y)",
    "S(x, y) <- E(x, y)\nS(x, z) <- S(x, y), S(y, z), G(x, z)",
    "S(x, y) <- E(x, y), R(x)\nS(x, y) <- E(y, x), not R(y)",
    "S(x, y) <- R(x), R(y), x != y",
    "S(x, y) <- G(x, y), V(x), not V(y)",
    "S(x, y) = E(x, y) + R(x) G(x, y)",
    "S(x, x) <- R(x), not E(x, x)",
    "S(x, y) <- E(x, y), not E(y, _)",
    "S(x, y) <- G(x, y), not R(_)",
    "S(x, y) <- E(x, y), V[x]",
    "S(x, y) <- G(x, y), R(x), not G(y, x)",
    "S(x, y) <- E(x, y) | G(x, y)",
    "0.5 :: S(A, B)\nS(x, y) <- S(y, x)\nS(x, y) <- E(x, z), S(z, y)",
    "S(x, A) <- R(x)\nS(x, y) <- S(x, _), R(y)",
    "S(x, y) <- E(x, y), not V(_)",
    "S(x, y) <- R(x), V(y), R(y)",
    "S(A, y) <- E(A, y)\nS(B, y) <- S(A, y), not R(y)\nS(A, y) <- R(y), G(y, y)",
    "S(x, y) <- Even(A), E(x, y)\nS(x, y) <- E(y, x)",
];

// No sum of the weights that are drawn is what is compared with: rounding would decide.
const SECOND: &[&str] = &[
    "T(x) <- S(x, y)",
    "T(x) <- S(x, y), not S(y, x)",
    "T(x) <- R(x), not S(x, x)",
    "T(x) <- R(x), not S(x, _)",
    "T(x) <- S(x, _), R(x)\nT(x) <- V(x), not R(x)",
    "T(x) <- R(x)\nT(y) <- T(x), S(x, y)",
    "T(x) <- S(x, y), S(y, z), S(z, x)",
    "T(x) <- S(x, y), S(x, z), y != z",
    "T(x) <- R(x), R(x) > 0.40003",
    "T(x) <- R(x), sum[y](S(x, y)) < 1.00003",
    "T(x) <- U(x), S(x, y)\nU(x) += R(x) / 2",
    "T(x) <- R(x), not U(x)\nU(x) avg= 0.5 S(x, y)",
    "T(x) <- S(x, y), G(x, y)\nT(x) <- S(x, y), not G(x, y)",
    "T(x) : bool\nT(x) <- S(x, y), not R(y)",
    "T(x) : topk(1000)\nT(x) <- S(x, y), R(y)\nT(x) <- S(y, x), not R(y)",
    "T(x) : prob\nT(x) <- G(x, y), V(y)",
];

/// What reads them as values.
const LAST: &[&str] = &[
    "N = T(x)",
    "N[i] = S(x, y) P[i, 0]",
    "N(x) += S(x, y) T(y)",
    "N max= S(x, y)",
    "W(i) : prob\nW(i) <- P[i, j], j < 2",
    "W(i) : prob\n@exclusive(P, 1)\nW(s) <- P[0, i], P[1, j], s = i + j",
    "W(i) : prob\n@exclusive(P, 1)\nW(s) <- P[0, i], P[1, j], s = i + j, T(A)\nW(s) <- P[0, s], not P[1, s]",
    "W(i) : prob\nW(i) <- P[i, j], P[i+1, j]",
    // Nothing but an element binds an index.
    "W(a) : prob\nW(a) <- P(a, b)",
    "W(a) : prob\nW(a) <- P(_, a)\nW(a) <- P(a, a), not R(A)",
    "W(a) : prob\nW(a+1) <- P(a, b), b < 1",
    "W() : prob\nW() <- P(0, a), P(a, 1), T(x)",
    "W(a) : topk(1000)\nW(a) <- P(0, a), P(b, a), b > 0",
    "W() <- T(x), S(x, y)\nN = W() - 1",
    "@exclusive(E, 1)\nW() <- T(x), not E(x, A)",
    "@exclusive(R, 0)\nW(x) <- R(x), not T(x)",
    "N = count[x](T(x)) + sum[x](T(x)^2)",
    "W(x) <- T(x), N > 0.50003\nN = R(x)",
];

fn weight(stream: &mut Stream) -> f64 {
    stream.below(9) as f64 / 8.0
}

/// At most a dozen weighted tuples; `learned`: the numbers of `P` are parameters.
pub(crate) fn facts(stream: &mut Stream, learned: bool) -> String {
    let mut text = String::from("i, j : 0..1\n");
    let (low, sign) = if learned { (0.1, '~') } else { (0.0, '=') };
    let mut row = || {
        let first = low + (1.0 - 2.0 * low) * weight(stream);
        format!("[{first}, {}]", (1.0 - first) * 0.75)
    };
    text += &format!("P {sign} [{}, {}]\n", row(), row());
    let most = if learned { 2 } else { 4 };
    for _ in 0..1 + stream.below(most) {
        let at = format!("E({}, {})", constant(stream), constant(stream));
        // Now and then for certain, or by its value.
        text += &match stream.below(8) {
            0 => format!("{at}\n"),
            1 => format!("{at} = 0.25\n0.5 :: {at}\n"),
            _ => format!("{} :: {at}\n", weight(stream) / 2.0),
        };
    }
    for _ in 0..1 + stream.below(most - 1) {
        text += &format!("{} :: R({})\n", weight(stream) / 3.0, constant(stream));
    }
    text += "0.125 :: E(C, C)\n";
    for _ in 0..1 + stream.below(4) {
        text += &format!("G({}, {})\n", constant(stream), constant(stream));
    }
    for _ in 0..1 + stream.below(2) {
        text += &format!("V({}) = {}\n", constant(stream), weight(stream) / 2.0);
    }
    text
}

/// Rules for `S(x, y)` and `T(x)` over them.
pub(crate) fn rules(stream: &mut Stream) -> String {
    format!("{}\n{}\n", pick(stream, FIRST), pick(stream, SECOND))
}

/// A program over such facts.
fn program(stream: &mut Stream, learned: bool) -> String {
    let text = of_symbols(stream, learned);
    // Integers and symbols may share the places of relations.
    match stream.below(8) {
        0 => with_word(&text, "B", "1"),
        1 => with_word(&with_word(&text, "C", "-2"), "A", "0"),
        _ => text,
    }
}

fn of_symbols(stream: &mut Stream, learned: bool) -> String {
    let mut text = facts(stream, learned);
    text += &rules(stream);
    if learned {
        text += "W(s) : prob\nW(s) <- P[0, i], P[1, j], s = i + j, S(A, _)\nW(s) <- P[s, 0], not T(A)\n";
        text += "Loss = (W(s) - 0.5)^2 + sum[x](S(x, y)^2) + T(x) 0.3\n";
        return text;
    }
    text += pick(stream, LAST);
    text += "\nS(A, x)?\nT(B)?\nS(x, y), not T(x)?\nR(_)?\n";
    text
}

/// B's one neighbour for certain is C, from which nothing follows: that excludes A all the same.
#[test]
fn what_is_certain_excludes_others_though_nothing_follows_from_it() {
    let text = "0 :: E(B, A)\nE(B, C)\n0.5 :: S(A, B)\nS(x, y) <- S(y, x)\nS(x, y) <- E(x, z), S(z, y)\n\
        @exclusive(E, 1)\nS(x, y)?\n";
    let program = analysed(text).unwrap();
    let wanted = wanted(&program);
    assert_eq!(auto_difference(&program, &wanted), None);
}

#[test]
fn probabilities_are_sums_over_worlds() {
    let mut stream = common::stream("weighted");
    let (mut legal, mut asked) = (0, 0);
    for _ in 0..common::drawn(400) {
        let text = program(&mut stream, false);
        let Ok(program) = analysed(&text) else { continue };
        legal += 1;
        let wanted = wanted(&program);
        asked += wanted.iter().filter(|(_, value)| value.is_ok()).count();
        assert_eq!(auto_difference(&program, &wanted), None, "{text}");
        let parameters = Parameters::new();
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        let (goals, values): (Vec<_>, Vec<_>) =
            wanted.iter().filter_map(|(id, value)| Some((*id, value.as_ref().ok()?.first()?))).unzip();
        for storage in STORAGES {
            // All at once, and a second time from what is kept.
            let mut engine = Auto::new(Box::new(Fast::with_storage(storage)));
            for _ in 0..2 {
                let found = engine.values(&request, &goals).unwrap();
                for ((found, wanted), id) in found.iter().zip(&values).zip(&goals) {
                    let name = program.name(*id);
                    assert_eq!(value_difference(found, wanted), None, "{name} {storage:?}\n{text}");
                }
            }
        }
    }
    assert!(
        4 * legal > 3 * common::drawn(400) && asked as u64 > 8 * legal,
        "{legal} programs, {asked} values"
    );
}

/// The tensor of a name.
pub(crate) fn named(program: &Program, name: &str) -> Option<TensorId> {
    let at = program.tensors.iter().position(|tensor| tensor.name == name && !tensor.hidden);
    at.map(|at| TensorId(at as u32))
}

/// The gradient of a scalar by the adjoint program.
pub(crate) fn by_adjoint(
    engine: &mut dyn Engine,
    program: &Program,
    goal: TensorId,
    wrt: &[TensorId],
) -> Vec<Option<Value>> {
    let parameters = all_start_values(program);
    let adjoint = adjoint(program, goal, wrt);
    let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
    let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
    let mut values = engine.values(&request, &goals).unwrap().into_iter();
    adjoint.gradients.iter().map(|gradient| gradient.and_then(|_| values.next())).collect()
}

/// What a loss is differentiated by, and its gradients by dual numbers; `None` where it has none.
pub(crate) fn slopes(program: &Program) -> Option<(TensorId, Vec<TensorId>, Vec<Value>)> {
    let goal = named(program, "Loss")?;
    let wrt: Vec<TensorId> =
        ["P", "E", "R", "V"].into_iter().filter_map(|name| named(program, name)).collect();
    let parameters = all_start_values(program);
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let (_, wanted) = dual(&request, goal, &wrt).ok()?;
    Some((goal, wrt, wanted))
}

/// Gradients beside those that are wanted: how many of their numbers are not 0.
pub(crate) fn compared(
    program: &Program,
    wrt: &[TensorId],
    found: &[Option<Value>],
    wanted: &[Value],
    what: &str,
) -> usize {
    let mut moved = 0;
    for ((found, wanted), id) in found.iter().zip(wanted).zip(wrt) {
        let wanted = wanted.doubles().to_vec();
        let none = || vec![0.0; wanted.len()];
        let found = found.as_ref().map_or_else(none, |value| at(program, *id, value));
        moved += wanted.iter().filter(|slope| **slope != 0.0).count();
        let close = found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
        assert!(close, "{}: {found:?} instead of {wanted:?}\n{what}", program.name(*id));
    }
    moved
}

/// Gradients by parameters below, and by the weights themselves.
#[test]
fn gradients_are_those_of_dual_numbers() {
    let mut stream = common::stream("weighted-gradients");
    let (mut legal, mut moved) = (0, 0);
    for nth in 0..common::drawn(40) {
        let text = program(&mut stream, true);
        let Ok(program) = analysed(&text) else { continue };
        let Some((goal, wrt, wanted)) = slopes(&program) else { continue };
        legal += 1;
        let found = by_adjoint(&mut Auto::new(Box::<Fast>::default()), &program, goal, &wrt);
        let mut all = vec![(found, "by circuits")];
        if nth % 8 == 0 {
            all.push((by_adjoint(&mut Reference::default(), &program, goal, &wrt), "by worlds"));
        }
        for (found, how) in all {
            moved += compared(&program, &wrt, &found, &wanted, &format!("{how}\n{text}"));
        }
    }
    assert!(2 * legal > common::drawn(40) && moved as u64 > 4 * legal, "{legal}, {moved}");
}

fn dual(
    request: &Request<'_>,
    goal: TensorId,
    wrt: &[TensorId],
) -> Result<Slopes, tensor_logic::error::Refusal> {
    Reference::default().slopes(request, goal, wrt).unwrap()
}

/// The derivatives in the order of the reference: facts that have none have 0.
fn at(program: &Program, id: TensorId, value: &Value) -> Vec<f64> {
    match (program.tensor(id).style, value) {
        (Style::Round, Value::Tuples(found)) => {
            let of = |tuple: &Vec<_>| found.tuples.iter().position(|other| other == tuple);
            let elements = tensor_logic::reference::variables(program, id);
            elements.iter().map(|tuple| of(tuple).map_or(0.0, |at| found.values[at])).collect()
        }
        _ => value.doubles().to_vec(),
    }
}

pub(crate) fn numbers(text: &str) -> Vec<Vec<f64>> {
    let mut engine = Auto::new(Box::<Fast>::default());
    let found = calculated(text, Path::new("."), 0, &mut engine).unwrap();
    assert_eq!(found.outcome.refusal, None);
    found.outcome.answers.iter().map(|answer| answer.content.numbers().to_vec()).collect()
}

fn refused(text: &str) -> tensor_logic::error::Refusal {
    let mut engine = Auto::new(Box::<Fast>::default());
    match calculated(text, Path::new("."), 0, &mut engine) {
        Ok(found) => found.outcome.refusal.unwrap(),
        Err(reports) => reports[0].clone(),
    }
}

/// The order of statements and literals, names of constants, and what is said twice change nothing.
#[test]
fn what_says_the_same_is_as_probable() {
    let plain = "0.9 :: E(A, B); 0.8 :: E(B, C); 0.5 :: E(A, C); 0.25 :: E(C, A)\n\
                 P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\nP(A, x)?";
    let turned = "P(A, x)?\nP(x, z) <- E(y, z), P(x, y)\nP(x, y) <- E(x, y)\n\
                  0.25 :: E(C, A); 0.5 :: E(A, C); 0.8 :: E(B, C); 0.9 :: E(A, B)";
    let twice = "0.9 :: E(A, B); 0.8 :: E(B, C); 0.5 :: E(A, C); 0.25 :: E(C, A)\n\
                 P(x, y) <- E(x, y), E(x, y)\nP(x, y) <- E(x, y)\nP(x, z) <- P(x, y), P(x, y), E(y, z)\nP(A, x)?";
    let both = "0.9 :: E(A, B); 0.8 :: E(B, C); 0.5 :: E(A, C); 0.25 :: E(C, A)\n\
                P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), P(y, z)\nP(A, x)?";
    let found = numbers(plain);
    for other in [turned, twice, both] {
        let other = numbers(other);
        assert!(found[0].iter().zip(&other[0]).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?} {other:?}");
    }
    assert_eq!(found[0].len(), 3);
}

/// Weights that are computed are rounded: what is off by that is no mistake of the program's.
#[test]
fn rounded_weights_are_weights() {
    let row = |at: u64| (0..40).map(|d| (at + d * d % 7).to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "V = [[{}], [{}]]\nD[s, d.] = softmax(V[s, d] / 3)\n@exclusive(D, 1)\nS(s) : prob\nS(s) <- D[s, d]\nS(s)?\n\
         A = [0.1, 0.3]\nB[i] = 1 - A[i] - 0.7 - 0.2 | i < 1\nC(i) : prob\nC(i) <- B[i]\nC(0)?",
        row(1),
        row(3)
    );
    for dtype in [Precision::Double, Precision::Single] {
        let mut engine = Auto::new(Box::new(Fast::default().with_precision(dtype)));
        let found = calculated(&text, Path::new("."), 0, &mut engine).unwrap();
        assert_eq!(found.outcome.refusal, None, "{dtype:?}");
        let said = found.outcome.answers.iter().flat_map(|answer| answer.content.numbers().to_vec());
        let said: Vec<f64> = said.collect();
        assert!(
            (said[0] - 1.0).abs() < 2e-6 && (said[1] - 1.0).abs() < 2e-6 && said[2].abs() < 1e-6,
            "{said:?}"
        );
    }
}

/// Parameters may be the probabilities themselves, and a network may make them.
#[test]
fn weights_are_learned() {
    let text = "x : {Ann, Bob, Cal}\nLikes(x) : prob ~ 0.5\nHappy(x) <- Likes(x), not Rain()\n0.25 :: Rain()\n\
                Target(Ann) = 0.6; Target(Bob) = 0.15\nLoss = (Happy(x) - Target(x))^2\n\
                Loss? @minimize(opt=sgd, lr=0.5, steps=200)\nLikes(x)?\nHappy(Cal)?";
    let found = numbers(text);
    assert!(found[0][0] < 1e-12, "{found:?}");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(found[1][0], 0.8) && near(found[1][1], 0.2) && found[1][2] == 0.5, "{found:?}");
}

/// What is learned may be a probability itself, asked as a query asks for it.
#[test]
fn probabilities_are_goals() {
    for (rules, goal) in [
        ("Q() : prob\nQ() <- W", "Q()"),
        ("Q() : topk(3)\nQ() <- W", "Q()"),
        ("Q(x) : prob\nQ(A) <- W", "Q(A)"),
        ("Q() : prob\n0.5 :: R(A)\nQ() <- W, R(x)", "Q()"),
    ] {
        let learned = |what: &str| {
            numbers(&format!("W ~ 0.5\n{rules}\n{what}? @minimize(opt=sgd, lr=0.125, steps=2)\nW?"))
        };
        // Beside a tensor that reads it.
        let (asked, read) = (learned(goal), learned(&format!("L = {goal}\nL")));
        assert_eq!(asked, read, "{rules}");
        assert!(asked[1][0] < 0.5, "{asked:?}");
    }
}

/// With fewer proofs less is true, and the first is the most probable one.
#[test]
fn the_most_probable_proofs() {
    let of = |k: &str| {
        numbers(&format!(
            "0.9 :: E(A, B); 0.8 :: E(B, C); 0.5 :: E(A, C)\nP(x, y) : {k}\n\
             P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\nP(A, C)?"
        ))[0][0]
    };
    assert!(
        (of("topk(1)") - 0.72).abs() < 1e-15 && (of("topk(2)") - 0.86).abs() < 1e-15,
        "{}",
        of("topk(1)")
    );
    assert_eq!(of("topk(3)"), of("prob"));
}

/// Fewer proofs are kept than there are, many of them equally probable.
#[test]
fn kept_proofs_are_those_of_all_that_come_first() {
    const RULES: &[&str] = &[
        "T(x) <- E(x, y)",
        "T(x) <- E(x, y), R(y)",
        "T(x) <- R(x), E(x, y), E(y, z)",
        "T(x) = R(x) + E(x, y) G(y, x)",
        "T(x) <- E(x, y), E(y, x)\nT(x) <- R(x), R(_)",
        "T(x) <- E(x, _), V(x)\n0.25 :: T(A)",
        "T(x) <- E(x, y), R(y)\n@exclusive(R, 0)",
        "T(x) <- E(x, y)\n@exclusive(E, 1)",
    ];
    let mut stream = common::stream("kept proofs");
    let mut fewer = 0;
    for _ in 0..common::drawn(200) {
        let mut text = String::from("V(A) = 0.5\nV(B) = 0.25\n0.5 :: E(A, A)\n");
        for _ in 0..3 + stream.below(4) {
            let weight = pick(&mut stream, &["0.125", "0.25", "0.5", "1"]);
            text += &format!("{weight} :: E({}, {})\n", constant(&mut stream), constant(&mut stream));
        }
        for _ in 0..1 + stream.below(2) {
            text += &format!(
                "{} :: R({})\n",
                pick(&mut stream, &["0.125", "0.25", "0.5"]),
                constant(&mut stream)
            );
        }
        text += &format!("G({}, A)\n{}\n", constant(&mut stream), pick(&mut stream, RULES));
        let of = |kept: &str| {
            let program = analysed(&format!("T(x) : {kept}\n{text}T(x)?\n")).ok()?;
            let wanted = wanted(&program);
            assert_eq!(auto_difference(&program, &wanted), None, "{kept}\n{text}");
            let own = wanted.iter().find(|(id, _)| program.name(*id) == "T")?;
            Some(own.1.as_ref().ok()?.first()?.doubles().iter().sum::<f64>())
        };
        let all = of("prob");
        for kept in ["topk(1)", "topk(2)", "topk(3)"] {
            fewer += u64::from(of(kept).zip(all).is_some_and(|(few, all)| few < all));
        }
    }
    assert!(fewer > common::drawn(200) / 2, "{fewer}");
}

#[test]
fn what_is_refused() {
    for (text, code, words) in [
        ("R(x) : prob; R(A) = 1.5; R(A)?", Code::BadProbability, "`R(A)` is 1.5"),
        ("0.7 :: R(A); 0.6 :: R(B); @exclusive(R, 0); R(x)?", Code::BadProbability, "1.3"),
        ("V(A) = -1; R(x) : prob; R(x) <- V(x); R(A)?", Code::BadProbability, "`V(A)` is -1"),
        ("0.7 :: R(A); @exclusive(R, 1); R(x)?", Code::BadArgument, "`R` has 1 places"),
        (
            "V(A) = 0.5; D(x) : prob; D(x) <- V(x); @exclusive(D, 0); D(x)?",
            Code::BadArgument,
            "no weights of its own",
        ),
        (
            "0.5 :: R(A, B); @exclusive(R, 0); @exclusive(R, 1); R(x, y)?",
            Code::BadArgument,
            "along place 0 already",
        ),
        ("x : 2; P(x) : prob ~ 1.5; P(x)?", Code::BadProbability, "`P(0)` is 1.5"),
        ("V(A) = 1.00001; R(x) : prob; R(x) <- V(x); R(A)?", Code::BadProbability, "`V(A)` is 1.00001"),
        ("0.5 :: Q(A); P(x) <- Q(x), not P(x); P(x)?", Code::NotStratified, "P -> not P"),
        ("0.5 :: Q(A); P(x) <- Q(x), P(x) > 0.5; P(x)?", Code::NotStratified, "P -> P"),
        ("0.5 :: Q(A); P(x) = sig(Q(x)); P(x) <- Q(x); P(x)?", Code::TypeConflict, "no product of literals"),
        ("0.5 :: Q[A]; Q[A]?", Code::MixedStyle, "only tuples have a probability"),
    ] {
        let report = refused(text);
        assert_eq!(report.code, code, "{text}: {report:?}");
        assert!(report.message.contains(words), "{text}: {}", report.message);
    }
    let text = "W ~ 0.5; P() : prob; P() <- W; Loss = (P() - 0.25)^2";
    let program = analysed(text).unwrap();
    let (goal, wrt) = (TensorId(2), [TensorId(0)]);
    assert_eq!((program.name(goal), program.name(wrt[0])), ("Loss", "W"));
    let report = adjoint(&program, goal, &wrt).emit().unwrap_err();
    assert_eq!((report.code, report.span.start), (Code::NotYet, text.find("P() <-").unwrap()));
    // What recursion leads from probabilities to numbers and back has no meaning.
    let mixed = "0.5 :: Q(A); V(x) += P(x); P(x) : prob; P(x) <- Q(x), V(x); P(x)?";
    assert_eq!(refused(mixed).code, Code::NotStratified);
}

/// A budget ends what would not end; the advice is to keep fewer proofs.
#[test]
fn circuits_have_a_budget() {
    let mut stream = common::stream("weighted-budget");
    let mut text = String::from("Meet() <- L(x), R(y), M(x, y)\nMeet()?\n");
    for x in 0..40 {
        text += &format!("0.5 :: L({x}); 0.5 :: R({x})\n");
        for y in 0..40 {
            if stream.below(4) == 0 {
                text += &format!("M({x}, {y})\n");
            }
        }
    }
    let program = analysed(&text).unwrap();
    let goal = TensorId(program.tensors.len() as u32 - 1);
    let parameters = Parameters::new();
    let budget = tensor_logic::engine::Budget { tuples: 10_000, bytes: 1 << 20 };
    let request = Request { program: &program, parameters: &parameters, budget };
    let mut engine = Auto::new(Box::new(Fast::with_storage(Storage::Auto)));
    let report = engine.values(&request, &[goal]).unwrap_err();
    assert_eq!(report.code, Code::Budget);
    assert!(report.help.unwrap().contains("topk"));
}

/// From corner to corner of a grid, by whatever rule asks for it: the number is that of `proof-circuits/tests/it/grids.rs`.
#[test]
fn ways_through_a_grid() {
    let mut arcs = String::new();
    for (x, y) in (0..5).flat_map(|x| (0..5).map(move |y| (x, y))) {
        for (u, v) in [(x + 1, y), (x, y + 1)] {
            if u < 5 && v < 5 {
                let (here, there) = (5 * x + y, 5 * u + v);
                arcs += &format!("0.9 :: Arc({here}, {there})\n0.9 :: Arc({there}, {here})\n");
            }
        }
    }
    let last = "Path(x, y) <- Arc(x, y)\nPath(x, z) <- Path(x, y), Arc(y, z)\nPath(0, 24)?";
    let first = "Path(x, y) <- Arc(x, y)\nPath(x, z) <- Arc(x, y), Path(y, z)\nPath(0, 24)?";
    for rules in [last, first] {
        let found = numbers(&format!("{arcs}{rules}"));
        assert!((found[0][0] - 0.975_556_589_505_369_2).abs() < 1e-12, "{found:?}\n{rules}");
    }
}
