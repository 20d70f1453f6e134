//! Derivatives by dual numbers against central differences of the same interpreter, and against
//! the conventions at kinks and ties (N12).
#![expect(clippy::unwrap_used, reason = "a program of a test that is refused has failed it")]

use std::sync::Arc;

use tensor_logic::analyse::analyse;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Value};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Program, TensorId};
use tensor_logic::reference::{Reference, variables};
use tensor_logic::start::start_values;

const BUDGET: Budget = Budget { tuples: 100_000, bytes: 1 << 30 };

fn program(text: &str) -> Program {
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
    assert_eq!(analysed.as_ref().err(), None, "{text}");
    analysed.unwrap().program
}

fn id(program: &Program, name: &str) -> TensorId {
    let mut ids = (0u32..).map(TensorId).zip(&program.tensors);
    ids.find(|(_, tensor)| tensor.name == name && !tensor.hidden).unwrap().0
}

fn gradient(text: &str, by: &str) -> (f64, Vec<f64>) {
    let program = program(text);
    let request = Request { program: &program, parameters: &Parameters::new(), budget: BUDGET };
    let (goal, by) = (id(&program, "Loss"), id(&program, by));
    let (value, mut gradients) = Reference::default().gradient(&request, goal, &[by]).unwrap();
    (value, gradients.remove(0))
}

fn loss(program: &Program, parameters: &Parameters) -> f64 {
    let request = Request { program, parameters, budget: BUDGET };
    match &Reference::default().values(&request, &[id(program, "Loss")]).unwrap()[0] {
        Value::Tuples(tuples) => tuples.values.first().copied().unwrap_or(0.0),
        value => value.doubles()[0],
    }
}

#[test]
fn dual_numbers_agree_with_central_differences() {
    let programs = [
        "W[i] ~ normal(0, 1)\nX = [0.3, -1.2, 0.7]\nLoss = tanh(W[i] X[i])^2",
        "X = [0.3, -1.2, 0.7]\nW[i] ~ normal(0, 1)\nLoss = exp(-(W[i] - X[i])^2) + sig(W[i], 0.7)",
        "X = [0.3, 1.2, 0.7]\nW[i] ~ uniform(0.5, 2)\nLoss = log(W[i] X[i]) + sqrt(W[0]) + X[j]^W[1] / W[2]",
        "i : 3\nW[i] ~ normal(0, 1)\nP[i.] = softmax(W[i])\nLoss = -log(P[1]) + gelu(W[0]) silu(W[1]) softplus(W[2])",
        "i : 4\nW[i] ~ normal(0, 1)\nN[i.] = lnorm(W[i], 0.01)\nLoss = sin(N[1]) cos(N[2]) + abs(W[3]) + leaky(W[0], 0.1)",
        "i : 3\nW[i] ~ normal(0, 1)\nM max= W[i]\nL min= W[i]^2\nA avg= exp(W[i])\nT *= W[i]\nLoss = M L A T",
        "i : 3\nW[i] ~ normal(0, 1)\nLoss = max[i](W[i]) min[i](W[i]) + prod[i](W[i]) / count[i](W[i]) + avg[i](W[i]^2)",
        "t : 0..4\nW ~ 0.7\nX[0] = 0.2\nX[t+1] = tanh(W X[t] + 0.3)\nLoss = X[5]",
        "i, j : 2\nA[i, j] ~ uniform(0.05, 0.3)\nB = [1, 2]\nX[i] = A[i, j] X[j] + B[i]\nLoss = X[i]^2",
        "E(0, 1); E(1, 2); E(0, 2); x : 3\nW[x] ~ uniform(1, 2)\nD(0) min= 0\nD(y) min= D(x) + E(x, y) W[x] W[y]\nLoss = D(2)",
        "E(0, 1); E(1, 2); E(2, 0)\nx, y : 3\nW[x, y] ~ normal(0, 1)\nP[x, y.] = softmax(W[x, y] | E(x, y), x != y)\nQ[x, y.] = softmax[x, y](W[x, y] | not E(x, y))\nLoss = P[x, y] W[x, y] + Q[x, y] W[y, x]",
        "i : 4\nW[i] ~ normal(0, 1)\nLoss = max(W[0], W[1]) + min(W[2], W[3]) + relu(W[i]) + sign(W[0]) + floor(W[1])",
    ];
    for text in programs {
        let program = program(text);
        let by = (0u32..).map(TensorId).zip(&program.tensors);
        let by: Vec<TensorId> =
            by.filter(|(_, t)| t.role == tensor_logic::program::Role::Parameter).map(|(id, _)| id).collect();
        let request = Request { program: &program, parameters: &Parameters::new(), budget: BUDGET };
        let goal = id(&program, "Loss");
        let (value, gradients) = Reference::default().gradient(&request, goal, &by).unwrap();
        assert_eq!(value, loss(&program, &Parameters::new()), "{text}");
        for (tensor, gradient) in by.iter().zip(gradients) {
            let start = start_values(&program, *tensor);
            assert_eq!(gradient.len(), start.len());
            for (at, found) in gradient.iter().enumerate() {
                let moved = |by: f64| {
                    let mut values = start.to_vec();
                    values[at] += by;
                    loss(&program, &Parameters::from([(*tensor, Arc::from(values))]))
                };
                let wanted = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (found - wanted).abs() < 1e-6 * wanted.abs().max(1.0),
                    "{found} {wanted} at {at} of\n{text}"
                );
            }
        }
    }
}

#[test]
fn kinks_and_ties() {
    let cases: &[(&str, &str, &[f64])] = &[
        ("W ~ 0\nLoss = step(W) + 3 relu(W) + 5 abs(W) + leaky(W, 0.25) + sign(W) + floor(W)", "W", &[0.25]),
        ("W ~ [1, 3, 3]\nLoss max= W[i]", "W", &[0.0, 0.5, 0.5]),
        ("W ~ [1, 3, 1]\nLoss min= 2 W[i]", "W", &[1.0, 0.0, 1.0]),
        ("W ~ [2, 2]\nLoss = max(W[0], W[1])", "W", &[0.5, 0.5]),
        ("W ~ [2, 2]\nLoss = min(W[0], 3 W[1])", "W", &[1.0, 0.0]),
        ("W ~ [2, 2, 1]\nLoss = max[i](W[i])", "W", &[0.5, 0.5, 0.0]),
        ("W ~ [2, 2, 1]\nLoss = 3 min[i](W[i])", "W", &[0.0, 0.0, 3.0]),
        // One entry alone has softmax 1 with gradient 0.
        ("i : 1\nW[i] ~ 3\nP[i.] = softmax(W[i])\nLoss = P[0]", "W", &[0.0]),
        // Facts of valued relations, in the order of answers.
        ("R(B) = 2; R(A) = 3; R(C) = 0\nLoss = R(x)^2", "R", &[6.0, 4.0, 0.0]),
        (
            "R(A, B) = 4; R(A, C) = 1; R(C, B) = 2\nD(A) min= 0\nD(y) min= D(x) + R(x, y)\nLoss = D(B)",
            "R",
            &[0.0, 1.0, 1.0],
        ),
        // Data, and a value in between.
        ("A = [1, 2]\nLoss = A[i]^2", "A", &[2.0, 4.0]),
        ("A = [1, 2]\nB[i] = 3 A[i]\nLoss = B[i]^2", "B", &[6.0, 12.0]),
        // Only what fired.
        ("W ~ [1, 2]\nLoss = W[i] | i < 1", "W", &[1.0, 0.0]),
        ("W ~ 2\nLoss = 1 + (W - W)", "W", &[0.0]),
    ];
    for (text, by, wanted) in cases {
        assert_eq!(gradient(text, by).1, *wanted, "{text}");
    }
    let program = program("R(B) = 2; R(A) = 3; R(B) = 1\nLoss = R(x)");
    let names = variables(&program, id(&program, "R"));
    assert_eq!(names.iter().map(|tuple| program.show_tuple(tuple)).collect::<Vec<_>>(), ["A", "B"]);
}
