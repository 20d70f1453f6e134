//! `bench relational messages`: what neighbours say, summed over a random graph of 10⁵ nodes and 10⁶ arcs in vectors of 64 numbers,
//! beside PyTorch.
//!
//! `sum` is the sum alone, `layer` has a matrix and a cut below 0 behind it; each as equations and as rules, in both
//! precisions. Measured are the loss (the sum of the squares), its gradient, and a step of learning, which moves X as
//! well. The first time of each is the one in which tables and groups are found; behind it what is learned is another
//! each time. PyTorch does the same in turns with us, and the loss, the layer's output, the gradients and what the
//! steps lead to must agree.
//!
//! The floor is the time in which as many bytes are read, one behind the other, as the vectors of all arcs have: 256 MB in 32
//! bits, of which rows are picked all over 25.6 MB. A gradient does that twice.

mod peer;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::gradient::adjoint;
use tensor_logic::learn::minimize;
use tensor_logic::lower::Loaded;
use tensor_logic::program::{Action, Program, TensorId};

use self::peer::{Peer, VARIANTS};
use super::super::einsum::Generated;
use super::super::{Spread, equations};
use super::ours::{BUDGET, named};

const NODES: usize = 100_000;
const WIDTH: usize = 64;
const ARCS: usize = 1_000_000;
const EDGES: &str = "pairs 181 100000 1000000.csv";
const X: &str = "signed 182 100000 64.npy";
const W: &str = "signed 183 64 64.npy";
/// So often is everything measured, behind the first time.
const RUNS: usize = 5;
/// 2⁻²⁰: the steps that are timed do not run away.
const RATE: &str = "9.5367431640625e-7";
/// How many times faster than `index_add` it is to be.
const GOAL: f64 = 2.0;

/// What is computed, and in which form it is written.
struct Case {
    name: &'static str,
    form: &'static str,
    text: &'static str,
    /// By what the loss is differentiated.
    by: &'static [&'static str],
}

const CASES: [Case; 4] = [
    Case {
        name: "sum",
        form: "equations",
        text: "H[y, d] = E(x, y) X[x, d]\nLoss = H[y, d]^2\n",
        by: &["X"],
    },
    Case { name: "sum", form: "rules", text: "H(y, d) += E(x, y) X[x, d]\nLoss = H(y, d)^2\n", by: &["X"] },
    Case {
        name: "layer",
        form: "equations",
        text: "H[y, e] = relu(E(x, y) X[x, d] W[d, e])\nLoss = H[y, e]^2\n",
        by: &["X", "W"],
    },
    Case {
        name: "layer",
        form: "rules",
        text: "H(y, e) += relu(E(x, y) X[x, d] W[d, e])\nLoss = H(y, e)^2\n",
        by: &["X", "W"],
    },
];

/// The program of a case.
fn text(case: &Case) -> String {
    let mut text = format!("x, y : {NODES}\nd, e : {WIDTH}\nE = \"{EDGES}\"\nE(x, y)\n");
    for name in case.by {
        let places = if *name == "X" { "[x, d]" } else { "[d, e]" };
        text += &format!("{name}{places} ~ zeros()\n");
    }
    text += case.text;
    text + &format!("Loss? @minimize(opt=sgd, lr={RATE}, steps={})\n", RUNS + 1)
}

/// Seconds of the first time and of the others.
struct Times {
    first: f64,
    later: Spread,
}

impl Times {
    fn of(mut seconds: Vec<f64>) -> Times {
        let first = if seconds.is_empty() { f64::NAN } else { seconds.remove(0) };
        Times { first, later: Spread::of(seconds) }
    }
}

/// What was measured of one kind: ours, and the peer's by variant.
struct Measured {
    kind: &'static str,
    ours: Times,
    peers: BTreeMap<&'static str, Times>,
}

/// Measures all cases; the peer's folder has its driver.
pub(super) fn items(
    threads: usize,
    peers: Option<(&str, &Path)>,
    mut say: impl FnMut(String),
) -> Result<Vec<Json>> {
    let mut items = Vec::new();
    for (precision, name) in [(Precision::Single, "float32"), (Precision::Double, "float64")] {
        let floor = floor(precision);
        let place = tempfile::tempdir()?;
        let peer = peers.map(|(python, folder)| Peer::start(python, folder, threads, name, place.path()));
        let mut peer = peer.transpose()?;
        say(format!("messages {name}: as many bytes as all arcs have read in {:.1} ms\n", floor * 1e3));
        for case in &CASES {
            let all = measured(case, precision, &mut peer)?;
            for measured in &all {
                say(line(case, measured));
                items.push(item(case, name, floor, measured));
            }
        }
    }
    Ok(items)
}

fn measured(case: &Case, precision: Precision, peer: &mut Option<Peer>) -> Result<Vec<Measured>> {
    let mut subject = Subject::of(case, precision)?;
    let loss = [subject.loss];
    let forward = subject.timed("forward", &subject.program, &loss, peer)?;
    let slopes: Vec<TensorId> =
        std::iter::once(subject.loss).chain(subject.gradients.iter().copied()).collect();
    let gradient = subject.timed("gradient", &subject.adjoint, &slopes, peer)?;
    if let Some(peer) = peer {
        subject.compared(peer)?;
    }
    Ok(vec![forward, gradient, subject.steps(peer)?])
}

/// A case, and what it begins with.
struct Subject<'c> {
    case: &'c Case,
    precision: Precision,
    program: Program,
    adjoint: Program,
    loss: TensorId,
    /// By what the case names.
    gradients: Vec<TensorId>,
    start: Parameters,
}

impl Subject<'_> {
    fn of(case: &Case, precision: Precision) -> Result<Subject<'_>> {
        let program = equations::program(&text(case), &mut Generated)?;
        let loss = named(&program, "Loss")?;
        let by: Vec<TensorId> = case.by.iter().map(|name| named(&program, name)).collect::<Result<_>>()?;
        let mut start = Parameters::new();
        for (name, id) in case.by.iter().zip(&by) {
            let Some(Loaded::Array { values, .. }) = Generated::make(if *name == "X" { X } else { W }) else {
                return Err(anyhow!("no start of {name}"));
            };
            start.insert(*id, Arc::new(values.to_vec()));
        }
        let grown = adjoint(&program, loss, &by);
        let gradients = grown.gradients.iter().flatten().copied().collect();
        Ok(Subject { case, precision, program, adjoint: grown.program, loss, gradients, start })
    }

    fn engine(&self) -> Auto {
        Auto::new(Box::new(Fast::default().with_precision(self.precision)))
    }

    /// Ours and the peer's variants in turns. What is learned is handed over anew each time, and is another by a billionth:
    /// what did not change would not be computed again.
    fn timed(
        &self,
        kind: &'static str,
        program: &Program,
        goals: &[TensorId],
        peer: &mut Option<Peer>,
    ) -> Result<Measured> {
        let mut engine = self.engine();
        let (mut seconds, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..=RUNS {
            let moved = |value: &f64| value * (1.0 + run as f64 * 1e-9);
            let anew = self.start.iter().map(|(id, all)| (*id, Arc::new(all.iter().map(moved).collect())));
            let parameters: Parameters = anew.collect();
            let request = Request { program, parameters: &parameters, budget: BUDGET };
            let clock = Instant::now();
            let values = engine.values(&request, goals).map_err(|report| anyhow!("{report}"))?;
            seconds.push(clock.elapsed().as_secs_f64());
            drop(values);
            if let Some(peer) = peer {
                theirs.push(peer.all(self.case.name, kind)?);
            }
        }
        Ok(Measured { kind, ours: Times::of(seconds), peers: by_variant(&theirs) })
    }

    /// Compares all values with the peer's.
    fn compared(&self, peer: &mut Peer) -> Result<()> {
        peer.asked(self.case.name, "values", VARIANTS[0])?;
        let request = Request { program: &self.adjoint, parameters: &self.start, budget: BUDGET };
        let mut goals = vec![("Loss".to_owned(), self.loss)];
        // A relation would be listed tuple by tuple.
        if self.case.form == "equations" {
            goals.push(("H".to_owned(), named(&self.adjoint, "H")?));
        }
        let slopes = self.case.by.iter().map(|name| format!("Grad_{name}"));
        goals.extend(slopes.zip(self.gradients.iter().copied()));
        let ids: Vec<TensorId> = goals.iter().map(|(_, id)| *id).collect();
        let values = self.engine().values(&request, &ids).map_err(|report| anyhow!("{report}"))?;
        for ((name, _), value) in goals.iter().zip(&values) {
            same(name, self.precision, &value.doubles(), &peer.written(name)?)?;
        }
        Ok(())
    }

    /// Steps of learning, the peer's in turns with ours.
    fn steps(&mut self, peer: &mut Option<Peer>) -> Result<Measured> {
        let query = self.program.actions.iter().find_map(|action| match action {
            Action::Query(query) => query.directives.minimize.clone(),
            Action::Write { .. } => None,
        });
        let (mut seconds, mut theirs, mut failed) = (Vec::new(), Vec::new(), None);
        let mut clock = Instant::now();
        let mut progress = |_, _, _| {
            seconds.push(clock.elapsed().as_secs_f64());
            if let Some(peer) = peer {
                match peer.all(self.case.name, "step") {
                    Ok(times) => theirs.push(times),
                    Err(error) => failed = Some(error),
                }
            }
            clock = Instant::now();
        };
        let settings = query.context("nothing is minimized")?;
        let (mut engine, mut parameters) = (self.engine(), self.start.clone());
        // What is moved is held by nobody else, as in a run.
        self.start.clear();
        minimize(&mut engine, &self.program, BUDGET, &mut parameters, self.loss, &settings, &mut progress)
            .map_err(|report| anyhow!("{report}"))?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(peer) = peer {
            peer.asked(self.case.name, "moved", &(RUNS + 1).to_string())?;
            for name in self.case.by {
                let ours = parameters.get(&named(&self.program, name)?).context("a parameter")?;
                same(name, self.precision, ours, &peer.written(name)?)?;
            }
        }
        Ok(Measured { kind: "step", ours: Times::of(seconds), peers: by_variant(&theirs) })
    }
}

/// Refuses what differs by more than rounding: by more than 1e-5 or 1e-12 of a value, or of what values are on the
/// average where they cancel.
fn same(name: &str, precision: Precision, ours: &[f64], theirs: &[f64]) -> Result<()> {
    let most = if precision == Precision::Single { 1e-5 } else { 1e-12 };
    ensure!(ours.len() == theirs.len(), "{name}: {} values, PyTorch has {}", ours.len(), theirs.len());
    let squares: f64 = theirs.iter().map(|value| value * value).sum();
    let usual = (squares / theirs.len().max(1) as f64).sqrt();
    for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
        ensure!((a - b).abs() <= most * (b.abs() + usual), "{name} at {at}: {a}, PyTorch says {b}");
    }
    Ok(())
}

/// Seconds in which as many bytes are read as the vectors of all arcs have, the least of some: two arrays of the
/// size of X are compared until it is so many.
fn floor(precision: Precision) -> f64 {
    let width = if precision == Precision::Single { 4 } else { 8 };
    let bytes = vec![1_u8; NODES * WIDTH * width];
    let others = bytes.clone();
    let times = (0..=RUNS).map(|_| {
        let clock = Instant::now();
        for _ in 0..ARCS / NODES / 2 {
            let parts = bytes.par_chunks(1 << 20).zip(others.par_chunks(1 << 20));
            std::hint::black_box(parts.all(|(some, other)| some == other));
        }
        clock.elapsed().as_secs_f64()
    });
    Spread::of(times).least()
}

/// The times of each variant.
fn by_variant(rounds: &[Vec<f64>]) -> BTreeMap<&'static str, Times> {
    let of = |at: usize| rounds.iter().filter_map(|round| round.get(at).copied()).collect::<Vec<_>>();
    let all = VARIANTS.iter().enumerate().filter(|_| !rounds.is_empty());
    all.map(|(at, name)| (*name, Times::of(of(at)))).collect()
}

fn line(case: &Case, measured: &Measured) -> String {
    let Measured { kind, ours, peers } = measured;
    let time = ours.later.median();
    let mut line = format!(
        "  {:5} as {:9} {kind:8} {:7.1} ms, least {:7.1}, first {:7.1}",
        case.name,
        case.form,
        time * 1e3,
        ours.later.least() * 1e3,
        ours.first * 1e3
    );
    for (at, name) in VARIANTS.iter().enumerate() {
        if let Some(their) = peers.get(name) {
            let their = their.later.median();
            let goal = if at == 0 { format!(" (goal {GOAL})") } else { String::new() };
            line += &format!("; {name} {:.1} ms, {:.2} x{goal}", their * 1e3, their / time);
        }
    }
    line + "\n"
}

fn item(case: &Case, precision: &str, floor: f64, measured: &Measured) -> Json {
    let peers: serde_json::Map<String, Json> = measured
        .peers
        .iter()
        .map(|(name, times)| {
            ((*name).to_owned(), json!({ "run_s": times.later.median(), "run_min_s": times.later.least() }))
        })
        .collect();
    json!({
        "name": format!("messages-{}", case.name), "form": case.form, "precision": precision, "kind": measured.kind,
        "first_s": measured.ours.first, "run_s": measured.ours.later.median(), "run_min_s": measured.ours.later.least(),
        "floor_s": floor, "peers": peers, "goal": GOAL,
    })
}
