//! What a run wrote beside its weights: the lines of `metrics.jsonl`, and documents.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// A line of the metrics.
pub(crate) type Line = Map<String, Value>;

/// The metrics of a run.
#[derive(Debug, Clone)]
pub(crate) struct Record(Vec<Line>);

impl Record {
    /// No line where there is no such file.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("metrics.jsonl");
        Ok(Self(if path.is_file() { training::metrics::read(&path)? } else { Vec::new() }))
    }

    /// All lines.
    pub(crate) fn all(&self) -> &[Line] {
        &self.0
    }

    /// The lines of a kind.
    pub(crate) fn lines(&self, kind: &'static str) -> impl DoubleEndedIterator<Item = &Line> {
        self.0.iter().filter(move |line| line.get("kind").and_then(Value::as_str) == Some(kind))
    }

    /// The least value of a key in validation, and its update; ties keep the earlier.
    pub(crate) fn best(&self, key: &str) -> Option<(f64, u64)> {
        let values = self.lines("eval").filter_map(|l| Some((field(l, key)?, l.get("step")?.as_u64()?)));
        values.reduce(|best, next| if next.0 < best.0 { next } else { best })
    }

    /// The digest of the data that training saw.
    pub(crate) fn data_digest(&self) -> Option<&str> {
        self.lines("start").next()?.get("data")?.as_str()
    }
}

/// A number of a line.
pub(crate) fn field(line: &Line, key: &str) -> Option<f64> {
    line.get(key).and_then(Value::as_f64)
}

/// A document of a run; null where it is not there.
pub(crate) fn document(path: &Path) -> Result<Value> {
    let text = match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        read => read.with_context(|| path.display().to_string())?,
    };
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Writes a document for people to read too.
pub(crate) fn write_document(path: &Path, document: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(document)? + "\n";
    Ok(training::files::write(path, text.as_bytes())?)
}
