//! The corpus of cases: each line of `cases/*.jsonl` is one run of the command.
//!
//! A case is `{"id", "args", "exit", "expect"?, "stdin"?, "tol"?, "execute"?, "at_most"?}`. Standard output must be
//! one JSON document that matches `expect`: objects may have further keys, arrays have the same length, numbers match
//! within `tol`, everything else exactly. `execute` runs the instructions of a compilation in a machine of this file,
//! and `at_most` bounds numbers by their path.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

#[path = "common/command.rs"]
mod command;
#[path = "common/mismatch.rs"]
mod mismatch;

use std::path::Path;

use command::ill;
use mismatch::mismatch;
use num_rational::BigRational;
use num_traits::{One, Zero};
use serde_json::Value;

fn run(case: &Value) -> Result<(), String> {
    let args = case["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let output = ill(args, case["stdin"].as_str().unwrap_or("").as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("panicked") {
        return Err(errors);
    }
    if output.status.code() != case["exit"].as_i64().map(|code| code as i32) {
        return Err(format!("exit status {:?}\n{errors}", output.status.code()));
    }
    let Some(expect) = case.get("expect") else { return Ok(()) };
    let found: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("no JSON: {e}\n{errors}"))?;
    if let Some(why) = mismatch(expect, &found, "", case["tol"].as_f64().unwrap_or(0.0)) {
        return Err(why);
    }
    if let Some(execute) = case.get("execute") {
        let values = execute_plan(&found, execute);
        let wanted: Vec<Matrix> = execute["values"].as_array().unwrap().iter().map(matrix).collect();
        if values != wanted {
            return Err(format!("executed: {values:?}"));
        }
    }
    for (path, bound) in case.get("at_most").and_then(Value::as_object).into_iter().flatten() {
        let value = path.split('.').fold(&found, |value, key| &value[key]);
        if value.as_f64().unwrap() > bound.as_f64().unwrap() {
            return Err(format!("{path} is {value}"));
        }
    }
    Ok(())
}

type Matrix = Vec<Vec<BigRational>>;

fn rational(value: &Value) -> BigRational {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().unwrap()
}

fn matrix(value: &Value) -> Matrix {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_array().unwrap().iter().map(rational).collect())
        .collect()
}

/// The instructions of a matrix program, one after the other, on rational matrices.
fn execute_plan(document: &Value, execute: &Value) -> Vec<Matrix> {
    let size = execute["slots"].as_array().unwrap().iter().find_map(|m| m.as_array().map(Vec::len)).unwrap();
    let entry = |f: &dyn Fn(usize, usize) -> BigRational| -> Matrix {
        (0..size).map(|i| (0..size).map(|j| f(i, j)).collect()).collect()
    };
    let mut values: Vec<Matrix> = Vec::new();
    for (id, instruction) in document["instructions"].as_array().unwrap().iter().enumerate() {
        assert_eq!(instruction["id"], id);
        let args: Vec<&Matrix> = instruction["args"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|arg| &values[arg.as_u64().unwrap() as usize])
            .collect();
        let value = match instruction["op"].as_str().unwrap() {
            "input" => matrix(&execute["slots"][instruction["slot"].as_u64().unwrap() as usize]),
            "identity" => entry(&|i, j| if i == j { BigRational::one() } else { BigRational::zero() }),
            "zero" => entry(&|_, _| BigRational::zero()),
            "mul" => entry(&|i, j| (0..size).map(|k| &args[0][i][k] * &args[1][k][j]).sum()),
            "add" => entry(&|i, j| args.iter().map(|m| m[i][j].clone()).sum()),
            "scale" => {
                let by: BigRational = instruction["by"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|summand| {
                        let factors = summand[1].as_array().unwrap().iter();
                        let coefficient = |f: &Value| {
                            let (slot, index) = (f[0].as_u64().unwrap(), f[1].as_u64().unwrap());
                            rational(&execute["coefs"][slot as usize][index as usize])
                        };
                        rational(&summand[0]) * factors.map(coefficient).product::<BigRational>()
                    })
                    .sum();
                entry(&|i, j| &by * &args[0][i][j])
            }
            _ => unreachable!(),
        };
        values.push(value);
    }
    let results = document["results"].as_array().unwrap().iter();
    results.map(|id| values[id.as_u64().unwrap() as usize].clone()).collect()
}

/// Runs all cases of a file.
fn check_file(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let failures: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            run(&case).err().map(|why| format!("{}: {why}", case["id"]))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! files {
    ($($name:ident = $file:literal)*) => {$(
        #[test]
        fn $name() {
            check_file($file);
        }
    )*};
}

files! {
    check_accept = "check-accept.jsonl"
    check_refuse = "check-refuse.jsonl"
    normalize = "normalize.jsonl"
    denote = "denote.jsonl"
    poly = "poly.jsonl"
    compile = "compile.jsonl"
    differential = "differential.jsonl"
}
