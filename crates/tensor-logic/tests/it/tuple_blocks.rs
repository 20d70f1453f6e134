//! Relations that hold a block of numbers for a tuple: the engine takes them apart, and nobody can tell.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::gradient::adjoint;
use tensor_logic::profile::Executor;
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::start::all_start_values;

use crate::common;
use crate::common::answers::calculated;
use crate::common::engines::{
    BUDGET, STORAGES, analysed, auto_difference, difference, value_difference, wanted,
};
use tensor_logic::reference::Reference;

/// Relations over `x` and `d`: with blocks, and with what looks like one.
const FIRST: &[&str] = &[
    "H(x, d) += E(x, y) X[y, e] W[d, e]",
    "H(x, d) += relu(E(x, y) X[y, e] W[d, e])",
    "H(x, d) avg= E(x, y) X[y, d]",
    "H(x, d) max= E(x, y) X[y, d]",
    "H(x, d) min= F(x, y) X[y, d]",
    "H(x, d) *= F(x, y) X[y, d]",
    "H(x, d) += E(x, y) X[y, d] | y != x",
    "H(x, d) += X[x, d] | E(x, y)",
    "H(x, d) += E(x, y) X[y, d] | d != 1",
    "H(x, d) += E(x, y) X[y, d+1]",
    "H(x, d) += E(x, y) X[x, d]\nH(y, d) += N(y) X[y, d]",
    "H(x, d.) += softmax(E(x, y) X[y, d])",
    "H(x, d.) += lnorm(N(x) X[x, d])",
    "H(x., d) += softmax(N(x) X[x, d])",
    "H(x, d) += X[x, d] | X[x, 0] > 0",
    "H(x, d) += X[x, d] | not E(x, _)",
    "H(x, d) += X[x, d] + F(x, x)",
    "H(x+1, d) += N(x) X[x, d]",
    "H(x, d) += N(x) W[d, 0] / 2",
    "H(x, d) += N(x) d",
    "H(x, d) += N(x) x",
    "H(x, d) += D(x, d) X[x, d]",
    "H(x, d) += W[d, 1] | x < 3",
    "H(x, d) += X[x, d] max[y](F(x, y))",
    "H(x, d) += X[x, d] sum[y](F(x, y))",
    "H(x, d) += X[x+1, d] | N(x)",
    "H(x, 1) += N(x) X[x, 0]\nH(x, d) += N(x) X[x, d]",
    "H(x, x) += N(x) X[x, 0]",
    "H(x, d) += tanh(F(x, y) X[y, d] | y > 1)",
    "H(x, d) += E(x, y) X[y, d] | X[y, 0] < X[x, 1]",
    "H(x, d) += E(x, y) exp(1000 X[y, d])",
    "H(x, d) += count[y](E(x, y)) X[x, d]",
];

/// The same where tuples hang on each other: without a circle as long as `C` has none, and with what is left to rounds.
const RECURSIVE: &[&str] = &[
    "H(x, d) += tanh(N(x) X[x, d] + W[d, e] C(x, y) H(y, e))",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d)",
    "H(x, d) += tanh(N(x) X[x, d] + C(x, y) H(y, d))",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += K(x, d)\nK(x, d) += relu(C(x, y) H(y, e) W[e, d])",
    "H(x, d) += N(x) X[x, d] + K(x)\nK(x) += sin(0.5 C(x, y) H(y, e))",
    "H(x, d) += N(x) X[x, d]\nH(x+1, d) += 0.5 H(x, d) | x < 3",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += sin(F(x, y) H(y, d)) | y > x",
    "H(x, d) += tanh(N(x) X[x, d] + max[y](C(x, y) H(y, d)))",
    "H(x, d) += tanh(N(x) X[x, d] + prod[y](C(x, y) H(y, d)))",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += C(x, y) H(y, d) / (1 + H(y, e)^2)",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d) | not N(x)",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d) | X[x, 0] > 0",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d) | H(y, 1) > 0",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) X[y, d] | H(y, 1)",
    "H(x, d) += N(x) X[x, d]\nH(x, d.) += softmax(C(x, y) H(y, d))",
    "H(x, d) += D(x, d) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d)",
    "H(x, d) += N(x) X[x, d]\nH(x, 1) += 0.5 C(x, y) H(y, 0)",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.5 C(x, y) H(y, d+1)",
    "V(x) += N(x) X[x, 0]\nV(x) += sin(0.5 C(x, y) V(y))\nH(x, d) += V(x) X[x, d]",
    "P(x, y) += W[1, 1] C(x, y)\nH(x, d) += N(x) X[x, d]\nH(x, d) += sin(P(x, y) H(y, d))",
    "P(x, y) += W[1, 1] C(x, y)\nV(x) += N(x) X[x, 0]\nV(x) += sin(P(x, y) V(y))\nH(x, d) += V(x) X[x, d]",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.3 C(x, y) C(y, z) H(z, d)",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.3 C(x, y) H[y, d]",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.3 H(y, d) H(z, d) | C(x, y), C(x, z), y <= z",
    "H(x, d) += N(x) X[x, d]\nH(y, d) += 0.3 C(x, y) H(x, d) H(x, e)",
    "H(x, d) += tanh(N(x) X[x, d] + C(x, y) H(y, d) | y > 1)",
    "H(x, d) += N(x) X[x, d]\nH(x, d) += 0.3 C(x, y) H(y, d) | d != 1",
    "H(d, x) += N(x) X[x, d]\nH(d, x) += 0.3 C(x, y) H(d, y)",
];

/// Relations over `x` and `d` that read it.
const SECOND: &[&str] = &[
    "G(x, d) += E(x, y) H(y, e) W[d, e]",
    "G(x, d) += relu(H(x, d)) | not N(x)",
    "G(x, d) += E(x, y) H(y, d) | H(x, e)",
    "G(x, d) max= E(x, y) H(y, d)",
    "G(x, d) avg= E(x, y) H(y, d)",
    "G(x, d) += H[x, d] | N(x)",
    "G(x, d) += H(x, d) H(y, d) | E(x, y)",
    "G(x, d) += H(x, d) H(y, e) | E(x, y)",
    "G(x, d.) += softmax(H(x, d))",
    "G(x., d) += softmax(H(x, d))",
    "G(x, d.) += lnorm(H(x, d), 0.1)",
    "G(x, d) += max[y](E(x, y) H(y, d))",
    "G(x, d) += sum[y](E(x, y) H(y, d)) | N(x)",
    "G(x, d) += count[y](H(y, d)) X[x, d]",
    "G(x, d) += H(x, 1) X[x, d]",
    "G(x, d) += H(x, d+1) X[x, d]",
    "G(x, d) += H(x, d) + X[x, d]",
    "G(x, d) += tanh(H(x, d) + X[x, d])",
    "G(x, d) += tanh(E(x, y) H(y, d) + N(x) X[x, d])",
    "G(x, d) += X[x, d] | not H(x, _)",
    "G(x, d) += X[x, d] | not H(x, d)",
    "G(x, d) += not H(x, 2) X[x, d]",
    "G(x, d) += X[x, d] | H(x, d) > 0",
    "G(x, d) += H(x, d) | 0 < d",
    "G(x, d) += H(x, d) / H(x, 0)",
    "G(x, d) += H(x, d) D(x, d)",
    "G(x, d) += H(x, d) | D(y, d), E(x, y)",
    "G(x, d) += X[x, d] | H[x, d] > 0",
    "G(d, x) += H(x, d)",
    "G(x, d) += H(x, x) X[x, d]",
    "G(x, d) += 1 - H(x, d)^2",
    "G(x, d) += N(d) H(x, d)",
    "G(x, d) += N(d) H(d, 0) W[d, x]",
];

/// What reads them.
const LAST: &[&str] = &[
    "S[x] = H(x, d)",
    "S = G(x, d)^2",
    "S avg= G(x, d)",
    "S[d] = G[x, d]",
    "S[x, d] = G[x, d] H[x, d]",
    "S = count[x, d](G(x, d))",
    "Q(x) <- H(x, d)",
    "Q(x, d) <- G(x, d), not H(x, d)",
    "Q(d) <- G(x, d), N(d)",
    "Q(x, d) <- N(x), D(x, d), not G(x, d)",
    "Q(x, e) <- G(x, d), H(x, e), d < e",
    "S[x] = sum[d](H(x, d)) / (1 + count[d](G(x, d)))",
    "S[x, d] = sig(G(x, d))",
    "M(x) max= G(x, d)",
    "M(d) avg= H(x, d) G(x, d)",
];

fn number(stream: &mut Stream) -> f64 {
    stream.below(33) as f64 / 8.0 - 2.0
}

/// All tuples of a relation with places of these sizes, or, now and then, all but one, or one too many.
fn all(stream: &mut Stream, name: &str, sizes: &[u64]) -> String {
    let mut tuples = vec![String::new()];
    for size in sizes {
        let longer = |tuple: &String| (0..*size).map(|at| format!("{tuple}, {at}")).collect::<Vec<_>>();
        tuples = tuples.iter().flat_map(longer).collect();
    }
    match stream.below(4) {
        0 => drop(tuples.remove(stream.below(tuples.len() as u64) as usize)),
        1 => tuples.push(", 1".repeat(sizes.len() - 1) + ", 7"),
        _ => {}
    }
    tuples.iter().map(|tuple| format!("{name}({})\n", &tuple[2..])).collect()
}

fn program(stream: &mut Stream, first: &[&str], learned: bool) -> String {
    let mut text = String::from("d, e : 0..2\n");
    if stream.below(2) == 0 {
        text += "x, y : 0..4\n";
    }
    let sign = if learned { '~' } else { '=' };
    for (name, rows) in [("X", 5), ("W", 3)] {
        let row =
            |stream: &mut Stream| (0..3).map(|_| number(stream).to_string()).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = (0..rows).map(|_| format!("[{}]", row(stream))).collect();
        text += &format!("{name} {sign} [{}]\n", rows.join(", "));
    }
    for (name, most) in [("E", 5), ("D", 3)] {
        match stream.below(4) {
            0 => text += &all(stream, name, &[5, most]),
            _ => {
                for _ in 0..2 + stream.below(8) {
                    text += &format!("{name}({}, {})\n", stream.below(5), stream.below(most));
                }
            }
        }
    }
    match stream.below(6) {
        0 => text += &all(stream, "N", &[5]),
        1 => {
            text += ["N(x) <- x >= 0\n", "N(x) <- E(x, y), x > 0\n", "N(x) <- x < 5, y == y\n"]
                [stream.below(3) as usize]
        }
        _ => {
            for _ in 0..1 + stream.below(4) {
                text += &format!("N({})\n", stream.below(5));
            }
        }
    }
    for x in 0..5 {
        text += &format!("F({x}, {}) = {}\n", stream.below(5), number(stream));
    }
    let circle = stream.below(8) == 0;
    if circle {
        text += "@rounds(200)\n";
    }
    for _ in 0..6 {
        let (from, to) = (stream.below(4), 1 + stream.below(4));
        if from < to || circle {
            text += &format!("C({from}, {to})\n");
        }
    }
    for lines in [first, SECOND] {
        text += lines[stream.below(lines.len() as u64) as usize];
        text += "\n";
    }
    if learned {
        // The order of a product decides where it overflows.
        text = text.replace("exp(1000 ", "exp(");
        text += "Loss = G(x, d)^2 + 0.3 H(x, d)\n";
    } else {
        text += LAST[stream.below(LAST.len() as u64) as usize];
    }
    text
}

/// Whether the engine takes something apart to answer, and does it so.
fn is_taken_apart(program: &Program, goal: TensorId, done: Option<Executor>) -> bool {
    let mut engine = Fast::default();
    engine.observe(true);
    let parameters = Parameters::new();
    let _ = engine.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal]);
    let profile = engine.observed().unwrap();
    profile.components.iter().any(|component| {
        let own = component.tensors.iter().any(|name| name.starts_with("values of "));
        own && done.is_none_or(|done| done == component.executor)
    })
}

fn tensor(program: &Program, name: &str) -> Option<TensorId> {
    let at = program.tensors.iter().position(|tensor| tensor.name == name && !tensor.hidden)?;
    Some(TensorId(at as u32))
}

#[test]
fn values_are_those_of_the_whole() {
    values_are_those_of_the_reference(FIRST, 600, None);
}

#[test]
fn levels_are_those_of_the_reference() {
    values_are_those_of_the_reference(RECURSIVE, 600, Some(Executor::Levels));
}

/// Whether the recursion has values; what asks for its tuples alone is answered without.
fn comes_to_rest(program: &Program) -> bool {
    let parameters = Parameters::new();
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    tensor(program, "H").is_some_and(|goal| Reference::default().values(&request, &[goal]).is_ok())
}

fn values_are_those_of_the_reference(first: &[&str], count: u64, done: Option<Executor>) {
    let mut stream = common::stream(if done.is_some() { "tuple-levels" } else { "tuple-blocks" });
    let (mut legal, mut apart) = (0, 0);
    for _ in 0..common::drawn(count) {
        let text = program(&mut stream, first, false);
        let Ok(program) = analysed(&text) else { continue };
        if done.is_some() && !comes_to_rest(&program) {
            continue;
        }
        legal += 1;
        apart += u64::from(tensor(&program, "H").is_some_and(|goal| is_taken_apart(&program, goal, done)));
        let wanted = wanted(&program);
        for storage in STORAGES {
            assert_eq!(difference(&program, storage, &wanted), None, "{text}");
        }
        assert_eq!(auto_difference(&program, &wanted), None, "{text}");
    }
    assert!(2 * legal > common::drawn(count) && 2 * apart > legal, "{apart} of {legal} were taken apart");
}

#[test]
fn gradients_are_those_of_the_reference() {
    gradients(FIRST, 300);
}

#[test]
fn gradients_of_levels_are_those_of_the_reference() {
    gradients(RECURSIVE, 300);
}

fn gradients(first: &[&str], count: u64) {
    let mut stream = common::stream(&format!("tuple-blocks-gradients {}", first.len()));
    let mut legal = 0;
    for _ in 0..common::drawn(count) {
        let text = program(&mut stream, first, true);
        let Ok(program) = analysed(&text) else { continue };
        let wrt: Vec<TensorId> = (0..program.tensors.len() as u32)
            .map(TensorId)
            .filter(|id| program.tensor(*id).role == Role::Parameter)
            .collect();
        let parameters = all_start_values(&program);
        let adjoint = adjoint(&program, tensor(&program, "Loss").unwrap(), &wrt);
        let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
        let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
        // A circle may not come to rest.
        let Ok(wanted) = Reference::default().values(&request, &goals) else { continue };
        // What is not finite depends on the order of products and sums.
        if wanted.iter().any(|value| value.doubles().iter().any(|number| !number.is_finite())) {
            continue;
        }
        legal += 1;
        for storage in [Storage::Auto, Storage::Sparse, Storage::Dense] {
            let found = Fast::with_storage(storage).values(&request, &goals).unwrap();
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(value_difference(found, wanted), None, "{storage:?}\n{text}");
            }
        }
    }
    assert!(2 * legal > common::drawn(count), "{legal}");
}

/// A relation may be learned: it has all tuples of its places, in blocks and out of them.
#[test]
fn relations_that_are_learned_have_all_their_tuples() {
    let text = "d, e : 2\nx, y : {Ann, Bob, Cal}\nE(Ann, Bob); E(Bob, Cal); E(Cal, Cal)\nP(x) ~ [0.5, -1, 2]\n\
                W(d, e) ~ [[1, -2], [0.5, 3]]\nV[d] ~ [0.3, -0.7]\nH(x, d) += E(x, y) P(y) V[d]\n\
                G(x, d) += H(x, e) W(d, e) | P(x)\nLoss = (G(x, d) - 1)^2 + P(x)^2\n";
    let program = analysed(text).unwrap();
    let found = wanted(&program);
    for storage in STORAGES {
        assert_eq!(difference(&program, storage, &found), None, "{storage:?}");
    }
    assert_eq!(auto_difference(&program, &found), None);
    let learned = |engine: &mut dyn Engine| {
        let text = format!("{text}Loss? @minimize(opt=sgd, lr=0.01, steps=5)\nP(x)?\nW(d, e)?\nV?");
        let found = calculated(&text, Path::new("."), 0, engine).unwrap();
        assert_eq!(found.outcome.refusal, None);
        found
            .outcome
            .answers
            .iter()
            .flat_map(|answer| answer.content.numbers().to_vec())
            .collect::<Vec<f64>>()
    };
    let (wanted, found) =
        (learned(&mut Reference::default()), learned(&mut Auto::new(Box::<Fast>::default())));
    assert!(wanted.len() == found.len() && wanted.len() > 9, "{wanted:?}\n{found:?}");
    assert!(wanted.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-10), "{wanted:?}\n{found:?}");
    // Five steps have moved every number.
    let starts = [0.5, -1.0, 2.0, 1.0, -2.0, 0.5, 3.0, 0.3, -0.7];
    assert!(starts.iter().zip(&found[found.len() - 9..]).all(|(start, end)| start != end), "{found:?}");
}

/// What a question does not ask for a later one finds, beside a relation that has no end.
#[test]
fn later_questions_find_what_earlier_ones_passed_over() {
    let text = "d : 2\nX[d] = [1, 2]\nE(0); E(1)\nN(0)\nN(y) <- N(x), y = x + 1\nEndless(x, d) += N(x) X[d]\n\
                H(x, d) += E(x) X[d]\nF(x, d) += tanh(H(x, d))\nTwo = 2\nTwo?\nH(x, d)?\nTwo?\nF(x, d)?\n";
    let found = calculated(text, Path::new("."), 0, &mut Auto::new(Box::<Fast>::default())).unwrap();
    assert_eq!(found.outcome.refusal, None);
    let answers: Vec<Vec<f64>> =
        found.outcome.answers.iter().map(|answer| answer.content.numbers().to_vec()).collect();
    let tanh = [1.0_f64.tanh(), 2.0_f64.tanh()];
    assert_eq!(answers, [vec![2.0], vec![1.0, 2.0, 1.0, 2.0], vec![2.0], [tanh, tanh].concat()]);
}

/// What the engine itself adds to number and to list tuples is no tuple of the program.
#[test]
fn only_tuples_of_the_program_are_counted() {
    let head = "i : 4\nj : 6\nA = [[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7]]\nE(0, 1); E(1, 3)\n";
    for rule in [
        "A[n, j-j]",
        "A[n, j]",
        "R(n, i) + A[n, 0]",
        "tanh(E(n, j) + A[n, j])",
        "tanh(E(n, m) + E(m, n))",
        "E(n, m) A[n, j]",
    ] {
        let program = analysed(&format!("{head}Q(n, i, j) += {rule}\nQ?\n")).unwrap();
        let goal = program.tensors.iter().position(|tensor| tensor.name == "Q").unwrap();
        let asked = |engine: &mut dyn Engine, tuples: u64| {
            let (parameters, budget) = (Parameters::new(), Budget { tuples, ..BUDGET });
            let request = Request { program: &program, parameters: &parameters, budget };
            engine.values(&request, &[TensorId(goal as u32)])
        };
        let least = (1..200).find(|tuples| asked(&mut Reference::default(), *tuples).is_ok()).unwrap();
        for storage in STORAGES {
            let found = |tuples: u64| asked(&mut Fast::with_storage(storage), tuples);
            assert!(found(least).is_ok(), "{storage:?}, {rule}: {least}: {:?}", found(least));
            assert!(found(least / 2 - 1).is_err(), "{storage:?}, {rule}");
        }
    }
}
