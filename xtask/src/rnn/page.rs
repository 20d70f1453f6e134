//! The page of one recurrent run: what was run, its curves, its test at each length, expected beside measured.

use std::path::{Path, PathBuf};

use anyhow::Result;
use maud::{Markup, html as markup};
use serde_json::Value;

use super::config::Config;
use super::run::{seconds, speed};
use crate::draw::html::{self, Column, Table};
use crate::draw::numbers::{count, duration, fixed};
use crate::draw::plot::{Mark, Plot, Point};
use crate::draw::{Axis, Scale};
use crate::learner::Learner as _;
use crate::record::{Line, Record, document};
use crate::{expect, run_folder};

/// Writes `report.html` and returns its path.
pub(crate) fn write(folder: &Path) -> Result<PathBuf> {
    let config: Config = run_folder::config(folder)?;
    let eval = document(&folder.join("eval.json"))?;
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let record = Record::read(folder)?;
    let plots: Vec<String> = curves(&record).iter().filter(|p| !p.is_empty()).map(Plot::figure).collect();
    let expected = expectations(&config, &eval, &record);
    let text = config.to_toml()?;
    let body = html::join([
        html::heading(&name, &format!("{} on {}", config.cell, config.task)),
        html::join(expect::missed(&expected).iter().map(|missed| html::warning(missed))),
        html::section("Expected and measured", &expect::table(&expected)),
        html::section("Run", &about(&config, &eval, &record)),
        html::section("Test", &lengths(&eval)),
        html::section("Training", &html::figures(&plots)),
        html::section("Configuration", &markup! { pre { (text) } }),
    ]);
    let page = folder.join("report.html");
    training::files::write(&page, html::page(&name, &body).as_bytes())?;
    Ok(page)
}

fn about(config: &Config, eval: &Value, record: &Record) -> Markup {
    let mut table = Table::new(["", ""]);
    let mut row = |name: &str, value: String| table.row(vec![html::text(name), html::text(value)]);
    row("cell", config.cell.clone());
    row("task", config.task.clone());
    row("weights", count(eval.get("total_params").and_then(Value::as_u64)));
    row("words are read", eval.get("order").and_then(Value::as_str).unwrap_or("literal").to_owned());
    row("status", eval.get("status").and_then(Value::as_str).unwrap_or("unfinished").to_owned());
    row("best validation loss, nats", fixed(record.best("loss").map(|b| b.0), 5));
    row("at update", count(record.best("loss").map(|b| b.1)));
    row("training", duration(Some(seconds(record))));
    row("sequence-steps a second", count(speed(record).map(|s| s as u64)));
    table.html()
}

/// The expected beside the measured.
fn expectations(config: &Config, eval: &Value, record: &Record) -> Vec<expect::Row> {
    let Some(expect) = &config.expect else { return Vec::new() };
    let lines = eval.get("lengths").and_then(Value::as_array).into_iter().flatten();
    let longest = lines.max_by_key(|line| line.get("length").and_then(Value::as_u64));
    let share = |key: &str| longest?.get(key)?.as_f64();
    expect.rows(|key| match key {
        "params" => eval.get("total_params")?.as_f64(),
        "last_symbol_min" => share("last_symbol"),
        "sequence_exact_min" => share("sequence_exact"),
        _ => longest.map(|_| seconds(record)),
    })
}

/// The lines of the test.
fn lengths(eval: &Value) -> Markup {
    let lines = eval.get("lengths").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if lines.is_empty() {
        return html::left_out("not tested yet");
    }
    let at = |line: &Value, key: &str| line.get(key).and_then(Value::as_f64);
    let whole = |line: &Value, key: &str| html::number(count(at(line, key).map(|n| n as u64)));
    let share = |line: &Value, key: &str| html::number(fixed(at(line, key), 4));
    let columns: &[Column<'_, Value>] = &[
        ("#length", &|line| whole(line, "length")),
        ("#sequences", &|line| whole(line, "sequences")),
        ("#symbol error", &|line| share(line, "symbol_error")),
        ("#exact", &|line| share(line, "sequence_exact")),
        ("#last symbol", &|line| share(line, "last_symbol")),
        ("#loss", &|line| share(line, "loss")),
    ];
    Table::of(lines, columns).html()
}

fn curves(record: &Record) -> Vec<Plot> {
    let curve = |kind: &'static str, key: &str| -> Vec<Point> {
        let point = |l: &Line| Some(Point::at(l.get("step")?.as_f64()?, l.get(key)?.as_f64()?));
        record.lines(kind).filter_map(point).collect()
    };
    let updates = || Axis::new("updates", Scale::Linear);
    vec![
        Plot::new("Loss", updates(), Axis::new("nats per position", Scale::Log))
            .with("training", Mark::Thin, curve("update", "loss"))
            .with("validation", Mark::Dotted, curve("eval", "loss")),
        Plot::new("Validation", updates(), Axis::new("share", Scale::Linear))
            .with("symbol error", Mark::Line, curve("eval", "symbol_error"))
            .with("exact sequences", Mark::Line, curve("eval", "sequence_exact"))
            .with("last symbol", Mark::Line, curve("eval", "last_symbol")),
        Plot::new("Gradient norm", updates(), Axis::new("norm", Scale::Log)).with(
            "norm before clipping",
            Mark::Line,
            curve("update", "grad_norm"),
        ),
    ]
}
