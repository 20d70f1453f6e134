//! One cell, given weights, exact values: the documents of `cell`, section 10.3.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::cell::Cell;
use crate::engine::{Engine, Inputs, Objective, Real, Seen, Sequences, Starts};
use crate::error::{Refusal, Result};
use crate::nearest::shortened;
use crate::options::{CellKind, Object, Options, Sizes, explained};
use crate::step::{Part, Weight};
use crate::unique::without_repeated_keys;

/// A document as it stands: what its fields are is judged later, the cell before weights and inputs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    cell: Value,
    #[serde(default)]
    dtype: Value,
    #[serde(default)]
    sizes: Value,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    weights: Value,
    #[serde(default)]
    h0: Value,
    #[serde(default)]
    x0: Value,
    #[serde(default)]
    inputs: Value,
    #[serde(default)]
    tokens: Value,
    #[serde(default)]
    report: Value,
    #[serde(default)]
    grad: Value,
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

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
enum Gradient {
    #[serde(rename = "sum-last-state")]
    SumLastState,
}

/// The most numbers of the frames of a gradient: 2 GB of f64, and as much for their gradients.
const MOST_NUMBERS: usize = 1 << 28;

/// Answers a document: `{"ok":true,…}`. With `count` only counts and warnings.
///
/// # Errors
/// `unknown-cell`, `config`, `shape`, `proof`, `degenerate-pi`; the cell is judged before weights and inputs.
pub fn answer(text: &str, count: bool) -> Result<Value> {
    without_repeated_keys(text).map_err(|error| Refusal::config(error.to_string()))?;
    let document: Document = serde_json::from_str::<Object<Document>>(text)
        .map_err(|error| Refusal::config(explained(&error.to_string())))?
        .0;
    let Some(name) = document.cell.as_str() else {
        return Err(Refusal::config("`cell` is the name of a cell, a text"));
    };
    let kind: CellKind = name.parse()?;
    let sizes: Sizes = read::<Object<Sizes>>("sizes", &document.sizes)?.unwrap_or_default().0;
    let options: Options = read::<Object<Options>>("options", &document.options)?.unwrap_or_default().0;
    let cell = Cell::new(kind, &sizes, &options)?;
    let precision = read("dtype", &document.dtype)?.unwrap_or_default();
    let report = read("report", &document.report)?.unwrap_or_default();
    let gradient = read("grad", &document.grad)?;
    let mut answer = counts(&cell);
    if !count {
        let run = Run { cell: &cell, document: &document, report, gradient };
        match precision {
            Precision::F64 => run.answer::<f64>(&mut answer)?,
            Precision::F32 => run.answer::<f32>(&mut answer)?,
        }
        for part in ["steps", "objective", "grad"] {
            if let Some(place) = answer.get(part).and_then(|value| not_finite(value, part)) {
                let message = format!("`{place}` is not finite: the weights or inputs are too large");
                return Err(Refusal::config(message));
            }
        }
    }
    Ok(Value::Object(answer))
}

/// A JSON document of which no object has a key twice.
///
/// # Errors
/// `config`
pub fn read_json(text: &str) -> Result<Value> {
    without_repeated_keys(text).map_err(|error| Refusal::config(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| Refusal::config(error.to_string()))
}

/// The place of the first number that is none: JSON has no word for it but `null`.
fn not_finite(value: &Value, place: &str) -> Option<String> {
    match value {
        Value::Null => Some(place.to_owned()),
        Value::Array(entries) => {
            entries.iter().enumerate().find_map(|(at, entry)| not_finite(entry, &format!("{place}[{at}]")))
        }
        Value::Object(entries) => {
            entries.iter().find_map(|(name, entry)| not_finite(entry, &format!("{place}.{name}")))
        }
        _ => None,
    }
}

/// A field of the document, if it is there.
fn read<T: DeserializeOwned>(name: &str, value: &Value) -> Result<Option<T>> {
    serde_json::from_value(value.clone())
        .map_err(|error| Refusal::config(format!("{name}: {}", explained(&error.to_string()))))
}

/// The document of refusals.
pub fn refused(refusals: &[Refusal]) -> Value {
    json!({"ok": false, "errors": refusals.iter().map(Refusal::json).collect::<Vec<_>>()})
}

/// Counts, cost, degrees, warnings, programs.
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
    answer.insert("multiply_adds".to_owned(), json!(cell.multiply_adds()));
    answer.insert("degree".to_owned(), cell.degree().json());
    if !programs.is_empty() {
        answer.insert("programs".to_owned(), json!(programs));
    }
    answer.insert(
        "warnings".to_owned(),
        cell.warnings.iter().map(crate::error::Warning::json).collect::<Value>(),
    );
    answer
}

/// All weights in the order of the step.
fn weights<T: Real>(cell: &Cell, given: &Value) -> Result<Vec<T>> {
    let empty = Map::new();
    let given = match given {
        Value::Object(given) => given,
        Value::Null => &empty,
        _ => return Err(Refusal::config("`weights` is an object: names and their entries")),
    };
    let names: Vec<&str> = cell.step.trained().map(|(_, weight)| weight.name.as_str()).collect();
    if let Some(unknown) = given.keys().find(|name| !names.contains(&name.as_str())) {
        let known = names.join(", ");
        let unknown = shortened(unknown);
        return Err(Refusal::config(format!("this cell has no weight `{unknown}`; it has {known}")));
    }
    let mut theta = Vec::new();
    for (_, weight) in cell.step.trained() {
        let Some(value) = given.get(&weight.name) else {
            return Err(Refusal::config(format!("the weight `{}` is missing", weight.name)));
        };
        theta.extend(numbers::<T>(&format!("the weight `{}`", weight.name), value, &weight.shape)?);
    }
    Ok(theta.into_iter().map(T::from_f64).collect())
}

/// The entries of nested lists of a shape, finite in the precision of the computation.
fn numbers<T: Real>(what: &str, value: &Value, shape: &[usize]) -> Result<Vec<f64>> {
    let mut entries = Vec::new();
    flatten(value, shape, &mut entries)
        .map_err(|why| Refusal::shape(format!("{what} must have the shape {shape:?}: {why}")))?;
    if let Some(entry) = entries.iter().find(|x| !T::from_f64(**x).to_f64().is_finite()) {
        return Err(Refusal::config(format!("{what} has the entry {entry:e}, which is not finite here")));
    }
    Ok(entries)
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

/// What goes into the steps, owned.
enum Given {
    Tokens(Vec<u32>),
    Dense(Vec<f64>),
}

/// The number of steps and the inputs.
fn inputs<T: Real>(cell: &Cell, document: &Document) -> Result<(usize, Given)> {
    let width = cell.step.input;
    match (&document.inputs, &document.tokens) {
        (Value::Null, Value::Null) => Err(Refusal::config("`inputs` or `tokens` is missing")),
        (Value::Array(rows), Value::Null) => {
            let mut entries = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                entries.extend(numbers::<T>(&format!("input {at}"), row, &[width])?);
            }
            Ok((rows.len(), Given::Dense(entries)))
        }
        (Value::Null, Value::Array(tokens)) => {
            let token = |(at, token): (usize, &Value)| {
                let found = token.as_u64().filter(|token| *token < width as u64);
                found.and_then(|token| u32::try_from(token).ok()).ok_or_else(|| {
                    let token = shortened(&token.to_string());
                    Refusal::shape(format!("token {at} is {token}; the cell has {width} inputs, from 0"))
                })
            };
            let tokens: Result<Vec<u32>> = tokens.iter().enumerate().map(token).collect();
            Ok((tokens.as_ref().map_or(0, Vec::len), Given::Tokens(tokens?)))
        }
        (_, Value::Null) => Err(Refusal::shape("`inputs` is a list of lists of numbers")),
        (Value::Null, _) => Err(Refusal::shape("`tokens` is a list of numbers")),
        (_, _) => Err(Refusal::config("`inputs` and `tokens` exclude each other")),
    }
}

fn starts<T: Real>(cell: &Cell, document: &Document) -> Result<Starts> {
    let hidden = cell.step.states.first().map_or(0, |state| state.len);
    let list = |name: &str, value: &Value, len: usize| match value {
        Value::Null => Ok(None),
        value => numbers::<T>(&format!("`{name}`"), value, &[len]).map(Some),
    };
    Ok(Starts {
        state: list("h0", &document.h0, hidden)?,
        previous: list("x0", &document.x0, cell.step.input)?,
    })
}

struct Run<'a> {
    cell: &'a Cell,
    document: &'a Document,
    report: Report,
    gradient: Option<Gradient>,
}

impl Run<'_> {
    fn answer<T: Real>(&self, answer: &mut Map<String, Value>) -> Result<()> {
        let theta: Vec<T> = weights(self.cell, &self.document.weights)?;
        let (length, given) = inputs::<T>(self.cell, self.document)?;
        let starts = starts::<T>(self.cell, self.document)?;
        let engine = Engine::new(self.cell.step.clone(), &theta).with_starts(starts);
        let inputs = match &given {
            Given::Tokens(tokens) => Inputs::Tokens(tokens),
            Given::Dense(entries) => Inputs::Dense(entries),
        };
        let sequences = Sequences { inputs, length, count: 1 };
        if self.gradient.is_some() && engine.numbers(length, 1) > MOST_NUMBERS {
            return Err(Refusal::config(format!("{length} steps are too many for a gradient")));
        }
        let mut steps = Vec::new();
        engine.observe(sequences, |time, seen| {
            if self.report == Report::All || time + 1 == length {
                steps.push(self.step(&seen));
            }
        });
        answer.insert("steps".to_owned(), Value::Array(steps));
        if self.gradient == Some(Gradient::SumLastState) {
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
                "p" | "q" if count > 0 && self.has_gate_rows() => {
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

    /// Whether a gate has a number for each coordinate: its bias has a row for each program, or its table has.
    fn has_gate_rows(&self) -> bool {
        self.cell.step.trained().any(|(_, weight)| match weight.name.as_str() {
            "C" | "D" => weight.shape.len() == 2,
            "Ptab" | "Qtab" => weight.shape.len() == 3,
            _ => false,
        })
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
