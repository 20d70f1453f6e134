//! `cargo xtask bench pgm --networks DIR [CASE]...`: all marginals of the networks of the bnlearn repository, without and
//! with evidence, beside pyAgrum and bayesian-cpp; loopy belief propagation beside pgmax, and samples beside pyAgrum and pgmpy
//! ([`approximate`]).
//!
//! The networks are not ours to ship: `DIR` holds their `.bif` files (xtask/peers/README.md says where they come from). The
//! time is from the model in memory to the distribution of every variable, the search for an order of elimination included.
//! A probability of the evidence that, by tables in 32 bits, is not the known one to 1e-6 is a failure: the exit status is 1.

mod approximate;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use graphical_models::{Factor, Limits, Model, VariableId, bif};
use serde_json::{Value as Json, json};

use super::BenchArgs;
use crate::answer::{print_json, print_text, usage};

/// A network with the logarithm of the probability of its evidence, where two engines agree on it, and the ratio that is
/// wanted.
struct Case {
    id: &'static str,
    network: &'static str,
    log: Option<f64>,
    goal: f64,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { id: "G1", network: "alarm", log: Some(-0.524_113_281_7), goal: 1.0 },
    Case { id: "G2", network: "insurance", log: Some(-1.075_972_829_8), goal: 1.0 },
    Case { id: "G3", network: "hailfinder", log: Some(-5.586_325_664_7), goal: 1.0 },
    Case { id: "G4", network: "win95pts", log: Some(-0.367_101_213_1), goal: 1.0 },
    Case { id: "G5", network: "hepar2", log: Some(-1.864_934_409_8), goal: 1.0 },
    Case { id: "G6", network: "water", log: Some(-1.739_875_136_2), goal: 2.0 },
    Case { id: "G7", network: "andes", log: Some(-8.766_846_247_9), goal: 1.0 },
    Case { id: "G8", network: "mildew", log: Some(-6.223_213_503_4), goal: 2.0 },
    Case { id: "G9", network: "pathfinder", log: Some(-5.352_507_053_7), goal: 1.0 },
    Case { id: "G9", network: "pigs", log: Some(-31.247_862_843_5), goal: 1.0 },
    Case { id: "G9", network: "diabetes", log: Some(-48.971_208_216_0), goal: 1.0 },
    Case { id: "G10", network: "munin", log: Some(-11.793_090_143_3), goal: 2.0 },
    Case { id: "G10", network: "munin2", log: Some(-8.360_998_042_8), goal: 2.0 },
    Case { id: "G10", network: "munin3", log: Some(-10.646_507_919_5), goal: 2.0 },
    Case { id: "G10", network: "munin4", log: Some(-7.429_273_365_5), goal: 2.0 },
    Case { id: "G11", network: "barley", log: Some(-11.880_490_844_3), goal: 1.0 },
    Case { id: "G11", network: "munin1", log: None, goal: 1.0 },
    Case { id: "G12", network: "link", log: None, goal: 1.0 },
];

/// Peers take so long for these, or so much memory, that they are not asked.
const ALONE: [&str; 2] = ["munin1", "link"];

/// Runs of each, at most.
const RUNS: usize = 7;

/// `bench pgm [CASE]...`
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    let known = |name: &&String| {
        ["G13", "G14"].contains(&name.as_str())
            || CASES.iter().any(|case| case.id == **name || case.network == **name)
    };
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return Err(usage(format!("no case {unknown}; known: G1 to G14, or the name of a network")));
    }
    let asked = |id: &str| names.is_empty() || names.iter().any(|name| name == id);
    let (mut items, mut wrong) = match &args.networks {
        Some(folder) => networks(args, names, folder)?,
        None => {
            print_text("no folder of networks (`--networks DIR`): G13 is all that is measured\n");
            (Vec::new(), false)
        }
    };
    if asked("G13") {
        let (item, right) = approximate::grid(args)?;
        items.push(item);
        wrong |= !right;
    }
    if let Some(folder) = args.networks.as_ref().filter(|_| asked("G14"))
        && let Some((found, right)) = approximate::samples(args, folder)?
    {
        items.extend(found);
        wrong |= !right;
    }
    if args.json {
        let machine = crate::run_folder::machine();
        print_json(
            &json!({ "schema": "xtask/1", "command": "bench pgm", "machine": machine, "items": items }),
        )?;
    }
    Ok(u8::from(wrong))
}

/// G1 to G12: what was measured, and whether some number is wrong.
fn networks(args: &BenchArgs, names: &[String], folder: &Path) -> Result<(Vec<Json>, bool)> {
    let wanted =
        |case: &&Case| names.is_empty() || names.iter().any(|name| name == case.id || name == case.network);
    let (mut items, mut wrong) = (Vec::new(), false);
    for case in CASES.iter().filter(wanted) {
        let path = folder.join(format!("{}.bif", case.network));
        let Ok(bytes) = std::fs::read(&path) else {
            print_text(&format!("{} {}: no {}\n", case.id, case.network, path.display()));
            continue;
        };
        let model = bif::read(&String::from_utf8_lossy(&bytes))
            .with_context(|| format!("{} is no network", path.display()))?;
        let observed = evidence(&model);
        for observed in [&[], observed.as_slice()] {
            let (seconds, log) = ours(&model, observed)?;
            let peers = match ALONE.contains(&case.network) {
                true => None,
                false => peers(args, &path, &model, observed),
            };
            let right = match case.log.filter(|_| !observed.is_empty()) {
                Some(wanted) => {
                    (in_32_bits(&model)?.marginals(observed, &Limits::default())?.log_evidence - wanted).abs()
                        < 1e-6
                }
                None => true,
            };
            wrong |= !right;
            let label = if observed.is_empty() { "prior" } else { "evidence" };
            let best = peers.as_ref().and_then(best_of);
            let compared = best.as_ref().map_or_else(String::new, |(name, time)| {
                let ratio = time / seconds;
                let met = if ratio >= case.goal { "" } else { "   MISSED" };
                format!("   {name} {:.3} ms: {ratio:.2} x (goal {}){met}", time * 1e3, case.goal)
            });
            let value = if right { "" } else { "   WRONG" };
            if !args.json {
                let name = format!("{} {} {label}", case.id, case.network);
                print_text(&format!(
                    "{name:<26} {:>10.3} ms   log P(e) {log:.10}{value}{compared}\n",
                    seconds * 1e3
                ));
            }
            items.push(json!({
                "case": case.id, "network": case.network, "evidence": !observed.is_empty(), "seconds": seconds,
                "log_evidence": log, "right": right, "goal": case.goal,
                "peer": best.as_ref().map(|(name, _)| name), "peer_seconds": best.as_ref().map(|(_, time)| time),
            }));
        }
    }
    Ok((items, wrong))
}

/// The median time, and the logarithm of the probability of the evidence.
fn ours(model: &Model, observed: &[(VariableId, usize)]) -> Result<(f64, f64)> {
    let (mut times, mut log): (Vec<f64>, f64) = (Vec::new(), f64::NAN);
    while times.len() < RUNS && (times.len() < 3 || times.iter().sum::<f64>() < 10.0) {
        let since = Instant::now();
        log = model.marginals(observed, &Limits::default())?.log_evidence;
        times.push(since.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], log))
}

/// The model as the engines read it that the known probabilities are from: they keep tables in 32 bits, which moves the
/// logarithm by up to 4e-6.
fn in_32_bits(model: &Model) -> Result<Model> {
    let mut rounded = Model::new(model.variables().to_vec())?;
    for factor in model.factors() {
        let values = factor.values.iter().map(|value| f64::from(*value as f32)).collect();
        rounded.multiply(Factor { scope: factor.scope.clone(), values })?;
    }
    Ok(rounded)
}

/// What the peers say.
fn peers(args: &BenchArgs, path: &Path, model: &Model, observed: &[(VariableId, usize)]) -> Option<Json> {
    let (python, folder) = (args.python.as_ref()?, args.peers_folder()?);
    let pairs: Vec<String> =
        observed.iter().map(|(id, state)| format!("{}={state}", model.variable(*id).name)).collect();
    let pairs = if pairs.is_empty() { "-".to_owned() } else { pairs.join(",") };
    let output = Command::new(python)
        .arg(folder.join("pgm.py"))
        .arg(path)
        .args([pairs, RUNS.to_string()])
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The fastest peer.
fn best_of(found: &Json) -> Option<(String, f64)> {
    let engines = found.get("engines")?.as_object()?;
    let times = engines.iter().filter_map(|(name, time)| Some((name.clone(), time.as_f64()?)));
    times.min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Every tenth variable by name in its most probable state, given the states so found of its parents.
fn evidence(model: &Model) -> Vec<(VariableId, usize)> {
    let count = model.variables().len();
    let mut states: Vec<Option<usize>> = vec![None; count];
    // A network without circles is gone through in as many rounds as it is deep.
    for _ in 0..count {
        for factor in model.factors() {
            let Some((own, parents)) = factor.scope.split_last() else { continue };
            let known: Option<Vec<usize>> = parents.iter().map(|id| states[id.0]).collect();
            let (Some(known), None) = (known, states[own.0]) else { continue };
            let size = |id: &VariableId| model.variable(*id).states.len();
            let row = parents.iter().zip(known).fold(0, |row, (id, state)| row * size(id) + state);
            let row = &factor.values[row * size(own)..(row + 1) * size(own)];
            let mut best = 0;
            (0..row.len()).for_each(|at| best = if row[at] > row[best] + 1e-15 { at } else { best });
            states[own.0] = Some(best);
        }
    }
    let mut names: Vec<usize> = (0..count).collect();
    names.sort_by(|a, b| model.variables()[*a].name.cmp(&model.variables()[*b].name));
    names.into_iter().step_by(10).map(|at| (VariableId(at), states[at].unwrap_or(0))).collect()
}
