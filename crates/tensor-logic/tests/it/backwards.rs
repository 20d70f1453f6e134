//! Gradients of long recursions, window after window: those of the reference and of the evaluation as a whole.
#![expect(clippy::unwrap_used, reason = "a program of a test that is refused has failed it")]

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Request, Value};
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::gradient::{Adjoint, adjoint};
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;
use tensor_logic::windows::Windows;

use crate::common;
use crate::common::engines::{BUDGET, analysed};

/// Recurrences over `H`; `P` and `N` are the step before and the next one, `B` further places, `X` is read in step.
const CELLS: &[&str] = &[
    "H[BN, d] = tanh(W[d, e] H[BP, e] + X[BP, d])",
    "H[BN, d] = W[d, e] tanh(H[BP, e]) + X[BN, d]",
    "H[BN, d] = sig(W[d, e] H[BP, e]) H[BP, d]\nH[BN, d] = U[d, e] X[BP, e]",
    "Z[BP, d] = U[d, e] X[BP, e]\nH[BN, d] = tanh(W[d, e] H[BP, e] + Z[BP, d])",
    "G[BP, d] = sig(U[d, e] H[BP, e] + X[BP, d])\nC[BN, d] = G[BP, d] C[BP, d] + tanh(W[d, e] H[BP, e])\n\
     H[BN, d] = (1 - G[BP, d]) tanh(C[BN, d])",
    "G[BP, d] = sig(U[d, e] H[BP, e])\nH[BN, d] = G[BP, d] H[BP, d] + (1 - G[BP, d]) X[BP, d]",
    "K[BN, d] = tanh(W[d, e] K[BP, e] + X[BP, d])\nH[BN, d] = tanh(U[d, e] H[BP, e] + K[BN, d])",
    "K[BN, d] = tanh(W[d, e] K[BP, e] + X[BP, d])\nH[BN, d] = tanh(U[d, e] H[BP, e] + K[BP, d] K[BN, d])",
    "H[BN, d] = 0.9 H[BP, d] + W[d, e] X[BP, e] | t % 3 != 1\nH[BN, d] = 0.5 H[BP, d] | t % 3 == 1",
    "E(0, 1); E(1, 0); E(1, 1)\nH[BN, d] = tanh(E(d, e) W[d, e] H[BP, e] + X[BP, d])",
    "A[BP, d.] = softmax(U[d, e] H[BP, e])\nH[BN, d] = W[d, e] A[BP, e] + X[BP, d]",
];

/// Losses; `L` is the last step and `F` the first, `B` further places, `A` all of them at a step `t`.
const LOSSES: &[&str] = &[
    "Loss = H[BL, d]^2",
    "Loss = H[BL, d] H[BF, d] + V[d] H[BM, d]",
    "Loss = H[Bt, d]^2",
    "Y[Bt] = V[d] H[Bt, d]\nLoss = (Y[Bt] - 0.5)^2 / 10",
    "Y[Bt] = V[d] H[Bt, d]\nLoss avg= (Y[Bt] - 0.3)^2",
    "Loss = avg[Ct, d]((H[Bt, d] - 0.2)^2)",
    "Loss = sqrt(1 + sum[Ct, d](H[Bt, d]^2)) + V[d]^2",
    "Loss = H[Bt, d]^2\nLoss = V[d]^2 + H[BL, d]",
    "Loss = H[B3*k, d]^2 | k < 4",
    "Loss = V[d] H[Bt, d]^2 | t % 3 == 0",
    "Obs(1); Obs(6); Obs(7)\nLoss = Obs(t) H[Bt, d]^2",
    "Target(2, 1) = 0.3; Target(9, 0) = -0.4\nLoss = (H[Bt, d] - Target(t, d))^2",
    "Loss = (H[Bt, d] - H[Bt-2, d])^2",
    "Y[Bt, d] = H[Bt+1, d] V[d]\nLoss = tanh(Y[Bt, d]) X[Bt, d]",
    "S[d] = H[Bt, d]^2\nLoss = S[d] V[d] + S[0]^2",
    "S(d) += H[Bt, d]^2\nLoss = S(d) V[d]",
    "Q[t, d] = H[Bt, d]^2\nLoss = Q[t, d] Q[t+1, d]",
];

fn program(stream: &mut Stream, steps: u64, size: usize) -> String {
    let any = |stream: &mut Stream, of: &[&str]| of[stream.below(of.len() as u64) as usize].to_owned();
    let (cell, loss) = (any(stream, CELLS), any(stream, LOSSES));
    let by = 1 + stream.below(3);
    let up = stream.below(3) > 0;
    let batch = stream.below(3) == 0;
    let (before, next) =
        if up { ("t".to_owned(), format!("t+{by}")) } else { (format!("t+{by}"), "t".to_owned()) };
    let (first, last) = if up { (0, steps - 1) } else { (steps - 1, 0) };
    let further = if batch { "s, " } else { "" };
    let places = |text: &str| {
        text.replace("BP", &format!("{further}{before}"))
            .replace("BN", &format!("{further}{next}"))
            .replace("BL", &format!("{further}{last}"))
            .replace("BF", &format!("{further}{first}"))
            .replace("BM", &format!("{further}{}", steps / 2))
            .replace("Bt", &format!("{further}t"))
            .replace("B3", &format!("{further}3"))
            .replace("Ct", &format!("{further}t"))
    };
    let mut text = format!("t : {steps}; k : {}; s : 2; d, e : {size}\n", steps.div_ceil(3));
    text += &places(
        "W[d, e] ~ normal(0, 0.4); U[d, e] ~ normal(0, 0.4); V[d] ~ normal(0, 1); X[Bt, d] ~ normal(0, 0.5)\n",
    );
    let start = match stream.below(3) {
        0 => "",
        1 => "H[BF, d] = 0.3\n",
        _ => "O[d] ~ normal(0, 1)\nH[BF, d] = tanh(O[d])\n",
    };
    text += &places(&format!("{start}{cell}\n{loss}\nLoss?\n"));
    text
}

fn id(program: &Program, name: &str) -> TensorId {
    let at = program.tensors.iter().position(|tensor| tensor.name == name && !tensor.hidden).unwrap();
    TensorId(at as u32)
}

/// The adjoint of a program by all parameters and the states, and its goals.
fn gradients(text: &str) -> (Adjoint, Vec<TensorId>, TensorId) {
    let program = analysed(text).map_err(|refusals| format!("{text}\n{refusals:?}")).unwrap();
    let loss = id(&program, "Loss");
    let mut by: Vec<TensorId> = (0u32..)
        .map(TensorId)
        .zip(&program.tensors)
        .filter(|(_, tensor)| tensor.role == Role::Parameter)
        .map(|(id, _)| id)
        .collect();
    by.push(id(&program, "H"));
    let adjoint = adjoint(&program, loss, &by);
    let mut goals = vec![loss];
    goals.extend(adjoint.gradients.iter().flatten());
    (adjoint, goals, loss)
}

fn near(found: &[Value], wanted: &[Value], by: f64) -> Result<(), String> {
    for (found, wanted) in found.iter().zip(wanted) {
        let (a, b) = (found.doubles(), wanted.doubles());
        let most = b.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= by * most || (a.is_nan() && b.is_nan());
        if a.len() != b.len() || !a.iter().zip(b.iter()).all(close) {
            return Err(format!("{a:?}\ninstead of\n{b:?}"));
        }
    }
    Ok(())
}

#[test]
fn windows_of_gradients_are_those_of_the_reference() {
    let mut stream = common::stream("backwards");
    let (programs, mut plain) = (60, Vec::new());
    for _ in 0..programs {
        let steps = 18 + stream.below(20);
        let text = program(&mut stream, steps, 2);
        let (adjoint, goals, loss) = gradients(&text);
        let parameters = all_start_values(&adjoint.program);
        let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
        let windows = Windows::of(&adjoint.program, &goals, 8, 1);
        if windows.is_none_or(|windows| windows.inputs.len() < 2) {
            plain.push(text.clone());
        }
        let wanted = Reference::default().values(&request, &goals).unwrap();
        for storage in [Storage::Auto, Storage::Sparse] {
            let mut engine = Auto::new(Box::new(Fast::with_storage(storage)));
            let found = engine.values(&request, &goals).unwrap();
            let different = near(&found, &wanted, 1e-12);
            assert_eq!(different, Ok(()), "{storage:?}\n{text}");
            // Each alone, and by an engine that goes on.
            for (goal, wanted) in goals.iter().zip(&wanted).rev() {
                let found = engine.values(&request, &[*goal]).unwrap();
                let name = adjoint.program.name(*goal);
                assert_eq!(
                    near(&found, std::slice::from_ref(wanted), 1e-12),
                    Ok(()),
                    "{storage:?} {name}\n{text}"
                );
            }
        }
        let mut single = Fast::with_storage(Storage::Sparse).with_precision(Precision::Single);
        let found = single.values(&request, &[loss]).unwrap();
        assert_eq!(near(&found, &wanted[..1], 1e-4), Ok(()), "in 32 bits\n{text}");
    }
    assert!(
        plain.is_empty(),
        "{} of {programs} were evaluated as a whole:\n{}",
        plain.len(),
        plain.join("\n")
    );
}

/// The whole would be refused: the states, `X` and their gradients take more already.
#[test]
fn gradients_of_long_recursions_take_little_memory() {
    let mut stream = common::stream("backwards at length");
    for _ in 0..4 {
        let text = program(&mut stream, 20_000, 8);
        let (adjoint, goals, _) = gradients(&text);
        let goals = &goals[..goals.len() - 1];
        let parameters = all_start_values(&adjoint.program);
        let whole = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
        let wanted = Fast::default().values(&whole, goals).unwrap();
        let little = Request { budget: Budget { bytes: 5_000_000, ..BUDGET }, ..whole };
        let found = Auto::new(Box::<Fast>::default()).values(&little, goals);
        let found = found.map_err(|refusal| format!("{text}\n{refusal:?}")).unwrap();
        assert_eq!(near(&found, &wanted, 1e-12), Ok(()), "{text}");
    }
}
