//! `cargo xtask sweep --dry-run`: what each point of a sweep would cost, before anything is spent.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::plan::{Plan, Point};
use super::{finished, jobs, values::name_of};
use crate::draw::html::{Table, number, text};
use crate::draw::numbers::{count, duration, fixed};
use crate::learner::Learner;

/// The cost of all points as one document, with a step of each measured.
pub(crate) fn forecast<L: Learner>(plan: &Plan<L>, folder: &Path, at_once: usize) -> Result<Value> {
    // The rounds that are known: the next is made of what this one shows.
    let mut candidates = Vec::new();
    let chosen = plan.choose(folder, &mut |round| {
        candidates.extend_from_slice(round);
        let mut done = true;
        for job in round.iter().flat_map(|c| &c.runs) {
            done &= finished::is_finished(job)?;
        }
        Ok(done)
    })?;
    let points = plan.points(folder, chosen.as_deref())?;
    let mut rows = Vec::new();
    for (point, chooses) in candidates.iter().map(|c| (c, true)).chain(points.iter().map(|p| (p, false))) {
        rows.push(row(point, chooses, at_once).with_context(|| format!("point {}", point.name))?);
    }
    let sum = |key: &str| {
        let all = rows.iter().map(|row| row.get(key).and_then(Value::as_f64));
        all.collect::<Option<Vec<f64>>>().map(|all| all.iter().sum::<f64>())
    };
    Ok(json!({
        "schema": "xtask/1", "command": "sweep", "name": plan.name, "jobs": at_once, "runs": sum("runs"),
        "runs_left": sum("runs_left"), "seconds_left": sum("seconds_left").map(|s| s / at_once as f64), "points": rows,
    }))
}

fn row<L: Learner>(point: &Point<L>, chooses: bool, at_once: usize) -> Result<Value> {
    let mut left = 0_u64;
    for job in &point.runs {
        left += u64::from(!finished::is_finished(job)?);
    }
    let first = point.runs.first().context("no seeds")?;
    let forecast = jobs::pool(&first.config, at_once)?.install(|| first.config.forecast())?;
    let at = |pointer: &str| forecast.pointer(pointer).and_then(Value::as_f64);
    let speed = at("/step/items").zip(at("/step/seconds")).map(|(items, seconds)| items / seconds);
    let seconds = at("/seconds_estimated");
    Ok(json!({
        "point": point.name, "selected": point.selected, "chooses": chooses, "parameters": forecast.get("params"),
        "updates": forecast.get("total_updates"), "per_second": speed, "unit": forecast.pointer("/step/unit"),
        "tflop": at("/flop_estimated").map(|flop| flop / 1e12), "seconds": seconds, "runs": point.runs.len(),
        "runs_left": left, "seconds_left": seconds.map(|s| s * left as f64),
    }))
}

/// The same for people.
pub(crate) fn in_words<L: Learner>(plan: &Plan<L>, forecast: &Value) -> String {
    let rows = forecast.get("points").and_then(Value::as_array).into_iter().flatten();
    let unit = rows.clone().find_map(|row| row.get("unit")?.as_str()).unwrap_or("items");
    let mut table = Table::new([
        "point".to_owned(),
        "#parameters".to_owned(),
        "#updates".to_owned(),
        format!("#{unit} a second"),
        "#TFLOP".to_owned(),
        "#one run".to_owned(),
        "#runs to make".to_owned(),
        "#all of them".to_owned(),
    ]);
    for row in rows {
        let at = |key: &str| row.get(key).and_then(Value::as_f64);
        let whole = |key: &str| number(count(row.get(key).and_then(Value::as_u64)));
        let mut name = row.get("point").and_then(Value::as_str).unwrap_or_default().to_owned();
        if row.get("chooses") == Some(&Value::Bool(true)) {
            let selected = row.get("selected").cloned().unwrap_or_default();
            let selected: toml::Table = serde_json::from_value(selected).unwrap_or_default();
            name += &format!(", to choose: {}", name_of(&selected));
        }
        table.row(vec![
            text(name),
            whole("parameters"),
            whole("updates"),
            number(count(at("per_second").map(|s| s as u64))),
            number(fixed(at("tflop"), 1)),
            number(duration(at("seconds"))),
            number(format!("{} of {}", at("runs_left").unwrap_or(0.0), at("runs").unwrap_or(0.0))),
            number(duration(at("seconds_left"))),
        ]);
    }
    let at = |key: &str| forecast.get(key).and_then(Value::as_f64);
    format!(
        "{}\n{}: {} runs to make, about {} with {} at a time, by a step of each point measured now; data and evaluation \
         come on top.\n",
        table.markdown(),
        plan.name,
        at("runs_left").unwrap_or(0.0),
        duration(at("seconds_left")),
        at("jobs").unwrap_or(1.0),
    )
}
