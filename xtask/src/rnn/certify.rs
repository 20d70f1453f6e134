//! `cargo xtask certify`: whether a trained cell is right on sequences of any length.
//!
//! The run's folder gets `certificate.json`, which the checker has read back from the file; for people `certificate.md`
//! and `certificate.svg`, the least automaton that tells the same. A sweep's folder gets what its runs came to.

mod census;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use linear_logic_rnn::certify::certificate::{Certificate, Subject};
use linear_logic_rnn::certify::counterexample::Counterexample;
use linear_logic_rnn::certify::minimal::Minimal;
use linear_logic_rnn::certify::{Verdict, certify, checker};
use serde_json::{Value, json};

use super::config::Config;
use super::run::Trained;
use crate::answer::{give, usage};
use crate::draw::graph::{Direction, Graph, Node, Shape};
use crate::run_folder;

/// The exit status of a cell that is wrong.
const WRONG: u8 = 3;
/// The exit status where neither a proof nor an error is found.
const OPEN: u8 = 4;

/// The verdicts.
const CERTIFIED: &str = "certified";
const COUNTEREXAMPLE: &str = "counterexample";
const UNDECIDED: &str = "undecided";

/// Options of `certify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 certified, 3 a counterexample, 4 undecided, 1 refused. Of a sweep: 0 if every run without an \
                         error in its test is certified, 3 if one of them has a counterexample, else 4."
)]
pub(crate) struct CertifyArgs {
    /// A folder, or a name in runs/. Of a sweep, all runs that made no error in their tests are certified.
    run: String,
    /// Only checks the certificate that stands in the folder of a run.
    #[arg(long)]
    check: bool,
    /// How much work is spent before a run is undecided: 1 is about ten seconds.
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "check")]
    effort: u32,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Certifies a run; returns the exit status.
pub(crate) fn run(args: &CertifyArgs) -> Result<u8> {
    if let Some(folder) = census::folder(&args.run)? {
        if args.check {
            return Err(usage(format!("--check is of one run, and {} is a sweep", folder.display())));
        }
        return census::take(&folder, args);
    }
    let trained = Trained::open(&args.run, "are certified")?;
    let clock = Instant::now();
    if args.check {
        let Trained { folder, config, theta, .. } = &trained;
        let subject = subject(config)?;
        let certificate = read(folder)?;
        if certificate.subject != subject {
            bail!("{}: it is about another cell or task than the run", folder.join(FILES[0]).display());
        }
        let images = checker::check(&certificate, theta)
            .with_context(|| folder.join(FILES[0]).display().to_string())?;
        return answer(args, &certified(config, &certificate, images), clock);
    }
    answer(args, &judge(&args.run, &trained, args.effort)?, clock)
}

/// The verdict on a run, whose folder then has its files.
fn judge(run: &str, trained: &Trained, effort: u32) -> Result<Value> {
    let Trained { folder, config, theta, .. } = trained;
    let subject = subject(config)?;
    let _alone = run_folder::lock(folder)?;
    Ok(match certify(&subject, theta, effort)? {
        Verdict::Certified(certificate, _) => {
            write(folder, run, config, &certificate)?;
            // What counts is what stands in the file.
            let certificate = read(folder)?;
            certified(config, &certificate, checker::check(&certificate, theta)?)
        }
        Verdict::Counterexample(found) => {
            remove(folder)?;
            let Counterexample { word, told, right } = &found;
            json!({"verdict": COUNTEREXAMPLE, "word": word, "told": told, "right": right})
        }
        Verdict::Undecided(why) => {
            remove(folder)?;
            json!({"verdict": UNDECIDED, "why": why})
        }
    })
}

/// The files of a certificate, the one that counts first.
const FILES: [&str; 3] = ["certificate.json", "certificate.md", "certificate.svg"];

/// Cell and task of a run.
fn subject(config: &Config) -> Result<Subject> {
    Ok(Subject {
        cell: config.cell.clone(),
        sizes: config.resolved_sizes()?,
        options: config.options.clone(),
        task: config.task.clone(),
        modulus: config.settings()?.modulus,
    })
}

fn read(folder: &Path) -> Result<Certificate> {
    let path = folder.join(FILES[0]);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: `cargo xtask certify` without --check makes it", path.display()))?;
    Certificate::read(&text).with_context(|| path.display().to_string())
}

/// What no longer holds does not stay.
fn remove(folder: &Path) -> Result<()> {
    for name in FILES {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| folder.join(name).display().to_string());
            }
            _ => {}
        }
    }
    Ok(())
}

fn certified(config: &Config, certificate: &Certificate, images: usize) -> Value {
    let minimal = Minimal::new(&certificate.states);
    json!({
        "verdict": CERTIFIED, "states": certificate.states.len(), "boxes": boxes(certificate), "images": images,
        "least": {"classes": minimal.classes, "next": minimal.next}, "weights": certificate.weights,
        "cell": config.cell, "task": config.task,
    })
}

fn boxes(certificate: &Certificate) -> usize {
    certificate.states.iter().filter(|state| state.bounds.is_some()).count()
}

/// Prints the verdict; returns the exit status.
fn answer(args: &CertifyArgs, document: &Value, clock: Instant) -> Result<u8> {
    let mut whole = json!({"schema": "xtask/1", "command": "certify", "run": args.run});
    let seconds = clock.elapsed().as_secs_f64();
    if let (Value::Object(whole), Value::Object(document)) = (&mut whole, document) {
        whole.extend(document.clone());
        whole.insert("seconds".to_owned(), json!(seconds));
    }
    let field = |key: &str| document.get(key).map(ToString::to_string).unwrap_or_default();
    let (status, text) = match document.get("verdict").and_then(Value::as_str) {
        Some(CERTIFIED) => {
            let (states, boxes, images) = (field("states"), field("boxes"), field("images"));
            (
                0,
                format!(
                    "certified: right after every symbol of every sequence; {states} states, {boxes} of them boxes, {images} images"
                ),
            )
        }
        Some(COUNTEREXAMPLE) => {
            let word = document.get("word").and_then(Value::as_array).into_iter().flatten();
            let word: Vec<String> = word.map(ToString::to_string).collect();
            let (told, right, count, word) = (field("told"), field("right"), word.len(), word.join(" "));
            (
                WRONG,
                format!(
                    "counterexample: it tells {told}, where {right} is right, after the {count} symbols {word}"
                ),
            )
        }
        _ => (OPEN, format!("undecided: {}", field("why"))),
    };
    give(args.json, &whole, || format!("{text}; {seconds:.2} s\n"))?;
    Ok(status)
}

/// Writes the files.
fn write(folder: &Path, run: &str, config: &Config, certificate: &Certificate) -> Result<()> {
    let minimal = Minimal::new(&certificate.states);
    let json = serde_json::to_string(certificate)? + "\n";
    let table = table(run, config, certificate, &minimal);
    let picture = graph(config, &minimal).document();
    for (name, text) in FILES.into_iter().zip([json, table, picture]).rev() {
        training::files::write(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// A symbol as the task writes it.
fn letter(config: &Config, letter: usize) -> String {
    match (config.task.as_str(), letter) {
        ("s3" | "s5" | "d5", 0) => "s".to_owned(),
        ("s3" | "s5" | "d5", 1) => "r".to_owned(),
        _ => letter.to_string(),
    }
}

/// The least automaton, and what it stands for.
fn table(run: &str, config: &Config, certificate: &Certificate, minimal: &Minimal) -> String {
    let letters = minimal.next.first().map_or(0, Vec::len);
    let names: Vec<String> = (0..letters).map(|at| letter(config, at)).collect();
    let mut text = format!(
        "# {} on {}: certified\n\nThe run `{run}` tells the state of the task after every symbol of every sequence, of any length. This is proved\nfor the \
         real-valued function of its weights (BLAKE3 `{}`)\nby {} states of `certificate.json`, {} of them boxes; \
         `cargo xtask certify {run} --check` checks it again.\nThe least automaton that tells the same:\n\n| state | tells | {} | states of the certificate |\n|{}\n",
        config.cell,
        config.task,
        certificate.weights,
        certificate.states.len(),
        boxes(certificate),
        names.join(" | "),
        "---|".repeat(letters + 3),
    );
    for (at, (class, next)) in minimal.classes.iter().zip(&minimal.next).enumerate() {
        let next: Vec<String> = next.iter().map(ToString::to_string).collect();
        let count = minimal.of.iter().filter(|of| **of == at).count();
        text += &format!("| {at} | {class} | {} | {count} |\n", next.join(" | "));
    }
    text
}

/// The least automaton as a picture: its states, and on every arc its symbol.
fn graph(config: &Config, minimal: &Minimal) -> Graph {
    let mut graph = Graph::new(format!("{} on {}", config.cell, config.task), Direction::Down);
    for (at, class) in minimal.classes.iter().enumerate() {
        let shape = Shape::Box(usize::from(at != 0));
        graph.add(Node::new(
            shape,
            [class.to_string(), if at == 0 { "start".to_owned() } else { String::new() }],
        ));
    }
    for (from, next) in minimal.next.iter().enumerate() {
        for (at, to) in next.iter().enumerate() {
            let pill = graph.add(Node::new(Shape::Pill, [letter(config, at)]));
            graph.arcs.extend([(from, pill), (pill, *to)]);
        }
    }
    graph
}
