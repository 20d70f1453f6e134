//! The suites `inference` and `texts`: what a model answers beside others, over the depth of what was asked; what texts of a
//! file cost.

use std::collections::BTreeMap;

use maud::Markup;
use serde_json::Value;

use crate::draw::html::{self, Column, Table, number, text};
use crate::draw::numbers::{count, fixed, percent};
use crate::draw::plot::{Mark, Plot, Point};
use crate::draw::{Axis, Scale};

/// What the public plan hopes for: the share of right answers at two, three and five steps.
const PLANNED: [(f64, f64); 3] = [(2.0, 0.90), (3.0, 0.80), (5.0, 0.60)];

fn at(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer).and_then(Value::as_f64)
}

fn name(row: &Value) -> String {
    row.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The rows of the splits of a suite, each with the name of its split.
fn rows(found: &Value) -> Vec<(String, &Value)> {
    let splits = found.get("splits").and_then(Value::as_object).into_iter().flatten();
    splits
        .flat_map(|(split, found)| {
            let rows = found.get("rows").and_then(Value::as_array).into_iter().flatten();
            rows.map(move |row| (split.clone(), row))
        })
        .collect()
}

/// Answers to inference tasks, if the run was judged on them.
pub(super) fn inference(evaluation: &Value) -> Option<Markup> {
    let found = evaluation.get("inference").filter(|found| found.is_object())?;
    let own = rows(found);
    let elsewhere = evaluation.get("transfer").and_then(Value::as_object).into_iter().flatten();
    let elsewhere = elsewhere.flat_map(|(data, found)| {
        rows(found).into_iter().map(move |(split, row)| (format!("{data}, {split}"), row))
    });
    let all: Vec<(String, &Value)> = own.iter().cloned().chain(elsewhere).collect();
    let share = |row: &(String, &Value), key: &str| number(percent(at(row.1, &format!("/all/{key}")), 1));
    let columns: &[Column<'_, (String, &Value)>] = &[
        ("tasks", &|row| text(row.0.clone())),
        ("", &|row| text(name(row.1))),
        ("#instances", &|row| number(count(row.1.pointer("/all/instances").and_then(Value::as_u64)))),
        ("#exact", &|row| share(row, "exact")),
        ("#valid", &|row| share(row, "valid")),
        ("#relevant", &|row| share(row, "relevant")),
        ("#right steps", &|row| share(row, "right_steps")),
        ("#<unknown>: precision", &|row| share(row, "unknown/precision")),
        ("#recall", &|row| share(row, "unknown/recall")),
    ];
    let table = Table::of(&all, columns);
    let note = "Valid: the prover says that the conclusion follows, or the answer to a question is right. Relevant: valid, new, and \
                in need of a premise. From a beam the first conclusion is taken that the prover finds valid and relevant. The prover \
                has the time that the model took.";
    let plot = over_depth(&own);
    let figure = if plot.is_empty() { html::join([]) } else { html::figures(&[plot.figure()]) };
    Some(html::join([table.html(), html::note(note), figure]))
}

/// Valid answers over the number of rule applications, both splits in one line a row.
fn over_depth(rows: &[(String, &Value)]) -> Plot {
    let mut lines: Vec<(String, Vec<Point>)> = Vec::new();
    for (_, row) in rows {
        let name = name(row);
        if lines.iter().all(|line| line.0 != name) {
            let points =
                depths_of(rows, &name).into_iter().map(|(depth, valid)| Point::at(depth as f64, valid));
            lines.push((name, points.collect()));
        }
    }
    depth_plot(lines, trained(rows))
}

/// The valid answers of one row, by depth, in all splits.
fn depths_of(rows: &[(String, &Value)], own: &str) -> BTreeMap<u64, f64> {
    let rows = rows.iter().filter(|(_, row)| name(row) == own);
    let depths = rows.flat_map(|(_, row)| row.get("depths").and_then(Value::as_object).into_iter().flatten());
    depths.filter_map(|(depth, found)| Some((depth.parse().ok()?, at(found, "/valid")?))).collect()
}

/// The greatest depth that was trained.
fn trained(rows: &[(String, &Value)]) -> Option<u64> {
    let test = rows.iter().filter(|(split, _)| split == "test");
    let depths = test.flat_map(|(_, row)| row.get("depths").and_then(Value::as_object).into_iter().flatten());
    depths.filter_map(|(depth, _)| depth.parse().ok()).max()
}

/// What an evaluation has of depths: the valid answers of the row of this name, and the greatest depth that was trained.
pub(crate) fn depths(evaluation: &Value, name: &str) -> (BTreeMap<u64, f64>, Option<u64>) {
    let rows = evaluation.get("inference").map(rows).unwrap_or_default();
    (depths_of(&rows, name), trained(&rows))
}

/// Lines over the number of rule applications, with what the public plan hopes for.
pub(crate) fn depth_plot(lines: Vec<(String, Vec<Point>)>, trained: Option<u64>) -> Plot {
    let deepest = lines.iter().flat_map(|line| &line.1).map(|point| point.x).fold(1.0, f64::max).round();
    let mut plot = Plot::new(
        "Valid answers",
        Axis::new("rule applications", Scale::Linear).within(0.5, deepest + 0.5),
        Axis::new("share", Scale::Linear).within(0.0, 1.0),
    )
    .noted("depths that were trained are shaded");
    for (name, points) in lines {
        plot = plot.with(&name, Mark::Dotted, points);
    }
    let planned = PLANNED.iter().filter(|(depth, _)| *depth <= deepest);
    plot = plot.with("public plan", Mark::Dotted, planned.map(|(x, y)| Point::at(*x, *y)).collect());
    match trained {
        Some(trained) => plot.shaded(trained as f64 + 0.5),
        None => plot,
    }
}

/// What texts of a file cost, if the run was judged on them.
pub(super) fn texts(evaluation: &Value) -> Option<Markup> {
    let found = evaluation.get("texts").filter(|found| found.is_object())?;
    let beside = found.get("beside").and_then(Value::as_array).into_iter().flatten();
    let mut table = Table::new(["", "#nats per token", "#bits per text", "#top-1"]);
    for row in std::iter::once(found).chain(beside) {
        let cells = vec![
            text(name(row)),
            number(fixed(at(row, "/nats_per_token"), 4)),
            number(fixed(at(row, "/bits_per_text"), 3)),
            number(percent(at(row, "/top1"), 2)),
        ];
        table.row(cells);
    }
    let of = |key: &str| count(found.get(key).and_then(Value::as_u64));
    let note = format!(
        "{} texts that were not learned, {} targets. No law of them is known, and so no optimum.",
        of("texts"),
        of("targets")
    );
    Some(html::join([table.html(), html::note(&note)]))
}
