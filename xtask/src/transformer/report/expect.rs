//! The expected beside the measured.

use maud::Markup;
use serde_json::Value;

use super::run::Run;
use crate::draw::html::{self, Table, number, text};
use crate::draw::numbers::{MISSING, count, fixed};

/// What is known about one expectation.
struct Line {
    key: &'static str,
    what: &'static str,
    expected: String,
    measured: String,
    /// None: it was not measured.
    met: Option<bool>,
}

/// What each key of `[expect]` bounds, and its digits.
const KEYS: [(&str, &str, usize); 5] = [
    ("excess_max", "excess over the optimum, nats per token, at most", 4),
    ("top1_min", "top-1 share, at least", 4),
    ("parsed_min", "share of free samples that parse, at least", 4),
    ("levels_p_min", "p-value of the level mix of samples, at least", 4),
    ("train_nats_max", "training loss, nats per token, at most", 4),
];

fn lines(run: &Run) -> Vec<Line> {
    let Some(expect) = &run.config.expect else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(expected) = expect.params {
        let found = run.parameters();
        lines.push(Line {
            key: "params",
            what: "number of parameters",
            expected: count(Some(expected as u64)),
            measured: count(found),
            met: found.map(|f| f == expected as u64),
        });
    }
    let wanted =
        [expect.excess_max, expect.top1_min, expect.parsed_min, expect.levels_p_min, expect.train_nats_max];
    let judged = run.eval.get("expect").and_then(Value::as_array);
    for ((key, what, digits), expected) in KEYS.into_iter().zip(wanted) {
        let Some(expected) = expected else { continue };
        let row =
            judged.and_then(|rows| rows.iter().find(|r| r.get("key").and_then(Value::as_str) == Some(key)));
        let measured = row.and_then(|r| r.get("measured")).and_then(Value::as_f64);
        let met = measured.map(|m| if key.ends_with("_min") { m >= expected } else { m <= expected });
        let show = |v: f64| {
            if v != 0.0 && v.abs() < 1e-4 {
                crate::draw::numbers::power_of_ten(v, 1)
            } else {
                fixed(Some(v), digits)
            }
        };
        lines.push(Line {
            key,
            what,
            expected: show(expected),
            measured: measured.map_or_else(|| MISSING.to_owned(), show),
            met,
        });
    }
    if let Some(expected) = expect.seconds_max {
        let seconds = run.seconds();
        lines.push(Line {
            key: "seconds_max",
            what: "seconds of training on two cores, at most",
            expected: fixed(Some(expected), 1),
            measured: fixed(seconds, 1),
            met: seconds.map(|s| s <= expected),
        });
    }
    lines
}

/// The table.
pub(crate) fn table(run: &Run) -> Markup {
    let lines = lines(run);
    if lines.is_empty() {
        return html::left_out("Left out: the configuration has no table [expect].");
    }
    let mut table = Table::new(["what", "#expected", "#measured", ""]);
    for line in lines {
        let (class, verdict) = match line.met {
            Some(true) => ("met", "✓ met"),
            Some(false) => ("missed", "✗ missed"),
            None => ("", "not measured"),
        };
        let cells = vec![text(line.what), number(line.expected), number(line.measured), text(verdict)];
        table.marked(class, cells);
    }
    table.html()
}

/// A sentence for each expectation that was missed.
pub(crate) fn missed(run: &Run) -> Vec<String> {
    let missed = lines(run).into_iter().filter(|l| l.met == Some(false));
    missed
        .map(|l| {
            format!("Expectation missed: {} is {}, expected {} ({}).", l.key, l.measured, l.expected, l.what)
        })
        .collect()
}
