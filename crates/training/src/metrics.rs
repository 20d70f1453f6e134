//! `metrics.jsonl`: one JSON object a line, append only, the record of a run.
//!
//! Reports, plots and early stopping after a resume read this file and nothing else. What depends on the clock
//! stands in the time fields; dropping them leaves the part that repeats.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::files;

/// The fields that depend on the clock or the machine.
pub const TIME_FIELDS: [&str; 3] = ["seconds", "targets_per_second", "clock"];

/// The file, open for appending.
#[derive(Debug)]
pub struct Metrics {
    file: File,
    path: std::path::PathBuf,
}

impl Metrics {
    /// Opens the file of a new run (`step` is `None`), or drops what an interrupted run wrote after its checkpoint
    /// at `step`: later lines, `end` lines, and a torn last line. The rest is rewritten by a rename.
    pub fn open(path: &Path, step: Option<u64>) -> Result<Self> {
        let kept = match (step, std::fs::read_to_string(path)) {
            (Some(step), Ok(text)) => {
                text.lines().filter(|l| keep(l, step)).map(|l| format!("{l}\n")).collect()
            }
            _ => String::new(),
        };
        files::write(path, kept.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path).map_err(Error::io(path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Appends one line. A number that is not finite becomes `null`, as JSON has no NaN.
    pub fn write(&mut self, kind: &str, fields: Map<String, Value>) -> Result<()> {
        let mut line = Map::from_iter([("kind".to_owned(), Value::from(kind))]);
        line.extend(fields);
        let text = format!("{}\n", Value::Object(line));
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()).map_err(Error::io(&self.path))
    }
}

fn keep(line: &str, step: u64) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) else { return false };
    let ended = fields.get("kind").and_then(Value::as_str) == Some("end");
    !ended && fields.get("step").and_then(Value::as_u64).is_some_and(|s| s <= step)
}

/// Reads a metrics file; a torn last line is passed over.
pub fn read(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let parse = |l: &str| match serde_json::from_str(l) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    };
    Ok(text.lines().filter_map(parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn later_and_torn_lines_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut m = Metrics::open(&path, None).unwrap();
        for step in [10, 20, 30] {
            let Value::Object(fields) = json!({"step": step, "loss": f64::NAN}) else { unreachable!() };
            m.write("update", fields).unwrap();
        }
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"kind\":\"upd").unwrap();
        Metrics::open(&path, Some(20)).unwrap();
        let lines = read(&path).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].get("step"), Some(&json!(20)));
        assert_eq!(lines[1].get("loss"), Some(&Value::Null));
    }
}
