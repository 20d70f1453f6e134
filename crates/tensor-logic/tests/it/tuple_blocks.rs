//! Relations that hold a block of numbers for a tuple: the engine takes them apart, and nobody can tell.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::gradient::adjoint;
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

fn program(stream: &mut Stream, learned: bool) -> String {
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
    for lines in [FIRST, SECOND] {
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

/// Whether the engine takes something apart to answer.
fn is_taken_apart(program: &Program, goal: TensorId) -> bool {
    let mut engine = Fast::default();
    engine.observe(true);
    let parameters = Parameters::new();
    let _ = engine.values(&Request { program, parameters: &parameters, budget: BUDGET }, &[goal]);
    let profile = engine.observed().unwrap();
    profile
        .components
        .iter()
        .any(|component| component.tensors.iter().any(|name| name.starts_with("values of ")))
}

fn tensor(program: &Program, name: &str) -> Option<TensorId> {
    let at = program.tensors.iter().position(|tensor| tensor.name == name && !tensor.hidden)?;
    Some(TensorId(at as u32))
}

#[test]
fn values_are_those_of_the_whole() {
    let mut stream = common::stream("tuple-blocks");
    let (mut legal, mut apart) = (0, 0);
    for _ in 0..common::drawn(600) {
        let text = program(&mut stream, false);
        let Ok(program) = analysed(&text) else { continue };
        legal += 1;
        apart += u64::from(tensor(&program, "H").is_some_and(|goal| is_taken_apart(&program, goal)));
        let wanted = wanted(&program);
        for storage in STORAGES {
            assert_eq!(difference(&program, storage, &wanted), None, "{text}");
        }
        assert_eq!(auto_difference(&program, &wanted), None, "{text}");
    }
    assert!(2 * legal > common::drawn(600) && 2 * apart > legal, "{apart} of {legal} were taken apart");
}

#[test]
fn gradients_are_those_of_the_reference() {
    let mut stream = common::stream("tuple-blocks-gradients");
    let mut legal = 0;
    for _ in 0..common::drawn(300) {
        let text = program(&mut stream, true);
        let Ok(program) = analysed(&text) else { continue };
        let wrt: Vec<TensorId> = (0..program.tensors.len() as u32)
            .map(TensorId)
            .filter(|id| program.tensor(*id).role == Role::Parameter)
            .collect();
        let parameters = all_start_values(&program);
        let adjoint = adjoint(&program, tensor(&program, "Loss").unwrap(), &wrt);
        let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
        let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
        let wanted = Reference::default().values(&request, &goals).unwrap();
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
    assert!(2 * legal > common::drawn(300), "{legal}");
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
