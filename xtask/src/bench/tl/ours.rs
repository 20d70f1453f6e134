//! Our engine on one case, in a process of its own (`cargo xtask bench tl-one CASE`): loads,
//! plans, runs and lists once, and answers times, counts and peak memory as one JSON document.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use tensor_logic::program::{Program, TensorId};
use tensor_logic::relational::{Constants, Database, Limits, Lowering, Rule, Value as Number, evaluate};

use super::cases::Case;
use super::inputs;

/// Runs a case.
pub(super) fn run(case: &Case, folder: &Path, threads: usize) -> Result<Value> {
    let clock = Instant::now();
    let program = analysed(case.text)?;
    let mut database = Database::new(Constants::integers(0, 1 << 20));
    let mut lowering = Lowering::default();
    let mut rules: Vec<Rule> = Vec::new();
    let tensors: BTreeSet<TensorId> =
        program.components.iter().flat_map(|c| c.tensors.iter().copied()).collect();
    for tensor in (0..program.tensors.len() as u32).map(TensorId).filter(|id| !program.tensor(*id).hidden) {
        lowering.declare(&mut database, &program, tensor).context("no relation")?;
    }
    for equation in program.components.iter().flat_map(|component| &component.equations) {
        if !program.tensor(program.equation(*equation).tensor).hidden {
            rules.extend(lowering.rules(&mut database, &program, *equation).context("no rule")?);
        }
    }
    let plan = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    for tensor in (0..program.tensors.len() as u32).map(TensorId) {
        let (name, given) = (program.name(tensor), !tensors.contains(&tensor));
        if let (Some(relation), true) = (lowering.relation(tensor), given) {
            let mut file = name.to_owned();
            file.get_mut(..1).context("a name")?.make_ascii_lowercase();
            load(&mut database, relation, &folder.join(case.input).join(format!("{file}.facts")))?;
        }
    }
    let load = clock.elapsed().as_secs_f64();

    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let clock = Instant::now();
    pool.install(|| evaluate(&mut database, &rules, &Limits::default()))?;
    let native = clock.elapsed().as_secs_f64();
    let mut counts = Vec::new();
    let mut sum = None;
    let mut listed = Vec::new();
    for (name, expected) in case.expected {
        let tensor = (0..program.tensors.len() as u32).map(TensorId).find(|id| program.name(*id) == *name);
        let relation = database.relation(tensor.and_then(|id| lowering.relation(id)).context("a result")?);
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
        "bytes": database.bytes(), "peak_bytes": peak()}))
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
    let (functions, options) = Default::default();
    tensor_logic::analyse::analyse(&format!("{text}\n{queries}"), &mut files, &functions, &options)
        .map(|analysed| analysed.program)
        .map_err(|refused| anyhow!("{refused:?}"))
}

fn load(database: &mut Database, relation: tensor_logic::relational::RelationId, path: &Path) -> Result<()> {
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

/// The largest resident memory of this process so far, where the system says.
pub(super) fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
