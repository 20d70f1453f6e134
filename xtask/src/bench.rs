//! `cargo xtask bench`: speeds, beside a goal or a peer measured in the same run.
//!
//! Machines are shared and drift, so a figure is a ratio inside one run; nothing here is a test.

mod cliffs;
mod dense;
mod einsum;
mod equations;
mod fol;
mod ill;
mod learners;
mod masters;
mod pgm;
mod relational;
mod rnn;
mod sparse;
mod tl;
mod train;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::answer::{give, usage};

/// The benches.
const NAMES: [&str; 3] = ["fol", "ill", "train"];

/// Options of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// fol, ill, train; without a name all of these. Or one of `rnn [CASE]...`, `masters [CASE]...`, `tl [CASE]...` (R1 to R12),
    /// `einsum [CASE]...` (E1 to E7), `pgm [CASE]...` (G1 to G14), `relational [CASE]...`, `dense [NAME]...`, `learners [NAME]...`, `cliffs [CASE]...`,
    /// `sparse` and `inputs [CASE]...`.
    names: Vec<String>,
    /// Threads of our side and of the peer.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// A Python with PyTorch, the peer of `train`, `rnn` and `masters`, or with duckdb, one of `tl`; without it the peer is left out.
    #[arg(long, value_name = "PYTHON")]
    python: Option<String>,
    /// The folder of the peers of `tl` and `einsum` (default `xtask/peers`; its README says how they are installed).
    #[arg(long, value_name = "DIR")]
    peers: Option<std::path::PathBuf>,
    /// Where the inputs of `tl` stand or are written (default `target/bench`).
    #[arg(long, value_name = "DIR")]
    out: Option<std::path::PathBuf>,
    /// The folder of the networks of `pgm`, as `.bif` files.
    #[arg(long, value_name = "DIR")]
    networks: Option<std::path::PathBuf>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

impl BenchArgs {
    /// The folder of the peers, if there is one.
    fn peers_folder(&self) -> Option<std::path::PathBuf> {
        let folder = self.peers.clone().unwrap_or_else(|| std::path::Path::new("xtask/peers").to_owned());
        folder.is_dir().then_some(folder)
    }
}

/// One measured figure.
pub(crate) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// What it is compared with: a goal, or the peer in the same run.
    against: Option<(String, f64)>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, against: None }
    }

    pub(crate) fn against(mut self, what: impl Into<String>, value: f64) -> Self {
        self.against = Some((what.into(), value));
        self
    }
}

/// `cargo xtask bench`; returns the exit status.
pub(crate) fn run(args: &BenchArgs) -> Result<u8> {
    if let Some((first, further)) = args.names.split_first() {
        match first.as_str() {
            "rnn" => return rnn::run(args, further),
            "masters" => return masters::run(args, further),
            "tl" => return tl::run(args, further),
            "pgm" => return pgm::run(args, further),
            "relational" => return relational::run(args, further),
            "dense" => return dense::run(args, further),
            "learners" => return learners::run(args, further),
            "cliffs" => return cliffs::run(args, further),
            "cliffs-one" => return cliffs::one(args, further),
            "sparse" => return sparse::run(args),
            "sparse-one" => return sparse::one(args),
            "einsum" => return einsum::run(args, further),
            "tl-one" => return tl::one(args, further),
            "inputs" => return tl::write_inputs(args, further),
            _ => {}
        }
    }
    if let Some(unknown) = args.names.iter().find(|n| !NAMES.contains(&n.as_str())) {
        return Err(usage(format!("bench {unknown}: none of {}", NAMES.join(", "))));
    }
    training::threads::set(args.threads)?;
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|n| n == name);
    let mut figures = Vec::new();
    if wanted("fol") {
        figures.extend(fol::figures()?);
    }
    if wanted("ill") {
        figures.extend(ill::figures()?);
    }
    if wanted("train") {
        figures.extend(train::figures(args.threads, args.python.as_deref())?);
    }
    let (machine, threads) = (crate::run_folder::machine(), args.threads);
    let items: Vec<Value> = figures.iter().map(to_json).collect();
    let document = json!({
        "schema": "xtask/1", "command": "bench", "machine": machine, "threads": threads, "items": items,
    });
    give(args.json, &document, || {
        format!("{machine}, {threads} threads\n{}", figures.iter().map(line).collect::<String>())
    })?;
    Ok(0)
}

fn to_json(f: &Figure) -> Value {
    json!({
        "name": f.name, "value": f.value, "unit": f.unit,
        "against": f.against.as_ref().map(|a| &a.0), "against_value": f.against.as_ref().map(|a| a.1),
        "ratio": f.against.as_ref().map(|a| f.value / a.1),
    })
}

fn line(f: &Figure) -> String {
    let compared = f.against.as_ref().map_or_else(String::new, |(what, value)| {
        format!("   {what}: {}, ratio {:.2}", digits(*value), f.value / value)
    });
    format!("{:44} {:>12} {}{compared}\n", f.name, digits(f.value), f.unit)
}

/// Four digits, with separators for thousands.
fn digits(x: f64) -> String {
    if x.abs() < 1000.0 {
        return format!("{x:.3}");
    }
    let plain = format!("{x:.0}");
    let mut text = String::new();
    for (i, c) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// What several runs measured, the least first.
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// The times of `runs` calls after one warm-up, in seconds.
fn times(runs: usize, mut f: impl FnMut() -> Result<()>) -> Result<Spread> {
    f()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let clock = std::time::Instant::now();
        f()?;
        times.push(clock.elapsed().as_secs_f64());
    }
    Ok(Spread::of(times))
}

/// Their median.
fn median(runs: usize, f: impl FnMut() -> Result<()>) -> Result<f64> {
    Ok(times(runs, f)?.median())
}

/// The cases that are named, in the order of the table; all of them where none is.
fn chosen<'a, T>(all: &'a [T], name: fn(&T) -> &str, asked: &[String]) -> Result<Vec<&'a T>> {
    if let Some(unknown) = asked.iter().find(|asked| all.iter().all(|case| name(case) != **asked)) {
        let mut known: Vec<&str> = all.iter().map(name).collect();
        known.dedup();
        return Err(usage(format!("no case {unknown}; known: {}", known.join(" "))));
    }
    Ok(all.iter().filter(|case| asked.is_empty() || asked.iter().any(|asked| asked == name(case))).collect())
}

/// Another process of this program with these arguments; its answer.
fn in_a_process<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Result<Value> {
    let output = std::process::Command::new(std::env::current_exe()?).arg("bench").args(args).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}
