//! What a command answers: a document, or refusals, printed as JSON or for people.
//!
//! This is the only file that prints.

use std::io::Write;

use linear_logic::error::{Refusal, Source};
use linear_logic::literal::Order;
use serde_json::{Map, Value, json};

/// What a command answers when nothing is refused.
pub(crate) struct Answer {
    /// The order of words.
    pub(crate) order: Order,
    /// The further keys of the JSON document.
    pub(crate) fields: Value,
    /// What people read on standard output.
    pub(crate) text: String,
    /// What people read on standard error.
    pub(crate) warnings: Vec<Refusal>,
}

/// Why a command has no answer.
pub(crate) enum Failure {
    /// The input was refused.
    Refused(Vec<Refusal>),
    /// The command was used wrongly.
    Usage(String),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(vec![refusal])
    }
}

/// Prints the answer and returns the exit status.
pub(crate) fn print(command: &str, answer: Result<Answer, Failure>, json: bool) -> std::io::Result<u8> {
    let status = match &answer {
        Ok(_) => 0,
        Err(Failure::Refused(_)) => 1,
        Err(Failure::Usage(_)) => 2,
    };
    match write(command, answer, json) {
        // Who reads the answer has seen enough of it.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(status),
        written => written.map(|()| status),
    }
}

fn write(command: &str, answer: Result<Answer, Failure>, json: bool) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match answer {
        Ok(answer) => {
            for warning in &answer.warnings {
                say(&draw("warning", "shadows-library", warning));
            }
            if json {
                let mut document = Map::from_iter([
                    ("ok".to_owned(), json!(true)),
                    ("command".to_owned(), json!(command)),
                    ("order".to_owned(), json!(answer.order.name())),
                ]);
                if let Value::Object(fields) = answer.fields {
                    document.extend(fields);
                }
                serde_json::to_writer(&mut out, &document)?;
                writeln!(out)?;
            } else if !answer.text.is_empty() {
                writeln!(out, "{}", answer.text)?;
            }
        }
        Err(Failure::Refused(refusals)) => {
            for refusal in &refusals {
                say(&draw("error", refusal.kind.name(), refusal));
            }
            if json {
                let document = json!({ "ok": false, "command": command, "errors": refusals });
                serde_json::to_writer(&mut out, &document)?;
                writeln!(out)?;
            }
        }
        Err(Failure::Usage(message)) => {
            say(&format!("error: {message}\n\nFor more information, try '--help'.\n"))
        }
    }
    out.flush()
}

/// A warning in the JSON document.
pub(crate) fn warning_json(warning: &Refusal) -> Value {
    let mut value = json!(warning);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("kind".to_owned(), json!("shadows-library"));
    }
    value
}

/// Tells people what went wrong; if nobody listens there is nobody to tell.
fn say(message: &str) {
    let _ = std::io::stderr().write_all(message.as_bytes());
}

/// The characters of a line that are shown on either side of a place.
const AROUND: usize = 60;

/// `FILE:LINE:COLUMN: error[KIND]: MESSAGE`, the source line, carets, and the help.
fn draw(severity: &str, kind: &str, refusal: &Refusal) -> String {
    let mut text = format!("{severity}[{kind}]: {}\n", refusal.message);
    if let Some((source, span)) = &refusal.at {
        let place = source.place(span.start);
        text = format!("{}:{}:{}: {text}", source.name, place.line, place.column);
        text += &picture(source, span.start, span.end);
    }
    if let Some(help) = &refusal.help {
        text += &format!("  help: {help}\n");
    }
    text
}

/// The line with carets under the place. Of a long line only the neighbourhood of the place is shown, and what would
/// steer a terminal is shown as a dot.
fn picture(source: &Source, start: usize, end: usize) -> String {
    let line = source.line(start);
    let before = source.place(start).column - 1;
    let marked = source.text.get(start..end).map_or(1, |s| s.lines().next().unwrap_or("").chars().count());
    let from = before.saturating_sub(AROUND);
    let visible = |c: char| if c.is_control() { '·' } else { c };
    let mut rest = line.chars().skip(from);
    let mut shown: String = if from > 0 { "…".to_owned() } else { String::new() };
    shown.extend(rest.by_ref().take(2 * AROUND).map(visible));
    if rest.next().is_some() {
        shown.push('…');
    }
    let column = before - from + usize::from(from > 0);
    format!("  {shown}\n  {}{}\n", " ".repeat(column), "^".repeat(marked.clamp(1, AROUND)))
}

/// Says why there is no answer at all.
pub(crate) fn complain(error: &std::io::Error) {
    say(&format!("ill: {error}\n"));
}
