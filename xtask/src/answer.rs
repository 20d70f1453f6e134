//! The one file that prints to standard output.

use std::io::Write;

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
