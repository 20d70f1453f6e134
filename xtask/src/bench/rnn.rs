//! `cargo xtask bench rnn [CASE]...`: recurrent cells, beside PyTorch measured in turns in the same run.
//!
//! A case is a configuration. An update is what training does: gradient, clipping, optimiser, on one fixed batch. The
//! peer is one process that waits while ours runs; figures are medians over turns. The authors' public code logged
//! 380 and 13600 sequence-steps a second; goals in steps are made of these.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use linear_logic_rnn::learner::Learner;
use linear_logic_rnn::optimiser::Optimiser;
use linear_logic_rnn::task::batch::Batch;
use serde_json::{Value, json};
use training::Task;
use training::optimiser::{Moments, Update, clip_factor, global_norm};
use training::trainer::Piece;

use super::{BenchArgs, Spread, chosen, digits};
use crate::answer::{print_json, print_text};
use crate::learner::Learner as _;
use crate::rnn::config::Config;

/// The peer, kept beside the bench.
const PEER: &str = include_str!("../../peers/torch_rnn.py");

/// Turns of each side.
pub(super) const TURNS: usize = 5;
/// Seconds of a turn; at least one update is made.
pub(super) const SECONDS: f64 = 0.5;

/// What is measured.
struct Case {
    name: &'static str,
    batch: usize,
    /// Keys of a run, without `batch`.
    keys: &'static str,
    /// Sequence-steps a second.
    goal: f64,
    /// Times the peer's speed; `None`: there is no peer.
    times_peer: Option<f64>,
}

pub(super) const LL_AUTHORS: &str = "task = \"skip-repeat\"\nmin_length = 15\nmax_length = 15\n\
    cell = \"ll\"\npreset = \"coded\"\nhidden = 25\naux = 5\nlambda = [1, 2]\nreadout = 0\n";
pub(super) const LSTM: &str =
    "task = \"parity\"\nmin_length = 32\nmax_length = 32\ncell = \"lstm\"\nhidden = 16\nreadout = 0\n";
// A content of 28 symbols: n = 30, n_out = 28, together a tape of 58.
const NTM: &str = "task = \"copy\"\nmin_length = 30\nmax_length = 30\n\
    cell = \"ntm\"\nhidden = 100\naddresses = 128\ncontent = 20\n\
    optimizer = \"rmsprop\"\nclip = 0\nloss = \"authors\"\n";
const AUTOMATON: &str = "task = \"s3\"\nmin_length = 100000\nmax_length = 100000\n\
    cell = \"ll\"\npreset = \"paper\"\nhidden = 6\naux = 6\nv = \"full\"\nproject = \"identity\"\nlambda = [1]\n\
    gate_act = \"one\"\nhh = false\nh0 = \"learned\"\nreadout = 0\n";

const CASES: [Case; 6] = [
    Case { name: "ll-authors", batch: 1000, keys: LL_AUTHORS, goal: 500.0 * 380.0, times_peer: Some(3.0) },
    Case { name: "ll-authors", batch: 32, keys: LL_AUTHORS, goal: 500.0 * 380.0, times_peer: Some(5.0) },
    Case { name: "lstm", batch: 32, keys: LSTM, goal: 0.0, times_peer: Some(3.0) },
    Case { name: "lstm", batch: 1000, keys: LSTM, goal: 0.0, times_peer: Some(1.0) },
    Case { name: "ntm-copy", batch: 250, keys: NTM, goal: 13_600.0, times_peer: Some(1.0) },
    Case { name: "automaton", batch: 1, keys: AUTOMATON, goal: 50_000.0, times_peer: None },
];

/// `bench rnn [CASE]...`; returns the exit status.
pub(super) fn run(args: &BenchArgs, names: &[String]) -> Result<u8> {
    training::threads::set(args.threads)?;
    let mut peer = Peer::start(args, PEER);
    let mut rows = Vec::new();
    for case in chosen(&CASES, |case| case.name, names)? {
        let row =
            measure(case, peer.as_mut()).with_context(|| format!("{}, batch {}", case.name, case.batch))?;
        if !args.json {
            print_text(&row.line(args.threads));
        }
        rows.push(row.json(args.threads));
    }
    if args.json {
        print_json(&Value::Array(rows))?;
    }
    Ok(0)
}

/// Sequence-steps a second: ours, and the peer's with its name.
struct Row<'a> {
    case: &'a Case,
    ours: f64,
    peer: Option<(String, f64)>,
}

impl Row<'_> {
    fn json(&self, threads: usize) -> Value {
        json!({
            "case": self.case.name, "batch": self.case.batch, "threads": threads, "steps_per_second": self.ours,
            "peer": self.peer.as_ref().map(|p| &p.0), "peer_steps_per_second": self.peer.as_ref().map(|p| p.1),
            "ratio": self.peer.as_ref().map(|p| self.ours / p.1), "goal_ratio": self.case.times_peer,
            "goal_steps_per_second": Some(self.case.goal).filter(|goal| *goal > 0.0),
        })
    }

    fn line(&self, threads: usize) -> String {
        let Case { name, batch, goal, times_peer, .. } = self.case;
        let mut line =
            format!("{name:11} batch {batch:4}  {threads} thread(s) {:>11} steps/s", digits(self.ours));
        if *goal > 0.0 {
            line += &format!("   goal {}: {:.2} x", digits(*goal), self.ours / goal);
        }
        if let (Some((peer, speed)), Some(goal)) = (&self.peer, times_peer) {
            let ratio = self.ours / speed;
            line += &format!("   {peer} {}: {ratio:.2} x, goal {goal} x", digits(*speed));
        }
        line + "\n"
    }
}

fn measure<'a>(case: &'a Case, peer: Option<&mut Peer>) -> Result<Row<'a>> {
    let mut ours = Ours::new(case.name, case.keys, case.batch, case.times_peer.is_some())?;
    ours.turn(0.0)?;
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut peer = peer.filter(|_| case.times_peer.is_some());
    let question = json!({"case": case.name, "batch": case.batch, "seconds": SECONDS});
    for _ in 0..TURNS {
        if let Some(peer) = &mut peer {
            others.push(peer.number(&question, "steps_per_second")?);
        }
        own.push(ours.turn(SECONDS)?);
    }
    let peer = peer.map(|peer| (peer.name.clone(), Spread::of(others).median()));
    Ok(Row { case, ours: Spread::of(own).median(), peer })
}

/// Our side of a case.
pub(super) struct Ours {
    pub(super) learner: Learner,
    pub(super) batch: Batch,
    pub(super) theta: Vec<f32>,
    work: Work,
}

enum Work {
    /// Gradient, clipping, optimiser.
    Update { optimiser: Optimiser, moments: Moments, gradient: Vec<f32>, number: u64 },
    /// Forward alone.
    Forward,
}

impl Ours {
    /// What a run with these keys has in hand at its first batch: for updates, or for the automaton alone.
    pub(super) fn new(name: &str, keys: &str, batch: usize, learns: bool) -> Result<Self> {
        let text = format!("kind = \"rnn\"\n{keys}updates = 1\nbatch = {batch}\n");
        let config = Config::from_text(name, &text, &[])?;
        let learner = config.learner(&config.cell()?)?;
        let batch = learner.batches().train(1)?;
        let mut theta = learner.layout().initialise(config.seed);
        let work = if learns {
            let optimiser = config.optimiser()?;
            let (moments, gradient) = (optimiser.fused().start(&theta), vec![0.0; theta.len()]);
            Work::Update { optimiser, moments, gradient, number: 0 }
        } else {
            theta = automaton(&learner, &batch)?;
            Work::Forward
        };
        Ok(Self { learner, batch, theta, work })
    }

    /// Works for so many seconds, at least once; sequence-steps a second.
    pub(super) fn turn(&mut self, seconds: f64) -> Result<f64> {
        let clock = Instant::now();
        let mut done = 0;
        loop {
            self.once()?;
            done += self.batch.sequence_steps();
            let passed = clock.elapsed().as_secs_f64();
            if passed >= seconds {
                return Ok(done as f64 / passed);
            }
        }
    }

    fn once(&mut self) -> Result<()> {
        let Work::Update { optimiser, moments, gradient, number } = &mut self.work else {
            let batches = std::iter::once(Ok::<_, anyhow::Error>(self.batch.clone()));
            let tested = self.learner.judge(&self.theta, batches, |_| ())?;
            ensure!(tested.score.wrong == 0, "the automaton left its states");
            return Ok(());
        };
        *number += 1;
        let whole = Piece { part: 0, parts: 1 };
        let loss = self.learner.gradient(&self.theta, &self.batch, whole, *number, gradient)?;
        let targets = loss.targets.max(1) as f64;
        let layout = self.learner.layout();
        let norm = global_norm(layout, gradient) / targets;
        ensure!(norm.is_finite(), "the gradient left the numbers");
        let factor = clip_factor(norm, optimiser.clip) / targets;
        let update = Update { number: *number, lr: optimiser.lr, factor };
        optimiser.fused().update(layout, &mut self.theta, moments, gradient, update);
        Ok(())
    }
}

/// The weights of the exact automaton (section 12): a state is one-hot and V its 0/1 transitions, read off a word
/// that takes them all; it starts in the class of the identity, and the readout is the state.
fn automaton(learner: &Learner, batch: &Batch) -> Result<Vec<f32>> {
    let layout = learner.layout();
    let mut theta = vec![0.0; layout.len()];
    let mut set = |name: &str, place: &[u32]| -> Result<()> {
        let weight = layout.get(name).with_context(|| format!("no weight {name}"))?;
        let at = weight.shape.iter().zip(place).fold(0, |at, (size, index)| at * size + *index as usize);
        *theta.get_mut(weight.range.start + at).context("no such entry")? = 1.0;
        Ok(())
    };
    let mut state = 0;
    set("h0", &[state])?;
    for (token, next) in batch.tokens.iter().zip(&batch.targets) {
        set("V", &[*token, *next, state])?;
        set("E", &[*next, *next])?;
        state = *next;
    }
    Ok(theta)
}

/// The process of the peer.
pub(super) struct Peer {
    pub(super) name: String,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// A script that answers questions. Nothing if there is no such Python, or no PyTorch in it.
    pub(super) fn start(args: &BenchArgs, script: &str) -> Option<Self> {
        let mut child = Command::new(args.python.as_deref().unwrap_or("python3"))
            .args(["-c", script, &args.threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (questions, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut peer = Self { name: String::new(), child, questions, answers };
        let version = peer.answer().ok()?;
        peer.name = format!("PyTorch {} eager", version.get("version")?.as_str()?);
        Some(peer)
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).context("the peer did not answer")
    }

    /// The number of this name in the answer to a question.
    pub(super) fn number(&mut self, question: &Value, name: &str) -> Result<f64> {
        writeln!(self.questions, "{question}").context("the peer is gone")?;
        let answer = self.answer()?;
        answer.get(name).and_then(Value::as_f64).ok_or_else(|| anyhow!("the peer: {answer}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has nothing to lose, and one that is gone already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
