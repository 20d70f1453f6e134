//! Runs the command `ill`.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What the command answers to arguments and standard input.
pub(crate) fn ill<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ill"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // It may refuse before it has read all.
        scope.spawn(move || drop(input.write_all(stdin)));
        child.wait_with_output().unwrap()
    })
}

/// The exit status and the document that `--json` prints.
pub(crate) fn document(args: &[&str], stdin: &str) -> (Option<i32>, Value) {
    let output = ill(args.iter().chain(&["--json"]), stdin.as_bytes());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked") && !errors.contains("overflowed its stack"), "{errors}");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}
