//! One cell, given weights, exact values: the documents of `cell`, section 10.3.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cell::Cell;
use crate::engine::{Engine, Inputs, Objective, Real, Seen, Sequences, Starts};
use crate::error::{Refusal, Result};
use crate::options::{CellKind, Options, Sizes, explained};
use crate::step::{Part, Weight};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    cell: String,
    #[serde(default)]
    dtype: Precision,
    #[serde(default)]
    sizes: Value,
    #[serde(default)]
    options: Value,
    weights: Option<BTreeMap<String, Value>>,
    h0: Option<Vec<f64>>,
    x0: Option<Vec<f64>>,
    inputs: Option<Vec<Vec<f64>>>,
    tokens: Option<Vec<u64>>,
    #[serde(default)]
    report: Report,
    grad: Option<Gradient>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Precision {
    F32,
    #[default]
    F64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Report {
    #[default]
    All,
    Last,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Gradient {
    #[serde(rename = "sum-last-state")]
    SumLastState,
}

/// The most numbers of the frames of a gradient: 4 GB of f64.
const MOST_NUMBERS: usize = 1 << 29;

/// Answers a document: `{"ok":true,…}`. With `count` only counts and warnings.
///
/// # Errors
/// `unknown-cell`, `config`, `shape`, `proof`, `degenerate-pi`; the cell is judged before weights and inputs.
pub fn answer(text: &str, count: bool) -> Result<Value> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| Refusal::config(explained(&error.to_string())))?;
    let kind: CellKind = document.cell.parse()?;
    let or_empty = |value: &Value| if value.is_null() { json!({}) } else { value.clone() };
    let sizes: Sizes = serde_json::from_value(or_empty(&document.sizes))
        .map_err(|error| Refusal::config(format!("sizes: {}", explained(&error.to_string()))))?;
    let options = Options::read(&or_empty(&document.options))
        .map_err(|refusal| Refusal::config(format!("options: {}", refusal.message)))?;
    let cell = Cell::new(kind, &sizes, &options)?;
    let mut answer = counts(&cell);
    if !count {
        let theta = weights(&cell, document.weights.as_ref())?;
        let (rows, inputs) = inputs(&cell, &document)?;
        let starts = starts(&cell, &document)?;
        let run = Run { cell: &cell, document: &document, inputs: &inputs, length: rows, starts };
        match document.dtype {
            Precision::F64 => run.answer::<f64>(&theta, &mut answer)?,
            Precision::F32 => run.answer::<f32>(&theta, &mut answer)?,
        }
    }
    Ok(Value::Object(answer))
}

/// The document of refusals.
pub fn refused(refusals: &[Refusal]) -> Value {
    json!({"ok": false, "errors": refusals.iter().map(Refusal::json).collect::<Vec<_>>()})
}

/// Counts, warnings, programs.
fn counts(cell: &Cell) -> Map<String, Value> {
    let params: Map<String, Value> =
        cell.step.trained().map(|(_, weight)| (weight.name.clone(), json!(weight.len()))).collect();
    let programs: Vec<Value> =
        cell.programs.iter().map(|p| json!({"place": p.place, "text": p.text, "is": p.canonical})).collect();
    let mut answer = Map::new();
    answer.insert("ok".to_owned(), json!(true));
    answer.insert("cell".to_owned(), json!(cell.kind.name()));
    answer.insert("params".to_owned(), Value::Object(params));
    answer.insert("cell_params".to_owned(), json!(cell.step.count(Part::Cell)));
    answer.insert("readout_params".to_owned(), json!(cell.step.count(Part::Readout)));
    answer.insert("total_params".to_owned(), json!(cell.count()));
    if !programs.is_empty() {
        answer.insert("programs".to_owned(), json!(programs));
    }
    answer.insert(
        "warnings".to_owned(),
        cell.warnings.iter().map(crate::cell::Warning::json).collect::<Value>(),
    );
    answer
}

/// All weights in the order of the step.
fn weights(cell: &Cell, given: Option<&BTreeMap<String, Value>>) -> Result<Vec<f64>> {
    let empty = BTreeMap::new();
    let given = given.unwrap_or(&empty);
    let names: Vec<&str> = cell.step.trained().map(|(_, weight)| weight.name.as_str()).collect();
    if let Some(unknown) = given.keys().find(|name| !names.contains(&name.as_str())) {
        let known = names.join(", ");
        return Err(Refusal::config(format!("this cell has no weight `{unknown}`; it has {known}")));
    }
    let mut theta = Vec::new();
    for (_, weight) in cell.step.trained() {
        let Some(value) = given.get(&weight.name) else {
            return Err(Refusal::config(format!("the weight `{}` is missing", weight.name)));
        };
        let before = theta.len();
        flatten(value, &weight.shape, &mut theta).map_err(|why| {
            Refusal::shape(format!(
                "the weight `{}` must have the shape {:?}: {why}",
                weight.name, weight.shape
            ))
        })?;
        if theta.get(before..).is_some_and(|entries| entries.iter().any(|x| !x.is_finite())) {
            return Err(Refusal::config(format!(
                "the weight `{}` has an entry that is not finite",
                weight.name
            )));
        }
    }
    Ok(theta)
}

/// Appends the entries of nested lists of a shape.
fn flatten(value: &Value, shape: &[usize], to: &mut Vec<f64>) -> std::result::Result<(), String> {
    match (shape, value) {
        ([], Value::Number(number)) => {
            to.push(number.as_f64().ok_or("an entry is not a number")?);
            Ok(())
        }
        ([], _) => Err("an entry is not a number".to_owned()),
        ([n, rest @ ..], Value::Array(entries)) if entries.len() == *n => {
            entries.iter().try_for_each(|entry| flatten(entry, rest, to))
        }
        ([n, ..], Value::Array(entries)) => {
            Err(format!("a list of {} where {n} are expected", entries.len()))
        }
        (_, _) => Err("a number where a list is expected".to_owned()),
    }
}

/// The entries as nested lists of the weight's shape.
fn nested(shape: &[usize], entries: &[f64]) -> Value {
    match shape {
        [] | [_] => json!(entries),
        [_, rest @ ..] => {
            let len = rest.iter().product::<usize>().max(1);
            entries.chunks(len).map(|part| nested(rest, part)).collect()
        }
    }
}

/// The number of steps and the inputs, row by row.
fn inputs(cell: &Cell, document: &Document) -> Result<(usize, Vec<f64>)> {
    let width = cell.step.input;
    match (&document.inputs, &document.tokens) {
        (Some(_), Some(_)) => Err(Refusal::config("`inputs` and `tokens` exclude each other")),
        (None, None) => Err(Refusal::config("`inputs` or `tokens` is missing")),
        (Some(rows), None) => {
            if let Some((at, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != width) {
                return Err(Refusal::shape(format!(
                    "input {at} has {} entries; the cell has {width} inputs",
                    row.len()
                )));
            }
            Ok((rows.len(), rows.concat()))
        }
        (None, Some(tokens)) => {
            let mut entries = vec![0.0; tokens.len().saturating_mul(width)];
            for (at, token) in tokens.iter().enumerate() {
                let entry = usize::try_from(*token).ok().filter(|token| *token < width);
                match entry.and_then(|token| entries.get_mut(at * width + token)) {
                    Some(entry) => *entry = 1.0,
                    None => {
                        return Err(Refusal::shape(format!(
                            "token {at} is {token}; the cell has {width} inputs"
                        )));
                    }
                }
            }
            Ok((tokens.len(), entries))
        }
    }
}

fn starts(cell: &Cell, document: &Document) -> Result<Starts> {
    let hidden = cell.step.states.first().map_or(0, |state| state.len);
    for (name, given, len) in [("h0", &document.h0, hidden), ("x0", &document.x0, cell.step.input)] {
        if let Some(found) = given.as_ref().map(Vec::len).filter(|found| *found != len) {
            return Err(Refusal::shape(format!("`{name}` has {found} entries instead of {len}")));
        }
    }
    Ok(Starts { state: document.h0.clone(), previous: document.x0.clone() })
}

struct Run<'a> {
    cell: &'a Cell,
    document: &'a Document,
    inputs: &'a [f64],
    length: usize,
    starts: Starts,
}

impl Run<'_> {
    fn answer<T: Real>(&self, theta: &[f64], answer: &mut Map<String, Value>) -> Result<()> {
        let theta: Vec<T> = theta.iter().map(|x| T::from_f64(*x)).collect();
        let engine = Engine::new(self.cell.step.clone(), &theta).with_starts(self.starts.clone());
        let sequences = Sequences { inputs: Inputs::Dense(self.inputs), length: self.length, count: 1 };
        if self.document.grad.is_some() && engine.numbers(self.length) > MOST_NUMBERS {
            return Err(Refusal::config(format!("{} steps are too many for a gradient", self.length)));
        }
        let mut steps = Vec::new();
        engine.observe(sequences, |time, seen| {
            if self.document.report == Report::All || time + 1 == self.length {
                steps.push(self.step(&seen));
            }
        });
        answer.insert("steps".to_owned(), Value::Array(steps));
        if let Some(Gradient::SumLastState) = self.document.grad {
            let mut gradient = vec![T::ZERO; theta.len()];
            let objective = engine.gradient(sequences, Objective::LastState, &mut gradient);
            let gradient: Vec<f64> = gradient.iter().map(|g| g.to_f64()).collect();
            let mut at = 0;
            let mut by_name = Map::new();
            for (_, weight) in self.cell.step.trained().filter(|(_, weight)| weight.part == Part::Cell) {
                let entries = gradient.get(at..at + weight.len()).unwrap_or_default();
                by_name.insert(weight.name.clone(), nested(&weight.shape, entries));
                at += Weight::len(weight);
            }
            answer.insert("objective".to_owned(), json!(objective));
            answer.insert("grad".to_owned(), Value::Object(by_name));
        }
        Ok(())
    }

    /// One entry of `steps`.
    fn step<T: Real>(&self, seen: &Seen<'_, T>) -> Value {
        let mut entry = Map::new();
        if self.cell.kind == CellKind::LinearLogic {
            // Gates that are constant, and a sum over no program, are not computed; they are shown all the same.
            for (name, list) in [("p", "lambda["), ("q", "pi[")] {
                let count = self.cell.programs.iter().filter(|p| p.place.starts_with(list)).count();
                entry.insert(name.to_owned(), json!(vec![1.0; count]));
            }
            entry
                .insert("z".to_owned(), json!(vec![0.0; self.cell.step.states.first().map_or(0, |h| h.len)]));
        }
        let mut rings: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for (name, value) in &self.cell.step.reports {
            let value = seen.value(*value);
            if let Some((ring, what)) = name.split_once('.') {
                let value = match (what, self.content(ring)) {
                    ("M", content) => nested(&[value.len() / content, content], &value),
                    _ => json!(value),
                };
                rings.entry(ring.to_owned()).or_default().insert(what.to_owned(), value);
                continue;
            }
            let count = entry.get(name).and_then(Value::as_array).map_or(0, Vec::len);
            let value = match name.as_str() {
                // Diagonal gates: one row for each program.
                "p" | "q" if count > 0 && value.len() > count => {
                    nested(&[count, value.len() / count], &value)
                }
                _ => json!(value),
            };
            entry.insert(name.clone(), value);
        }
        if !rings.is_empty() {
            let rings = rings.into_iter().map(|(name, ring)| (name, Value::Object(ring))).collect();
            entry.insert("rings".to_owned(), Value::Object(rings));
        }
        Value::Object(entry)
    }

    /// The content size of a ring.
    fn content(&self, ring: &str) -> usize {
        let len = |what: &str| {
            let name = format!("{ring}.{what}");
            self.cell.step.states.iter().find(|state| state.name == name).map_or(1, |state| state.len.max(1))
        };
        (len("M") / len("r")).max(1)
    }
}
