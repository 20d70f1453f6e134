//! Steps of arrays that are described once and done again, against the reference interpreter: values and gradients, with
//! other parameters each time, by an engine that goes on.
use std::sync::Arc;

use crate::common;
use crate::common::engines::{BUDGET, analysed, value_difference};
use seeded::Stream;
use tensor_logic::engine::{Engine, Parameters, Request, Value};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::gradient::adjoint;
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;

/// What a step may add; `t` moves, and a step has more than 512 bindings.
const TERMS: [&str; 15] = [
    "0.1 S[t, i, k] W[j, j]",
    "tanh(W[i, k] S[t, k, j] + U[t, i, j])",
    "0.5 S[t, j, i]",
    "W[i, k] S[t, k, j] W[j, i] / 3",
    "U[t-3, i, j] W[i, j]",
    "U[t+2, j, i]",
    "sig(S[t, i, j]) S[t, i, j]",
    "0.25 S[t-1, i, j]",
    "U[2*t, i, j]",
    "U[t*t, i, j]",
    "t / 10",
    "(S[t, i, j] | t != 4)",
    "(W[i, j] | U[t, i, j] > 0)",
    "softmax[k](S[t, i, k]) W[i, j]",
    "W[i, j]^2 / (1 + S[t, i, j]^2)",
];

fn program(stream: &mut Stream) -> String {
    let steps = 5 + stream.below(5);
    let mut text =
        format!("t : {steps}; i, j, k : 23\nW[i, j] ~ normal(0, 0.2); U[t, i, j] ~ normal(0, 0.5)\n");
    // Some begin with what is computed, some with nothing, and to some something is added at steps of its own.
    let begins =
        ["", "S[0, i, j] = 0\n", "S[0, i, j] = 0.1 W[i, j]\n", "S[t, i, j] = 0.1 U[t, i, k] W[j, j]\n"];
    text += begins[stream.below(4) as usize];
    let terms: Vec<&str> =
        (0..1 + stream.below(3)).map(|_| TERMS[stream.below(TERMS.len() as u64) as usize]).collect();
    // In one equation, or in several, or by way of another tensor that steps with the first.
    match stream.below(3) {
        0 => text += &format!("S[t+1, i, j] = {}\n", terms.join(" + ")),
        1 => terms.iter().for_each(|term| text += &format!("S[t+1, i, j] = {term}\n")),
        _ => {
            text += &format!("A[t, i, j] = {}\n", terms.join(" + "));
            text += "S[t+1, i, j] = 0.9 A[t, i, j] + 0.1 A[t, j, i]\n";
        }
    }
    text + "Loss = S[t, i, j] U[t, i, j]\nLoss?\n"
}

fn parameters(program: &Program, stream: &mut Stream, scale: f64) -> Parameters {
    let mut given = Parameters::new();
    for (id, tensor) in (0u32..).map(TensorId).zip(&program.tensors) {
        if tensor.role == Role::Parameter {
            let sizes = tensor.places.iter().map(|place| place.domain.as_ref().map_or(0, |d| d.len()));
            let len: usize = sizes.product();
            let values = (0..len).map(|_| scale * (stream.below(2001) as f64 / 1000.0 - 1.0));
            given.insert(id, Arc::new(values.collect()));
        }
    }
    given
}

fn near(found: &Value, wanted: &Value) -> bool {
    let (Value::Dense(a), Value::Dense(b)) = (found, wanted) else { return false };
    let (a, b) = (a.doubles(), b.doubles());
    let most = b.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
    a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| (a - b).abs() <= 1e-4 * most)
}

#[test]
fn steps_that_are_done_again_are_those_of_the_reference() {
    let mut stream = common::stream("replayed");
    for _ in 0..12 {
        let text = program(&mut stream);
        // Some of them are refused, as any program may be.
        let Ok(program) = analysed(&text) else { continue };
        let id = |name: &str| {
            let at = program.tensors.iter().position(|tensor| tensor.name == name).unwrap();
            TensorId(at as u32)
        };
        let adjoint = adjoint(&program, id("Loss"), &[id("W"), id("U")]);
        let mut goals = vec![id("Loss"), id("S")];
        goals.extend(adjoint.gradients.iter().flatten());
        let mut engine = Fast::default();
        let mut single = Fast::default().with_precision(Precision::Single);
        // One leaves the finite numbers, where a product that is added in one rounding may overflow otherwise than two
        // roundings do; what comes behind it is as it was.
        for scale in [0.3, 0.4, 1e200, 0.2] {
            let parameters = parameters(&adjoint.program, &mut stream, scale);
            let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
            let (found, wanted) =
                (engine.values(&request, &goals), Reference::default().values(&request, &goals));
            let (Ok(found), Ok(wanted)) = (&found, &wanted) else {
                assert_eq!(found.is_err(), wanted.is_err(), "{text}");
                continue;
            };
            if scale > 1.0 {
                continue;
            }
            for ((found, wanted), goal) in found.iter().zip(wanted).zip(&goals) {
                let different = value_difference(found, wanted);
                assert_eq!(
                    different.map(|d| d.chars().take(200).collect::<String>()),
                    None,
                    "{} of\n{text}at {scale}",
                    adjoint.program.tensor(*goal).name
                );
            }
            let found = single.values(&request, &goals).unwrap();
            for (found, wanted) in found.iter().zip(wanted) {
                assert!(near(found, wanted), "in 32 bits:\n{text}");
            }
        }
    }
}
