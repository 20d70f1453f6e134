//! The corpus of cases: each line of `cases/*.jsonl` is one run of the command.
//!
//! A case is `{"id", "args", "exit", "expect", "stdin"?}`. Standard output must be one JSON document that
//! matches `expect`: objects may have further keys (but for `next`, `posterior` and `names`), arrays have the
//! same length, numbers match within 10⁻⁹, everything else exactly.

use std::path::Path;

use calculemus_base::testing::Expected;
use serde_json::Value;

use crate::command::fol;

const EXPECTED: Expected = Expected { tolerance: 1e-9, whole: &["next", "posterior", "names"] };

fn run(case: &Value) -> Result<(), String> {
    let args = case["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let output = fol(args, case["stdin"].as_str().unwrap_or("").as_bytes());
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
    EXPECTED.mismatch(expect, &found, "").map_or(Ok(()), Err)
}

/// Runs all cases of a file, which has so many.
fn check_file(file: &str, size: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.lines().count(), size, "{file} has lost or won cases");
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
    ($($name:ident $size:literal,)*) => {
        $(
            #[test]
            fn $name() {
                check_file(concat!(stringify!($name), ".jsonl"), $size);
            }
        )*

        #[test]
        fn every_file_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
            let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
            let mut found: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            let mut known = vec!["vocab.json", $(concat!(stringify!($name), ".jsonl")),*];
            found.sort();
            known.sort();
            assert_eq!(found, known);
        }
    };
}

files! {
    codec 4, parse 6, refuse 5, encode 3, print 7, level 1, check 7, canon 5, glyph 2, count 37, sample 5, score 4,
    next 9, more 62,
}

#[test]
fn vocab() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/vocab.json");
    let wanted: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let output = fol(["vocab", "--json"], b"");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["size"], 663);
    assert_eq!(
        EXPECTED.mismatch(&wanted, &found["items"], "").map(|why| why.chars().take(200).collect::<String>()),
        None
    );
}
