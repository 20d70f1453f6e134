//! What a sweep showed: one row a point, with 95 % intervals over seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::config::Config;
use super::measures::MEASURES;
use super::report::{Run, comparison, depth_plot, depths, numbers_of};
use super::verdict::{self, Showing};
use crate::draw::html::{Table, number, text};
use crate::draw::numbers::{count, duration, fixed, plus_minus};
use crate::draw::plot::{Mark, Plot, Point as Dot};
use crate::draw::{Axis, Scale};
use crate::sweep::statistics::{Mean, mean};
use crate::sweep::values::shown;
use crate::sweep::{Plan, Point, Summary};

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
        row.insert("compute".to_owned(), measured("compute"));
        row.insert("seconds".to_owned(), measured("seconds"));
        Value::Object(row)
    }
}

/// What the runs of a sweep showed.
pub(crate) fn summary(plan: &Plan<Config>, points: &[Point<Config>]) -> Result<Summary> {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    let mut seen_first: BTreeMap<String, (PathBuf, String)> = BTreeMap::new();
    for point in points {
        let mut row = Row { point, runs: Vec::new() };
        for job in &point.runs {
            let mut run = Run::read(&job.folder)?;
            run.name = format!("{}/seed-{}", point.name, job.config.seed);
            run.group.clone_from(&point.name);
            for (data, digest) in judged_on(&run) {
                let (first, as_there) =
                    seen_first.entry(data.clone()).or_insert((job.folder.clone(), digest.clone()));
                if *as_there != digest {
                    bail!(
                        "{}: the data set {data} has the digest {digest} there, and {as_there} in {}: the runs of a sweep \
                         have the same data; move the runs of one of them away",
                        job.folder.display(),
                        first.display()
                    );
                }
            }
            row.runs.push(line(point, &run));
            all.push(run);
        }
        rows.push(row);
    }
    let lines: Vec<Map<String, Value>> = rows.iter().flat_map(|r| r.runs.clone()).collect();
    let mut document = document(plan, &rows, &lines);
    let mut tables = vec![("Points".to_owned(), table(&rows), Vec::new())];
    let mut plots = plots(&rows);
    plots.extend(by_depth(&rows, &all));
    let seen = |row: &Row<'_>| Showing {
        numbers: row.runs.clone(),
        folders: row.point.runs.iter().map(|job| job.folder.clone()).collect(),
    };
    let verdicts = verdict::of::<Config>(&plan.claims, &rows.iter().map(seen).collect::<Vec<Showing>>())?;
    if !verdicts.is_empty() {
        document["claims"] = verdict::document(&verdicts);
        tables.extend(verdict::tables(&verdicts));
        plots.extend(verdict::plots(&verdicts));
    }
    Ok(Summary {
        lines,
        columns: &["point", "seed"],
        origin: origin(plan, &document),
        tables,
        plots,
        further: comparison(&all),
        file: ("table.json", document.clone()),
        document,
    })
}

/// The data sets that a run was judged on, its own first, with their digests.
fn judged_on(run: &Run) -> Vec<(String, String)> {
    let own = run.data_digest().map(|digest| (run.config.data.clone(), digest.to_owned()));
    let others = run.eval.get("transfer").and_then(Value::as_object).into_iter().flatten();
    let others = others
        .filter_map(|(name, answer)| Some((name.clone(), answer.get("data_digest")?.as_str()?.to_owned())));
    own.into_iter().chain(others).collect()
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
    line.insert("commit".to_owned(), json!(run.commit()));
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
    // What no run was judged by has no column.
    let measures: Vec<_> =
        MEASURES.iter().filter(|m| rows.iter().any(|row| row.mean(m.0).is_some())).collect();
    let mut head = vec!["#".to_owned(), "point".to_owned()];
    head.extend(selects.then(|| "chosen".to_owned()));
    head.extend(measures.iter().map(|m| format!("#{}", m.1)));
    head.extend(["#parameters", "#TFLOP", "#training", "#seeds"].map(ToOwned::to_owned));
    let mut table = Table::new(head);
    for (i, row) in rows.iter().enumerate() {
        let mut cells = vec![number((i + 1).to_string()), text(row.point.name.clone())];
        cells.extend(selects.then(|| text(row.chosen())));
        cells.extend(measures.iter().map(|m| number(row.shown(m.0, m.2))));
        cells.push(number(count(row.mean("parameters").map(|m| m.value as u64))));
        cells.push(number(fixed(row.mean("compute").map(|m| m.value), 1)));
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
    let mut plots: Vec<(String, Plot)> = MEASURES.into_iter().map(plot).collect();
    plots.push(("compute".to_owned(), against_compute(rows)));
    plots.extend(by_names(rows));
    plots.retain(|p| !p.1.is_empty());
    plots
}

/// What the document expects of each figure: its least and greatest value.
const EXPECTED: [(&str, &str, [Option<f64>; 2]); 4] = [
    ("top1", "Top-1", [Some(0.60), Some(0.70)]),
    ("top5", "Top-5", [Some(0.85), Some(0.92)]),
    ("top10", "Top-10", [Some(0.90), Some(0.95)]),
    ("perplexity", "Perplexity", [None, Some(20.0)]),
];

/// The figures that the document expects, over the number of names of the law: attained, optimal, and of the unigram.
/// Nothing where the points have one law.
fn by_names(rows: &[Row<'_>]) -> Vec<(String, Plot)> {
    let mut sorted: Vec<(f64, &Row<'_>)> =
        rows.iter().filter_map(|row| Some((row.mean("names")?.value, row))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let distinct = sorted.iter().zip(sorted.iter().skip(1)).all(|(a, b)| a.0 < b.0);
    if sorted.len() < 3 || sorted.len() < rows.len() || !distinct {
        return Vec::new();
    }
    let plot = |(key, title, [least, greatest]): (&str, &str, [Option<f64>; 2])| {
        let (unit, scale) =
            if key == "perplexity" { ("perplexity", Scale::Log) } else { ("share", Scale::Linear) };
        let dots = |key: &str| -> Vec<Dot> {
            let dot =
                |&(x, row): &(f64, &Row<'_>)| row.mean(key).map(|m| Dot { x, y: m.value, half: m.half });
            sorted.iter().filter_map(dot).collect()
        };
        let plot = Plot::new(title, Axis::new("names of the law", Scale::Log), Axis::new(unit, scale))
            .noted("attained on the unfiltered set, mean and 95 % interval over seeds")
            .with("attained", Mark::Dots, dots(key))
            .with("optimal", Mark::Dotted, dots(&format!("{key}_optimum")))
            .with("unigram", Mark::Dotted, dots(&format!("{key}_unigram")))
            .level("expected, least", least)
            .level("expected, greatest", greatest);
        (format!("expected-{key}"), plot)
    };
    EXPECTED.into_iter().map(plot).collect()
}

/// Valid answers of every point over the number of rule applications, mean and interval over seeds, beside the commonest answer
/// where all points have one data set.
fn by_depth(rows: &[Row<'_>], runs: &[Run]) -> Option<(String, Plot)> {
    let of = |group: Option<&str>, name: &dyn Fn(&Run) -> String| -> Vec<(f64, Mean)> {
        let mut found: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in runs.iter().filter(|run| group.is_none_or(|group| run.group == group)) {
            for (depth, valid) in depths(&run.eval, &name(run)).0 {
                found.entry(depth).or_default().push(valid);
            }
        }
        found.into_iter().filter_map(|(depth, values)| Some((depth as f64, mean(&values)?))).collect()
    };
    let mut lines = Vec::new();
    for row in rows {
        let own = of(Some(&row.point.name), &|run| run.config.model.name().to_owned());
        let points = own.into_iter().map(|(x, m)| Dot { x, y: m.value, half: m.half });
        lines.push((row.point.name.clone(), points.collect::<Vec<Dot>>()));
    }
    lines.retain(|line| !line.1.is_empty());
    let trained = runs.iter().filter_map(|run| depths(&run.eval, run.config.model.name()).1).max();
    let digests: BTreeSet<Option<&str>> =
        runs.iter().map(|run| run.eval.get("data_digest")?.as_str()).collect();
    if !lines.is_empty() && digests.len() == 1 {
        let beside = of(None, &|_| "majority".to_owned()).into_iter().map(|(x, m)| Dot::at(x, m.value));
        lines.push(("commonest answer".to_owned(), beside.collect()));
    }
    (!lines.is_empty()).then(|| ("valid-depth".to_owned(), depth_plot(lines, trained)))
}

/// The excess of every point over what its training computed.
fn against_compute(rows: &[Row<'_>]) -> Plot {
    let mut plot = Plot::new(
        "Excess against compute",
        Axis::new("TFLOP of training", Scale::Log),
        Axis::new("nats per token", Scale::FromZero),
    )
    .noted("six operations for each parameter and target; mean and 95 % interval over seeds");
    for row in rows {
        if let (Some(compute), Some(excess)) = (row.mean("compute"), row.mean("excess")) {
            let dot = Dot { x: compute.value, y: excess.value, half: excess.half };
            plot = plot.with(&row.point.name, Mark::Dots, vec![dot]);
        }
    }
    plot
}
