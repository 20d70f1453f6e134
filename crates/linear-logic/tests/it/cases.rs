//! The corpus of cases: each line of `cases/*.jsonl` is one run of the command.
//!
//! A case is `{"id", "args", "exit", "expect"?, "stdin"?, "tol"?, "execute"?, "at_most"?}`. Standard output must be
//! one JSON document that matches `expect`: objects may have further keys, arrays have the same length, numbers match
//! within `tol`, everything else exactly. `execute` runs the instructions of a compilation in a machine of this file,
//! and `at_most` bounds numbers by their path. A case that is answered has exactly the warnings that it lists; one that
//! lists none has none.

use std::path::Path;

use calculemus_base::testing::Expected;
use num_rational::BigRational;
use num_traits::{One, Zero};
use serde_json::Value;

use crate::ill::ill;

/// The keys of a case. `id`, `ref` and `bin` say where it is from.
const KEYS: [&str; 10] = ["id", "ref", "bin", "args", "exit", "expect", "stdin", "tol", "execute", "at_most"];

fn run(case: &Value) -> Result<(), String> {
    let keys = case.as_object().unwrap().keys();
    if let Some(unknown) = keys.into_iter().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("nothing checks the key `{unknown}`"));
    }
    let args = case["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let output = ill(args, case["stdin"].as_str().unwrap_or("").as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("panicked") {
        return Err(errors);
    }
    if output.status.code() != case["exit"].as_i64().map(|code| code as i32) {
        return Err(format!("exit status {:?}\n{errors}", output.status.code()));
    }
    let Some(expect) = case.get("expect") else { return Err("the case expects nothing".to_owned()) };
    let found: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("no JSON: {e}\n{errors}"))?;
    if case["exit"] == 0 {
        let listed = expect["warnings"].as_array().map_or(0, Vec::len);
        let said = errors.lines().filter(|line| line.contains("warning[")).count();
        let answered = found["warnings"].as_array().map_or(0, Vec::len);
        let is_checked = found["command"] == "check";
        if said != listed || (is_checked && answered != listed) || (listed == 0 && !errors.is_empty()) {
            return Err(format!("{answered} warnings, {listed} listed\n{errors}"));
        }
    }
    if let Some(why) = Expected::within(case["tol"].as_f64().unwrap_or(0.0)).mismatch(expect, &found, "") {
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
        fn step<'a>(value: Option<&'a Value>, key: &str) -> Option<&'a Value> {
            match key.parse::<usize>() {
                Ok(place) => value?.get(place),
                Err(_) => value?.get(key),
            }
        }
        let value = path.split('.').fold(Some(&found), step).and_then(Value::as_f64);
        if value.is_none_or(|value| value > bound.as_f64().unwrap()) {
            return Err(format!("{path} is {value:?}"));
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

/// Runs all cases of a file, which are so many.
fn check_file(file: &str, size: usize) {
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
    assert_eq!(text.lines().count(), size, "cases of {file}");
}

macro_rules! files {
    ($($name:ident = $file:literal, $size:literal cases;)*) => {
        const FILES: &[&str] = &[$($file),*];

        $(
            #[test]
            fn $name() {
                check_file($file, $size);
            }
        )*
    };
}

files! {
    check_accept = "check-accept.jsonl", 44 cases;
    check_refuse = "check-refuse.jsonl", 27 cases;
    normalize = "normalize.jsonl", 41 cases;
    denote = "denote.jsonl", 115 cases;
    poly = "poly.jsonl", 4 cases;
    compile = "compile.jsonl", 9 cases;
    differential = "differential.jsonl", 7 cases;
}

#[test]
fn every_file_of_the_corpus_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut run = FILES.to_vec();
    run.sort_unstable();
    assert_eq!(found, run);
}

/// The checks above can fail: each kind of broken case is refused.
#[test]
fn a_case_that_is_wrong_is_found() {
    let case = |change: &dyn Fn(&mut Value)| {
        let mut case = serde_json::json!({"id": "own", "args": ["check", "-e", "2", "--json"], "exit": 0,
            "expect": {"ok": true, "definitions": [{"type_short": "int", "nodes": 1}]}});
        change(&mut case);
        run(&case)
    };
    assert_eq!(case(&|_| ()), Ok(()));
    let hides = "def add : int = 2;";
    for (what, change) in [
        ("the exit status", &(|case: &mut Value| case["exit"] = 1.into()) as &dyn Fn(&mut Value)),
        ("a value", &|case| case["expect"]["definitions"][0]["nodes"] = 2.into()),
        ("a key that is not there", &|case| case["expect"]["node"] = 1.into()),
        ("a key that nobody reads", &|case| case["expects"] = true.into()),
        ("no expectation", &|case| _ = case.as_object_mut().unwrap().remove("expect")),
        ("a bound", &|case| case["at_most"] = serde_json::json!({"definitions.0.nodes": 0})),
        ("a bound on nothing", &|case| case["at_most"] = serde_json::json!({"stats.mul": 2})),
        ("a warning that is not listed", &|case| {
            case["args"] = serde_json::json!(["check", "-", "--json"]);
            case["stdin"] = hides.into();
            case["expect"] = serde_json::json!({"ok": true});
        }),
        ("a warning of another command", &|case| {
            case["args"] = serde_json::json!(["normalize", "-", "--json"]);
            case["stdin"] = hides.into();
            case["expect"] = serde_json::json!({"ok": true});
        }),
        ("a listed warning that does not come", &|case| {
            case["expect"]["warnings"] = serde_json::json!([{"kind": "shadows-library"}]);
        }),
    ] {
        assert!(case(change).is_err(), "{what}");
    }
}
