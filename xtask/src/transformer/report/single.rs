//! The page of one run, part by part, in the order in which a reader asks.

use maud::{Markup, html as markup};
use serde_json::Value;

use super::curves::{self, Row};
use super::run::Run;
use super::{answers, samples, suites};
use crate::draw::html::{self, Cell, Column, Table, number, text};
use crate::draw::numbers::{count, duration, fixed, interval, p_value, percent};
use crate::expect;

/// The page of a run.
pub(crate) fn page(run: &Run) -> String {
    let head = [html::heading(&run.name, &lead(run)), warnings(run), tiles(run)];
    let mut parts = vec![
        ("Expected and measured", expect::table(&run.expectations())),
        ("Training", training(run)),
        ("Model, baselines and optimum", baselines(run)),
        ("Seen and new", novelty(run)),
        ("Where the loss above the optimum comes from", groups(run)),
        ("Calibration and classes", calibration(run)),
        ("Generation", generation(run)),
    ];
    // Suites that few runs are judged on leave no gap where they are missing.
    parts.extend(semantics(run).map(|part| ("What samples mean", part)));
    parts.extend(suites::structure(&run.eval).map(|part| ("Prefixes that show structure", part)));
    parts.extend(answers::inference(&run.eval).map(|part| ("Answers to inference tasks", part)));
    parts.extend(answers::texts(&run.eval).map(|part| ("Texts that were not learned", part)));
    parts
        .extend(suites::criticality(&run.eval).map(|part| ("What the layers do to what goes through", part)));
    parts.extend(suites::h3(&run.eval).map(|part| ("Structure inside the model", part)));
    parts.extend([("Twenty samples", samples::list(run)), ("What was run", what_was_run(run))]);
    let parts = parts.iter().map(|(title, part)| html::section(title, part));
    html::page(&run.name, &html::join(head.into_iter().chain(parts)))
}

fn lead(run: &Run) -> String {
    let model = run.model_name();
    let law =
        run.about.get("law").or_else(|| run.eval.get("law")).and_then(Value::as_str).unwrap_or("unknown");
    let size = match run.parameters() {
        Some(n) => format!(" with {} parameters", count(Some(n))),
        None => String::new(),
    };
    format!("A {model}{size} on {}, law {law}, seed {}.", run.config.data, run.config.seed)
}

fn warnings(run: &Run) -> Markup {
    let mut all: Vec<String> = expect::missed(&run.expectations());
    all.extend(run.eval.get("failed").and_then(Value::as_str).map(|f| format!("Evaluation failed: {f}.")));
    if run.is_trained() && !run.metrics.all().is_empty() && run.ended().is_none() {
        all.push("Training has not ended: the metrics have no last line.".to_owned());
    }
    let events = run.metrics.lines("event").filter_map(|l| l.get("event")?.as_str());
    let skipped = events.filter(|event| *event == "skipped_update").count();
    if skipped > 0 {
        all.push(format!("Updates skipped because a loss or a gradient was not finite: {skipped}."));
    }
    html::join(all.iter().map(|w| html::warning(w)))
}

fn tiles(run: &Run) -> Markup {
    let mut tiles = Vec::new();
    let mut tile = |big: String, small: String| {
        tiles.push(markup! { div.tile { b { (big) } span { (small) } } });
    };
    if run.eval("/iid/excess/value").is_some() {
        let excess = run.interval("/iid/excess");
        tile(excess, "nats per token above the exact optimum, 95 % interval".to_owned());
        let optimum = fixed(run.eval("/iid/optimum/nats_per_token"), 4);
        tile(fixed(run.eval("/iid/nats_per_token"), 4), format!("nats per token; the optimum is {optimum}"));
        let best = percent(run.eval("/iid/optimum/top1"), 1);
        tile(percent(run.eval("/iid/top1/observed"), 1), format!("top-1 accuracy; the optimum has {best}"));
    } else if let Some(best) = run.best() {
        tile(fixed(Some(best), 4), "nats per token, best validation".to_owned());
    }
    if let Some(parsed) = run.eval("/generation/free/parsed") {
        tile(percent(Some(parsed), 2), "of free samples are formulas".to_owned());
    }
    if let Some(seconds) = run.seconds() {
        let updates = count(run.updates());
        tile(duration(Some(seconds)), format!("of training for {updates} updates"));
    }
    markup! { @if !tiles.is_empty() { div.tiles { (html::join(tiles)) } } }
}

fn training(run: &Run) -> Markup {
    if run.metrics.all().is_empty() {
        return html::left_out(if run.is_trained() {
            "Left out: the run has no metrics.jsonl."
        } else {
            "Left out: a model without weights is not trained, so there are no metrics."
        });
    }
    let mut facts = vec![
        format!("{} updates", count(run.updates())),
        format!("{} targets", count(run.targets())),
        duration(run.seconds()),
    ];
    facts.extend(run.ended().map(|reason| match reason {
        "patience" => "ended early, as validation no longer improved".to_owned(),
        "steps" => "ended after all its updates".to_owned(),
        other => format!("ended by {other}"),
    }));
    facts.extend(run.best().map(|b| format!("best validation loss {} nats per token", fixed(Some(b), 4))));
    let plots: Vec<String> = curves::training(std::slice::from_ref(run)).iter().map(|p| p.figure()).collect();
    html::join([html::note(&(facts.join(" · ") + ".")), html::figures(&plots)])
}

fn no_suite(suite: &str) -> Markup {
    html::left_out(&format!("Left out: eval.json does not have the suite {suite}."))
}

/// One row of the table of systems.
fn system(name: &str, at: &dyn Fn(&str) -> Option<f64>, top: &str) -> Vec<Cell> {
    vec![
        text(name),
        number(fixed(at("nats_per_token"), 4)),
        number(interval(at("excess/value"), at("excess/se"))),
        number(fixed(at("kl/value"), 4)),
        number(fixed(at("perplexity"), 3)),
        number(fixed(at("bits_per_formula"), 2)),
        number(percent(at(&format!("top1{top}")), 2)),
        number(percent(at(&format!("top5{top}")), 2)),
        number(percent(at(&format!("top10{top}")), 2)),
    ]
}

fn baselines(run: &Run) -> Markup {
    if !run.eval.get("iid").is_some_and(Value::is_object) {
        return no_suite("iid");
    }
    let mut table = Table::new([
        "system",
        "#nats per token",
        "#excess, 95 %",
        "#mean KL",
        "#perplexity",
        "#bits per formula",
        "#top-1",
        "#top-5",
        "#top-10",
    ]);
    let rows = run.eval.get("baselines").and_then(Value::as_array).cloned().unwrap_or_default();
    let model = system(&run.name, &|key| run.eval(&format!("/iid/{key}")), "/observed");
    let mut model = Some(model);
    for row in &rows {
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        let cells = system(name, &|key| row.pointer(&format!("/{key}")).and_then(Value::as_f64), "");
        if name == "optimum" {
            model.take().into_iter().for_each(|cells| table.marked("model", cells));
            table.marked("bound", cells);
        } else {
            table.row(cells);
        }
    }
    model.into_iter().for_each(|cells| table.marked("model", cells));
    let note = format!(
        "{} formulas, {} targets, the same for every row. Excess is the loss above the exact law on the same targets; \
         mean KL has the same expectation and less noise.",
        count(run.eval.pointer("/iid/formulas").and_then(Value::as_u64)),
        count(run.eval.pointer("/iid/targets").and_then(Value::as_u64)),
    );
    let mut part = vec![table.html(), html::note(&note)];
    if run.eval("/test/excess/value").is_some() {
        let (nats, excess) = (fixed(run.eval("/test/nats_per_token"), 4), run.interval("/test/excess"));
        part.push(html::note(&format!("On the test set: {nats} nats per token, excess {excess}.")));
    }
    html::join(part)
}

/// The loss on formulas that stand in the training set beside that on those that do not.
fn novelty(run: &Run) -> Markup {
    let rows = run.eval.pointer("/iid/by_novelty").and_then(Value::as_array).cloned().unwrap_or_default();
    if rows.is_empty() {
        return no_suite("iid");
    }
    let at = |row: &Value, path: &str| row.pointer(path).and_then(Value::as_f64);
    let whole = |row: &Value, key: &str| number(count(row.get(key).and_then(Value::as_u64)));
    let columns: &[Column<'_, Value>] = &[
        ("formulas", &|row| text(row.get("key").and_then(Value::as_str).unwrap_or_default())),
        ("#number", &|row| whole(row, "formulas")),
        ("#targets", &|row| whole(row, "targets")),
        ("#nats per token", &|row| number(fixed(at(row, "/nats_per_token"), 4))),
        ("#optimum", &|row| number(fixed(at(row, "/optimum"), 4))),
        ("#excess, 95 %", &|row| number(interval(at(row, "/excess/value"), at(row, "/excess/se")))),
        ("#mean KL, 95 %", &|row| number(interval(at(row, "/kl/value"), at(row, "/kl/se")))),
    ];
    let table = Table::of(&rows, columns);
    html::join([
        table.html(),
        html::note(
            "Seen: the formula stands in the training set, token for token. New: it does not. New up to renaming: it \
             does not under any other names of its variables, predicates, functions and constants either. The law \
             repeats short formulas, so most of what is drawn from it has been seen.",
        ),
    ])
}

fn groups(run: &Run) -> Markup {
    let plots: Vec<String> = curves::groups(std::slice::from_ref(run)).iter().map(|p| p.figure()).collect();
    if plots.is_empty() {
        return no_suite("iid");
    }
    let tables = [
        ("by_level", "By structural level", "level"),
        ("by_depth", "By quantifier depth", "depth"),
        ("by_class", "By class of target", "class"),
    ];
    let tables = tables.map(|(list, title, key)| (title, group_table(key, &curves::rows(run, list))));
    markup! {
        (html::note(
            "Mean KL compares the two distributions at every prefix exactly. Excess on the targets is what the drawn \
             targets cost above the law: noisier, and below zero where they happened to suit the model.",
        ))
        (html::figures(&plots))
        div.columns {
            @for (title, table) in tables.iter().filter(|(_, table)| !table.is_empty()) {
                div { h3 { (title) } (table.html()) }
            }
        }
    }
}

fn group_table(key: &str, rows: &[Row]) -> Table {
    let columns: &[Column<'_, Row>] = &[
        (key, &|row| text(&row.key)),
        ("#targets", &|row| number(count(Some(row.targets)))),
        ("#nats per token", &|row| number(fixed(Some(row.nats), 4))),
        ("#optimum", &|row| number(fixed(Some(row.optimum), 4))),
        ("#excess", &|row| number(fixed(Some(row.excess), 4))),
        ("#mean KL", &|row| number(fixed(Some(row.kl), 4))),
        ("#top-1", &|row| number(percent(Some(row.top1), 2))),
    ];
    Table::of(rows, columns)
}

/// The classes in the order of the confusion matrix.
const CLASSES: [&str; 6] = ["structure", "operator", "category", "new name", "old name", "<eos>"];

fn calibration(run: &Run) -> Markup {
    let confusion = confusion(run);
    let Some(plot) = curves::calibration(std::slice::from_ref(run)) else {
        return confusion.unwrap_or_else(|| no_suite("iid"));
    };
    let words = html::note(&format!(
        "Expected calibration error {}; Brier distance to the law {}.",
        fixed(run.eval("/iid/calibration/ece"), 4),
        fixed(run.eval("/iid/calibration/brier"), 4)
    ));
    html::join([words, html::figures(&[plot.figure()])].into_iter().chain(confusion))
}

fn confusion(run: &Run) -> Option<Markup> {
    let rows = run.eval.pointer("/iid/confusion").and_then(Value::as_array)?;
    let head = ["target is".to_owned()].into_iter().chain(CLASSES.iter().map(|c| format!("#{c}")));
    let mut table = Table::new(head);
    for (i, row) in rows.iter().enumerate() {
        let mut cells = vec![text(CLASSES.get(i).copied().unwrap_or("?"))];
        cells.extend(row.as_array().into_iter().flatten().map(|share| {
            let share = share.as_f64();
            Cell::Shade(share.unwrap_or(0.0), percent(share, 2))
        }));
        table.row(cells);
    }
    let note = "Each row: where the model puts its probability when the target is of the row's class. A name is old if it \
                occurred earlier in the formula in the same category.";
    Some(markup! { h3 { "Probability by class" } (table.html()) (html::note(note)) })
}

fn generation(run: &Run) -> Markup {
    if !run.eval.get("generation").is_some_and(Value::is_object) {
        return if run.is_trained() {
            no_suite("generation")
        } else {
            html::left_out("Left out: a model without weights draws no samples.")
        };
    }
    let ways = [("free", "free"), ("valid", "within the grammar")];
    let ways: Vec<_> = ways
        .iter()
        .filter(|w| run.eval.pointer(&format!("/generation/{}", w.0)).is_some_and(Value::is_object))
        .collect();
    let head = ["measure".to_owned()].into_iter().chain(ways.iter().map(|w| format!("#{}", w.1)));
    let mut table = Table::new(head);
    let mut row = |name: &str, key: &str, show: &dyn Fn(Option<f64>) -> String| {
        let values = ways.iter().map(|w| number(show(run.eval(&format!("/generation/{}/{key}", w.0)))));
        table.row(std::iter::once(text(name)).chain(values).collect());
    };
    let share = |v: Option<f64>| percent(v, 2);
    let whole = |v: Option<f64>| count(v.map(|v| v as u64));
    for (name, key) in [
        ("parsed: complete formulas", "parsed"),
        ("brackets balanced", "balanced"),
        ("finished with <eos>", "finished"),
        ("of the parsed: symbols and arities of the law", "arity_ok"),
        ("of the parsed: sorts right", "sort_ok"),
        ("of the parsed: no free variable", "binding_ok"),
        ("distinct (K1)", "distinct"),
        ("of the distinct: not in the training set, K0", "novel/K0"),
        ("of the distinct: not in the training set, K1", "novel/K1"),
        ("of the distinct: not in the training set, K2", "novel/K2"),
    ] {
        row(name, key, &share);
    }
    row("skeletons (K3)", "skeletons", &whole);
    for level in levels(run) {
        row(&format!("formulas of level {level}"), &format!("levels/counts/{level}"), &whole);
    }
    row("levels against the law: χ²", "levels/chi2", &|v| fixed(v, 1));
    row("levels against the law: p-value", "levels/p", &p_value);
    row("sizes against the law: total variation", "size_tv", &|v| fixed(v, 4));
    let n = count(run.eval.pointer("/generation/samples").and_then(Value::as_u64));
    let note = format!("{n} samples at temperature 1 each way. – where the law has nothing to compare with.");
    html::join([table.html(), html::note(&note)])
}

/// What samples say, beside what the law says.
fn semantics(run: &Run) -> Option<Markup> {
    run.eval.get("semantics").filter(|suite| suite.is_object())?;
    let mut table = Table::new(["", "#the model", "#the law", "#difference", "#p-value"]);
    for (name, key) in [
        ("satisfiable", "satisfiable"),
        ("valid", "valid"),
        ("contradictory", "contradictory"),
        ("not decided within the limit", "unknown"),
    ] {
        let at = |path: String| run.eval(&format!("/semantics/{path}"));
        let share = |side: &str| number(percent(at(format!("{side}/{key}/share")), 2));
        let difference = at(format!("tests/{key}/difference")).map(|d| 100.0 * d);
        let difference = number(fixed(difference, 2));
        let p = number(p_value(at(format!("tests/{key}/p"))));
        table.row(vec![text(name), share("model"), share("law"), difference, p]);
    }
    let formulas =
        |side: &str| count(run.eval.pointer(&format!("/semantics/{side}/formulas")).and_then(Value::as_u64));
    let note = format!(
        "{} formulas of the model at temperature 1, {} of the law; each class by a proof or a finite model that its checker passed \
         (semantics.jsonl). Differences in points; two-proportion z-tests, not corrected for their number.",
        formulas("model"),
        formulas("law")
    );
    Some(html::join([table.html(), html::note(&note)]))
}

/// The levels that occur in either way.
fn levels(run: &Run) -> Vec<String> {
    let mut levels: Vec<String> = ["free", "valid"]
        .iter()
        .filter_map(|w| run.eval.pointer(&format!("/generation/{w}/levels/counts"))?.as_object())
        .flat_map(|counts| counts.keys().cloned())
        .collect();
    levels.sort_by_key(|l| (l.parse::<u64>().unwrap_or(u64::MAX), l.clone()));
    levels.dedup();
    levels
}

fn what_was_run(run: &Run) -> Markup {
    let judged = run.eval.get("commit").and_then(Value::as_str);
    let command = run.made_with("xtask").map(|arguments| format!("cargo xtask {arguments}"));
    let mut table = Table::new(["", ""]);
    for (what, cell) in [
        ("seed", text(run.config.seed.to_string())),
        ("commit of the training", html::code(run.commit())),
        ("commit of the evaluation", html::code(judged.unwrap_or("unknown"))),
        ("data", text(&run.config.data)),
        ("data digest", html::code(run.data_digest().unwrap_or("unknown"))),
        ("device and machine", text(run.made_with("device").unwrap_or("unknown"))),
        ("command", html::code(command.as_deref().unwrap_or("unknown"))),
    ] {
        table.row(vec![text(what), cell]);
    }
    let keys: String =
        run.config_text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    markup! { (table.html()) h3 { "Configuration" } pre { (keys.trim_end()) } }
}
