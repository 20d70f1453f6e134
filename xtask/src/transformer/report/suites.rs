//! The suites `structure` and `h3`: tables of a page, and the few lines of the terminal.

use maud::{Markup, html as markup};
use serde_json::Value;

use crate::draw::html::{self, Cell, Column, Table, number, text};
use crate::draw::numbers::{count, fixed, interval, percent};

fn at(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer).and_then(Value::as_f64)
}

fn words<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn whole(value: &Value, pointer: &str) -> Cell {
    number(count(value.pointer(pointer).and_then(Value::as_u64)))
}

/// A mean with its interval, or why there is none.
pub(super) fn mean(value: &Value, key: &str) -> Cell {
    match (words(value, "reason"), at(value, &format!("/{key}/value"))) {
        (Some(reason), None) => text(reason),
        (_, mean) => number(interval(mean, at(value, &format!("/{key}/se")))),
    }
}

fn list<'a>(evaluation: &'a Value, pointer: &str) -> Option<&'a Vec<Value>> {
    evaluation.pointer(pointer).and_then(Value::as_array)
}

/// Mean KL on prefixes of eight kinds, if the run was judged on them.
pub(super) fn structure(evaluation: &Value) -> Option<Markup> {
    let columns: &[Column<'_, Value>] = &[
        ("prefixes", &|row| text(words(row, "family").unwrap_or_default())),
        ("#number", &|row| whole(row, "/prefixes")),
        ("#mean KL, 95 %", &|row| mean(row, "kl")),
        ("#best token right", &|row| number(percent(at(row, "/top1"), 2))),
        ("#on legal tokens", &|row| number(percent(at(row, "/legal"), 2))),
        ("#entropy of the law", &|row| number(fixed(at(row, "/entropy"), 4))),
    ];
    let table = Table::of(list(evaluation, "/structure/families")?, columns);
    let note = "Different prefixes of each kind, the same for every model of this law and code. Mean KL is exact at each \
                prefix, its interval over texts. Forced: the law has one next token. Calibrated: none has more than half \
                of the law's mass.";
    Some(html::join([table.html(), html::note(note)]))
}

/// σ, χ and ρ of every layer, and the law of the sizes of avalanches, if the run was judged so.
pub(super) fn criticality(evaluation: &Value) -> Option<Markup> {
    let found = evaluation.get("criticality").filter(|found| found.is_object())?;
    let layers = list(found, "/chi").map_or(0, Vec::len);
    let mut table =
        Table::new(["layer", "#σ, active components", "#χ, squared gain", "#ρ, attention × values"]);
    for layer in 0..layers {
        let of = |key: &str| number(fixed(at(found, &format!("/{key}/{layer}")), 4));
        table.row(vec![number((layer + 1).to_string()), of("branching"), of("chi"), of("rho")]);
    }
    let avalanches = match found.get("avalanches").filter(|fit| fit.is_object()) {
        None => "Too few avalanches for a law of their sizes.".to_owned(),
        Some(fit) => {
            let of = |key: &str, digits: usize| fixed(at(fit, &format!("/{key}")), digits);
            format!(
                "Sizes of {} avalanches, {} of them from {} on: exponent {} ± {}; {} of samples of that law are as far from it \
                 (below 0.1 it is no power law); against a log-normal law the log ratio is {} (p = {}; below 0 the log-normal law \
                 is likelier).",
                of("sizes", 0),
                of("tail", 0),
                of("smallest", 0),
                of("exponent", 3),
                of("exponent_se", 3),
                of("goodness", 2),
                of("log_ratio", 2),
                of("log_ratio_p", 3),
            )
        }
    };
    let about = format!(
        "{} texts; loss {} nats per token, norm of its gradient {}. χ = 1 is the edge of chaos.",
        count(found.get("texts").and_then(Value::as_u64)),
        fixed(at(found, "/nats_per_token"), 4),
        fixed(at(found, "/gradient_norm"), 4)
    );
    Some(html::join([table.html(), html::note(&about), html::note(&avalanches)]))
}

/// The relations of attention, with their names.
const RELATIONS: [(&str, &str); 3] = [
    ("/h3/a/binder", "variable to its binder"),
    ("/h3/a/parenthesis", ") to its ("),
    ("/h3/c", "end of a sub-formula to that of its sibling"),
];

fn head(value: &Value) -> String {
    let of = |key: &str| value.pointer(&format!("/head/{key}")).and_then(Value::as_u64);
    match (of("layer"), of("head")) {
        (Some(layer), Some(head)) => format!("layer {layer}, head {head}"),
        _ => "–".to_owned(),
    }
}

/// What can be seen inside the model, if the run was judged so.
pub(super) fn h3(evaluation: &Value) -> Option<Markup> {
    let found = evaluation.get("h3").filter(|found| found.is_object())?;
    let mut attention = Table::new([
        "attention from",
        "best head",
        "#AUC, 95 %",
        "#mass",
        "#mass of controls",
        "#pairs",
        "#without control",
    ]);
    for (pointer, name) in RELATIONS {
        let Some(row) = evaluation.pointer(pointer) else { continue };
        attention.row(vec![
            text(name),
            text(head(row)),
            mean(row, "auc"),
            number(fixed(at(row, "/mass"), 3)),
            number(fixed(at(row, "/control_mass"), 3)),
            whole(row, "/pairs"),
            whole(row, "/unmatched"),
        ]);
    }
    let columns: &[Column<'_, Value>] = &[
        ("probe of", &|row| text(words(row, "task").unwrap_or_default())),
        ("#layer", &|row| whole(row, "/layer")),
        ("#accuracy, 95 %", &|row| mean(row, "accuracy")),
        ("#control", &|row| number(fixed(at(row, "/control/value"), 4))),
        ("#selectivity, 95 %", &|row| mean(row, "selectivity")),
        ("#commonest label", &|row| number(fixed(at(row, "/commonest"), 4))),
        ("#labels", &|row| whole(row, "/labels")),
        ("#rows", &|row| whole(row, "/rows")),
    ];
    let mut probes = list(evaluation, "/h3/b").cloned().unwrap_or_default();
    probes.sort_by(|a, b| words(a, "task").cmp(&words(b, "task")));
    let numbers = found.get("d").unwrap_or(&Value::Null);
    let order = format!(
        "Distances of the vectors of {}: rank correlation {} with the distances of the numbers (renamed at random: ± {}), \
         over {} pairs of {} numbers, of which {} occur in training.",
        words(numbers, "of").unwrap_or("numbers"),
        fixed(at(numbers, "/spearman"), 4),
        fixed(at(numbers, "/se").map(|se| 1.96 * se), 4),
        count(numbers.get("pairs").and_then(Value::as_u64)),
        count(numbers.get("numbers").and_then(Value::as_u64)),
        count(numbers.get("occurred").and_then(Value::as_u64)),
    );
    Some(markup! {
        (attention.html())
        (html::note(
            "Related pairs beside pairs of the same kinds of tokens at the same places of other formulas: attention that \
             depends on places alone has an AUC of 0.5. The head is chosen on half of the formulas and judged on the other.",
        ))
        (Table::of(&probes, columns).html())
        (html::note(
            "Linear probes of what the embedding gives (layer 0) and of each layer. Control: random labels by type of token \
             (Hewitt and Liang 2019); selectivity is the difference.",
        ))
        (html::note(&order))
    })
}

/// The lines of both suites, of those that are there.
pub(crate) fn in_short(evaluation: &Value) -> String {
    let mut lines = String::new();
    if let Some(families) = list(evaluation, "/structure/families") {
        let one = |row: &Value| {
            let kl = at(row, "/kl/value").map_or_else(|| "–".to_owned(), |kl| format!("{kl:.4}"));
            format!("{} {kl}", words(row, "family").unwrap_or_default())
        };
        let all: Vec<String> = families.iter().map(one).collect();
        lines.push_str(&format!("structure, mean KL: {}\n", all.join(", ")));
    }
    if evaluation.get("h3").is_some_and(Value::is_object) {
        let auc = |(pointer, name): (&str, &str)| {
            let row = evaluation.pointer(pointer).unwrap_or(&Value::Null);
            let auc = at(row, "/auc/value").map_or_else(|| "–".to_owned(), |auc| format!("{auc:.3}"));
            format!("{name} {auc}")
        };
        let all: Vec<String> = RELATIONS.into_iter().map(auc).collect();
        lines.push_str(&format!("h3, AUC of the best head: {}\n", all.join(", ")));
        let selectivity = |row: &&Value| at(row, "/selectivity/value").unwrap_or(f64::NEG_INFINITY);
        let probes = list(evaluation, "/h3/b").map_or(&[][..], Vec::as_slice);
        let mut tasks: Vec<&str> = probes.iter().filter_map(|row| words(row, "task")).collect();
        tasks.sort_unstable();
        tasks.dedup();
        for task in tasks {
            let of_task = probes.iter().filter(|row| words(row, "task") == Some(task));
            let best = of_task.max_by(|a, b| selectivity(a).total_cmp(&selectivity(b)));
            if let Some((row, accuracy)) = best.and_then(|row| Some((row, at(row, "/accuracy/value")?))) {
                let layer = row.get("layer").and_then(Value::as_u64).unwrap_or(0);
                let selectivity = selectivity(&row);
                lines.push_str(&format!(
                    "  {task}: most selective at layer {layer}, {selectivity:.3} (accuracy {accuracy:.3})\n"
                ));
            }
        }
        let order =
            at(evaluation, "/h3/d/spearman").map_or_else(|| "–".to_owned(), |rho| format!("{rho:.3}"));
        lines.push_str(&format!("  order of numbers: {order}\n"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged() -> Value {
        let attended = |auc: f64| {
            json!({"head": {"layer": 2, "head": 3}, "auc": {"value": auc, "se": 0.01}, "mass": 0.7, "control_mass": 0.1,
                   "pairs": 1234, "unmatched": 5})
        };
        let missing =
            json!({"head": null, "auc": null, "pairs": 0, "reason": "no text in this code has such a pair"});
        let probe = |layer: u64, selectivity: f64| {
            json!({"layer": layer, "task": "<b>depth", "labels": 4, "rows": 99, "commonest": 0.3,
                   "accuracy": {"value": 0.875, "se": 0.01}, "control": {"value": 0.5, "se": 0.01},
                   "selectivity": {"value": selectivity, "se": 0.01}})
        };
        json!({
            "structure": {"families": [
                {"family": "<script>arity", "prefixes": 300, "kl": {"value": 0.0123, "se": 0.001}, "top1": 0.5, "legal": 0.75,
                 "entropy": 1.5},
                {"family": "index 99", "prefixes": 0, "kl": null, "reason": "no name <i>"},
            ]},
            "h3": {"a": {"binder": attended(0.987), "parenthesis": missing}, "b": [probe(1, 0.125), probe(2, 0.375)],
                   "c": attended(0.5), "d": {"spearman": 0.25, "se": 0.05, "pairs": 10, "of": "numerals", "numbers": 5,
                   "occurred": 4}},
        })
    }

    #[test]
    fn tables_have_every_number_and_every_reason() {
        let judged = judged();
        let page = structure(&judged).unwrap().into_string() + &h3(&judged).unwrap().into_string();
        for part in [
            "0.0123",
            "1.5000",
            "no name &lt;i&gt;",
            "&lt;script&gt;arity",
            "layer 2, head 3",
            "0.9870",
            "no text in this code has such a pair",
            "0.3750",
            "0.8750",
            "rank correlation 0.2500",
            "of which 4 occur",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(!page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>"));
        assert!(structure(&json!({})).is_none() && h3(&json!({"h3": null})).is_none());
    }

    #[test]
    fn lines_of_the_terminal() {
        assert_eq!(
            in_short(&judged()),
            "structure, mean KL: <script>arity 0.0123, index 99 –\n\
             h3, AUC of the best head: variable to its binder 0.987, ) to its ( –, end of a sub-formula to that of its \
             sibling 0.500\n  <b>depth: most selective at layer 2, 0.375 (accuracy 0.875)\n  order of numbers: 0.250\n"
        );
        assert_eq!(in_short(&json!({})), "");
    }
}
