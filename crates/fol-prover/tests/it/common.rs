//! What the tests share.

use fol_prover::prove::{EVALUATIONS, Reason};
use fol_prover::{Limit, Problem, Verdict, check_model, check_proof, prove};
use seeded::{Family, Stream};

/// The draws of a number, counted from the seed of the run.
pub(crate) fn drawn(name: &str, item: u64) -> Stream {
    Family::new("fol-prover", name, seeded::test_seed()).stream(item)
}

/// The word for a verdict whose certificate its checker has followed.
#[track_caller]
pub(crate) fn checked(problem: &Problem, verdict: &Verdict) -> &'static str {
    let text = fol::print(&problem.to_text(), fol::Style::Unicode);
    match verdict {
        Verdict::Entailed(proof) => {
            check_proof(problem, proof).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            "entailed"
        }
        Verdict::Refuted(model) => {
            check_model(problem, model, EVALUATIONS).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            "refuted"
        }
        Verdict::Unknown { reason } => {
            assert_ne!(*reason, Reason::Certificate, "{text}");
            "unknown"
        }
    }
}

/// The verdict on a text, within the usual limit.
#[track_caller]
pub(crate) fn verdict(text: &str) -> &'static str {
    let problem = Problem::read(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    checked(&problem, &prove(&problem, Limit::default()).verdict)
}

/// The verdict on formulas that may hold together.
#[track_caller]
pub(crate) fn satisfiable(texts: &[&str]) -> &'static str {
    let problem = Problem::read_satisfiable(texts.iter().copied()).unwrap();
    match checked(&problem, &prove(&problem, Limit::default()).verdict) {
        "entailed" => "unsatisfiable",
        "refuted" => "satisfiable",
        other => other,
    }
}
