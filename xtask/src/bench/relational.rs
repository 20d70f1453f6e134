//! `cargo xtask bench relational`: rules over weighted facts, beside ProbLog and the sum over all worlds; and `embed`, rules
//! in embedding space.
//!
//! `digits`: 64 samples of two digits each, of which a network says how probable they are (10 numbers for a digit), and only
//! the sum is known. Ours is a step of learning: the loss, and its gradient by all 1,280 scores, from scores that change each
//! time. ProbLog's is the probabilities alone, where the program was grounded before. The sum over all worlds is the
//! reference interpreter's loss of one sample, times 64.
//!
//! `encoder` and `molecules`: relational networks beside PyNeuraLogic, values, steps and losses alike. `messages`: sums over the
//! arcs of a large graph beside PyTorch.

mod by_hand;
mod embed;
mod encoder;
mod messages;
mod molecules;
mod ours;

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use seeded::Family;
use serde_json::{Value as Json, json};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Parameters, Request};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::program::TensorId;
use tensor_logic::reference::Reference;

use self::ours::{BUDGET, analysed, named};
use super::BenchArgs;
use crate::answer::{print_json, print_text, usage};

const SAMPLES: usize = 64;
const RUNS: usize = 15;
const NAMES: [&str; 5] = ["digits", "embed", "encoder", "messages", "molecules"];

/// `bench relational [CASE]...`; returns the exit status.
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    if let Some(unknown) = names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(usage(format!("no case {unknown}; known: {}", NAMES.join(", "))));
    }
    training::threads::set_with_this(args.threads)?;
    let wanted = |name: &str| names.is_empty() || names.iter().any(|asked| asked == name);
    let say = |line: String| {
        if !args.json {
            print_text(&line);
        }
    };
    let folder = args.peers_folder();
    let peers = args.python.as_deref().zip(folder.as_deref());
    let mut items = Vec::new();
    if wanted("digits") {
        items.push(digits_item(args, say)?);
    }
    if wanted("encoder") {
        items.extend(encoder::items(peers, say)?);
    }
    match peers {
        Some((python, folder)) if wanted("molecules") => items.extend(molecules::items(python, folder, say)?),
        None if wanted("molecules") => say("molecules    needs --python, which has the data\n".to_owned()),
        _ => {}
    }
    if wanted("messages") {
        items.extend(messages::items(args.threads, peers, say)?);
    }
    if wanted("embed") {
        // Pictures are drawn where a folder is named.
        let (said, item) = embed::run(args.out.as_deref(), args.threads)?;
        say(said);
        items.push(item);
    }
    if args.json {
        let machine = crate::run_folder::machine();
        print_json(&json!({
            "schema": "xtask/1", "command": "bench relational", "machine": machine, "threads": args.threads,
            "items": items,
        }))?;
    }
    Ok(0)
}

/// `digits`, measured.
fn digits_item(args: &BenchArgs, say: impl Fn(String)) -> Result<Json> {
    let (step, logs, rows) = digits()?;
    let worlds = by_worlds()? * SAMPLES as f64;
    let peer = peer(args, &rows)?;
    say(format!(
        "digits   a step {:.3} ms; all worlds {:.1} ms, {:.0} x (goal 20)\n",
        step * 1e3,
        worlds * 1e3,
        worlds / step
    ));
    let mut item = json!({ "name": "digits", "s": step, "worlds_s": worlds, "log": logs });
    if let Some(peer) = peer {
        let (compile, evaluate) = (peer["compile_s"].as_f64(), peer["evaluate_s"].as_f64());
        let (compile, evaluate) = compile.zip(evaluate).context("the peer has no times")?;
        let log = peer["log"].as_f64().context("the peer has no answer")?;
        ensure!((log - logs).abs() < 1e-6 * logs.abs(), "ProbLog's probabilities are {log}, ours {logs}");
        say(format!(
            "         ProbLog compiles in {:.1} ms and evaluates in {:.2} ms, {:.1} x (goal 10)\n",
            compile * 1e3,
            evaluate * 1e3,
            evaluate / step
        ));
        item["problog_compile_s"] = json!(compile);
        item["problog_s"] = json!(evaluate);
    }
    Ok(item)
}

/// The program for so many samples.
fn text(samples: usize, known: &[usize]) -> String {
    let mut text = format!(
        "s : {samples}\np : 2\nd, a, b : 10\nScore[s, p, d] ~ normal(0, 1)\nDigit[s, p, d.] = softmax(Score[s, p, d])\n\
         @exclusive(Digit, 2)\nSum(s, n) : prob\nSum(s, n) <- Digit[s, 0, a], Digit[s, 1, b], n = a + b, Known(s, n)\n\
         Loss = -Known(s, n) log(Sum(s, n))\n"
    );
    for (sample, sum) in known.iter().enumerate() {
        text += &format!("Known({sample}, {sum})\n");
    }
    text
}

/// Seconds of a step, the sum of the logarithms of the probabilities of its scores, and the weights and sums of these.
fn digits() -> Result<(f64, f64, Vec<String>)> {
    let mut stream = Family::named("bench relational").stream(0);
    let known: Vec<usize> = (0..SAMPLES).map(|_| (stream.below(10) + stream.below(10)) as usize).collect();
    let program = analysed(&text(SAMPLES, &known))?;
    let (loss, score) = (named(&program, "Loss")?, named(&program, "Score")?);
    let grown = adjoint(&program, loss, &[score]);
    let goals: Vec<TensorId> =
        std::iter::once(loss).chain(grown.gradients.iter().flatten().copied()).collect();
    let mut engine = Auto::new(Box::<Fast>::default());
    let mut scores: Vec<f64> = (0..SAMPLES * 20).map(|_| stream.below(4001) as f64 / 1000.0 - 2.0).collect();
    let (mut times, mut value) = (Vec::new(), 0.0);
    for turn in 0..=RUNS {
        let parameters = Parameters::from([(score, Arc::new(scores.clone()))]);
        let request = Request { program: &grown.program, parameters: &parameters, budget: BUDGET };
        let clock = Instant::now();
        let values = engine.values(&request, &goals).map_err(|report| anyhow!("{report:?}"))?;
        if turn > 0 {
            times.push(clock.elapsed().as_secs_f64());
        }
        value = values[0].doubles()[0];
        if turn < RUNS {
            for (score, slope) in scores.iter_mut().zip(values[1].doubles().iter()) {
                *score -= 0.1 * slope;
            }
        }
    }
    times.sort_by(f64::total_cmp);
    let rows = (0..SAMPLES).map(|sample| {
        let mut row: Vec<String> = Vec::new();
        for digit in scores[sample * 20..(sample + 1) * 20].chunks(10) {
            let most = digit.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = digit.iter().map(|score| (score - most).exp()).sum();
            row.extend(digit.iter().map(|score| ((score - most).exp() / sum).to_string()));
        }
        row.push(known[sample].to_string());
        row.join(" ")
    });
    Ok((times[times.len() / 2], -value, rows.collect()))
}

/// Seconds of the loss of one sample, world by world.
fn by_worlds() -> Result<f64> {
    let program = analysed(&text(1, &[9]))?;
    let loss = named(&program, "Loss")?;
    let parameters = Parameters::new();
    let request = Request { program: &program, parameters: &parameters, budget: BUDGET };
    let mut times = Vec::new();
    for _ in 0..3 {
        let clock = Instant::now();
        Reference::default().values(&request, &[loss]).map_err(|report| anyhow!("{report:?}"))?;
        times.push(clock.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[1])
}

/// What ProbLog says of the same samples.
fn peer(args: &BenchArgs, rows: &[String]) -> Result<Option<Json>> {
    let (Some(python), Some(folder)) = (&args.python, args.peers_folder()) else { return Ok(None) };
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), rows.join("\n"))?;
    let output =
        Command::new(python).arg(folder.join("digits.py")).arg(file.path()).arg(RUNS.to_string()).output()?;
    ensure!(output.status.success(), "the peer fails: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}
