//! Recursions over rows, whether these meet or not: values and gradients are those of the reference, and have the same bits
//! on any number of threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use seeded::Stream;
use tensor_logic_core::analyse::analyse;
use tensor_logic_core::lower::{NoFiles, Options};
use tensor_logic_reference::Reference;
use tensor_logic_rewrites::gradient::adjoint;

use super::TAKEN;
use crate::Fast;
use crate::engine::{Budget, Engine, Parameters, Request};
use crate::function::UserFunctions;
use crate::kernels::Precision;
use crate::program::{Program, Role, TensorId};

/// What a row may be made of; some of the rows before it, and some of other rows.
const TERMS: [&str; 12] = [
    "W[h, g] S[t, s, g]",
    "tanh(W[h, g] S[t, s, g] + U[t, s, h])",
    "U[t, s, h] B[h]",
    "S[t, s, h]^2 / 4",
    "0.5 S[t-1, s, h] W[h, h]",
    "S[t, s, g] B[g] U[t, s, h]",
    "sig(S[t, s, h]) W[h, g] U[t, s, g]",
    "softmax[h](S[t, s, h])",
    "W[h, g] max[g](S[t, s, g] + B[h])",
    "exp(S[t, s, h] U[t, s, h])",
    // Rows meet.
    "0.5 S[t, s-1, h]",
    "0.1 S[t, s, h] M[t, h]",
];

fn program(stream: &mut Stream) -> String {
    let mut below = |n: usize| stream.below(n as u64) as usize;
    let (steps, rows, width, gates) = (4 + below(4), 32 + below(30), [3, 5, 8, 9][below(4)], 2 + below(2));
    let mut some = |_| {
        let of = if below(4) == 0 { TERMS.len() } else { 10 };
        TERMS[below(of)]
    };
    let terms: Vec<&str> = (0..3).map(&mut some).collect();
    let terms = &terms[..1 + below(3)];
    let start = ["0", "0.1 U[0, s, h]", "W[h, g] U[0, s, g]"][below(3)];
    let mut text = format!(
        "t : {steps}; s : {rows}; h, g : {width}; q : {gates}\n\
         W[h, g] ~ normal(0, 0.2); V[q, h, g] ~ normal(0, 0.2); B[h] ~ normal(0, 0.5); U[t, s, h] ~ normal(0, 0.5)\n\
         S[0, s, h] = {start}\nC[0, s, h] = 0\n"
    );
    if terms.iter().any(|term| term.contains("M[")) {
        text += "M[t, h] = S[t, s, h] / 64\n";
    }
    text += &format!("A[t, s, h] = {}\n", terms.join(" + "));
    // Gates beside each other in a row, all of them made at once.
    text += "G[t, s, q, h] = V[q, h, g] S[t, s, g] + U[t, s, h]\n";
    text += "F[t, s, h] = sig(G[t, s, 0, h])\nO[t, s, h] = tanh(G[t, s, 1, h])\n";
    text += ["C[t+1, s, h] = F[t, s, h] C[t, s, h] + A[t, s, h]\n", "C[t+1, s, h] = A[t, s, h]\n"][below(2)];
    text += "S[t+1, s, h] = O[t, s, h] tanh(C[t+1, s, h])\n";
    text += "Loss = (S[t+1, s, h] - U[t, s, h])^2";
    // Rows with a matrix each.
    match below(3) {
        0 => {
            text + " + D[t+1, s, r, h]\nr : 14\nD[0, s, r, h] = 0\nD[t+1, s, r, h] = tanh(X[s, h, g] D[t, s, r, g] + S[t+1, s, h])\nX[s, h, g] = U[0, s, h] B[g]\n"
        }
        _ => text + "\n",
    }
}

fn parameters(program: &Program, stream: &mut Stream, huge: bool) -> Parameters {
    let mut given = Parameters::new();
    for (id, tensor) in (0u32..).map(TensorId).zip(&program.tensors) {
        if tensor.role != Role::Parameter {
            continue;
        }
        let len: usize = tensor.sizes().iter().product();
        let mut values: Vec<f64> = (0..len).map(|_| stream.uniform() - 0.5).collect();
        // Some number of some row leaves the numbers at some step.
        if huge && tensor.name == "U" {
            values[stream.below(len as u64) as usize] = 1e300;
        }
        given.insert(id, Arc::new(values));
    }
    given
}

/// Whether numbers are those that are wanted, in units of the largest of them.
fn close(found: &[f64], wanted: &[f64], near: f64) -> bool {
    let finite = wanted.iter().filter(|x| x.is_finite());
    let largest = finite.fold(1.0, |most: f64, x| most.max(x.abs()));
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= near * largest;
    found.len() == wanted.len() && found.iter().zip(wanted).all(same)
}

#[test]
fn rows_that_do_not_meet_go_by_themselves() {
    let first = seeded::test_seed();
    let mut left_out = 0;
    let taken = TAKEN.load(Ordering::Relaxed);
    let count = if std::env::var("CALCULEMUS_SLOW").is_ok() { 100 } else { 3 };
    for seed in first..first + 100 {
        // Few of them may have rows that all meet, or nothing that passes: then there are more.
        let met = TAKEN.load(Ordering::Relaxed) > taken && left_out > 0;
        if seed >= first + count && met {
            break;
        }
        let mut stream = seeded::Family::new("tensor-logic-blocks/tests", "lanes", seed).stream(0);
        let text = program(&mut stream);
        let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        let own = analysed.unwrap_or_else(|refused| panic!("seed {seed}\n{text}\n{refused:?}")).program;
        let named = |name: &str| {
            let at = own.tensors.iter().position(|tensor| tensor.name == name);
            at.map(|at| TensorId(at as u32)).unwrap()
        };
        let weights = ["W", "V", "B", "U"].map(named);
        let loss = named("Loss");
        let grown = adjoint(&own, loss, &weights);
        let slopes: Vec<TensorId> = grown.gradients.iter().flatten().copied().collect();
        let program = grown.program;
        let goals: Vec<TensorId> = std::iter::once(loss).chain(slopes).collect();
        // Two evaluations, as learning has them, and then all that was not asked before.
        let all: Vec<[Parameters; 1]> =
            (0..3).map(|nth| [parameters(&program, &mut stream, nth == 2)]).collect();
        let budget = Budget { tuples: 1 << 20, bytes: 1 << 30 };
        let inner = ["A", "G", "F", "O", "C", "S"].map(named);
        for precision in [Precision::Double, Precision::Single] {
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut engine = Fast::default().with_precision(precision);
                    let (mut answers, mut left) = (Vec::new(), 0);
                    for [parameters] in &all {
                        let request = Request { program: &program, parameters, budget };
                        let mut ask = |goals: &[TensorId]| {
                            engine.values(&request, goals).map(|values| {
                                values.iter().map(|value| value.doubles().to_vec()).collect::<Vec<_>>()
                            })
                        };
                        answers.push(ask(&goals));
                        answers.push(ask(&goals[..1]));
                        answers.extend(inner.map(|goal| ask(&[goal])));
                        answers.push(ask(&goals));
                        let kept = engine.sessions.iter().flat_map(|kept| &kept.session.left_out);
                        left += kept.map(Vec::len).sum::<usize>();
                    }
                    (answers, left)
                })
            };
            let (one, none) = run(1);
            assert_eq!(none, 0);
            for threads in [2, 3] {
                let (several, left) = run(threads);
                left_out += left;
                for (nth, (found, wanted)) in several.iter().zip(&one).enumerate() {
                    let at =
                        || format!("seed {seed}, {precision:?}, {threads} threads, answer {nth}\n{text}");
                    assert_eq!(found.is_ok(), wanted.is_ok(), "{}", at());
                    let (Ok(found), Ok(wanted)) = (found, wanted) else { continue };
                    // Which sums are formed entry by entry, because some number is none, depends on what was asked before.
                    let near = match (nth >= one.len() / all.len() * 2, precision) {
                        (false, _) => 0.0,
                        (true, Precision::Double) => 1e-9,
                        (true, Precision::Single) => 1e-3,
                    };
                    let mut pairs = found.iter().zip(wanted);
                    assert!(pairs.all(|(found, wanted)| close(found, wanted, near)), "{}", at());
                }
            }
        }
        // Where numbers leave the numbers, sums of two orders are other ones.
        for [parameters] in &all[..2] {
            let request = Request { program: &program, parameters, budget };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            for goals in [&goals[..], &inner[..]] {
                let found = pool.install(|| Fast::default().values(&request, goals)).unwrap();
                let wanted = Reference::default().values(&request, goals).unwrap();
                for (goal, (found, wanted)) in goals.iter().zip(found.iter().zip(&wanted)) {
                    let (found, wanted) = (found.doubles(), wanted.doubles());
                    assert!(close(&found, &wanted, 1e-9), "seed {seed}, {}\n{text}", program.name(*goal));
                }
            }
        }
    }
    assert!(TAKEN.load(Ordering::Relaxed) > taken, "no recursion goes by rows");
    assert!(left_out > 0, "nothing passes");
}
