//! What a command answers: one item for each input, printed as JSON or for people (F66).
//!
//! This is the only file that prints.

use std::io::Write;

use fol::error::Refusal;
use serde_json::{Map, Value, json};

/// One item of an answer.
pub(crate) struct Item {
    /// The keys of the JSON object, `ok` and `error` excepted.
    pub(crate) fields: Map<String, Value>,
    /// What people read on standard output.
    pub(crate) text: String,
    /// Why the input was refused, with the source text that a marker can point into.
    pub(crate) refused: Option<(Refusal, String)>,
    /// The bytes of the source text that the refusal is about, if the refusal itself does not say.
    pub(crate) marker: Option<(usize, usize)>,
    /// Whether the item has an `ok` key (listings have none).
    pub(crate) has_ok: bool,
}

/// What a command answers: its items, and further keys of the document.
pub(crate) struct Answer {
    /// One for each input.
    pub(crate) items: Vec<Item>,
    /// An object, or null.
    pub(crate) extra: Value,
}

impl From<Vec<Item>> for Answer {
    fn from(items: Vec<Item>) -> Self {
        Self { items, extra: Value::Null }
    }
}

impl Item {
    /// An accepted input; `fields` must be a JSON object.
    pub(crate) fn new(fields: Value, text: impl Into<String>) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self { fields, text: text.into(), refused: None, marker: None, has_ok: true }
    }

    /// An accepted input under the key `input`, with further keys.
    pub(crate) fn answered(input: &str, fields: Value, text: impl Into<String>) -> Self {
        let mut item = Self::new(fields, text);
        item.fields.insert("input".to_owned(), json!(input));
        item
    }

    /// A listing entry without `ok`.
    pub(crate) fn listed(fields: Value, text: impl Into<String>) -> Self {
        Self { has_ok: false, ..Self::new(fields, text) }
    }

    /// A refused input.
    pub(crate) fn refused(input: &str, refusal: Refusal) -> Self {
        Self { refused: Some((refusal, input.to_owned())), ..Self::answered(input, json!({}), "") }
    }

    /// Shows people another text than the input, the one that was refused.
    pub(crate) fn about(mut self, source: &str) -> Self {
        if let Some((_, shown)) = &mut self.refused {
            source.clone_into(shown);
        }
        self
    }

    /// Shows people these bytes of the source text.
    pub(crate) fn marking(self, marker: Option<(usize, usize)>) -> Self {
        Self { marker, ..self }
    }
}

/// Prints the answer and returns the exit status: 0 if every item is accepted, else 1.
pub(crate) fn print(command: &str, answer: Answer, json: bool) -> std::io::Result<u8> {
    let status = u8::from(answer.items.iter().any(|item| item.refused.is_some()));
    match write(command, answer, json) {
        // Who reads the answer has seen enough of it, as in `fol vocab | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(status),
        written => written.map(|()| status),
    }
}

fn write(command: &str, answer: Answer, json: bool) -> std::io::Result<()> {
    let Answer { items, extra } = answer;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if json {
        let mut document =
            Map::from_iter([("schema".to_owned(), json!("fol/1")), ("command".to_owned(), json!(command))]);
        if let Value::Object(extra) = extra {
            document.extend(extra);
        }
        let items: Vec<Value> = items.into_iter().map(to_json).collect();
        document.insert("items".to_owned(), Value::Array(items));
        serde_json::to_writer(&mut out, &document)?;
        writeln!(out)?;
    } else {
        for item in items {
            if let Some((refusal, source)) = &item.refused {
                out.flush()?;
                say(&draw(refusal, source, refusal.span.or(item.marker)));
            }
            if !item.text.is_empty() {
                writeln!(out, "{}", item.text)?;
            }
        }
    }
    out.flush()
}

/// Tells people what went wrong; if nobody listens there is nobody to tell.
fn say(message: &str) {
    let _ = std::io::stderr().write_all(message.as_bytes());
}

fn to_json(item: Item) -> Value {
    let mut fields = item.fields;
    if item.has_ok {
        fields.insert("ok".to_owned(), json!(item.refused.is_none()));
    }
    if let Some((refusal, _)) = item.refused {
        fields.insert("error".to_owned(), json!(refusal));
    }
    Value::Object(fields)
}

/// The characters of a line that are shown on either side of a place.
const AROUND: usize = 60;

/// The refusal, the source line, a marker under the place, and the help. Of a long line only the neighbourhood of the
/// place is shown, and what would steer a terminal is shown as a dot.
fn draw(refusal: &Refusal, source: &str, marker: Option<(usize, usize)>) -> String {
    let mut text = format!("{refusal}\n");
    if !source.is_empty() {
        let (start, end) = marker.unwrap_or((0, 0));
        let line_start = source.get(..start).and_then(|s| s.rfind('\n')).map_or(0, |i| i + 1);
        let line = source.get(line_start..).and_then(|s| s.lines().next()).unwrap_or("");
        let before = source.get(line_start..start).map_or(0, |s| s.chars().count());
        let marked = source.get(start..end.min(line_start + line.len())).map_or(1, |s| s.chars().count());
        let (shown, column) = neighbourhood(line, before);
        text.push_str(&format!("  {shown}\n"));
        if marker.is_some() {
            text.push_str(&format!("  {}{}\n", " ".repeat(column), "^".repeat(marked.clamp(1, AROUND))));
        }
    }
    if let Some(help) = &refusal.help {
        text.push_str(&format!("  {help}\n"));
    }
    text
}

/// The part of a line around its character number `place`, and the column of that character in the part.
fn neighbourhood(line: &str, place: usize) -> (String, usize) {
    let from = place.saturating_sub(AROUND);
    let visible = |c: char| if c.is_control() { '·' } else { c };
    let mut rest = line.chars().skip(from);
    let mut shown: String = if from > 0 { "…".to_owned() } else { String::new() };
    shown.extend(rest.by_ref().take(2 * AROUND).map(visible));
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown, place - from + usize::from(from > 0))
}

/// Says why there is no answer at all.
pub(crate) fn complain(error: &anyhow::Error) {
    say(&format!("fol: {error:#}\n"));
}
