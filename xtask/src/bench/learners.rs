//! `cargo xtask bench learners [NAME]...`: learners that are programs of the equation language, beside those that are
//! written by hand.
//!
//! A step is what training does: forward, gradient, clipping, optimiser; the last two are the same code on both sides.
//! Both take turns in this process, on as many threads, and the median of at least 15 turns counts. Losses of every turn
//! are compared. A case over one batch finds its plan remembered, as `@minimize` does; in a case over many batches each
//! step brings another one, and reading, analysing and planning the program for it are part of the step, as in
//! `xtask train`.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use linear_logic_rnn::learner::Learner as Cells;
use linear_logic_rnn::optimiser::Optimiser;
use linear_logic_rnn::task::batch::Batch as Strings;
use seeded::Family;
use serde_json::{Value as Json, json};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::network::{Network, Noise};
use tensor_logic::fast::Precision;
use training::optimiser::{AdamW, Moments, Update, clip_factor, global_norm};
use training::trainer::Piece;
use training::{Layout, Task};

use super::rnn::{LL_AUTHORS, LSTM};
use super::{BenchArgs, Spread, chosen};
use crate::answer::{print_json, print_text};
use crate::learner::Learner as _;
use crate::rnn::config::Config;
use crate::written::{recurrent, transformer};

/// Turns of each side that count, and the most of them where steps are short: of half a millisecond, 15 are over before
/// either side goes at its pace. (Of many more the losses part by rounding alone.) One more goes before them.
const TURNS: usize = 15;
const MOST: usize = 200;
/// So long turns beyond the least go on.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is measured.
struct Case {
    name: &'static str,
    /// The most that our time may be of the hand-written code's.
    goal: f64,
    make: fn() -> Result<Pair>,
}

/// A step of each side; each answers the loss before it.
struct Pair {
    ours: Box<dyn FnMut() -> Result<f64>>,
    theirs: Box<dyn FnMut() -> Result<f64>>,
}

const CASES: [Case; 8] = [
    Case { name: "transformer", goal: 2.0, make: || transformers(0.0, 1, 16..19) },
    Case { name: "transformer-dropout", goal: 2.0, make: || transformers(0.1, 1, 16..19) },
    Case { name: "transformer-batches", goal: 2.0, make: || transformers(0.0, 4, 16..19) },
    Case { name: "transformer-ragged", goal: 2.0, make: || transformers(0.0, 1, 4..31) },
    Case { name: "cell-1000", goal: 4.0, make: || cells(LL_AUTHORS, &recurrent::CELL, 1000) },
    Case { name: "cell-32", goal: 4.0, make: || cells(LL_AUTHORS, &recurrent::CELL, 32) },
    Case { name: "lstm-1000", goal: 4.0, make: || cells(LSTM, &recurrent::LSTM, 1000) },
    Case { name: "lstm-32", goal: 4.0, make: || cells(LSTM, &recurrent::LSTM, 32) },
];

/// `bench learners [NAME]...`; returns the exit status.
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    training::threads::set_with_this(args.threads)?;
    let mut items = Vec::new();
    for case in chosen(&CASES, |case| case.name, names)? {
        let (ours, theirs) = measure(case)?;
        let (ours, theirs) = (ours.median(), theirs.median());
        let ratio = ours / theirs;
        if !args.json {
            print_text(&format!(
                "{:20} {} thread(s) {ours:>9.3} ms   by hand {theirs:>9.3} ms   ratio {ratio:.2}, goal at most {}\n",
                case.name, args.threads, case.goal
            ));
        }
        items.push(json!({
            "name": case.name, "ms": ours, "by_hand_ms": theirs, "ratio": ratio, "goal": case.goal,
        }));
    }
    if args.json {
        let machine = crate::run_folder::machine();
        print_json(&json!({
            "schema": "xtask/1", "command": "bench learners", "machine": machine, "threads": args.threads,
            "items": Json::Array(items),
        }))?;
    }
    Ok(0)
}

/// Milliseconds of all turns of both sides.
fn measure(case: &Case) -> Result<(Spread, Spread)> {
    let Pair { mut ours, mut theirs } = (case.make)()?;
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for turn in 0..=MOST {
        if turn > TURNS && begun.elapsed() > PATIENCE {
            break;
        }
        let clock = Instant::now();
        let found = ours()?;
        let first = clock.elapsed();
        let clock = Instant::now();
        let wanted = theirs()?;
        let second = clock.elapsed();
        // Both walk the same way, each with its own rounding.
        let close = (found - wanted).abs() <= 1e-3 * wanted.abs();
        ensure!(close, "{}: loss {found} in turn {turn}, by hand {wanted}", case.name);
        if turn > 0 {
            own.push(first.as_secs_f64() * 1e3);
            others.push(second.as_secs_f64() * 1e3);
        }
    }
    Ok((Spread::of(own), Spread::of(others)))
}

/// 64 texts of so many rows: 17 on average, as those of the project's data. A batch of `batching = "bucket"` holds texts
/// of similar length.
fn texts(nth: u64, rows: &Range<u64>) -> Batch {
    let mut stream = Family::named("bench learners").stream(nth);
    let mut one = || {
        let length = 1 + rows.start + stream.below(rows.end - rows.start);
        (0..length).map(|_| stream.below(663) as u16).collect()
    };
    let texts: Vec<Vec<u16>> = (0..64).map(|_| one()).collect();
    Batch::new(texts.iter().map(Vec::as_slice))
}

/// The tiny transformer on so many batches in turn.
fn transformers(dropout: f64, batches: u64, rows: Range<u64>) -> Result<Pair> {
    let tiny = ModelConfig::size("tiny").ok_or_else(|| anyhow!("no size tiny"))?;
    let config = ModelConfig { dropout, ..tiny };
    let written = transformer::Written::new(transformer::TEXT, config.clone(), Precision::Single)?;
    let batches: Vec<Batch> = (0..batches).map(|nth| texts(nth, &rows)).collect();
    Ok(Pair { ours: step(written, batches.clone()), theirs: step(Explicit::new(config)?, batches) })
}

/// Steps of a network.
fn step(mut network: impl Network + 'static, batches: Vec<Batch>) -> Box<dyn FnMut() -> Result<f64>> {
    let layout = network.layout().clone();
    let mut theta = layout.initialise(0);
    let adamw = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.0 };
    let mut moments = Moments::new(&theta, 0.0);
    let mut gradient = vec![0.0; theta.len()];
    let mut number = 0;
    Box::new(move || {
        let batch = &batches[number as usize % batches.len()];
        number += 1;
        let noise = Noise { seed: 0, update: number, smoothing: 0.0 };
        let loss = network.gradient(&theta, batch, noise, &mut gradient)?;
        let n = loss.targets as f64;
        let factor = clip_factor(global_norm(&layout, &gradient) / n, 1.0) / n;
        let update = Update { number, lr: 1e-4, factor };
        adamw.update(&layout, &mut theta, &mut moments, &mut gradient, update);
        Ok(loss.sum / n)
    })
}

/// A cell on one batch of a task.
fn cells(keys: &str, form: &'static recurrent::Form, batch: usize) -> Result<Pair> {
    let text = format!("kind = \"rnn\"\n{keys}updates = 1\nbatch = {batch}\n");
    let config = Config::from_text("bench", &text, &[])?;
    let cell = config.cell()?;
    let mut learner: Cells = config.learner(&cell)?;
    let batch: Strings = learner.batches().train(1)?;
    let mut written = recurrent::Written::new(form, &cell, &batch, Precision::Single)?;
    let layout = learner.layout().clone();
    let mut gradient = vec![0.0; layout.len()];
    let mut own = Descent::new(&config, &layout)?;
    let ours = move || {
        let (loss, slopes) = written.slopes(&own.theta)?;
        let mut rest = gradient.as_mut_slice();
        for slopes in &slopes {
            let (here, behind) = rest.split_at_mut(slopes.len());
            rest = behind;
            here.iter_mut().zip(slopes.doubles().iter()).for_each(|(to, slope)| *to = *slope as f32);
        }
        own.update(&mut gradient, 1.0)?;
        Ok(loss)
    };
    let mut gradient = vec![0.0; layout.len()];
    let mut other = Descent::new(&config, &layout)?;
    let theirs = move || {
        let whole = Piece { part: 0, parts: 1 };
        let loss = learner.gradient(&other.theta, &batch, whole, other.number, &mut gradient)?;
        let targets = loss.targets.max(1) as f64;
        other.update(&mut gradient, targets)?;
        Ok(loss.sum / targets)
    };
    Ok(Pair { ours: Box::new(ours), theirs: Box::new(theirs) })
}

/// Weights on their way down.
struct Descent {
    layout: Layout,
    optimiser: Optimiser,
    theta: Vec<f32>,
    moments: Moments,
    number: u64,
}

impl Descent {
    fn new(config: &Config, layout: &Layout) -> Result<Self> {
        let (optimiser, theta) = (config.optimiser()?, layout.initialise(config.seed));
        let moments = optimiser.fused().start(&theta);
        Ok(Self { layout: layout.clone(), optimiser, theta, moments, number: 1 })
    }

    /// Clipping and update by a gradient that is so many times as large.
    fn update(&mut self, gradient: &mut [f32], times: f64) -> Result<()> {
        let norm = global_norm(&self.layout, gradient) / times;
        ensure!(norm.is_finite(), "the gradient left the numbers");
        let factor = clip_factor(norm, self.optimiser.clip) / times;
        let update = Update { number: self.number, lr: self.optimiser.lr, factor };
        self.optimiser.fused().update(&self.layout, &mut self.theta, &mut self.moments, gradient, update);
        gradient.fill(0.0);
        self.number += 1;
        Ok(())
    }
}
