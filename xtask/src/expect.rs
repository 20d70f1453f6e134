//! What a configuration expects of its run (its table `[expect]`), beside what was measured.

use maud::Markup;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::draw::html::{self, Table, number, text};
use crate::draw::numbers::{MISSING, count, fixed, power_of_ten};

/// Bounds by key: `…_max` is the most that may be measured, `…_min` the least, `params` the number itself. Each learner
/// measures some of them (`Learner::EXPECTS`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expect {
    pub(crate) params: Option<usize>,
    pub(crate) excess_max: Option<f64>,
    pub(crate) top1_min: Option<f64>,
    pub(crate) parsed_min: Option<f64>,
    pub(crate) levels_p_min: Option<f64>,
    pub(crate) train_nats_max: Option<f64>,
    pub(crate) last_symbol_min: Option<f64>,
    pub(crate) sequence_exact_min: Option<f64>,
    pub(crate) seconds_max: Option<f64>,
}

/// Each key, what it bounds, and the digits that people are shown.
const KEYS: [(&str, &str, usize); 9] = [
    ("params", "number of parameters", 0),
    ("excess_max", "excess over the optimum, nats per token, at most", 4),
    ("top1_min", "top-1 share, at least", 4),
    ("parsed_min", "share of free samples that parse, at least", 4),
    ("levels_p_min", "p-value of the level mix of samples, at least", 4),
    ("train_nats_max", "training loss, nats per token, at most", 4),
    ("last_symbol_min", "share of right last symbols at the longest length, at least", 4),
    ("sequence_exact_min", "share of sequences without an error at the longest length, at least", 4),
    ("seconds_max", "seconds of training on two cores, at most", 1),
];

/// One expectation, and what was measured.
pub(crate) struct Row {
    key: &'static str,
    what: &'static str,
    digits: usize,
    expected: f64,
    measured: Option<f64>,
}

impl Expect {
    /// The expectations with what was measured, by key.
    pub(crate) fn rows(&self, measured: impl Fn(&str) -> Option<f64>) -> Vec<Row> {
        let given = json!(self);
        let row = |(key, what, digits): (&'static str, &'static str, usize)| {
            let expected = given.get(key).and_then(Value::as_f64)?;
            Some(Row { key, what, digits, expected, measured: measured(key) })
        };
        KEYS.into_iter().filter_map(row).collect()
    }
}

impl Row {
    /// Whether it was met; none if it was not measured.
    fn met(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(match self.key {
            key if key.ends_with("_min") => measured >= self.expected,
            key if key.ends_with("_max") => measured <= self.expected,
            _ => measured == self.expected,
        })
    }

    /// For `eval.json`; none if it was not measured.
    pub(crate) fn json(&self) -> Option<Value> {
        let met = self.met()?;
        Some(json!({"key": self.key, "expected": self.expected, "measured": self.measured, "met": met}))
    }

    fn shown(&self, value: f64) -> String {
        match self.digits {
            0 => count(Some(value as u64)),
            _ if value != 0.0 && value.abs() < 1e-4 => power_of_ten(value, 1),
            digits => fixed(Some(value), digits),
        }
    }

    fn shown_measured(&self) -> String {
        self.measured.map_or_else(|| MISSING.to_owned(), |value| self.shown(value))
    }
}

/// The expected beside the measured.
pub(crate) fn table(rows: &[Row]) -> Markup {
    if rows.is_empty() {
        return html::left_out("Left out: the configuration has no table [expect].");
    }
    let mut table = Table::new(["what", "#expected", "#measured", ""]);
    for row in rows {
        let (class, verdict) = match row.met() {
            Some(true) => ("met", "✓ met"),
            Some(false) => ("missed", "✗ missed"),
            None => ("", "not measured"),
        };
        let cells =
            [text(row.what), number(row.shown(row.expected)), number(row.shown_measured()), text(verdict)];
        table.marked(class, cells.into());
    }
    table.html()
}

/// A sentence for each expectation that was missed.
pub(crate) fn missed(rows: &[Row]) -> Vec<String> {
    let missed = rows.iter().filter(|row| row.met() == Some(false));
    let sentence = |row: &Row| {
        let (key, what) = (row.key, row.what);
        let (measured, expected) = (row.shown_measured(), row.shown(row.expected));
        format!("Expectation missed: {key} is {measured}, expected {expected} ({what}).")
    };
    missed.map(sentence).collect()
}
