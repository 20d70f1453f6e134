//! What a command answers: a document, or refusals, printed as JSON or for people.

use calculemus_base::{quote, stream};
use linear_logic::error::{Refusal, Source, Span};
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
    match answer {
        Ok(answer) => {
            for warning in &answer.warnings {
                stream::tell(&draw("warning", "shadows-library", warning));
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
                stream::answer_json(&document)?;
            } else if !answer.text.is_empty() {
                stream::answer(&(answer.text + "\n"))?;
            }
            Ok(0)
        }
        Err(Failure::Refused(refusals)) => {
            for refusal in &refusals {
                stream::tell(&draw("error", refusal.kind.name(), refusal));
            }
            if json {
                stream::answer_json(&json!({ "ok": false, "command": command, "errors": refusals }))?;
            }
            Ok(1)
        }
        Err(Failure::Usage(message)) => {
            stream::say(&format!("error: {message}\n\nFor more information, try '--help'."));
            Ok(2)
        }
    }
}

/// A warning in the JSON document.
pub(crate) fn warning_json(warning: &Refusal) -> Value {
    let mut value = json!(warning);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("kind".to_owned(), json!("shadows-library"));
    }
    value
}

/// The bytes of a line on either side of a place that are looked at: several times what is shown.
const NEAR: usize = 16 * quote::AROUND;

/// The source line and carets. Of a line that is longer than any screen only the part around the place is looked at.
fn marked(source: &Source, span: Span) -> String {
    let line = source.line_span(span.start);
    let boundary =
        |at: usize| (at..=line.end).find(|at| source.text.is_char_boundary(*at)).unwrap_or(line.end);
    let start = boundary(span.start.saturating_sub(NEAR).max(line.start));
    let end = boundary(span.start.saturating_add(NEAR).min(line.end));
    let part = source.text.get(start..end).unwrap_or("");
    quote::marked(part, (span.start - start).min(part.len()), span.end.saturating_sub(start))
}

/// `FILE:LINE:COLUMN: error[KIND]: MESSAGE`, the source line, carets, and the help.
fn draw(severity: &str, kind: &str, refusal: &Refusal) -> String {
    let mut text = format!("{severity}[{kind}]: {}\n", refusal.message);
    if let Some((source, span)) = &refusal.at {
        let place = source.place(span.start);
        text = format!("{}:{}:{}: {text}", source.name, place.line, place.column);
        text += &marked(source, *span);
    }
    if let Some(help) = &refusal.help {
        text += &format!("  help: {help}\n");
    }
    text
}
