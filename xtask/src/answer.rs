//! The one file that prints to standard output; the macro for lines on standard error; the refusal of wrong usage.

use std::io::Write;

/// A line on standard error, written as `format!` is. Unlike `eprintln!` it does not end a run whose standard error is
/// closed or full.
macro_rules! say {
    ($($text:tt)*) => { training::progress::say(format_args!($($text)*)) };
}
pub(crate) use say;

/// One JSON document.
pub(crate) fn print_json(document: &serde_json::Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, document)?;
    writeln!(out)?;
    out.flush()
}

/// Text for people. A reader that has gone away is no error.
pub(crate) fn print_text(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Options that cannot be meant: the exit status is 2, not 1.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of the exit status 2.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}
