//! What a sweep showed: one row a point, with 95 % intervals over seeds.

use anyhow::Result;
use serde_json::{Map, Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeSet;

use super::config::Config;
use super::report::{Run, comparison, numbers_of};
use crate::draw::html::{Table, number, text};
use crate::draw::numbers::{count, duration, plus_minus};
use crate::draw::plot::{Mark, Plot, Point as Dot};
use crate::draw::{Axis, Scale};
use crate::sweep::plan::shown;
use crate::sweep::{Plan, Point, Summary};

/// What is compared: key of a run, name for people with the unit, digits.
const MEASURES: [(&str, &str, usize); 4] = [
    ("excess", "excess, nats per token", 4),
    ("kl", "mean KL, nats per token", 4),
    ("top1_ratio", "top-1 ratio", 4),
    ("parsed", "parsed, share", 4),
];

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// Half the width of the 95 % interval; none for one seed.
    pub(crate) half: Option<f64>,
}

/// Mean ± t₀.₉₇₅(n−1)·s/√n.
pub(crate) fn mean(values: &[f64]) -> Option<Mean> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let value = values.iter().sum::<f64>() / n as f64;
    if n == 1 {
        return Some(Mean { value, half: None });
    }
    let degrees = n - 1;
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / degrees as f64;
    Some(Mean { value, half: Some(student_quantile(degrees) * (variance / n as f64).sqrt()) })
}

/// t₀.₉₇₅ of Student's distribution.
fn student_quantile(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees.max(1) as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

/// A point with what its runs showed.
struct Row<'a> {
    point: &'a Point<Config>,
    runs: Vec<Map<String, Value>>,
}

impl Row<'_> {
    fn mean(&self, key: &str) -> Option<Mean> {
        let values: Vec<f64> = self.runs.iter().filter_map(|r| r.get(key).and_then(Value::as_f64)).collect();
        mean(&values)
    }

    fn shown(&self, key: &str, digits: usize) -> String {
        let mean = self.mean(key);
        plus_minus(mean.map(|m| m.value), mean.and_then(|m| m.half), digits)
    }

    fn chosen(&self) -> String {
        let all = self.point.selected.iter().map(|(k, v)| format!("{k} = {}", shown(v)));
        all.collect::<Vec<String>>().join(", ")
    }

    fn json(&self) -> Value {
        let measured = |key: &str| {
            let mean = self.mean(key);
            json!({"mean": mean.map(|m| m.value), "half_width": mean.and_then(|m| m.half)})
        };
        let mut row = Map::new();
        row.insert("point".to_owned(), json!(self.point.name));
        row.insert("keys".to_owned(), json!(self.point.keys));
        row.insert("selected".to_owned(), json!(self.point.selected));
        row.insert("runs".to_owned(), json!(self.runs.len()));
        for (key, ..) in MEASURES {
            row.insert(key.to_owned(), measured(key));
        }
        row.insert("parameters".to_owned(), json!(self.mean("parameters").map(|m| m.value as u64)));
        row.insert("seconds".to_owned(), measured("seconds"));
        Value::Object(row)
    }
}

/// What the runs of a sweep showed.
pub(crate) fn summary(plan: &Plan<Config>, points: &[Point<Config>]) -> Result<Summary> {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for point in points {
        let mut row = Row { point, runs: Vec::new() };
        for job in &point.runs {
            let mut run = Run::read(&job.folder)?;
            run.name = format!("{}/seed-{}", point.name, job.config.seed);
            run.group.clone_from(&point.name);
            row.runs.push(line(point, &run));
            all.push(run);
        }
        rows.push(row);
    }
    let lines: Vec<Map<String, Value>> = rows.iter().flat_map(|r| r.runs.clone()).collect();
    let document = document(plan, &rows, &lines);
    Ok(Summary {
        lines,
        columns: &["point", "seed"],
        origin: origin(plan, &document),
        tables: vec![("Points".to_owned(), table(&rows), Vec::new())],
        plots: plots(&rows),
        further: comparison(&all),
        file: ("table.json", document.clone()),
        document,
    })
}

/// A row of `table.csv`: the point, its keys, and the run's numbers.
fn line(point: &Point<Config>, run: &Run) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("point".to_owned(), json!(point.name));
    line.insert("seed".to_owned(), json!(run.config.seed));
    for (key, value) in point.keys.iter().chain(&point.selected) {
        line.insert(key.clone(), json!(value));
    }
    if let Value::Object(numbers) = numbers_of(run) {
        for (key, value) in numbers.into_iter().filter(|(k, _)| !["run", "seed"].contains(&k.as_str())) {
            line.entry(key).or_insert(value);
        }
    }
    line.insert("commit".to_owned(), run.eval.get("commit").cloned().unwrap_or(Value::Null));
    line
}

fn document(plan: &Plan<Config>, rows: &[Row<'_>], lines: &[Map<String, Value>]) -> Value {
    let distinct = |key: &str| {
        let values = lines.iter().filter_map(|l| l.get(key).and_then(Value::as_str));
        values.collect::<BTreeSet<&str>>().into_iter().map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    json!({
        "schema": "xtask/1", "command": "sweep", "name": plan.name, "data_digests": distinct("data_digest"),
        "commits": distinct("commit"), "seeds": plan.seeds,
        "points": rows.iter().map(Row::json).collect::<Vec<Value>>(), "runs": lines,
    })
}

/// The points, with the number of each, by which long pictures name it.
fn table(rows: &[Row<'_>]) -> Table {
    let selects = rows.iter().any(|r| !r.point.selected.is_empty());
    let mut head = vec!["#".to_owned(), "point".to_owned()];
    head.extend(selects.then(|| "chosen".to_owned()));
    head.extend(MEASURES.iter().map(|m| format!("#{}", m.1)));
    head.extend(["#parameters", "#training", "#seeds"].map(ToOwned::to_owned));
    let mut table = Table::new(head);
    for (i, row) in rows.iter().enumerate() {
        let mut cells = vec![number((i + 1).to_string()), text(row.point.name.clone())];
        cells.extend(selects.then(|| text(row.chosen())));
        cells.extend(MEASURES.iter().map(|m| number(row.shown(m.0, m.2))));
        cells.push(number(count(row.mean("parameters").map(|m| m.value as u64))));
        let seconds = row.mean("seconds");
        cells.push(number(match seconds.and_then(|s| s.half) {
            Some(_) => row.shown("seconds", 1) + " s",
            None => duration(seconds.map(|s| s.value)),
        }));
        cells.push(number(row.runs.len().to_string()));
        table.row(cells);
    }
    table
}

/// What a table must say about where its numbers are from.
fn origin(plan: &Plan<Config>, document: &Value) -> String {
    let list = |key: &str| {
        let all = document.get(key).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<&str>>().join(", ")
    };
    format!(
        "Mean ± half the width of the 95 % interval over {} seeds (t distribution). Data {}; commit {}.",
        plan.seeds.len(),
        list("data_digests"),
        list("commits")
    )
}

/// A picture for each measure that was taken.
fn plots(rows: &[Row<'_>]) -> Vec<(String, Plot)> {
    let names: Vec<String> = rows.iter().map(|r| r.point.name.clone()).collect();
    let plot = |(key, label, _): (&'static str, &str, usize)| {
        let points = rows
            .iter()
            .enumerate()
            .filter_map(|(i, r)| r.mean(key).map(|m| Dot { x: i as f64, y: m.value, half: m.half }));
        // One letter a tick, if the names are long; the table has them in the same order.
        let long = names.iter().map(|n| n.chars().count()).sum::<usize>() > 70;
        let ticks = if long { (1..=names.len()).map(|i| i.to_string()).collect() } else { names.clone() };
        let below = if long { "row of the table" } else { "point" };
        let (title, unit) = label.split_once(", ").unwrap_or((label, "ratio"));
        let plot = Plot::new(title, Axis::named(below, ticks), Axis::new(unit, Scale::Linear)).with(
            "mean and 95 % interval",
            Mark::Dots,
            points.collect(),
        );
        (key.to_owned(), plot)
    };
    MEASURES.into_iter().map(plot).filter(|p| !p.1.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student() {
        // The usual tables.
        for (degrees, quantile) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (30, 2.042),
            (120, 1.980),
        ] {
            assert!(
                (student_quantile(degrees) - quantile).abs() < 6e-4,
                "{degrees}: {}",
                student_quantile(degrees)
            );
        }
    }

    #[test]
    fn intervals_over_seeds() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[2.0]), Some(Mean { value: 2.0, half: None }));
        let found = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        // s = √2.5, so 2.776·√2.5/√5.
        assert!((found.value - 3.0).abs() < 1e-12 && (found.half.unwrap() - 1.9632).abs() < 1e-3);
    }
}
