//! Runs the command `ill`.

use std::process::{Command, Output};

use calculemus_base::testing;
use serde_json::Value;

/// What the command answers to arguments and standard input.
pub(crate) fn ill<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Output {
    testing::output(Command::new(env!("CARGO_BIN_EXE_ill")).args(args), stdin)
}

/// The exit status and the document that `--json` prints.
pub(crate) fn document(args: &[&str], stdin: &str) -> (Option<i32>, Value) {
    let output = ill(args.iter().chain(&["--json"]), stdin.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked") && !errors.contains("overflowed its stack"), "{errors}");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}
