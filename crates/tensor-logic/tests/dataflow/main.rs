//! Programs as dataflows: the corpus against the engine, and the command with workers, processes and updates.
//!
//! A program of its own beside `it`, because it needs a feature: `cargo test -p tensor-logic --features timely --test dataflow`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod corpus;
mod processes;
mod watched;

use std::path::Path;
use std::process::Command;

use calculemus_base::testing;

/// Exit status, standard output, standard error.
fn tl(folder: &Path, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    let output = testing::output(call.current_dir(folder).args(arguments), input.as_bytes());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A folder with a program.
fn with_program(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.tl"), text).unwrap();
    folder
}
