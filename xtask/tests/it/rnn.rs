//! The commands `task` and `optim`: the corpus of cases, each a run of the command, and nonsense.

use std::path::Path;
use std::process::{Command, Output};

use calculemus_base::testing::{self, Expected};
use serde_json::Value;

fn xtask(args: &[&str], stdin: &[u8]) -> Output {
    testing::output(Command::new(env!("CARGO_BIN_EXE_calculemus")).args(args), stdin)
}

/// The exit status and the document on standard output.
fn answer(args: &[&str], stdin: &str) -> (Option<i32>, Value) {
    let output = xtask(args, stdin.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{args:?}\n{errors}");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

fn run(case: &Value) -> Option<String> {
    let args: Vec<&str> = case["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    let stdin = match &case["stdin"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        document => document.to_string(),
    };
    let (status, found) = answer(&args, &stdin);
    if status != case["exit"].as_i64().map(|code| code as i32) {
        return Some(format!("exit status {status:?}"));
    }
    Expected::within(case["tol"].as_f64().unwrap_or(0.0)).mismatch(&case["expect"], &found, "")
}

/// Runs all cases of a file, which has so many.
fn check_file(file: &str, size: usize) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/linear-logic-rnn/tests/cases");
    let text = std::fs::read_to_string(cases.join(file)).unwrap();
    assert_eq!(text.lines().count(), size, "{file}");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failures: Vec<String> =
        cases.filter_map(|case| run(&case).map(|why| format!("{}: {why}", case["id"]))).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn task_cases() {
    check_file("task.jsonl", 23);
}

#[test]
fn optim_cases() {
    check_file("optim.jsonl", 3);
}

#[test]
fn refusals_name_their_kind() {
    for (args, stdin, kind) in [
        (&["task", "pairs-swap", "--set", "zz=1"][..], "", "unknown-task"),
        (&["task", "flip", "--input", "-1 2"], "", "symbol"),
        (&["task", "flip", "--input", "é"], "", "symbol"),
        (&["task", "flip", "--input", "01", "--set", "n=3"], "", "config"),
        (&["task", "copy", "--set", "m=3"], "", "config"),
        (&["task", "copy", "--set", "modulus=3"], "", "config"),
        (&["task", "copy", "--set", "n"], "", "config"),
        (&["task", "copy", "--set", "n=1979-05-27"], "", "config"),
        (&["task", "copy", "--set", "n=-3"], "", "tape"),
        (&["task", "copy", "--set", "n=1"], "", "tape"),
        (&["task", "copy", "--set", "n=99999999999"], "", "tape"),
        (&["task", "copy", "--set", "n_out=3"], "", "tape"),
        (&["task", "pattern"], "", "config"),
        (&["task", "multi-pattern", "--set", "patterns=1;-1", "--input", "1"], "", "walk"),
        (&["task", "mod-sum", "--set", "modulus=0"], "", "config"),
        (&["optim", "--config", "-"], "{", "config"),
        (&["optim", "--config", "/no/such/file"], "", "config"),
        (&["optim", "--config", "-"], r#"{"param":[1],"grads":[[1e999]]}"#, "config"),
    ] {
        let (status, document) = answer(&[args, &["--json"]].concat(), stdin);
        assert_eq!(status, Some(1), "{args:?} {document}");
        assert_eq!(
            (&document["ok"], document["errors"][0]["kind"].as_str()),
            (&Value::from(false), Some(kind)),
            "{args:?}"
        );
        let (status, nothing) = answer(args, stdin);
        assert_eq!((status, nothing), (Some(1), Value::Null));
    }
    assert_eq!(answer(&["task", "--json"], "").0, Some(2));
}

#[test]
fn an_example_is_drawn_and_people_get_a_text() {
    let (status, document) =
        answer(&["task", "repeat-copy", "--set", "n=7", "--set", "n_out=12", "--json"], "");
    assert_eq!((status, document["input"].as_array().unwrap().len()), (Some(0), 19));
    assert_eq!(document["walk"].as_array().unwrap().len(), 10);
    let text = |args: &[&str], stdin: &str| String::from_utf8(xtask(args, stdin.as_bytes()).stdout).unwrap();
    assert_eq!(
        text(&["task", "copy", "--input", "12"], ""),
        "copy, 10 classes\ninput   8 1 2 9 9 9\ntarget  9 9 9 1 2 9\nmask    0 0 0 1 1 0\nwalk    1 2\n"
    );
    let document = r#"{"optimizer":"rmsprop","lr":0.5,"decay":1,"momentum":0,"eps":0,"param":[1,2],"grads":[[1,2],[1,1]]}"#;
    assert_eq!(text(&["optim", "--config", "-"], document), "0.5 1.0\n0.0 0.5\n");
}
