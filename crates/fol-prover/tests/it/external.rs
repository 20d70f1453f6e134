//! Our verdicts beside those of E. Where it is missing the tests say so and pass.

use std::io::Write;

use fol_prover::external::{EProver, ExternalAnswer, ExternalError, ExternalProver};
use fol_prover::random::{Shape, problem};
use fol_prover::{Limit, Problem, prove};

use crate::common::{checked, drawn};

/// E, or a note that it is missing.
fn eprover() -> Option<EProver> {
    let prover = EProver::default();
    if prover.is_there() {
        return Some(prover);
    }
    let _ = writeln!(std::io::stderr(), "eprover is not installed: our verdicts were not compared with its");
    None
}

/// No two definite answers differ. `CALCULEMUS_SLOW=1` compares 2,000 problems.
#[test]
fn no_disagreement_with_eprover() {
    let Some(prover) = eprover() else { return };
    let slow = std::env::var("CALCULEMUS_SLOW").is_ok();
    let (mut both, mut ours, mut theirs) = (0, 0, 0);
    for item in 0..if slow { 2_000 } else { 200 } {
        let shape = match item % 3 {
            0 => Shape::fragment(),
            1 => Shape::equality(),
            _ => Shape::everything(),
        };
        let Some(problem) = problem(&mut drawn("eprover", item), &shape, item % 3 == 0) else { continue };
        let verdict = match checked(&problem, &prove(&problem, Limit::Milliseconds(500)).verdict) {
            "entailed" => Some(true),
            "refuted" => Some(false),
            _ => None,
        };
        let other = prover.decide(&problem, 1_000).unwrap();
        ours += u32::from(verdict.is_some());
        theirs += u32::from(other.verdict().is_some());
        if let (Some(a), Some(b)) = (verdict, other.verdict()) {
            both += 1;
            assert_eq!(a, b, "{}: {}", fol_prover::tptp(&problem).unwrap(), other.status);
        }
    }
    assert!(both > 150 && 10 * ours >= 9 * theirs, "{both} both, {ours} ours, {theirs} theirs");
}

#[test]
fn eprover_is_asked_and_stopped() {
    let Some(prover) = eprover() else { return };
    let ask = |text| prover.decide(&Problem::read(text).unwrap(), 1_000).unwrap();
    assert_eq!(ask("P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)").status, "Theorem");
    assert_eq!(ask("Q(c), P(c) → Q(c) ⊢ P(c)").status, "CounterSatisfiable");
    let alone = Problem::read_satisfiable(["P(c)", "¬P(c)"]).unwrap();
    assert_eq!(prover.decide(&alone, 1_000).unwrap().verdict(), Some(true));
    let alone = Problem::read_satisfiable(["P(c)"]).unwrap();
    assert_eq!(prover.decide(&alone, 1_000).unwrap().verdict(), Some(false));
}

/// A program of any kind in place of a prover.
struct Shell(&'static str);

impl ExternalProver for Shell {
    fn command(&self, _: u64) -> std::process::Command {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", self.0]);
        command
    }
}

fn shell(script: &'static str) -> ExternalAnswer {
    Shell(script).decide(&Problem::read("P ⊢ P").unwrap(), 100).unwrap()
}

#[test]
fn a_status_is_read_and_what_hangs_is_killed() {
    let said = shell("cat; echo '% SZS status Theorem for problem'");
    assert_eq!((said.status.as_str(), said.verdict()), ("Theorem", Some(true)));
    assert!(said.output.contains("fof(s1_c, conjecture, p0)."));
    assert_eq!(shell("echo '# SZS status CounterSatisfiable'").verdict(), Some(false));
    assert_eq!(shell("echo '# SZS status GaveUp'").verdict(), None);
    assert_eq!(shell("echo nothing").status, "Unknown");
    assert_eq!(shell("exit 3").status, "Unknown");
    let start = std::time::Instant::now();
    assert_eq!(shell("exec sleep 60").status, "Timeout");
    // What it has started holds its output open.
    assert_eq!(shell("sleep 20 & sleep 20").status, "Timeout");
    assert!(start.elapsed() < std::time::Duration::from_secs(15));
}

#[test]
fn a_missing_program_is_named() {
    let prover = EProver::at(std::path::Path::new("no-such-prover"));
    let error = prover.decide(&Problem::read("P ⊢ P").unwrap(), 100).unwrap_err();
    assert!(matches!(error, ExternalError::Missing(_)));
    assert_eq!(error.to_string(), "`no-such-prover` is not to be found");
    assert!(!prover.is_there());
}
