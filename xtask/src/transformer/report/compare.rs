//! The page of several runs: one table, shared axes.

use maud::Markup;
use serde_json::{Map, Value, json};

use super::curves;
use super::run::Run;
use crate::draw::html::{self, Table, number, text};
use crate::draw::numbers::{count, duration, fixed, percent, plus_minus};
use crate::expect;

/// The page of several runs.
pub(crate) fn page(title: &str, runs: &[Run]) -> String {
    let lead = format!("{} runs on shared axes.", count(Some(runs.len() as u64)));
    html::page(title, &html::join([html::heading(title, &lead), parts(runs)]))
}

/// What the page says below its heading.
pub(crate) fn parts(runs: &[Run]) -> Markup {
    let parts = [
        ("Runs", table(runs)),
        ("What differs", differences(runs)),
        ("Training", figures(curves::training(runs), "Left out: no run has metrics.")),
        (
            "Mean KL by group",
            figures(curves::groups(runs), "Left out: no run has an eval.json with the suite iid."),
        ),
        (
            "Calibration",
            figures(
                curves::calibration(runs).into_iter().collect(),
                "Left out: no run has an eval.json with the suite iid.",
            ),
        ),
        ("Data and commits", origins(runs)),
    ];
    let parts = parts.iter().map(|(title, part)| html::section(title, part));
    html::join(std::iter::once(warnings(runs)).chain(parts))
}

fn figures(plots: Vec<crate::draw::plot::Plot>, otherwise: &str) -> Markup {
    let figures: Vec<String> = plots.iter().map(|p| p.figure()).collect();
    if figures.is_empty() { html::left_out(otherwise) } else { html::figures(&figures) }
}

fn warnings(runs: &[Run]) -> Markup {
    let mut all = Vec::new();
    let mut digests: Vec<String> = runs.iter().filter_map(Run::data_digest).collect();
    digests.sort();
    digests.dedup();
    if digests.len() > 1 {
        all.push(html::warning(
            "These runs were judged on different data: compare the excess over the optimum, not the losses.",
        ));
    }
    for run in runs {
        let missed = expect::missed(&run.expectations()).into_iter();
        all.extend(missed.map(|m| html::warning(&format!("{}: {m}", run.name))));
        if let Some(failed) = run.eval.get("failed").and_then(Value::as_str) {
            all.push(html::warning(&format!("{}: evaluation failed: {failed}.", run.name)));
        }
    }
    html::join(all)
}

fn table(runs: &[Run]) -> Markup {
    let mut table = Table::new([
        "run",
        "model",
        "#parameters",
        "#nats per token",
        "#excess, 95 %",
        "#mean KL",
        "#bits per formula",
        "#top-1",
        "#top-1 ratio",
        "#calibration error",
        "#parsed",
        "#best validation",
        "#updates",
        "#training",
    ]);
    for run in runs {
        table.row(vec![
            text(run.name.clone()),
            text(run.model_name()),
            number(count(run.parameters())),
            number(fixed(run.eval("/iid/nats_per_token"), 4)),
            number(plus_minus(
                run.eval("/iid/excess/value"),
                run.eval("/iid/excess/se").map(|s| 1.96 * s),
                4,
            )),
            number(fixed(run.eval("/iid/kl/value"), 4)),
            number(fixed(run.eval("/iid/bits_per_formula"), 2)),
            number(percent(run.eval("/iid/top1/observed"), 2)),
            number(fixed(run.eval("/iid/top1/ratio"), 4)),
            number(fixed(run.eval("/iid/calibration/ece"), 4)),
            number(percent(run.eval("/generation/free/parsed"), 2)),
            number(fixed(run.best(), 4)),
            number(count(run.updates())),
            number(duration(run.seconds())),
        ]);
    }
    let mut optima: Vec<String> = runs
        .iter()
        .filter_map(|r| r.eval("/iid/optimum/nats_per_token"))
        .map(|o| fixed(Some(o), 4))
        .collect();
    optima.dedup();
    let mut part = vec![table.html()];
    if let [optimum] = optima.as_slice() {
        part.push(html::note(&format!("The exact optimum on the same targets is {optimum} nats per token.")));
    }
    html::join(part)
}

/// The keys of the configurations that are not the same everywhere.
fn differences(runs: &[Run]) -> Markup {
    let tables: Vec<toml::Table> =
        runs.iter().map(|r| toml::Table::try_from(&r.config).unwrap_or_default()).collect();
    let mut keys: Vec<&String> = tables.iter().flat_map(|t| t.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|k| {
        k.as_str() != "expect" && tables.iter().any(|t| t.get(*k) != tables.first().and_then(|f| f.get(*k)))
    });
    if keys.is_empty() {
        return html::left_out("All configurations are the same.");
    }
    let mut table = Table::new(["run".to_owned()].into_iter().chain(keys.iter().map(|k| (*k).clone())));
    for (run, config) in runs.iter().zip(&tables) {
        let values = keys.iter().map(|k| match config.get(*k) {
            Some(toml::Value::String(s)) => text(s.clone()),
            Some(value) => text(value.to_string()),
            None => text(crate::draw::numbers::MISSING),
        });
        table.row(std::iter::once(text(run.name.clone())).chain(values).collect());
    }
    table.html()
}

fn origins(runs: &[Run]) -> Markup {
    let mut table = Table::new(["run", "#seed", "data", "data digest", "commit", "device and machine"]);
    for run in runs {
        let digest = run.data_digest().unwrap_or_else(|| "unknown".to_owned());
        let commit =
            run.made_with("version").and_then(|v| v.split_once("commit ")).map_or("unknown", |c| c.1);
        table.row(vec![
            text(run.name.clone()),
            number(run.config.seed.to_string()),
            text(run.config.data.clone()),
            html::code(digest.get(..16).unwrap_or(&digest)),
            html::code(commit),
            text(run.made_with("device").unwrap_or("unknown")),
        ]);
    }
    table.html()
}

/// The numbers of a run that tables compare.
pub(crate) fn numbers_of(run: &Run) -> Value {
    let mut row = Map::new();
    row.insert("run".to_owned(), json!(run.name));
    row.insert("model".to_owned(), json!(run.config.model));
    row.insert("seed".to_owned(), json!(run.config.seed));
    row.insert("data_digest".to_owned(), json!(run.data_digest()));
    row.insert("parameters".to_owned(), json!(run.parameters()));
    for (key, pointer) in MEASURES {
        row.insert(key.to_owned(), json!(run.eval(pointer)));
    }
    row.insert("best_validation".to_owned(), json!(run.best()));
    row.insert("updates".to_owned(), json!(run.updates()));
    row.insert("targets".to_owned(), json!(run.targets()));
    row.insert("seconds".to_owned(), json!(run.seconds()));
    Value::Object(row)
}

/// The numbers of `eval.json` that tables compare.
const MEASURES: [(&str, &str); 9] = [
    ("nats_per_token", "/iid/nats_per_token"),
    ("optimum", "/iid/optimum/nats_per_token"),
    ("excess", "/iid/excess/value"),
    ("excess_se", "/iid/excess/se"),
    ("kl", "/iid/kl/value"),
    ("bits_per_formula", "/iid/bits_per_formula"),
    ("top1", "/iid/top1/observed"),
    ("top1_ratio", "/iid/top1/ratio"),
    ("parsed", "/generation/free/parsed"),
];
