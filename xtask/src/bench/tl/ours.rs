//! Our engine on one case, in a process of its own (`cargo xtask bench tl-one CASE`): loads,
//! plans, runs and lists once, and answers times, counts and peak memory as one JSON document.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use datarel::{Constants, Database, Limits, Value as Number, evaluate};
use serde_json::{Value, json};
use tensor_logic::datalog;
use tensor_logic::program::{Program, TensorId};

use super::super::equations;
use super::cases::Case;
use super::inputs;

/// Runs a case.
pub(super) fn run(case: &Case, folder: &Path, threads: usize) -> Result<Value> {
    let clock = Instant::now();
    let program = analysed(case.text)?;
    let named = (0u32..).map(TensorId).zip(&program.tensors).filter(|(_, tensor)| !tensor.hidden);
    let tensors: Vec<(TensorId, &str)> = named.map(|(id, tensor)| (id, tensor.name.as_str())).collect();
    let goals: Vec<TensorId> = tensors.iter().map(|(id, _)| *id).collect();
    let compiled = datalog::compile_whole(&program, &goals, Constants::integers(0, 1 << 20));
    let mut compiled = compiled.context("these are no rules")?.map_err(|report| anyhow!("{report}"))?;
    let plan = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    for (tensor, name) in &tensors {
        let given = !program.equations.iter().any(|equation| equation.tensor == *tensor);
        if let (Some(relation), true) = (compiled.relation(*tensor), given) {
            let mut file = (*name).to_owned();
            file.get_mut(..1).context("a name")?.make_ascii_lowercase();
            load(&mut compiled.database, relation, &folder.join(case.input).join(format!("{file}.facts")))?;
        }
    }
    let load = clock.elapsed().as_secs_f64();

    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let clock = Instant::now();
    pool.install(|| evaluate(&mut compiled.database, &compiled.rules, &Limits::default()))?;
    let native = clock.elapsed().as_secs_f64();
    let mut counts = Vec::new();
    let mut sum = None;
    let mut listed = Vec::new();
    for (name, expected) in case.expected {
        let tensor = tensors.iter().find(|(_, known)| known == name).map(|(id, _)| *id);
        let relation = tensor.and_then(|id| compiled.relation(id)).context("a result")?;
        let relation = compiled.database.relation(relation);
        listed.push(pool.install(|| relation.rows()));
        counts.push((relation.len() as u64, *expected, relation.values().to_vec()));
    }
    let list = clock.elapsed().as_secs_f64();
    for (count, expected, values) in &counts {
        ensure!(count == expected, "{}: {count} tuples, expected {expected}", case.id);
        if case.sum.is_some() {
            sum = Some(values.iter().map(|value| value.as_real()).sum::<f64>());
        }
    }
    ensure!(sum == case.sum, "{}: the sum is {sum:?}, expected {:?}", case.id, case.sum);
    let count: u64 = counts.iter().map(|(count, ..)| count).sum();
    drop(listed);
    Ok(json!({"load_s": load, "plan_s": plan, "native_s": native, "listed_s": list, "count": count,
        "bytes": compiled.database.bytes(), "peak_bytes": crate::run_folder::peak_bytes()}))
}

/// The core form of a program, with a query for each result.
fn analysed(text: &str) -> Result<Program> {
    let names: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.contains("<-") || line.contains("min="))
        .filter_map(|line| line.split_once('(').map(|(name, _)| name))
        .collect();
    let queries: String = names.iter().map(|name| format!("{name}?\n")).collect();
    let mut files = tensor_logic::files::Files::new(".");
    equations::program(&format!("{text}\n{queries}"), &mut files)
}

fn load(database: &mut Database, relation: datarel::RelationId, path: &Path) -> Result<()> {
    let (rows, width) = inputs::read(path)?;
    let arity = database.relation(relation).arity();
    if width == arity {
        return Ok(database.insert(relation, &rows, &[])?);
    }
    ensure!(width == arity + 1, "{} has {width} columns", path.display());
    let (mut tuples, mut values) = (Vec::new(), Vec::new());
    for row in rows.chunks_exact(width) {
        let (tuple, value) = row.split_at(arity);
        tuples.extend_from_slice(tuple);
        values.extend(value.iter().map(|value| Number::real(f64::from(*value))));
    }
    Ok(database.insert(relation, &tuples, &values)?)
}
