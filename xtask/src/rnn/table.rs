//! What a sweep of recurrent runs showed: a table and a picture for each task, and a verdict.
//!
//! A *variant* is a point of the sweep without its task. For each task the best `ll` variant by validation loss meets
//! the strongest baseline (section 12); a sweep of `ll` alone compares its arms, key by key.

use std::collections::BTreeSet;

use anyhow::Result;
use linear_logic_rnn::statistics::{Report, Row, Sample, median, strongest};
use serde_json::{Map, Value, json};

use super::arm::{Arm, MEASURES, Run, primary, word};
use super::config::Config;
use super::contrast;
use crate::draw::html::{self, Column, Table};
use crate::draw::numbers::{count, fixed, p_value};
use crate::draw::plot::{Mark, Plot, Point as Dot};
use crate::draw::{Axis, Scale};
use crate::sweep::values::{name_of, shown};
use crate::sweep::{Plan, Point, Summary};

/// What the runs of a sweep showed.
pub(crate) fn summary(plan: &Plan<Config>, points: &[Point<Config>]) -> Result<Summary> {
    let mut arms = Vec::new();
    for point in points {
        arms.extend(Arm::read(point)?);
    }
    let lines = lines(&arms);
    if !plan.contrasts.is_empty() {
        return contrasted(plan, &arms, lines);
    }
    let report = verdict(&plan.name, &arms);
    let found = serde_json::to_value(&report)?;
    let notes = vec![report.question.clone(), LIMITS.to_owned()];
    let mut tables = vec![(format!("Verdict: {}", word(&report.verdict)), verdict_table(&report), notes)];
    tables.extend(
        by_task(&arms).into_iter().map(|(task, arms)| (task.to_owned(), table(task, &arms), Vec::new())),
    );
    let document = json!({
        "schema": "xtask/1", "command": "sweep", "name": plan.name, "seeds": plan.seeds,
        "commits": commits(&arms), "verdict": found, "rows": lines,
    });
    Ok(Summary {
        lines,
        columns: &COLUMNS,
        origin: origin(plan, &arms),
        tables,
        plots: plots(&arms),
        further: html::join([]),
        file: ("verdict.json", found),
        document,
    })
}

const COLUMNS: [&str; 12] = [
    "task",
    "cell",
    "variant",
    "seed",
    "lr",
    "total_params",
    "length",
    "symbol_error",
    "sequence_exact",
    "last_symbol",
    "status",
    "seconds",
];

/// The rows of `table.csv`.
fn lines(arms: &[Arm<'_>]) -> Vec<Map<String, Value>> {
    let mut lines = Vec::new();
    for arm in arms {
        for run in &arm.runs {
            for entry in &run.entries {
                let mut line = Map::new();
                let mut put = |key: &str, value: Value| _ = line.insert(key.to_owned(), value);
                put("task", json!(arm.task));
                put("cell", json!(arm.cell));
                put("variant", json!(arm.name));
                put("seed", json!(run.seed));
                put("lr", json!(run.lr));
                put("total_params", json!(run.params));
                put("length", json!(entry.length));
                for measure in MEASURES {
                    put(measure, json!(entry.values.get(measure)));
                }
                if arm.has_goal {
                    put("cell_params", json!(run.cell_params));
                    put("reached_at", json!(run.reached_at));
                    put("gates_right", json!(run.gates_right));
                    put("selected", json!(arm.selected));
                }
                put("status", json!(run.status));
                put("seconds", json!(run.seconds));
                lines.push(line);
            }
        }
    }
    lines
}

/// The arms by task, in the order of the sweep.
fn by_task<'a, 'b>(arms: &'b [Arm<'a>]) -> Vec<(&'b str, Vec<&'b Arm<'a>>)> {
    let mut tasks: Vec<(&str, Vec<&Arm<'_>>)> = Vec::new();
    for arm in arms {
        match tasks.iter_mut().find(|(task, _)| *task == arm.task) {
            Some((_, list)) => list.push(arm),
            None => tasks.push((&arm.task, vec![arm])),
        }
    }
    tasks
}

/// The arm of the least median validation loss; ties keep the earlier.
fn best<'b, 'a>(arms: impl Iterator<Item = &'b Arm<'a>>) -> Option<&'b Arm<'a>>
where
    'a: 'b,
{
    arms.reduce(|best, next| if next.validation() < best.validation() { next } else { best })
}

fn verdict(name: &str, arms: &[Arm<'_>]) -> Report {
    let (proofs, others) = (arms.iter().any(|arm| arm.cell == "ll"), arms.iter().any(|arm| arm.cell != "ll"));
    let question = match (proofs, others) {
        (true, true) => {
            format!("{name}: does the best linear-logic cell do better than the strongest baseline?")
        }
        (false, true) => {
            format!("{name}: does the best cell, by validation, do better than the strongest other?")
        }
        (_, false) => {
            format!(
                "{name}: does the first of two settings do better than the second, each with its best arm?"
            )
        }
    };
    let mut rows = Vec::new();
    for (task, arms) in by_task(arms) {
        if others && !proofs {
            let Some(candidate) = best(arms.iter().copied()) else { continue };
            let rest = arms.iter().filter(|arm| !std::ptr::eq(**arm, candidate));
            let rest: Vec<Sample> = rest.map(|arm| arm.sample()).collect();
            rows.extend(strongest(&rest).map(|other| Row::new(task, &candidate.sample(), other)));
        } else if others {
            let baselines: Vec<Sample> =
                arms.iter().filter(|arm| arm.cell != "ll").map(|arm| arm.sample()).collect();
            let candidate = best(arms.iter().copied().filter(|arm| arm.cell == "ll"));
            if let (Some(candidate), Some(baseline)) = (candidate, strongest(&baselines)) {
                rows.push(Row::new(task, &candidate.sample(), baseline));
            }
        } else {
            rows.extend(settings(task, &arms));
        }
    }
    Report::new(question, rows)
}

/// For every key with several values, each pair of them by its best arms.
fn settings(task: &str, arms: &[&Arm<'_>]) -> Vec<Row> {
    // Sizes follow from the budget and are no settings.
    let is_setting =
        |key: &&String| !["task", "name", "hidden", "aux", "aux2", "budget"].contains(&key.as_str());
    let mut keys: Vec<&String> = arms.iter().flat_map(|arm| arm.keys.keys()).filter(is_setting).collect();
    keys.sort();
    keys.dedup();
    let mut rows = Vec::new();
    for key in keys {
        let mut values: Vec<String> = Vec::new();
        for value in arms.iter().filter_map(|arm| arm.keys.get(key)).map(shown) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let with = |value: &str| {
            let arm =
                best(arms.iter().copied().filter(|a| a.keys.get(key).map(shown).as_deref() == Some(value)))?;
            Some(Sample { name: format!("{key}={value} ({})", arm.name), ..arm.sample() })
        };
        for (at, first) in values.iter().enumerate() {
            for second in values.iter().skip(at + 1) {
                if let (Some(first), Some(second)) = (with(first), with(second)) {
                    rows.push(Row::new(task, &first, &second));
                }
            }
        }
    }
    rows
}

/// What the runs of a sweep with contrasts showed.
fn contrasted(plan: &Plan<Config>, arms: &[Arm<'_>], lines: Vec<Map<String, Value>>) -> Result<Summary> {
    let found = contrast::judge(&plan.contrasts, arms)?;
    let notes = plan.contrasts.iter().map(|c| format!("{}: {}", c.name, c.says)).collect();
    let mut tables = vec![("Verdict".to_owned(), contrast::table(&found), notes)];
    tables.extend(
        by_task(arms).into_iter().map(|(task, arms)| (task.to_owned(), table(task, &arms), Vec::new())),
    );
    let found = json!({"contrasts": found, "commits": commits(arms)});
    let document = json!({
        "schema": "xtask/1", "command": "sweep", "name": plan.name, "seeds": plan.seeds, "verdict": found, "rows": lines,
    });
    Ok(Summary {
        lines,
        columns: &COLUMNS,
        origin: origin(plan, arms),
        tables,
        plots: plots(arms),
        further: html::join([]),
        file: ("verdict.json", found),
        document,
    })
}

/// The arms of a task.
fn table(task: &str, arms: &[&Arm<'_>]) -> Table {
    let measure = primary(task);
    let lengths = arms.first().map(|arm| arm.lengths()).unwrap_or_default();
    let has_goal = arms.iter().any(|arm| arm.has_goal);
    let is_planted = arms.iter().any(|arm| arm.runs.iter().any(|run| run.gates_right.is_some()));
    let mut head = vec!["variant", "#weights"];
    if has_goal {
        head.push("#multiply-adds");
    }
    head.push(if has_goal { "chosen" } else { "#lr" });
    head.push("#validation");
    if has_goal {
        head.extend(["#reached", "#updates until then", "#solved"]);
    }
    if is_planted {
        head.push("#gates right");
    }
    let mut head: Vec<String> = head.into_iter().map(ToOwned::to_owned).collect();
    head.extend(lengths.iter().map(|length| format!("#{measure} at {length}")));
    head.extend(["#diverged", "#seconds"].map(ToOwned::to_owned));
    let mut table = Table::new(head);
    for arm in arms {
        let first = arm.runs.first();
        let mut cells = vec![
            html::text(arm.name.clone()),
            html::number(match first {
                Some(Run { params, cell_params: Some(cell), .. }) if arm.has_goal => {
                    format!("{params} ({cell})")
                }
                first => count(first.map(|r| r.params)),
            }),
        ];
        if has_goal {
            cells.push(html::number(arm.multiply_adds.to_string()));
            cells.push(html::text(name_of(arm.selected)));
        } else {
            cells.push(html::number(first.map_or_else(String::new, |r| r.lr.to_string())));
        }
        cells.push(html::number(fixed(Some(arm.validation()).filter(|v| v.is_finite()), 4)));
        if has_goal {
            let reached = arm.runs.iter().filter(|run| run.reached_at.is_some()).count();
            let solved = contrast::trials(arm).iter().filter(|trial| trial.solved).count();
            let runs = arm.runs.len();
            // Runs that never reached it stand behind all others.
            let updates: Vec<f64> =
                arm.runs.iter().map(|run| run.reached_at.map_or(f64::INFINITY, |at| at as f64)).collect();
            let middle = median(&updates).filter(|m| m.is_finite());
            cells.push(html::number(format!("{reached} of {runs}")));
            cells.push(html::number(middle.map_or_else(|| "never".to_owned(), |m| m.to_string())));
            cells.push(html::number(format!("{solved} of {runs}")));
        }
        if is_planted {
            let shares: Vec<f64> = arm.runs.iter().filter_map(|run| run.gates_right).collect();
            cells.push(html::number(fixed(median(&shares), 3)));
        }
        for length in &lengths {
            cells.push(html::number(match arm.spread(*length, measure) {
                Some((middle, worst)) => format!("{middle:.4} ({worst:.4})"),
                None => "–".to_owned(),
            }));
        }
        let diverged = arm.runs.iter().filter(|r| r.status == "diverged").count();
        let seconds: Vec<f64> = arm.runs.iter().map(|r| r.seconds).collect();
        cells.extend([diverged.to_string(), fixed(median(&seconds), 1)].map(html::number));
        table.row(cells);
    }
    table
}

fn origin(plan: &Plan<Config>, arms: &[Arm<'_>]) -> String {
    format!(
        "Median (worst) over {} seeds; lr chosen by validation loss on other seeds where the sweep selects. Commit that \
         trained: {}.",
        plan.seeds.len(),
        commits(arms).join(", ")
    )
}

/// The commits that trained the runs.
fn commits(arms: &[Arm<'_>]) -> Vec<String> {
    let all: BTreeSet<&String> = arms.iter().flat_map(|arm| arm.runs.iter().map(|run| &run.commit)).collect();
    all.into_iter().cloned().collect()
}

/// Known limits, which every report states.
const LIMITS: &str = "Copy and reverse need memory that grows with the length, so no finite-state cell generalises \
                      on them. A diagonal V can realise any automaton but needs K = m·|Q| for m symbols, where a full \
                      V needs K = |Q|.";

fn verdict_table(report: &Report) -> Table {
    let columns: &[Column<'_, Row>] = &[
        ("task", &|row| html::text(&row.task)),
        ("candidate", &|row| html::text(&row.candidate)),
        ("#median", &|row| html::number(fixed(row.medians.candidate, 4))),
        ("baseline", &|row| html::text(&row.baseline)),
        ("#median", &|row| html::number(fixed(row.medians.baseline, 4))),
        ("#p", &|row| html::number(p_value(row.p))),
        ("result", &|row| html::text(word(&row.result))),
    ];
    Table::of(&report.rows, columns)
}

/// Accuracy against length, one picture for each task.
fn plots(arms: &[Arm<'_>]) -> Vec<(String, Plot)> {
    let plot = |(task, arms): (&str, Vec<&Arm<'_>>)| {
        let measure = primary(task);
        let label = if measure == "last_symbol" { "right last symbols" } else { "exact sequences" };
        let most = arms.iter().flat_map(|arm| arm.lengths()).max().unwrap_or(1).max(2);
        let mut plot = Plot::new(
            task,
            Axis::new("length", Scale::Log).within(1.0, most as f64),
            Axis::new(label, Scale::Linear).within(0.0, 1.0),
        )
        .noted("median over seeds; the band is their range; training lengths are shaded");
        for arm in &arms {
            let lengths = arm.lengths();
            let points: Vec<Dot> = lengths
                .iter()
                .filter_map(|length| Some(Dot::at(*length as f64, median(&arm.values(*length, measure))?)))
                .collect();
            let band = lengths.iter().filter_map(|length| {
                let values = arm.values(*length, measure);
                let least = values.iter().copied().reduce(f64::min)?;
                Some((*length as f64, least, values.iter().copied().reduce(f64::max)?))
            });
            plot = plot.with(&arm.name, Mark::Dotted, points).band(&arm.name, band.collect());
        }
        let longest = arms.iter().map(|arm| arm.longest_training).max().unwrap_or(0);
        (format!("accuracy-{task}"), plot.shaded(longest as f64))
    };
    by_task(arms).into_iter().map(plot).collect()
}
