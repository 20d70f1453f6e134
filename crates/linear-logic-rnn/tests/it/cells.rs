//! The corpus of cells: each line of `cases/cell.jsonl` is one document and its answer.
//!
//! A case is `{"id", "args", "exit", "stdin", "expect", "tol"?}`. The answer must match `expect`: objects may have
//! further keys, arrays have the same length, numbers match within `tol`, everything else exactly.

use calculemus_base::testing::Expected;
use linear_logic_rnn::document::{answer, refused};
use serde_json::Value;

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
