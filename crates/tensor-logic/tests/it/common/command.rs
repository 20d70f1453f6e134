//! The command, run to its end.

use std::path::Path;
use std::process::Command;

use calculemus_base::testing;

/// Exit status, standard output, standard error.
pub(crate) fn tl(folder: &Path, arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    let output = testing::output(call.current_dir(folder).args(arguments), input);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
