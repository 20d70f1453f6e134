//! Numeric recursion that is linear in itself: its limit is had by a solve where rounds are slow, and is that of the rounds.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use seeded::Stream;
use tensor_logic::engine::{Engine, Parameters, Request};
use tensor_logic::error::Code;
use tensor_logic::fast::Fast;
use tensor_logic::program::TensorId;

use crate::common;
use crate::common::answers::{calculated, engines};
use crate::common::engines::{BUDGET, analysed};

/// All numbers of the answers by an engine, or the code of the refusal.
fn numbers(text: &str, engine: usize) -> Result<Vec<f64>, String> {
    let mut engine = engines().remove(engine).1;
    let found = calculated(text, Path::new("."), 0, &mut *engine).unwrap();
    match found.outcome.refusal {
        Some(refusal) => Err(format!("{} {:?}", refusal.code.name(), refusal.span)),
        None => {
            Ok(found.outcome.answers.iter().flat_map(|answer| answer.content.numbers().to_vec()).collect())
        }
    }
}

fn graph(random: &mut Stream, n: u64) -> String {
    let mut text = String::new();
    for x in 0..n {
        // Nobody is without a way out.
        writeln!(text, "E({x}, {})", (x + 1 + random.below(n - 1)) % n).unwrap();
        if random.below(2) == 0 {
            writeln!(text, "E({x}, {})", random.below(n)).unwrap();
        }
    }
    let lines: std::collections::BTreeSet<&str> = text.lines().collect();
    lines.into_iter().collect::<Vec<_>>().join("\n") + "\n"
}

/// Ranks, potentials, two tensors in turns, walks on a line, sums in parentheses, sums within sums, padded reads. `Q` is
/// how much a round keeps.
const PROGRAMS: &[&str] = &[
    "D[x] = E[x, y]\nP[y] = 0.15 / 9 + Q P[x] E[x, y] / D[x]\nP?",
    "D[x] = E(x, y)\nV[x] = x - 3 + Q V[y] E(x, y) / D[x]\nV?",
    "V[x] = 1 - (Q / 2) sum[y](V[y] E[y, x]) / 2\nW[x] = V[x] + 0.1 V[y] E[x, y]\nV?\nW?",
    // At most two ways lead out of a node and nine into it: a round keeps less than 0.9 Q.
    "A[x] = 1 + Q B[y] E[x, y] / 2\nB[y] = 0.1 A[x] E[x, y]\nA?\nB?",
    "i : 0..12\nT[i] = i + (Q / 2) (T[i-1] + T[i+1])\nT[0] = 3\nT?",
    "i : 0..12\nT[i] = 0.5 Q T[i-1] + (Q / 2) T[i+1] | i > 0\nT[0] = 1\nT?",
    "i, j : 5\nG[i, j] = 1 + (Q / 4) G[i-1, j] + (Q / 4) G[i+1, j] + (Q / 4) G[i, j-1] + (Q / 4) G[i, j+1]\nG?",
    "X = 2 + Q X\nX?",
    "D[x] = E[x, y]\nV[x] = sum[y](E[x, y] (Q V[y] + y)) / D[x] + 0 V[x]\nV?",
];

#[test]
fn limits_are_those_of_rounds() {
    let mut random = common::stream("linear recursion");
    for (nth, program) in PROGRAMS.iter().cycle().take(5 * PROGRAMS.len()).enumerate() {
        let keeps = [0.5, 0.95, 0.99, 0.997][nth / PROGRAMS.len() % 4];
        let text = format!("@rounds(40000)\nx, y : 9\nQ = {keeps}\n{}{program}", graph(&mut random, 9));
        let wanted = numbers(&text, 0).unwrap();
        for engine in 1..4 {
            let found = numbers(&text, engine).unwrap();
            // Rounds end where they change by 1e-12, which is so much nearer to their limit.
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 4e-12 / (1.0 - keeps) * b.abs().max(1.0);
            assert!(
                found.len() == wanted.len() && found.iter().zip(&wanted).all(near),
                "{engine}: {text}\n{found:?}\n{wanted:?}"
            );
        }
    }
}

/// Values of a decision under which a step keeps 0.9999: rounds would take a quarter of a million.
#[test]
fn slow_rounds_are_solved() {
    let n = 60;
    let mut random = common::stream("slow rounds");
    let mut text = String::from("x, y : 60\n");
    let mut matrix = vec![vec![0.0; n]; n];
    for (x, row) in matrix.iter_mut().enumerate() {
        let ways: Vec<usize> = (0..3).map(|_| random.below(n as u64) as usize).collect();
        for way in ways {
            row[way] += 1.0 / 3.0;
        }
        for (y, p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            writeln!(text, "T({x}, {y}) = {p}").unwrap();
        }
    }
    text += "V[x] = x + 0.9999 T[x, y] V[y]\nV?";
    let found = numbers(&text, 1).unwrap();
    // V = x + 0.9999 T V, by what is left over.
    for (x, row) in matrix.iter().enumerate() {
        let next = x as f64 + 0.9999 * row.iter().zip(&found).map(|(p, v)| p * v).sum::<f64>();
        assert!((next - found[x]).abs() <= 1e-11 * found[x], "{x}: {next} {}", found[x]);
    }
    assert!(found.iter().all(|value| (1e5..1e6).contains(value)));
    // A walk that ends at both sides of a line: i (n - i) steps.
    let walk = "i : 0..300\nT[i] = 1 + 0.5 T[i-1] + 0.5 T[i+1] | i > 0, i < 300\nT?";
    let walk = numbers(walk, 1).unwrap();
    // What lies outside of the domain is absent, so the ends say 0 of themselves.
    let inner = |i: usize| (i * (300 - i)) as f64;
    assert!((0..=300).all(|i| (walk[i] - inner(i)).abs() <= 1e-7 * inner(i).max(1.0)), "{:?}", &walk[..5]);
}

/// What does not contract is refused, also where a solve would find something.
#[test]
fn what_diverges_is_refused() {
    for (program, keeps) in [
        ("X = 3 X - 4\nX?", 1.0),
        ("X = 1 + Q X\nX?", 1.0),
        ("D[x] = E[x, y]\nV[x] = 1 + Q V[y] E[x, y] / D[x]\nV?", 1.0),
        ("D[x] = E[x, y]\nV[x] = 1 + Q V[y] E[x, y] / D[x]\nV?", 1.001),
        ("A = [[0, 1], [-1, 0]]\nB = [1, 0]\nX[i] = B[i] + Q A[i, j] X[j]\nX?", 1.0),
        ("X = 1 - Q X\nX?", 1.0),
    ] {
        let graph = "E(0, 1)\nE(1, 0)\nE(1, 2)\nE(2, 0)\n";
        let text = format!("@rounds(3000)\nx, y : 3\nQ = {keeps}\n{graph}{program}");
        let wanted = numbers(&text, 0).unwrap_err();
        assert!(wanted.starts_with("divergence"), "{wanted}");
        assert_eq!(numbers(&text, 1), Err(wanted), "{text}");
    }
    // Signs that cancel: the sizes do not contract, but the rounds do, and are gone through.
    let text = "A = [[0.6, 0.6], [-0.6, 0.6]]\nB = [1, 0]\nX[i] = B[i] + A[i, j] X[j]\nX?";
    let (wanted, found) = (numbers(text, 0).unwrap(), numbers(text, 1).unwrap());
    assert!(wanted.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-9), "{wanted:?} {found:?}");
}

/// A refusal is remembered for the numbers that led to it, and no others.
#[test]
fn what_does_not_come_to_rest_may_with_other_numbers() {
    let program = analysed("Q ~ 2\nX = 1 + Q X\nY = X + 1\n").unwrap();
    let id = |name: &str| {
        let at = program.tensors.iter().position(|tensor| tensor.name == name).unwrap();
        TensorId(at as u32)
    };
    let mut engine = Fast::default();
    let mut refused = None;
    for keeps in [2.0, 2.0, 0.5, 2.0, 0.25, 0.5] {
        let parameters: Parameters = [(id("Q"), Arc::new(vec![keeps]))].into();
        let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
        for (goal, more) in [("X", 0.0), ("Y", 1.0), ("X", 0.0)] {
            match engine.values(&request, &[id(goal)]) {
                Ok(found) => {
                    let wanted = 1.0 / (1.0 - keeps) + more;
                    assert!(keeps < 1.0 && (found[0].doubles()[0] - wanted).abs() < 1e-9, "{goal}, {keeps}");
                }
                Err(refusal) => {
                    let known = refused.get_or_insert_with(|| refusal.message.clone());
                    assert!(keeps > 1.0 && refusal.code == Code::Divergence, "{goal}, {keeps}");
                    assert_eq!(*known, refusal.message);
                }
            }
        }
    }
    assert!(refused.is_some());
}
