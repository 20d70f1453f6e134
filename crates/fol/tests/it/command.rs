//! Runs the command `fol`.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What the command answers to arguments and standard input.
pub(crate) fn fol<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fol"))
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
