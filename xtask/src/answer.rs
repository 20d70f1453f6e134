//! Answers to standard output; the macro for lines on standard error; the refusal of wrong usage.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use serde_json::Value;

/// A line on standard error, written as `format!` is. Unlike `eprintln!` it does not end a run whose standard error is
/// closed or full.
macro_rules! say {
    ($($text:tt)*) => { training::progress::say(format_args!($($text)*)) };
}
pub(crate) use say;

pub(crate) use calculemus_base::stream::answer_json as print_json;

/// The answer of a command: one JSON document, or with no `--json` a text for people.
pub(crate) fn give(json: bool, document: &Value, text: impl FnOnce() -> String) -> Result<()> {
    if json {
        print_json(document)?;
    } else {
        print_text(&text());
    }
    Ok(())
}

/// Whether a text could not be written.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Text for people. If it cannot be written, that is said, and the exit status is 1 when the work is done.
pub(crate) fn print_text(text: &str) {
    if let Err(error) = calculemus_base::stream::answer(text)
        && !UNWRITTEN.swap(true, Ordering::Relaxed)
    {
        say!("error: standard output: {error}");
    }
}

/// The exit status of work that ended with this one.
pub(crate) fn status(of_work: u8) -> u8 {
    if of_work == 0 && UNWRITTEN.load(Ordering::Relaxed) { 1 } else { of_work }
}

/// Why something failed: a reason and those behind it, each of which is said once. Some errors say what stands behind them, and
/// some do not.
pub(crate) fn reasons(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        match said.as_str() {
            "" => cause,
            said if said.contains(&cause) => said.to_owned(),
            said => format!("{said}: {cause}"),
        }
    })
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

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_reason_is_said_once() {
        let io = || std::io::Error::other("no room");
        let twice = training::Refusal::Io { path: "a/b".into(), source: io() };
        let both = anyhow::Error::from(twice).context("run 1");
        assert_eq!(reasons(&both), "run 1: a/b: no room");
        let once = Err::<(), _>(io()).context("a/b").unwrap_err();
        assert_eq!(reasons(&once), "a/b: no room");
    }
}
