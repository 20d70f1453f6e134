//! The corpus of cells: each line of `cases/cell.jsonl` is one document and its answer.
//!
//! A case is `{"id", "args", "exit", "stdin", "expect", "tol"?}`. The answer must match `expect`: objects may have
//! further keys, arrays have the same length, numbers match within `tol`, everything else exactly.

use calculemus_base::testing::Expected;
use linear_logic_rnn::document::{answer, refused};
use serde_json::{Value, json};

use crate::common::cell;

/// The size of the corpus.
const CASES: usize = 24;

/// The keys of a case; `id`, `ref` and `bin` say where it is from.
const KEYS: [&str; 8] = ["id", "ref", "bin", "args", "exit", "stdin", "expect", "tol"];

#[test]
fn every_case_answers_what_it_should() {
    let text = include_str!("../cases/cell.jsonl");
    let mut wrong = Vec::new();
    assert_eq!(text.lines().count(), CASES);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let unknown = case.as_object().unwrap().keys().find(|key| !KEYS.contains(&key.as_str()));
        assert!(unknown.is_none() && case["expect"].is_object(), "{}: {unknown:?}", case["id"]);
        let count = case["args"].as_array().unwrap().iter().any(|arg| arg == "--count");
        let (status, found) = match answer(&case["stdin"].to_string(), count) {
            Ok(found) => (0, found),
            Err(refusal) => (1, refused(&[refusal])),
        };
        let expected = case["exit"].as_i64().unwrap();
        let why = if status == expected {
            Expected::within(case["tol"].as_f64().unwrap_or(0.0)).mismatch(&case["expect"], &found, "")
        } else {
            Some(format!("exit status {status}: {found}"))
        };
        // What is answered has the warnings that the case lists, and no others.
        let count = |document: &Value| document["warnings"].as_array().map_or(0, Vec::len);
        let (listed, said) = (count(&case["expect"]), count(&found));
        let why =
            why.or_else(|| (listed != said).then(|| format!("{said} warnings, {listed} listed: {found}")));
        wrong.extend(why.map(|why| format!("{}: {why}", case["id"])));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where Z is the state itself, it is that of before the step.
#[test]
fn a_sum_that_is_the_state_is_shown_before_it_moves() {
    for (list, programs) in [("lambda", json!([0])), ("pi", json!([""]))] {
        let mut document = json!({"cell": "ll", "sizes": {"input": 1, "hidden": 1},
            "options": {"preset": "paper", "project": "identity", "gate_act": "one", "act": "identity"},
            "weights": {"V": [[1]], "H": [[0]], "U": [[0]], "B": [10]}, "h0": [1], "inputs": [[0], [0]]});
        document["options"][list] = programs;
        let answer = answer(&document.to_string(), false).unwrap();
        let of = |name: &str| [&answer["steps"][0][name][0], &answer["steps"][1][name][0]].map(Value::as_f64);
        assert_eq!((of("z"), of("h")), ([Some(1.0), Some(11.0)], [Some(11.0), Some(21.0)]), "{list}");
    }
}

/// Gates of a coordinate have a row for each program, also where there is one coordinate.
#[test]
fn gates_of_coordinates_are_rows() {
    for aux in [1, 2] {
        let document = json!({"cell": "ll", "sizes": {"input": 1, "hidden": 2, "aux": aux},
            "options": {"preset": "paper", "lambda": [1], "gate": "diagonal", "gate_act": "sigmoid"}});
        let counts = answer(&document.to_string(), true).unwrap();
        let cell = cell("ll", &document["sizes"], &document["options"]);
        let mut weights = serde_json::Map::new();
        for (_, weight) in cell.step.trained() {
            let zeros = weight.shape.iter().rev().fold(json!(0), |entry, len| json!(vec![entry; *len]));
            weights.insert(weight.name.clone(), zeros);
        }
        assert_eq!(counts["ok"], true);
        let mut document = document;
        (document["weights"], document["inputs"]) = (Value::Object(weights), json!([[1]]));
        let answer = answer(&document.to_string(), false).unwrap();
        assert_eq!(answer["steps"][0]["p"], json!([vec![0.5; aux]]), "{aux}");
    }
}
