//! The page of several runs: one table, shared axes.

use std::collections::BTreeMap;

use maud::Markup;
use serde_json::{Value, json};

use super::run::Run;
use super::{curves, suites};
use crate::draw::html::{self, Cell, Column, Table, number, text};
use crate::draw::numbers::{count, duration, fixed, percent};
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
    ];
    // Suites that are not everyone's.
    let suites = [
        ("Mean KL on prefixes of each kind", families(runs)),
        ("Seen inside", inside(runs)),
        ("Excess on other data", transfers(runs)),
    ];
    let suites = suites.into_iter().filter_map(|(title, part)| Some((title, part?)));
    let parts = parts.into_iter().chain(suites).chain([("Data and commits", origins(runs))]);
    let parts = parts.map(|(title, part)| html::section(title, &part));
    html::join(std::iter::once(warnings(runs)).chain(parts))
}

/// A row a run, a column for each name that any run has a cell for, in the order in which they are first found.
fn by_run(runs: &[Run], cells: impl Fn(&Run) -> Vec<(String, Cell)>) -> Option<Table> {
    let found: Vec<Vec<(String, Cell)>> = runs.iter().map(cells).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in found.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let head = std::iter::once("run".to_owned()).chain(names.iter().map(|name| format!("#{name}")));
    let mut table = Table::new(head);
    for (run, cells) in runs.iter().zip(&found).filter(|(_, cells)| !cells.is_empty()) {
        let cell = |name: &&String| {
            let of_run = cells.iter().find(|(n, _)| n == *name);
            of_run.map_or_else(|| number(crate::draw::numbers::MISSING.to_owned()), |(_, cell)| cell.clone())
        };
        table.row(std::iter::once(text(run.name.clone())).chain(names.iter().map(cell)).collect());
    }
    (!table.is_empty()).then_some(table)
}

/// What the suite `structure` says of each run.
fn families(runs: &[Run]) -> Option<Markup> {
    let table = by_run(runs, |run| {
        let families = run.eval.pointer("/structure/families").and_then(Value::as_array);
        let cell = |row: &Value| Some((row.get("family")?.as_str()?.to_owned(), suites::mean(row, "kl")));
        families.into_iter().flatten().filter_map(cell).collect()
    })?;
    Some(html::join([
        table.html(),
        html::note("Nats; the optimum has 0. ± half of a 95 % interval over texts."),
    ]))
}

/// What the suite `h3` says of each run, a number for each of its measures.
fn inside(runs: &[Run]) -> Option<Markup> {
    let table = by_run(runs, |run| {
        if !run.eval.get("h3").is_some_and(Value::is_object) {
            return Vec::new();
        }
        let measures = structure_of(&run.eval).into_iter();
        let cell = |(key, value): (String, Option<f64>)| {
            Some((key.strip_prefix("h3/")?.replace('-', " "), number(fixed(value, 3))))
        };
        measures.filter_map(cell).collect()
    })?;
    let note = "AUC of the best head for binders, parentheses and siblings (1/2: attention by place alone), rank correlation of \
                numerals, and of each probe the selectivity at its best layer above the embedding.";
    Some(html::join([table.html(), html::note(note)]))
}

/// What the suite `transfer` says of each run.
fn transfers(runs: &[Run]) -> Option<Markup> {
    let table = by_run(runs, |run| {
        let judged = run.eval.get("transfer").and_then(Value::as_object);
        let cell = |(name, row): (&String, &Value)| (name.clone(), suites::mean(row, "excess"));
        // Of inference tasks no optimum is known.
        judged.into_iter().flatten().filter(|(_, row)| row.get("splits").is_none()).map(cell).collect()
    })?;
    let note = "Nats per token over the optimum of each data set's own law. ± half of a 95 % interval over formulas.";
    Some(html::join([table.html(), html::note(note)]))
}

fn figures(plots: Vec<crate::draw::plot::Plot>, otherwise: &str) -> Markup {
    let figures: Vec<String> = plots.iter().map(|p| p.figure()).collect();
    if figures.is_empty() { html::left_out(otherwise) } else { html::figures(&figures) }
}

fn warnings(runs: &[Run]) -> Markup {
    let mut all = Vec::new();
    let mut digests: Vec<&str> = runs.iter().filter_map(Run::data_digest).collect();
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
    let table = Table::of(
        runs,
        &[
            ("run", &|run| text(&run.name)),
            ("model", &|run| text(run.model_name())),
            ("#parameters", &|run| number(count(run.parameters()))),
            ("#nats per token", &|run| number(fixed(run.eval("/iid/nats_per_token"), 4))),
            ("#excess, 95 %", &|run| number(run.interval("/iid/excess"))),
            ("#mean KL", &|run| number(fixed(run.eval("/iid/kl/value"), 4))),
            ("#bits per formula", &|run| number(fixed(run.eval("/iid/bits_per_formula"), 2))),
            ("#top-1", &|run| number(percent(run.eval("/iid/top1/observed"), 2))),
            ("#top-1 ratio", &|run| number(fixed(run.eval("/iid/top1/ratio"), 4))),
            ("#calibration error", &|run| number(fixed(run.eval("/iid/calibration/ece"), 4))),
            ("#parsed", &|run| number(percent(run.eval("/generation/free/parsed"), 2))),
            ("#best validation", &|run| number(fixed(run.best(), 4))),
            ("#updates", &|run| number(count(run.updates()))),
            ("#training", &|run| number(duration(run.seconds()))),
        ],
    );
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
    let digest = |run: &Run| html::code(run.data_digest().map_or("unknown", |d| d.get(..16).unwrap_or(d)));
    let columns: &[Column<'_, Run>] = &[
        ("run", &|run| text(&run.name)),
        ("#seed", &|run| number(run.config.seed.to_string())),
        ("data", &|run| text(&run.config.data)),
        ("data digest", &digest),
        ("commit", &|run| html::code(run.commit())),
        ("device and machine", &|run| text(run.made_with("device").unwrap_or("unknown"))),
    ];
    Table::of(runs, columns).html()
}

/// The numbers of a run that tables compare.
pub(crate) fn numbers_of(run: &Run) -> Value {
    let mut row = json!({
        "run": run.name, "model": run.config.model, "seed": run.config.seed, "data_digest": run.data_digest(),
        "parameters": run.parameters(),
    });
    for (key, pointer) in MEASURES {
        row[key] = json!(run.eval(pointer));
    }
    let over = |bits: f64| Some(bits - run.eval("/iid/optimum/bits_per_formula")?);
    row["excess_bits"] = json!(run.eval("/iid/bits_per_formula").and_then(over));
    let unigram = baseline(&run.eval, "Kneser–Ney, order 1");
    for (k, key) in ["top1", "top5", "top10", "perplexity"].into_iter().enumerate() {
        let attained = if k < 3 { format!("/iid/{key}/observed") } else { format!("/iid/{key}") };
        row[key] = json!(run.eval(&attained));
        row[&format!("{key}_optimum")] = json!(run.eval(&format!("/iid/optimum/{key}")));
        row[&format!("{key}_unigram")] = unigram.and_then(|row| row.get(key)).cloned().unwrap_or(Value::Null);
    }
    row["names"] = json!(names(run));
    let inference = run.eval.get("inference").unwrap_or(&Value::Null);
    for (key, split, share) in ANSWERS {
        row[key] = json!(answered(run, inference, split, share));
    }
    for (key, novelty) in NOVELTIES {
        row[key] = json!(excess_of(&run.eval, novelty));
    }
    for (name, judged) in run.eval.get("transfer").and_then(Value::as_object).into_iter().flatten() {
        let answers = answered(run, judged, "test", "valid");
        let (key, value) = match answers {
            Some(valid) => (format!("valid/{name}"), Some(valid)),
            None => (format!("transfer/{name}"), judged.pointer("/excess/value")),
        };
        row[&key] = value.cloned().unwrap_or(Value::Null);
    }
    for (key, value) in structure_of(&run.eval) {
        row[&key] = json!(value);
    }
    row["best_validation"] = json!(run.best());
    row["updates"] = json!(run.updates());
    row["targets"] = json!(run.targets());
    row["compute"] = json!(run.compute());
    row["seconds"] = json!(run.seconds());
    row
}

/// The shares of answers that tables compare, with the split and the key of each.
const ANSWERS: [(&str, &str, &str); 4] = [
    ("valid", "test", "valid"),
    ("relevant", "test", "relevant"),
    ("exact", "test", "exact"),
    ("valid_deep", "deep", "valid"),
];

/// A share of the answers that a run's own model gave greedily: one row of several, and none where the model has no weights.
fn answered<'a>(run: &Run, judged: &'a Value, split: &str, share: &str) -> Option<&'a Value> {
    let rows = judged.pointer(&format!("/splits/{split}/rows"))?.as_array()?;
    let own = rows.iter().find(|row| row.get("name").is_some_and(|name| name == run.config.model.name()))?;
    own.pointer(&format!("/all/{share}"))
}

/// The excess on the formulas of one novelty: on `test` where the run was judged on it, which has more of them.
fn excess_of(eval: &Value, novelty: &str) -> Option<f64> {
    let rows = |suite: &str| eval.pointer(&format!("/{suite}/by_novelty")).and_then(Value::as_array);
    let row = rows("test")
        .or_else(|| rows("iid"))?
        .iter()
        .find(|row| row.get("key").is_some_and(|k| k == novelty))?;
    row.pointer("/excess/value")?.as_f64()
}

/// What the suites `structure` and `h3` say in one number each: the mean KL over the kinds of prefixes; the AUC of the best
/// head for each relation, the correlation of numerals, and of each probe the selectivity of its best layer.
fn structure_of(eval: &Value) -> Vec<(String, Option<f64>)> {
    let at = |pointer: &str| eval.pointer(pointer).and_then(Value::as_f64);
    let list = |pointer: &str| eval.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let kl = list("/structure/families").filter_map(|f| f.pointer("/kl/value")?.as_f64());
    let (sum, n) = kl.fold((0.0, 0.0), |(sum, n), kl| (sum + kl, n + 1.0));
    let mut found = vec![("structure".to_owned(), (n > 0.0).then_some(sum / n))];
    for (key, pointer) in [
        ("binder", "/h3/a/binder/auc/value"),
        ("parenthesis", "/h3/a/parenthesis/auc/value"),
        ("sibling", "/h3/c/auc/value"),
        ("numerals", "/h3/d/spearman"),
    ] {
        found.push((format!("h3/{key}"), at(pointer)));
    }
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    // Layer 0 is the embedding: what it gives is in the token.
    for probe in list("/h3/b").filter(|p| p.get("layer").and_then(Value::as_u64).is_some_and(|l| l > 0)) {
        let task = probe.get("task").and_then(Value::as_str).unwrap_or_default();
        if let Some(value) = probe.pointer("/selectivity/value").and_then(Value::as_f64) {
            let most = best.entry(format!("h3/probe-{}", task.replace(' ', "-"))).or_insert(value);
            *most = most.max(value);
        }
    }
    found.extend(best.into_iter().map(|(key, value)| (key, Some(value))));
    found
}

fn baseline<'a>(eval: &'a Value, name: &str) -> Option<&'a Value> {
    let rows = eval.get("baselines")?.as_array()?;
    rows.iter().find(|row| row.get("name").is_some_and(|n| n == name))
}

/// How many names the law of a run's data draws from.
fn names(run: &Run) -> Option<u64> {
    crate::data::law_of_run(&run.config.data).ok()?.to_json().get("names")?.as_u64()
}

/// What formulas are to the training set.
const NOVELTIES: [(&str, &str); 3] =
    [("excess_seen", "seen"), ("excess_new", "new"), ("excess_renamed", "new up to renaming")];

/// The numbers of `eval.json` that tables compare.
const MEASURES: [(&str, &str); 10] = [
    ("bits_per_text", "/texts/bits_per_text"),
    ("nats_per_token", "/iid/nats_per_token"),
    ("optimum", "/iid/optimum/nats_per_token"),
    ("excess", "/iid/excess/value"),
    ("excess_se", "/iid/excess/se"),
    ("kl", "/iid/kl/value"),
    ("bits_per_formula", "/iid/bits_per_formula"),
    ("optimum_bits", "/iid/optimum/bits_per_formula"),
    ("top1_ratio", "/iid/top1/ratio"),
    ("parsed", "/generation/free/parsed"),
];
