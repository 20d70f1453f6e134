//! Equations that share an outer index are done together: attention and its gradient, large enough for it, against
//! the reference; and what was not stored on the way is there when it is asked for afterwards.
#![expect(clippy::unwrap_used, reason = "a test whose program is refused has failed")]

use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::gradient::adjoint;
use tensor_logic::program::{Program, TensorId};
use tensor_logic::reference::Reference;

use crate::common::engines::analysed;

/// Heads of 48 rows, each with as many others: 18,432 scores.
const GIVEN: &str = "h : 8\ni, j : 48\nd, e : 10\nA[h] = h\nB[i] = i\nC[d] = d\n\
    Q[h, i, d] = sin(3 A[h] + 0.7 B[i] + 1.9 C[d])\nK[h, j, d] = cos(A[h] - 0.3 B[j] + 2.3 C[d])\n\
    V[h, j, d] = sin(A[h] + 0.9 B[j]) C[d]\n";

fn tensor(program: &Program, name: &str) -> TensorId {
    TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
}

fn check(text: &str, by: &[&str], afterwards: &[&str]) {
    let program = analysed(&format!("{GIVEN}{text}")).unwrap();
    let by: Vec<TensorId> = by.iter().map(|name| tensor(&program, name)).collect();
    let adjoint = adjoint(&program, tensor(&program, "Loss"), &by);
    let parameters = Parameters::new();
    let budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };
    let request = Request { program: &adjoint.program, parameters: &parameters, budget };
    let mut goals = vec![tensor(&adjoint.program, "Loss")];
    goals.extend(adjoint.gradients.iter().flatten());
    let mut all = goals.clone();
    all.extend(afterwards.iter().map(|name| tensor(&adjoint.program, name)));
    let wanted = Reference::default().values(&request, &all).unwrap();
    for (precision, tolerance) in [(Precision::Double, 1e-9), (Precision::Single, 2e-3)] {
        let mut engine = Fast::default().with_precision(precision);
        // Together; one after the other behind them; and each first of all.
        let mut found = engine.values(&request, &goals).unwrap();
        for id in &all[goals.len()..] {
            found.extend(engine.values(&request, &[*id]).unwrap());
        }
        let alone = all.iter().map(|id| {
            let mut engine = Fast::default().with_precision(precision);
            engine.values(&request, &[*id]).unwrap().remove(0)
        });
        let alone: Vec<_> = alone.collect();
        for found in [&found, &alone] {
            for ((id, found), wanted) in all.iter().zip(found).zip(&wanted) {
                let (found, wanted) = (found.doubles(), wanted.doubles());
                assert_eq!(found.len(), wanted.len());
                let most = wanted.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                for (x, y) in found.iter().zip(wanted.iter()) {
                    let name = &adjoint.program.tensor(*id).name;
                    assert!((x - y).abs() <= tolerance * most, "{name}: {x} and {y} in {text}");
                }
            }
        }
    }
}

#[test]
fn attention_and_its_gradient_are_those_of_the_reference() {
    check(
        "P[h, i, j.] = softmax(Q[h, i, d] K[h, j, d] / 3)\nO[h, i, d] = P[h, i, j] V[h, j, d]\nLoss = O[h, i, d]^2\nLoss?",
        &["Q", "K", "V"],
        &["O", "P"],
    );
}

#[test]
fn guards_and_more_functions_are_those_of_the_reference() {
    check(
        "P[h, i, j.] = softmax(Q[h, i, d] K[h, j, d] / 3 | j <= i)\nO[h, i, d] = P[h, i, j] V[h, j, d]\nLoss = O[h, i, d]^2\nLoss?",
        &["Q", "K", "V"],
        &["P"],
    );
    check(
        "S[h, i, j] = Q[h, i, d] K[h, j, d]\nR[h, i, j] = relu(S[h, i, j]) + 0.1 S[h, i, j]\nO[h, i, d] = R[h, i, j] V[h, j, d]\n\
         N[h, i, d.] = lnorm(O[h, i, d])\nLoss = N[h, i, d] V[h, i, d]\nLoss?",
        &["Q", "V"],
        &["S", "R", "O"],
    );
    check(
        "P[h, i, j.] = softmax(Q[h, i, d] K[h, j, d])\nW[h, i, d] = P[h, j, i] V[h, j, d]\nY[i, d] = W[h, i, d] V[h, i, d]\n\
         Loss = Y[i, d]^2\nLoss?",
        &["K", "V"],
        &["P", "W"],
    );
}
