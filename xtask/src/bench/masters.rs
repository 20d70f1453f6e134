//! `cargo xtask bench masters [CASE]...`: the ten cells of `docs/linear-logic/masters.md`, beside PyTorch in turns.
//!
//! The proofs are read from the page. An update is gradient, clipping and optimiser on one fixed batch, as for `rnn`. The
//! peer gets our weights and our batch, and before its time is taken its loss must be ours: it is the same cell.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use training::Task;
use training::trainer::Piece;

use super::rnn::{Ours, Peer, SECONDS, TURNS};
use super::{BenchArgs, Spread, chosen, digits};
use crate::answer::{print_json, print_text};

/// The peer, kept beside the bench.
const PEER: &str = include_str!("../../peers/torch_masters.py");
/// The proofs.
const PAGE: &str = include_str!("../../../docs/linear-logic/masters.md");

/// What the sections of the page are called here, in its order.
const NAMES: [&str; 10] =
    ["numeral", "word", "add", "mult", "repeat", "case", "pair", "square", "places", "subst"];

/// Sequences: one block, so that it is one thread's work.
const BATCH: usize = 32;
const LENGTH: usize = 32;
const HIDDEN: usize = 20;
/// Times the peer's speed.
const GOAL: f64 = 5.0;

/// A cell of the page.
struct Case {
    name: &'static str,
    /// Keys of a run.
    keys: String,
}

/// `bench masters [CASE]...`; returns the exit status.
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    training::threads::set(args.threads)?;
    let cases = cases()?;
    let mut peer = Peer::start(args, PEER);
    let mut rows = Vec::new();
    for case in chosen(&cases, |case| case.name, names)? {
        let row = measure(case, peer.as_mut()).with_context(|| case.name)?;
        if !args.json {
            print_text(&line(&row));
        }
        rows.push(row);
    }
    if args.json {
        print_json(&Value::Array(rows))?;
    }
    Ok(0)
}

/// The cells of the page, each at our sizes.
fn cases() -> Result<Vec<Case>> {
    let sections: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
    ensure!(sections.len() == NAMES.len(), "the page has {} cells", sections.len());
    let case = |(name, section): (&'static str, &str)| {
        let block = section.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```"));
        let mut master: Value = serde_json::from_str(block.context("a cell has no block")?.0)?;
        *master.pointer_mut("/dims/h").context("a cell has no state h")? = json!(HIDDEN);
        let masters = toml::Value::try_from(vec![master])?;
        let keys = format!(
            "task = \"parity\"\nmin_length = {LENGTH}\nmax_length = {LENGTH}\ncell = \"master\"\nhidden = {HIDDEN}\n\
             act = \"tanh\"\nreadout = 0\nmasters = {masters}\n"
        );
        Ok(Case { name, keys })
    };
    NAMES.into_iter().zip(sections).map(case).collect()
}

fn measure(case: &Case, peer: Option<&mut Peer>) -> Result<Value> {
    let mut ours = Ours::new(case.name, &case.keys, BATCH, true)?;
    let mut row = json!({
        "case": case.name, "batch": BATCH, "length": LENGTH, "hidden": HIDDEN, "weights": ours.theta.len(),
        "goal_ratio": GOAL,
    });
    let mut peer = peer;
    if let Some(peer) = &mut peer {
        same_loss(case, &mut ours, peer)?;
    }
    ours.turn(0.0)?;
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        if let Some(peer) = &mut peer {
            others.push(peer.number(&json!({"seconds": SECONDS}), "steps_per_second")?);
        }
        own.push(ours.turn(SECONDS)?);
    }
    let own = Spread::of(own).median();
    row["steps_per_second"] = json!(own);
    if let Some(peer) = peer {
        let other = Spread::of(others).median();
        row["peer"] = json!(peer.name);
        row["peer_steps_per_second"] = json!(other);
        row["ratio"] = json!(own / other);
    }
    Ok(row)
}

/// Gives the peer the weights and the batch, and compares its loss with ours.
fn same_loss(case: &Case, ours: &mut Ours, peer: &mut Peer) -> Result<()> {
    let Ours { learner, batch, theta, .. } = ours;
    ensure!(batch.counted() == batch.steps, "the peer counts every position");
    let layout = learner.layout();
    let mut weights = serde_json::Map::new();
    for entry in layout.iter() {
        let values = theta.get(entry.range.clone()).context("a weight without entries")?;
        weights.insert(entry.name.clone(), json!({"shape": entry.shape, "values": values}));
    }
    let question = json!({
        "case": case.name, "batch": batch.sequences, "weights": weights, "tokens": batch.tokens, "targets": batch.targets,
    });
    let theirs = peer.number(&question, "loss")?;
    let mut gradient = vec![0.0; theta.len()];
    let loss = learner.gradient(theta, batch, Piece { part: 0, parts: 1 }, 1, &mut gradient)?;
    let own = loss.sum / loss.targets.max(1) as f64;
    ensure!((own - theirs).abs() <= 1e-5 * own.abs(), "the loss is {own}, that of the peer {theirs}");
    Ok(())
}

fn line(row: &Value) -> String {
    let number = |name: &str| row.get(name).and_then(Value::as_f64);
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let speed = digits(number("steps_per_second").unwrap_or(f64::NAN));
    let mut line =
        format!("{:8} {:5} weights {speed:>11} steps/s", text("case"), number("weights").unwrap_or(0.0));
    if let (Some(other), Some(ratio)) = (number("peer_steps_per_second"), number("ratio")) {
        line += &format!("   {} {}: {ratio:.2} x, goal {GOAL} x", text("peer"), digits(other));
    }
    line + "\n"
}
