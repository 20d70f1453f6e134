//! The corpus of cells: each line of `cases/cell.jsonl` is one document and its answer.
//!
//! A case is `{"id", "args", "exit", "stdin", "expect", "tol"?}`. The answer must match `expect`: objects may have
//! further keys, arrays have the same length, numbers match within `tol`, everything else exactly.

use linear_logic_rnn::document::{answer, refused};
use serde_json::Value;

/// Why `found` does not match `wanted`, if it does not.
fn mismatch(wanted: &Value, found: &Value, path: &str, tolerance: f64) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            let Some(inner) = found.get(key) else { return Some(format!("{path} is missing")) };
            mismatch(value, inner, &path, tolerance)
        }),
        (Value::Array(wanted), Value::Array(found)) => {
            if wanted.len() != found.len() {
                return Some(format!("{path}: {} elements, not {}", found.len(), wanted.len()));
            }
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(i, (wanted, found))| mismatch(wanted, found, &format!("{path}[{i}]"), tolerance))
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            let is_near = (a - b).abs() <= tolerance * a.abs().max(1.0);
            (!is_near).then(|| format!("{path}: {b}, not {a}"))
        }
        _ => (wanted != found).then(|| format!("{path}: {found}, not {wanted}")),
    }
}

#[test]
fn every_case_answers_what_it_should() {
    let text = include_str!("cases/cell.jsonl");
    let mut wrong = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let count = case["args"].as_array().unwrap().iter().any(|arg| arg == "--count");
        let (status, found) = match answer(&case["stdin"].to_string(), count) {
            Ok(found) => (0, found),
            Err(refusal) => (1, refused(&[refusal])),
        };
        let expected = case["exit"].as_i64().unwrap();
        let why = if status == expected {
            mismatch(&case["expect"], &found, "", case["tol"].as_f64().unwrap_or(0.0))
        } else {
            Some(format!("exit status {status}: {found}"))
        };
        wrong.extend(why.map(|why| format!("{}: {why}", case["id"])));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
