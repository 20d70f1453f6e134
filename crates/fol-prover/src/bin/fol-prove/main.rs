//! The command `fol-prove`: whether a formula follows from others, with the proof or the countermodel.
//!
//! Exit status: 0 if every verdict is definite, 1 if one is unknown or an input is refused, 2 for wrong usage.

mod answer;
mod picture;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use answer::Item;
use calculemus_base::{file, process, stream};
use clap::{CommandFactory, Parser};
use fol::error::Refusal;
use fol_prover::limit::DEFAULT_STEPS;
use fol_prover::{Limit, Problem, Verdict, prove};
use serde_json::json;

/// Decides whether a formula follows from others, with a proof or a finite countermodel.
#[derive(Debug, Parser)]
#[command(name = "fol-prove", version, arg_required_else_help = true)]
struct Cli {
    /// Sequents such as 'P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)'; `-` reads them from standard input, one a line.
    #[arg(value_name = "INPUT", required_unless_present = "completions")]
    inputs: Vec<String>,
    /// Give up after so many steps [default: 100000]; the same answer on every machine.
    #[arg(long, value_name = "N", conflicts_with = "ms")]
    steps: Option<u64>,
    /// Give up after so many milliseconds.
    #[arg(long, value_name = "N")]
    ms: Option<u64>,
    /// Ask whether all inputs together have a model.
    #[arg(long)]
    satisfiable: bool,
    /// Refuse inputs in which an argument place takes variables of two sorts.
    #[arg(long)]
    sorts: bool,
    /// Ask another prover too, by its name or path (eprover).
    #[arg(long, value_name = "NAME")]
    prover: Option<PathBuf>,
    /// Draw the proof of a single input.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the problems as TPTP and decide nothing.
    #[arg(long, conflicts_with_all = ["svg", "prover", "steps", "ms"])]
    tptp: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// Print the completions of a shell.
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<clap_complete::Shell>,
}

impl Cli {
    fn limit(&self) -> Limit {
        match (self.steps, self.ms) {
            (Some(steps), _) => Limit::Steps(steps),
            (None, Some(ms)) => Limit::Milliseconds(ms),
            (None, None) => Limit::Steps(DEFAULT_STEPS),
        }
    }

    /// The questions: each input, or all of them together.
    fn questions(&self) -> std::io::Result<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for input in &self.inputs {
            if input == "-" {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                all.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
            } else {
                all.push(input.clone());
            }
        }
        Ok(if self.satisfiable { vec![all] } else { all.into_iter().map(|input| vec![input]).collect() })
    }

    fn read(&self, texts: &[String]) -> Result<Problem, (usize, Refusal)> {
        for (at, text) in texts.iter().enumerate() {
            if self.sorts {
                Problem::check_sorts(text).map_err(|refusal| (at, refusal))?;
            }
            if self.satisfiable {
                // Read one by one for the place of a refusal.
                Problem::read_satisfiable([text.as_str()]).map_err(|refusal| (at, refusal))?;
            }
        }
        if self.sorts && self.satisfiable {
            Problem::check_sorts_together(texts.iter().map(String::as_str))?;
        }
        let last = texts.len().saturating_sub(1);
        let problem = if self.satisfiable {
            Problem::read_satisfiable(texts.iter().map(String::as_str))
        } else {
            Problem::read(texts.first().map_or("", String::as_str))
        };
        problem.map_err(|refusal| (last, refusal))
    }

    fn item(&self, texts: &[String]) -> std::io::Result<Item> {
        let input = texts.join(", ");
        let problem = match self.read(texts) {
            Ok(problem) => problem,
            Err((at, refusal)) => {
                let source = texts.get(at).cloned().unwrap_or_default();
                return Ok(Item::refused(&input, refusal, source));
            }
        };
        if self.tptp {
            return Ok(match fol_prover::tptp(&problem) {
                Ok(text) => Item::tptp(&input, text),
                Err(refusal) => Item::refused(&input, refusal, input.clone()),
            });
        }
        let answer = prove(&problem, self.limit());
        let mut item = Item::answered(&input, &problem, &answer);
        match (&self.svg, &answer.verdict) {
            (Some(path), Verdict::Entailed(proof)) => {
                file::write(path, picture::of(proof).document().as_bytes())?
            }
            (Some(_), _) => stream::say("there is no proof to draw"),
            (None, _) => {}
        }
        if let Some(prover) = &self.prover {
            item.compare(prover, &problem, self.limit(), &answer.verdict);
        }
        Ok(item)
    }
}

fn run(cli: &Cli) -> std::io::Result<u8> {
    if let Some(shell) = cli.completions {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "fol-prove", &mut script);
        stream::answer(&String::from_utf8_lossy(&script))?;
        return Ok(0);
    }
    let questions = cli.questions()?;
    if cli.svg.is_some() && questions.len() != 1 {
        stream::say(
            "error: `--svg` draws one proof, so one input is wanted\n\nFor more information, try '--help'.",
        );
        return Ok(2);
    }
    let mut status = 0;
    let mut items = Vec::new();
    for question in questions {
        let item = cli.item(&question)?;
        status |= u8::from(!item.definite);
        if cli.json {
            items.push(item.json);
            continue;
        }
        if let Some(told) = &item.refused {
            stream::tell(told);
        }
        stream::answer(&item.text)?;
    }
    if cli.json {
        let command = if cli.satisfiable { "satisfiable" } else { "prove" };
        stream::answer_json(&json!({"schema": "fol-prove/1", "command": command, "items": items}))?;
    }
    Ok(status)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Formulas nest a thousand deep, and what works on them recurses.
    let done = process::on_stack_of(256 << 20, || run(&cli));
    process::exit("fol-prove", done.and_then(|done| done))
}
