//! Runs the command `fol`.

use std::process::{Command, Output};

use calculemus_base::testing;

/// What the command answers to arguments and standard input.
pub(crate) fn fol<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>, stdin: &[u8]) -> Output {
    testing::output(Command::new(env!("CARGO_BIN_EXE_fol")).args(args), stdin)
}
