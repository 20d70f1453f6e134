//! Answers and messages, to streams that may be closed or full.
//!
//! Answers go to standard output: who reads them may stop (`… | head`), and that is no error; any other failure is one,
//! because an answer that was not written was not given. Messages go to standard error: if nobody listens there is nobody
//! to tell, and the work goes on. This is the only file that prints.

use std::io::{ErrorKind, Write};

/// Writes text to standard output.
///
/// # Errors
/// If it cannot be written, unless the reader has gone.
pub fn answer(text: &str) -> std::io::Result<()> {
    to(&mut std::io::stdout().lock(), text)
}

/// Writes text to standard output, and says whether somebody reads it still: a dialogue ends where nobody does.
///
/// # Errors
/// If it cannot be written, unless the reader has gone.
pub fn is_heard(text: &str) -> std::io::Result<bool> {
    heard(&mut std::io::stdout().lock(), text)
}

/// Writes one JSON document and a line end to standard output.
///
/// # Errors
/// As for [`answer`].
pub fn answer_json(document: &impl serde::Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(document)?;
    text.push('\n');
    answer(&text)
}

/// Tells people something on standard error, with a line end.
pub fn say(message: &str) {
    tell(&format!("{message}\n"));
}

/// Tells people something on standard error, as it is.
pub fn tell(text: &str) {
    let _ = to(&mut std::io::stderr().lock(), text);
}

fn to(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    heard(out, text).map(drop)
}

fn heard(out: &mut dyn Write, text: &str) -> std::io::Result<bool> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
        assert!(to(&mut Failing(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(!heard(&mut Failing(ErrorKind::BrokenPipe), "x").unwrap());
        assert!(heard(&mut Vec::new(), "x").unwrap());
        assert!(to(&mut Failing(ErrorKind::StorageFull), "x").is_err());
    }
}
