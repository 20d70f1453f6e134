//! G13 and G14: loopy belief propagation on a grid, and forward samples.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use graphical_models::{Factor, Limits, Loopy, Model, Sampling, Variable, VariableId, bif};
use serde_json::{Value as Json, json};

use super::super::BenchArgs;
use super::super::tl::SplitMix64;
use super::{RUNS, best_of};
use crate::answer::print_text;

/// The variables on a side of the grid, and the rounds.
const SIDE: usize = 100;
const ROUNDS: usize = 100;
/// The mean probability of the first state that another engine has, in 32 bits.
const MEAN: f64 = 0.497_479_230_2;

const SAMPLES: u64 = 1_000_000;

/// A line for people and an item for others, and whether the numbers are right.
struct Figure<'f> {
    id: &'f str,
    label: String,
    seconds: f64,
    /// What is said beside the time.
    value: String,
    right: bool,
    goal: f64,
    peers: Option<Json>,
}

impl Figure<'_> {
    fn said(self, args: &BenchArgs) -> Json {
        let best = self.peers.as_ref().and_then(best_of);
        let compared = best.as_ref().map_or_else(String::new, |(name, time)| {
            let ratio = time / self.seconds;
            let met = if ratio >= self.goal { "" } else { "   MISSED" };
            format!("   {name} {:.3} ms: {ratio:.2} x (goal {}){met}", time * 1e3, self.goal)
        });
        let wrong = if self.right { "" } else { "   WRONG" };
        let Figure { id, label, seconds, value, .. } = &self;
        if !args.json {
            let name = format!("{id} {label}");
            print_text(&format!("{name:<26} {:>10.3} ms   {value}{wrong}{compared}\n", seconds * 1e3));
        }
        json!({
            "case": id, "label": label, "seconds": seconds, "value": value, "right": self.right, "goal": self.goal,
            "peer": best.as_ref().map(|(name, _)| name), "peer_seconds": best.as_ref().map(|(_, time)| time),
        })
    }
}

/// The median time of a call, and what the last one gave.
fn timed<T>(mut call: impl FnMut() -> Result<T>) -> Result<(f64, T)> {
    let mut times = Vec::new();
    loop {
        let since = Instant::now();
        let found = call()?;
        times.push(since.elapsed().as_secs_f64());
        if times.len() == RUNS {
            times.sort_by(f64::total_cmp);
            return Ok((times[RUNS / 2], found));
        }
    }
}

/// A driver's document.
fn peers(args: &BenchArgs, driver: &str, arguments: &[&str]) -> Option<Json> {
    let (python, folder) = (args.python.as_ref()?, args.peers_folder()?);
    let output = Command::new(python).arg(folder.join(driver)).args(arguments).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// G13: the time is that of the rounds: the difference of a call to one without rounds. The peer, too, has its tables and
/// messages laid out and compiled before its clock starts, and reads its beliefs when it has stopped. The whole call stands
/// beside.
pub(super) fn grid(args: &BenchArgs) -> Result<(Json, bool)> {
    let model = ising()?;
    let of = |rounds: usize| {
        let options = Loopy { rounds, tolerance: 0.0, ..Loopy::default() };
        timed(|| Ok(model.loopy(&[], &options)?))
    };
    let ((around, _), (whole, found)) = (of(0)?, of(ROUNDS)?);
    let mean = found.of.iter().map(|of| of[0]).sum::<f64>() / found.of.len() as f64;
    let arguments = [SIDE, ROUNDS, RUNS].map(|number| number.to_string());
    let peers = peers(args, "bp.py", &arguments.each_ref().map(String::as_str));
    let right = (mean - MEAN).abs() < 1e-7 && found.rounds == ROUNDS;
    let ratio = peers.as_ref().and_then(best_of).map(|(_, time)| format!(", {:.2} x", time / whole));
    let value = format!("mean {mean:.10}, the whole call {:.3} ms{}", whole * 1e3, ratio.unwrap_or_default());
    let seconds = whole - around;
    let label = format!("grid {SIDE} x {SIDE}");
    let figure = Figure { id: "G13", label, seconds, value, right, goal: 10.0, peers };
    Ok((figure.said(args), right))
}

/// Two states, a field at each variable and a coupling along each edge, drawn as the peer draws them.
fn ising() -> Result<Model> {
    let mut random = SplitMix64::new(5);
    let mut signed = || 2.0 * random.unit() - 1.0;
    let variable =
        |at: usize| Variable { name: at.to_string(), states: vec!["up".to_owned(), "down".to_owned()] };
    let mut model = Model::new((0..SIDE * SIDE).map(variable).collect())?;
    for at in 0..SIDE * SIDE {
        let field: f64 = signed();
        model.multiply(Factor { scope: vec![VariableId(at)], values: vec![field.exp(), (-field).exp()] })?;
    }
    for at in 0..SIDE * SIDE {
        let right = (at % SIDE + 1 < SIDE).then_some(at + 1);
        let below = (at / SIDE + 1 < SIDE).then_some(at + SIDE);
        for other in right.into_iter().chain(below) {
            let (equal, unequal) = {
                let coupling = signed();
                (coupling.exp(), (-coupling).exp())
            };
            let scope = vec![VariableId(at), VariableId(other)];
            model.multiply(Factor { scope, values: vec![equal, unequal, unequal, equal] })?;
        }
    }
    Ok(model)
}

/// G14, on one thread and on two.
pub(super) fn samples(args: &BenchArgs, networks: &Path) -> Result<Option<(Vec<Json>, bool)>> {
    let path = networks.join("alarm.bif");
    let Ok(bytes) = std::fs::read(&path) else {
        print_text(&format!("G14: no {}\n", path.display()));
        return Ok(None);
    };
    let model = bif::read(&String::from_utf8_lossy(&bytes))
        .with_context(|| format!("{} is no network", path.display()))?;
    let exact = model.marginals(&[], &Limits::default())?;
    let (mut items, mut all_right) = (Vec::new(), true);
    for threads in [1, 2] {
        let sampling = Sampling { samples: SAMPLES, seed: 7, threads, ..Sampling::default() };
        let (seconds, found) = timed(|| Ok(model.sample_forward(&[], &sampling)?))?;
        let mut worst = 0.0_f64;
        for (found, exact) in found.of.iter().flatten().zip(exact.of.iter().flatten()) {
            let error = (exact * (1.0 - exact) / SAMPLES as f64).sqrt();
            worst = worst.max((found.probability - exact).abs() / error.max(f64::MIN_POSITIVE));
        }
        let right = worst <= 4.0;
        all_right &= right;
        let arguments = [SAMPLES.to_string(), "5".to_owned(), threads.to_string()];
        let mut all = vec![path.to_str().unwrap_or_default()];
        all.extend(arguments.iter().map(String::as_str));
        let peers = peers(args, "samp.py", &all);
        let rate = SAMPLES as f64 / seconds / 1e6;
        let value = format!("{rate:.2} M samples/s, off by {worst:.2} standard errors at most");
        let label = format!("alarm, {threads} thread{}", if threads == 1 { "" } else { "s" });
        let figure = Figure { id: "G14", label, seconds, value, right, goal: 15.0, peers };
        items.push(figure.said(args));
    }
    Ok(Some((items, all_right)))
}
