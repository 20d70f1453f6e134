//! How fast and how often problems are decided, and what E says of the same ones:
//! `measure fragment|equality|everything|monadic|deep|clauses N [eprover]`.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use std::time::{Duration, Instant};

use fol_prover::external::{EProver, ExternalProver};
use fol_prover::prove::Reason;
use fol_prover::random::{self, Shape};
use fol_prover::{Limit, Verdict, check_model, check_proof, prove};
use seeded::Family;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kind = args.first().map_or("fragment", String::as_str);
    let count: u64 = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let compare = args.iter().any(|arg| arg == "eprover");
    let shape = match kind {
        "equality" => Shape::equality(),
        "everything" => Shape::everything(),
        "monadic" => Shape::monadic(),
        "deep" => Shape { depth: 7, premises: 8, ..Shape::equality() },
        "clauses" => Shape { premises: 10, ..Shape::equality() },
        "sparse" => Shape {
            predicates: vec![1, 1, 2, 2, 3],
            functions: vec![1, 1, 2],
            constants: 4,
            premises: 14,
            ..Shape::equality()
        },
        "relational" => {
            Shape { predicates: vec![1, 1, 2, 2, 3], constants: 4, premises: 24, ..Shape::fragment() }
        }
        _ => Shape::fragment(),
    };
    let family = Family::new("fol-prover", kind, seeded::test_seed());
    let made = |item| match kind {
        "clauses" | "sparse" | "relational" => random::clauses(&mut family.stream(item), &shape),
        _ => random::problem(&mut family.stream(item), &shape, kind == "fragment"),
    };
    let problems: Vec<_> = (0..count).filter_map(made).collect();
    let mut took: Vec<Duration> = Vec::new();
    let (mut entailed, mut refuted, mut unknown, mut wrong) = (0, 0, 0, 0);
    let start = Instant::now();
    let mut answers = Vec::new();
    for problem in &problems {
        let at = Instant::now();
        let answer = prove(problem, Limit::Milliseconds(100));
        took.push(at.elapsed());
        match &answer.verdict {
            Verdict::Entailed(_) => entailed += 1,
            Verdict::Refuted(_) => refuted += 1,
            Verdict::Unknown { .. } => unknown += 1,
        }
        answers.push(answer.verdict);
    }
    let all = start.elapsed();
    for (problem, verdict) in problems.iter().zip(&answers) {
        wrong += u64::from(match verdict {
            Verdict::Entailed(proof) => check_proof(problem, proof).is_err(),
            Verdict::Refuted(model) => check_model(problem, model, 1_000_000_000).is_err(),
            Verdict::Unknown { reason } => *reason == Reason::Certificate,
        });
    }
    took.sort_unstable();
    let percentile = |p: usize| took.get((took.len() * p / 1000).min(took.len().saturating_sub(1)));
    println!(
        "{} problems of `{kind}`: {entailed} entailed, {refuted} refuted, {unknown} unknown in {all:?}",
        took.len()
    );
    println!(
        "median {:?}, 90 % {:?}, 99 % {:?}, 99.9 % {:?}, most {:?}",
        percentile(500),
        percentile(900),
        percentile(990),
        percentile(999),
        took.last()
    );
    println!("certificates refused by their checkers: {wrong}");
    if !compare {
        return;
    }
    let prover = EProver::default();
    let (mut theirs, mut both, mut only_ours, mut disagree) = (0u64, 0u64, 0u64, Vec::new());
    let mut missed = Vec::new();
    let mut seconds = Duration::ZERO;
    for (problem, verdict) in problems.iter().zip(&answers) {
        let Ok(text) = fol_prover::tptp(problem) else { continue };
        let Ok(answer) = prover.decide_tptp(&text, 1_000) else {
            println!("no eprover");
            return;
        };
        // What the prover itself says that it took, without the start of the process.
        let user = answer.output.lines().find_map(|line| line.split("User time").nth(1)).and_then(|rest| {
            rest.trim_start_matches([' ', ':']).split_whitespace().next()?.parse::<f64>().ok()
        });
        let user = Duration::from_secs_f64(user.unwrap_or(1.0));
        seconds += user;
        let ours = match verdict {
            Verdict::Entailed(_) => Some(true),
            Verdict::Refuted(_) => Some(false),
            Verdict::Unknown { .. } => None,
        };
        match (answer.verdict(), ours) {
            (Some(a), Some(b)) if a != b => disagree.push(text.clone()),
            _ => {}
        }
        if answer.verdict().is_some() && user <= Duration::from_millis(100) {
            theirs += 1;
            match ours {
                Some(_) => both += 1,
                None => {
                    missed.push((answer.status.clone(), fol::print(&problem.to_text(), fol::Style::Unicode)))
                }
            }
        } else if ours.is_some() {
            only_ours += 1;
        }
    }
    println!(
        "eprover decides {theirs} in 100 ms of user time ({seconds:?} in all); ours decides {both} of them, and {only_ours} others"
    );
    println!("disagreements: {}", disagree.len());
    for text in &disagree {
        println!("{text}\n");
    }
    for (status, text) in missed.iter().take(40) {
        println!("missed {status}: {text}");
    }
}
