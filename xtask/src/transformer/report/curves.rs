//! Pictures of one run or of several on shared axes. With one run each picture has the run's parts in it, with
//! several it has one series a run.

use serde_json::Value;

use super::run::Run;
use crate::draw::plot::{Mark, Plot, Point};
use crate::draw::{Axis, Scale};

/// Fewer targets than this make a mean that is mostly noise.
const FEW: u64 = 30;

fn points(curve: Vec<(f64, f64)>) -> Vec<Point> {
    curve.into_iter().map(|(x, y)| Point::at(x, y)).collect()
}

fn over_targets(title: &str, label: &str, scale: Scale) -> Plot {
    Plot::new(title, Axis::new("targets seen", Scale::FromZero), Axis::new(label, scale))
}

/// A picture of one field of the metrics: title, quantity, scale, kind of the lines, field, mark.
type Curve = (&'static str, &'static str, Scale, &'static str, &'static str, Mark);

const NATS: &str = "nats per token, logarithmic";
const LOSSES: [Curve; 2] = [
    ("Training loss", NATS, Scale::Log, "update", "loss", Mark::Thin),
    ("Validation loss", NATS, Scale::Log, "eval", "nats_per_token", Mark::Dotted),
];
const CURVES: [Curve; 3] = [
    ("Validation loss above the exact optimum", NATS, Scale::Log, "eval", "excess", Mark::Dotted),
    ("Learning rate", "per update", Scale::FromZero, "update", "lr", Mark::Line),
    (
        "Gradient norm before clipping",
        "global norm, logarithmic",
        Scale::Log,
        "update",
        "grad_norm",
        Mark::Thin,
    ),
];
const SPEED: Curve =
    ("Speed", "targets per second", Scale::FromZero, "update", "targets_per_second", Mark::Thin);

/// The pictures of training.
pub(crate) fn training(runs: &[Run]) -> Vec<Plot> {
    let mut plots: Vec<Plot> = match runs {
        [run] => vec![losses(run)],
        _ => LOSSES.iter().map(|curve| each(runs, curve).level("optimum", shared_optimum(runs))).collect(),
    };
    plots.extend(CURVES.iter().map(|curve| each(runs, curve)));
    plots.push(each(runs, &SPEED).noted("training alone, validation left out"));
    plots.retain(|p| !p.is_empty());
    plots
}

fn losses(run: &Run) -> Plot {
    over_targets("Loss", NATS, Scale::Log)
        .with("training", Mark::Thin, points(run.curve("update", "loss")))
        .with("validation", Mark::Dotted, points(run.curve("eval", "nats_per_token")))
        .level("exact optimum", run.optimum())
}

/// The optimum, if all runs have the same.
fn shared_optimum(runs: &[Run]) -> Option<f64> {
    let first = runs.first()?.optimum()?;
    runs.iter().all(|r| r.optimum().is_some_and(|o| (o - first).abs() < 1e-9)).then_some(first)
}

fn each(runs: &[Run], (title, label, scale, kind, key, mark): &Curve) -> Plot {
    let plot = over_targets(title, label, *scale);
    runs.iter().fold(plot, |plot, run| plot.with(&run.group, *mark, points(run.curve(kind, key))))
}

/// Where the loss above the optimum comes from: by level, depth, position.
pub(crate) fn groups(runs: &[Run]) -> Vec<Plot> {
    let kinds = [
        ("by_level", "Excess by structural level", "level"),
        ("by_depth", "Excess by quantifier depth", "quantifier depth of the formula"),
        ("by_position", "Excess by position", "position of the target, from 1"),
    ];
    let mut plots: Vec<Plot> = kinds.iter().map(|k| by(runs, k.0, k.1, k.2)).collect();
    plots.retain(|p| !p.is_empty());
    plots
}

fn by(runs: &[Run], list: &str, title: &str, label: &str) -> Plot {
    let y = Axis::new("nats per token", Scale::Linear);
    if list == "by_position" {
        let mut plot = Plot::new(title, Axis::new(label, Scale::Linear), y);
        let mut left_out = 0;
        for run in runs {
            let rows: Vec<Row> = rows(run, list);
            let enough: Vec<&Row> = rows.iter().filter(|r| r.targets >= FEW).collect();
            left_out = left_out.max(rows.len() - enough.len());
            let at = |r: &&Row| Some((r.key.parse().ok()?, r.kl, r.excess));
            let values: Vec<(f64, f64, f64)> = enough.iter().filter_map(at).collect();
            if runs.len() == 1 {
                plot = plot.with("mean KL", Mark::Line, values.iter().map(|v| Point::at(v.0, v.1)).collect());
                plot = plot.with(
                    "excess on the targets",
                    Mark::Dots,
                    values.iter().map(|v| Point::at(v.0, v.2)).collect(),
                );
            } else {
                plot =
                    plot.with(&run.group, Mark::Line, values.iter().map(|v| Point::at(v.0, v.1)).collect());
            }
        }
        let note = match left_out {
            0 => String::new(),
            n => format!("positions left out, as they have fewer than {FEW} targets: {n}"),
        };
        return plot.noted(note);
    }
    let mut names: Vec<String> = Vec::new();
    for row in runs.iter().flat_map(|r| rows(r, list)) {
        if !names.contains(&row.key) {
            names.push(row.key);
        }
    }
    names.sort_by_key(|n| (n.parse::<u64>().unwrap_or(u64::MAX), n.clone()));
    let place = |key: &str| names.iter().position(|n| n == key).map_or(f64::NAN, |i| i as f64);
    let mut plot = Plot::new(title, Axis::named(label, names.clone()), y);
    for run in runs {
        let rows = rows(run, list);
        let kl = rows.iter().map(|r| Point::at(place(&r.key), r.kl)).collect();
        plot = match runs {
            [_] => plot.with("mean KL", Mark::Bars, kl).with(
                "excess on the targets",
                Mark::Dots,
                rows.iter().map(|r| Point::at(place(&r.key), r.excess)).collect(),
            ),
            _ if runs.len() <= 6 => plot.with(&run.group, Mark::Bars, kl),
            _ => plot.with(&run.group, Mark::Dotted, kl),
        };
    }
    plot
}

/// A row of a table by level, class, position or depth.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) targets: u64,
    pub(crate) nats: f64,
    pub(crate) optimum: f64,
    pub(crate) excess: f64,
    pub(crate) kl: f64,
    pub(crate) top1: f64,
}

/// The rows of such a table in `eval.json`.
pub(crate) fn rows(run: &Run, list: &str) -> Vec<Row> {
    let all = run.eval.pointer(&format!("/iid/{list}")).and_then(Value::as_array);
    let row = |v: &Value| {
        let number = |key: &str| v.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        Some(Row {
            key: match v.get("key")? {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            },
            targets: v.get("targets").and_then(Value::as_u64).unwrap_or(0),
            nats: number("nats_per_token"),
            optimum: number("optimum"),
            excess: number("excess"),
            kl: number("kl"),
            top1: number("top1"),
        })
    };
    all.into_iter().flatten().filter_map(row).collect()
}

/// Confidence against the share of hits.
pub(crate) fn calibration(runs: &[Run]) -> Option<Plot> {
    let unit = |label: &str| Axis::new(label, Scale::Linear).within(0.0, 1.0);
    let mut plot = Plot::new(
        "Calibration",
        unit("largest probability of the model, mean of the bin"),
        unit("share of hits"),
    );
    plot.diagonal = true;
    for run in runs {
        let bins = run.eval.pointer("/iid/calibration/bins").and_then(Value::as_array);
        let bin = |b: &Value| Some(Point::at(b.get(0)?.as_f64()?, b.get(1)?.as_f64()?));
        let points = bins.into_iter().flatten().filter_map(bin).collect();
        plot = plot.with(&run.group, if runs.len() == 1 { Mark::Dots } else { Mark::Dotted }, points);
    }
    let plot = plot.noted("15 bins of equal count; on the diagonal confidence is truth");
    (!plot.is_empty()).then_some(plot)
}
