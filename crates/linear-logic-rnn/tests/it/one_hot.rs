//! Tokens against the one-hot vectors that they stand for: the same losses, classes and gradients, though the engine
//! chooses operators by tokens where there are many symbols, and multiplies elsewhere.

use crate::common::{cell, draws, small_weights};
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences, Targets};
use seeded::Stream;
use serde_json::{Value, json};

fn pick<'a>(s: &mut Stream, values: &[&'a str]) -> &'a str {
    values[s.below(values.len() as u64) as usize]
}

/// A cell of any kind on so many symbols.
fn any_cell(s: &mut Stream, symbols: u64) -> Cell {
    // One dimension is where an operator looks like a column.
    let most = if s.below(4) == 0 { 2 } else { 17 };
    let hidden = 1 + s.below(most);
    let mut sizes = json!({
        "input": symbols, "hidden": hidden, "aux": 1 + s.below(10), "output": 5, "readout": 3 * s.below(2),
    });
    let kinds =
        ["ll", "ll", "ll", "elman", "second-order", "mrnn", "mi", "lstm", "gru", "ntm", "master", "master"];
    let kind = pick(s, &kinds);
    let mut options = json!({});
    if kind == "ll" {
        let project = pick(s, &["learned", "identity"]);
        let v = pick(s, &["diag", "full", "full", "two-space"]);
        options = json!({
            "preset": "paper", "v": v, "project": project, "lambda": [1, 2], "pi": [pick(s, &["10", "00"]), "0"],
            "gate_act": pick(s, &["sigmoid", "softmax", "one"]), "gate": pick(s, &["scalar", "diagonal"]),
            "act": "tanh", "x0": pick(s, &["zero", "first", "learned"]), "hh": s.below(2) == 0,
            "v_norm": if v == "diag" { "tanh" } else { "column-softmax" },
        });
        if s.below(2) == 0 {
            options["v_norm"] = json!("none");
        }
        sizes["aux2"] = json!(1 + s.below(9));
        if project == "identity" {
            sizes["aux"] = Value::Null;
            sizes["aux2"] = Value::Null;
        }
    }
    if kind == "master" {
        // Operators of this input and of the one before, shared and not, diagonal and full.
        let shape = pick(s, &["full", "diag"]);
        let hidden = sizes["hidden"].clone();
        let input = |kind: &str| json!({"kind": kind, "from": "h", "to": "h", "shape": shape});
        let two = r"\x y z. derelict x (derelict y (derelict x z)) : !(h -o h) -o !(h -o h) -o h -o h";
        let one = r"\v. derelict v : !(h -o h) -o h -o h";
        options = json!({"act": "tanh", "masters": [
            {"proof": one, "state": "h", "dims": {"h": hidden}, "slots": [input("input")]},
            {"proof": two, "state": "h", "dims": {"h": hidden}, "slots": [input("input"), input("previous-input")]},
        ]});
    }
    if kind == "ll" && s.below(4) == 0 && options["x0"] != "first" {
        options["window"] = json!(3);
        options["pi"] = json!(["201"]);
    }
    if kind == "ntm" {
        sizes["addresses"] = json!(4);
        sizes["content"] = json!(3);
    }
    cell(kind, &sizes, &options)
}

#[test]
fn tokens_are_one_hot_vectors() {
    let mut chosen = 0;
    for item in 0..150 {
        let mut s = draws("one-hot", item);
        let symbols = 2 + s.below(70);
        let cell = any_cell(&mut s, symbols);
        let (length, count) = (1 + s.below(6) as usize, 1 + s.below(70) as usize);
        let tokens: Vec<u32> = (0..length * count).map(|_| s.below(symbols) as u32).collect();
        let mut vectors = vec![0.0; tokens.len() * symbols as usize];
        for (vector, token) in vectors.chunks_exact_mut(symbols as usize).zip(&tokens) {
            vector[*token as usize] = 1.0;
        }
        let classes: Vec<u32> = (0..tokens.len()).map(|_| s.below(5) as u32).collect();
        let mask: Vec<bool> = (0..tokens.len()).map(|_| s.below(4) > 0).collect();
        let theta = small_weights(&mut s, &cell);
        let engine = Engine::new(cell.step.clone(), &theta);
        let targets = Targets { classes: &classes, mask: &mask };
        let seen = |inputs: Inputs<'_>| {
            let sequences = Sequences { inputs, length, count };
            let mut gradient = vec![0.0; theta.len()];
            let loss = engine.gradient(sequences, Objective::CrossEntropy(targets), &mut gradient);
            let mut last = vec![0.0; theta.len()];
            let sum = engine.gradient(sequences, Objective::LastState, &mut last);
            (vec![loss, sum], gradient, last, engine.predict(sequences, targets))
        };
        let (sums, gradient, last, predicted) = seen(Inputs::Tokens(&tokens));
        let (sums_of, gradient_of, last_of, predicted_of) = seen(Inputs::Dense(&vectors));
        for (found, wanted) in [(&sums, &sums_of), (&gradient, &gradient_of), (&last, &last_of)] {
            for (a, b) in found.iter().zip(wanted) {
                assert!((a - b).abs() <= 1e-11 * b.abs().max(1.0), "{item}: {a} {b} {cell:?}");
            }
        }
        assert_eq!(predicted.classes, predicted_of.classes, "{item}");
        assert!((predicted.loss - predicted_of.loss).abs() < 1e-9);
        // Bits differ where another order of the same sums was taken: the fast way was really taken.
        chosen += u64::from(gradient != gradient_of);
    }
    assert!(chosen >= 10, "{chosen} cells of 150 chose by tokens");
}

#[test]
fn a_token_that_is_none_is_zero_and_threads_change_nothing() {
    let mut s = draws("one-hot-none", 0);
    let options = json!({
        "preset": "paper", "v": "full", "project": "identity", "lambda": [1, 2], "pi": ["10", "01"], "act": "tanh",
    });
    let cell = cell("ll", &json!({"input": 20, "hidden": 9, "output": 4, "readout": 0}), &options);
    let theta: Vec<f32> = small_weights(&mut s, &cell).iter().map(|x| *x as f32).collect();
    let engine = Engine::new(cell.step.clone(), &theta);
    let (length, count) = (5, 67);
    let tokens: Vec<u32> = (0..length * count).map(|_| s.below(25) as u32).collect();
    let mut vectors = vec![0.0; tokens.len() * 20];
    for (vector, token) in vectors.chunks_exact_mut(20).zip(&tokens) {
        vector.iter_mut().skip(*token as usize).take(1).for_each(|x| *x = 1.0);
    }
    let gradient = |inputs: Inputs<'_>, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut gradient = vec![0.0; theta.len()];
        let sequences = Sequences { inputs, length, count };
        let sum = pool.install(|| engine.gradient(sequences, Objective::LastState, &mut gradient));
        (sum, gradient)
    };
    let one = gradient(Inputs::Tokens(&tokens), 1);
    assert_eq!(one, gradient(Inputs::Tokens(&tokens), 3));
    let (sum, dense) = gradient(Inputs::Dense(&vectors), 1);
    assert!((one.0 - sum).abs() < 1e-3);
    assert!(one.1.iter().zip(&dense).all(|(a, b)| (a - b).abs() < 1e-3 * b.abs().max(1.0)));
}
