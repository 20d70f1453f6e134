//! A profile as a table for people, and as JSON.

use std::fmt::Write;
use std::time::Duration;

use super::record::{Component, Executor, Layout, Order, Part, Profile, Stored};
use crate::ast::Span;
use crate::error::Places;
use crate::json;

/// Lines of equations are cut to so many characters.
const WIDE: usize = 72;

/// The tables of a profile: components, then equations and rules, those that took longest first; then the total.
pub fn text(profile: &Profile, program: &str, total: Duration) -> String {
    let places = Places::new(program);
    let mut out = String::new();
    put(&mut out, format_args!("Components\n"));
    put(&mut out, format_args!("{}", HEAD));
    let measured =
        |component: &&Component| !matches!(component.executor, Executor::Inlined | Executor::Apart);
    for component in profile.by_time().into_iter().filter(measured) {
        let line = component.span.map(|span| places.line_of(span.start));
        let row = Row {
            time: component.time,
            calls: component.calls,
            rounds: component.rounds,
            rows: (component.rows_in(), component.rows_out),
            bytes: Some(component.bytes()),
        };
        let how = component.method.unwrap_or(component.executor.name());
        row.print(&mut out, total, line);
        put(&mut out, format_args!("{}: {how}\n", cut(&component.tensors.join(", "))));
    }
    put(&mut out, format_args!("\nEquations and rules\n"));
    put(&mut out, format_args!("{}", HEAD));
    let mut parts: Vec<&Part> = profile.components.iter().flat_map(|component| &component.parts).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time));
    for part in parts {
        let line = part.span.map(|span| places.line_of(span.start));
        let rows = (part.rows_in, part.rows_out);
        let row = Row { time: part.time, calls: part.calls, rounds: 0, rows, bytes: None };
        row.print(&mut out, total, line);
        put(&mut out, format_args!("{}\n", cut(&part.text)));
    }
    let (evaluations, engine) = (profile.evaluations, duration(profile.time));
    let times = if evaluations == 1 { "evaluation" } else { "evaluations" };
    put(&mut out, format_args!("\n{} in all, {engine} of it in {evaluations} {times}\n", duration(total)));
    out
}

const HEAD: &str = "      time     %     calls    rounds     rows in    rows out      bytes  line\n";

struct Row {
    time: Duration,
    calls: u64,
    rounds: u64,
    rows: (u64, u64),
    bytes: Option<u64>,
}

impl Row {
    fn print(&self, out: &mut String, total: Duration, line: Option<String>) {
        let share = 100.0 * self.time.as_secs_f64() / total.as_secs_f64().max(1e-12);
        let rounds = if self.rounds == 0 { "-".to_owned() } else { self.rounds.to_string() };
        let held = self.bytes.map_or("-".to_owned(), bytes);
        let line = line.unwrap_or_else(|| "-".to_owned());
        let (calls, rows_in, rows_out) = (self.calls, self.rows.0, self.rows.1);
        let time = duration(self.time);
        put(
            out,
            format_args!("{time:>10} {share:>5.1} {calls:>9} {rounds:>9} {rows_in:>11} {rows_out:>11} "),
        );
        put(out, format_args!("{held:>10} {line:>5}  "));
    }
}

/// The keys of the same as JSON, with their values. Times are seconds.
pub fn fields(profile: &Profile, program: &str, total: Duration) -> Vec<(&'static str, String)> {
    let places = Places::new(program);
    let mut components = String::new();
    json::list(&mut components, profile.by_time(), |out, each| component(out, &places, each));
    let mut seconds = String::new();
    json::real(&mut seconds, total.as_secs_f64());
    let mut engine = String::new();
    json::real(&mut engine, profile.time.as_secs_f64());
    vec![
        ("components", components),
        ("evaluations", profile.evaluations.to_string()),
        ("engine_seconds", engine),
        ("seconds", seconds),
    ]
}

/// One component.
pub fn component(out: &mut String, places: &Places<'_>, component: &Component) {
    out.push_str("{\"tensors\": ");
    json::list(out, &component.tensors, |out, name| json::string(out, name));
    put(out, format_args!(", \"executor\": \"{}\", \"method\": ", component.executor.name()));
    optional(out, component.method, json::string);
    line(out, places, component.span);
    put(out, format_args!(", \"calls\": {}, \"rounds\": {}", component.calls, component.rounds));
    out.push_str(", \"residual\": ");
    optional(out, component.residual, json::real);
    put(out, format_args!(", \"rows_in\": {}, \"rows_out\": {}", component.rows_in(), component.rows_out));
    put(out, format_args!(", \"bytes\": {}, \"seconds\": ", component.bytes()));
    json::real(out, component.time.as_secs_f64());
    out.push_str(", \"stored\": ");
    json::list(out, &component.stored, stored);
    out.push_str(", \"parts\": ");
    json::list(out, &component.parts, |out, each| part(out, places, each));
    out.push('}');
}

/// `, "line": 7`, and the file where it is an included one.
fn line(out: &mut String, places: &Places<'_>, span: Option<Span>) {
    out.push_str(", ");
    json::line(out, span.map(|span| (places.file(span.start), places.of(span.start).0)));
}

fn stored(out: &mut String, stored: &Stored) {
    out.push_str("{\"tensor\": ");
    json::string(out, &stored.tensor);
    put(out, format_args!(", \"layout\": \"{}\", \"rows\": ", stored.layout.name()));
    optional(out, stored.rows, |out, rows| put(out, format_args!("{rows}")));
    out.push_str(", \"bytes\": ");
    optional(out, stored.bytes, |out, bytes| put(out, format_args!("{bytes}")));
    out.push('}');
}

fn part(out: &mut String, places: &Places<'_>, part: &Part) {
    out.push_str("{\"text\": ");
    json::string(out, &part.text);
    line(out, places, part.span);
    put(out, format_args!(", \"calls\": {}, \"rows_in\": {}", part.calls, part.rows_in));
    put(out, format_args!(", \"rows_out\": {}, \"seconds\": ", part.rows_out));
    json::real(out, part.time.as_secs_f64());
    out.push_str(", \"orders\": ");
    json::list(out, &part.orders, order);
    out.push('}');
}

fn order(out: &mut String, order: &Order) {
    out.push_str("{\"steps\": ");
    json::list(out, &order.steps, |out, step| json::string(out, step));
    out.push_str(", \"rows\": ");
    optional(out, order.rows, json::real);
    out.push_str(", \"of\": ");
    optional(out, order.of, json::real);
    out.push('}');
}

fn optional<T>(out: &mut String, value: Option<T>, write: impl FnOnce(&mut String, T)) {
    match value {
        Some(value) => write(out, value),
        None => out.push_str("null"),
    }
}

/// The lines of a plan: how a component is evaluated, stored and joined. `estimated` says that the numbers are.
pub fn words(component: &Component, estimated: bool) -> Vec<String> {
    let about = if estimated { "about " } else { "" };
    let mut first = component.executor.name().to_owned();
    if let Some(method) = component.method {
        put(&mut first, format_args!(", {method}"));
    }
    if component.rounds > 0 {
        let calls = component.calls.max(1);
        put(&mut first, format_args!(", {} rounds", component.rounds / calls));
    }
    if let Some(residual) = component.residual {
        put(&mut first, format_args!(", last change {residual:?}"));
    }
    if !estimated {
        put(&mut first, format_args!(", {}", duration(component.time)));
        if component.calls > 1 {
            put(&mut first, format_args!(" in {} evaluations", component.calls));
        }
    }
    let mut lines = vec![first];
    for stored in &component.stored {
        let mut line = format!("{} is kept as {}", stored.tensor, stored.layout.name());
        let dense = matches!(stored.layout, Layout::Dense64 | Layout::Dense32);
        match stored.rows {
            Some(1) if dense => line.push_str(", a number"),
            Some(rows) if dense => put(&mut line, format_args!(", {} elements", grouped(rows as f64))),
            Some(rows) => put(&mut line, format_args!(", {about}{} rows", grouped(rows as f64))),
            None => {}
        }
        if let Some(held) = stored.bytes {
            put(&mut line, format_args!(", {}", bytes(held)));
        }
        lines.push(line);
    }
    for part in &component.parts {
        for order in part.orders.iter().filter(|order| !order.steps.is_empty()) {
            let mut line = cut(&part.text);
            put(&mut line, format_args!(": {}", order.steps.join(", then ")));
            if let Some(rows) = order.rows {
                put(&mut line, format_args!("; {about}{} bindings", grouped(rows)));
            }
            if let Some(of) = order.of {
                put(&mut line, format_args!(" of {}", grouped(of)));
            }
            lines.push(line);
        }
    }
    lines
}

/// A whole number with its digits in groups of three.
pub fn grouped(number: f64) -> String {
    if number >= 1e18 {
        return format!("{number:.1e}");
    }
    let digits = format!("{:.0}", number.max(0.0));
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of bytes, short.
pub fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let (mut size, mut unit) = (count as f64, 0);
    while size >= 999.5 && unit + 1 < units.len() {
        size /= 1000.0;
        unit += 1;
    }
    if unit == 0 || size >= 100.0 {
        format!("{size:.0} {}", units[unit])
    } else {
        format!("{size:.1} {}", units[unit])
    }
}

/// A time, short.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}

/// A line that is not too wide, without line ends.
fn cut(text: &str) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= WIDE {
        return text;
    }
    text.chars().take(WIDE - 1).chain(['…']).collect()
}

fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}
