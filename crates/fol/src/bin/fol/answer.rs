//! What a command answers: one item for each input, printed as JSON or for people (F66).

use calculemus_base::{quote, stream};
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
    let Answer { items, extra } = answer;
    let status = u8::from(items.iter().any(|item| item.refused.is_some()));
    if json {
        let mut document =
            Map::from_iter([("schema".to_owned(), json!("fol/1")), ("command".to_owned(), json!(command))]);
        if let Value::Object(extra) = extra {
            document.extend(extra);
        }
        let items: Vec<Value> = items.into_iter().map(to_json).collect();
        document.insert("items".to_owned(), Value::Array(items));
        stream::answer_json(&document)?;
        return Ok(status);
    }
    // One piece for what stands together, so that refusals come between the answers where they belong.
    let mut text = String::new();
    for item in items {
        if let Some((refusal, source)) = &item.refused {
            stream::answer(&std::mem::take(&mut text))?;
            stream::tell(&draw(refusal, source, refusal.span.or(item.marker)));
        }
        if !item.text.is_empty() {
            text.push_str(&item.text);
            text.push('\n');
        }
    }
    stream::answer(&text)?;
    Ok(status)
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

/// The refusal, the source line, a marker under the place, and the help. Of a long line only the neighbourhood of the
/// place is shown, and what would steer a terminal is shown as a dot.
fn draw(refusal: &Refusal, source: &str, marker: Option<(usize, usize)>) -> String {
    let mut text = format!("{refusal}\n");
    match marker {
        Some((start, end)) if !source.is_empty() => text.push_str(&quote::marked(source, start, end)),
        None if !source.is_empty() => {
            let (shown, _) = quote::neighbourhood(source.lines().next().unwrap_or(""), 0);
            text.push_str(&format!("  {shown}\n"));
        }
        _ => {}
    }
    if let Some(help) = &refusal.help {
        text.push_str(&format!("  {help}\n"));
    }
    text
}
