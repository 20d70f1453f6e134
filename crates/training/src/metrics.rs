//! `metrics.jsonl`: one JSON object a line, append only, the record of a run.
//!
//! Reports, plots and early stopping after a resume read this file and nothing else. What depends on the clock
//! stands in the time fields; dropping them leaves the part that repeats.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Refusal, Result};
use crate::files;

/// The fields that depend on the clock or the machine.
pub const TIME_FIELDS: [&str; 5] = ["seconds", "targets_per_second", "waited", "summed", "clock"];

/// The file, open for appending.
#[derive(Debug)]
pub struct Metrics {
    file: File,
    path: std::path::PathBuf,
}

impl Metrics {
    /// Opens the file for a run that begins or goes on. What an interrupted run wrote after its checkpoint is
    /// dropped, with a torn last line; the rest is rewritten by a rename, if anything is dropped at all.
    pub fn open(path: &Path, from: From) -> Result<Self> {
        let found = match std::fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(e) if from == From::Start || e.kind() == std::io::ErrorKind::NotFound => None,
            // What cannot be read is not thrown away.
            Err(e) => return Err(Refusal::io(path)(e)),
        };
        let text = found.as_deref().unwrap_or_default();
        let kept: String = text.lines().filter(|l| keep(l, from)).map(|l| format!("{l}\n")).collect();
        if found.is_none_or(|found| found != kept) {
            files::write(path, kept.as_bytes())?;
        }
        let file = OpenOptions::new().append(true).open(path).map_err(Refusal::io(path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Whether the record says that training has ended. Runs of earlier versions could lose that line.
    pub fn has_end(&self) -> Result<bool> {
        let lines = read(&self.path)?;
        Ok(lines.iter().any(|l| l.get("kind").and_then(Value::as_str) == Some("end")))
    }

    /// Appends one line. A number that is not finite becomes `null`, as JSON has no NaN.
    pub fn write(&mut self, kind: &str, fields: Map<String, Value>) -> Result<()> {
        let mut line = Map::from_iter([("kind".to_owned(), Value::from(kind))]);
        line.extend(fields);
        let text = format!("{}\n", Value::Object(line));
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.flush()).map_err(Refusal::io(&self.path))
    }
}

/// Where a run goes on, and so which lines of its record stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// At the beginning: no line.
    Start,
    /// Behind a checkpoint at this update: the lines up to it, without any `end`.
    Step(u64),
    /// At the end, which this update reached: the lines up to it, the `end` included.
    End(u64),
}

fn keep(line: &str, from: From) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) else { return false };
    let is_end = fields.get("kind").and_then(Value::as_str) == Some("end");
    let until = |last| fields.get("step").and_then(Value::as_u64).is_some_and(|s| s <= last);
    match from {
        From::Start => false,
        From::Step(last) => !is_end && until(last),
        From::End(last) => until(last),
    }
}

/// Reads a metrics file; a torn last line is passed over.
pub fn read(path: &Path) -> Result<Vec<Map<String, Value>>> {
    let text = std::fs::read_to_string(path).map_err(Refusal::io(path))?;
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
        let mut m = Metrics::open(&path, From::Start).unwrap();
        for step in [10, 20, 30] {
            let Value::Object(fields) = json!({"step": step, "loss": f64::NAN}) else { unreachable!() };
            m.write("update", fields).unwrap();
        }
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"kind\":\"upd").unwrap();
        Metrics::open(&path, From::Step(20)).unwrap();
        let lines = read(&path).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].get("step"), Some(&json!(20)));
        assert_eq!(lines[1].get("loss"), Some(&Value::Null));
    }

    #[test]
    fn the_end_of_a_finished_run_stays_and_that_of_one_that_goes_on_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut m = Metrics::open(&path, From::Start).unwrap();
        for (kind, step) in [("update", 10), ("end", 10)] {
            m.write(kind, Map::from_iter([("step".to_owned(), json!(step))])).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        Metrics::open(&path, From::End(10)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        // A record that is damaged is refused, and stays.
        std::fs::write(&path, [&whole[..], &[0xff, 0xfe]].concat()).unwrap();
        let refused = Metrics::open(&path, From::End(10)).unwrap_err().to_string();
        assert!(refused.contains("metrics.jsonl"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap().len(), whole.len() + 2);
        std::fs::write(&path, &whole).unwrap();
        // An `end` behind the checkpoint was written before the kill that kept the checkpoint from it.
        Metrics::open(&path, From::End(9)).unwrap();
        assert!(read(&path).unwrap().is_empty());
        std::fs::write(&path, &whole).unwrap();
        Metrics::open(&path, From::Step(10)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
    }
}
