//! The suite `semantics`: what the formulas of a model and of its law are (satisfiable, valid, contradictory), each class with a
//! certificate. A law that knows nothing of consistency writes some contradictions; a model of it must write as many.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, anyhow};
use fol::ast::Text;
use fol::law::Law;
use fol::notation::Code;
use fol::{Style, canon, print};
use fol_prover::semantics::{Class, Judgement, judge};
use fol_prover::{Limit, Verdict, json as certificate};
use rayon::prelude::*;
use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF as _, Normal};
use symbolic_transformer::sample::Sample;

use super::sampling;

/// Formulas of the model, and as many of the law.
pub(super) const SAMPLES: usize = 10_000;
/// For each of the two questions about a formula: what takes a tenth of a second, and the same on every machine.
const STEPS: u64 = 10_000;
/// The certificates of all classes of formulas.
const FILE: &str = "semantics.jsonl";

/// What is counted.
const KINDS: [&str; 4] = ["satisfiable", "valid", "contradictory", "unknown"];

fn is(kind: &str, class: Class) -> bool {
    match kind {
        "satisfiable" => matches!(class, Class::Satisfiable | Class::Contingent | Class::Valid),
        "valid" => class == Class::Valid,
        "contradictory" => class == Class::Contradictory,
        _ => matches!(class, Class::Satisfiable | Class::Falsifiable | Class::Unknown),
    }
}

/// Judges samples of a model beside texts of its law. The certificates go into the run's folder.
pub(super) fn semantics(
    folder: &Path,
    code: &Code,
    law: &Law,
    samples: &[Sample],
    seed: u64,
) -> Result<Value> {
    let written: Vec<Option<Text>> = samples
        .iter()
        .map(|sample| {
            sampling::read(code, sample).ok().filter(|text| sample.finished && text.as_formula().is_some())
        })
        .collect();
    let drawn = of_law(law, samples.len(), seed)?;
    // What is alike up to all names is of one class.
    let mut kinds: BTreeMap<Vec<u8>, &Text> = BTreeMap::new();
    for text in written.iter().chain(&drawn).flatten() {
        kinds.entry(key(text)).or_insert(text);
    }
    let judged: Result<Vec<(Vec<u8>, Judgement, &Text)>> = kinds
        .into_par_iter()
        .map(|(key, text)| {
            let judgement = judge(text, Limit::Steps(STEPS)).map_err(|r| anyhow!("{r}"))?;
            Ok((key, judgement, text))
        })
        .collect();
    let judged = judged?;
    write_certificates(folder, &judged)?;
    let classes: BTreeMap<Vec<u8>, Class> = judged.into_iter().map(|(key, j, _)| (key, j.class())).collect();
    let counts = |texts: &[Option<Text>]| {
        let found: Vec<Class> =
            texts.iter().flatten().filter_map(|t| classes.get(&key(t)).copied()).collect();
        let of = |kind: &str| found.iter().filter(|class| is(kind, **class)).count();
        (found.len(), KINDS.map(of))
    };
    let ((of_model, model), (of_law, law)) = (counts(&written), counts(&drawn));
    let side = |formulas: usize, counts: [usize; 4]| {
        let mut side = json!({"samples": samples.len(), "formulas": formulas});
        for (kind, count) in KINDS.iter().zip(counts) {
            side[*kind] = json!({"count": count, "share": count as f64 / formulas.max(1) as f64});
        }
        side
    };
    let mut tests = json!({});
    for (kind, (a, b)) in KINDS.iter().zip(model.into_iter().zip(law)) {
        let (difference, z, p) = two_proportions(a, of_model, b, of_law);
        tests[*kind] = json!({"difference": difference, "z": z, "p": p});
    }
    Ok(json!({
        "steps": STEPS, "classes": classes.len(), "model": side(of_model, model), "law": side(of_law, law),
        "tests": tests,
    }))
}

fn key(text: &Text) -> Vec<u8> {
    canon::sig(text).iter().flat_map(|symbol| symbol.get().to_le_bytes()).collect()
}

/// Texts of the law by a stream of their own.
fn of_law(law: &Law, n: usize, seed: u64) -> Result<Vec<Option<Text>>> {
    let refused = |r: fol::error::Refusal| anyhow!("{r}");
    let mut sampler = fol::sample::Sampler::new(law).map_err(refused)?;
    let family = fol::sample::family("semantics", seed);
    let mut tokens = Vec::new();
    (0..n as u64)
        .map(|item| {
            tokens.clear();
            sampler.sample(&mut family.stream(item), &mut tokens);
            let text = fol::decode(&tokens).map_err(refused)?;
            Ok(Some(text).filter(|text| text.as_formula().is_some()))
        })
        .collect()
}

/// The two-proportion z-test with pooled variance: the difference of the shares, z, and p of both sides.
fn two_proportions(a: usize, of_a: usize, b: usize, of_b: usize) -> (f64, f64, f64) {
    if of_a == 0 || of_b == 0 {
        return (0.0, 0.0, 1.0);
    }
    let (n, m) = (of_a as f64, of_b as f64);
    let difference = a as f64 / n - b as f64 / m;
    let pooled = (a + b) as f64 / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    if deviation == 0.0 {
        return (difference, 0.0, 1.0);
    }
    let z = difference / deviation;
    let p = 2.0 * Normal::standard().cdf(-z.abs());
    (difference, z, p)
}

/// One line for each class of formulas.
fn write_certificates(folder: &Path, judged: &[(Vec<u8>, Judgement, &Text)]) -> Result<()> {
    let mut lines = Vec::new();
    let verdict = |verdict: &Verdict| match verdict {
        Verdict::Entailed(proof) => {
            json!({"proof": certificate::proof(proof), "definitions": certificate::definitions(proof)})
        }
        Verdict::Refuted(model) => json!({"model": certificate::model(model)}),
        Verdict::Unknown { reason } => json!({"unknown": reason.to_string()}),
    };
    for (_, judgement, text) in judged {
        let line = json!({
            "formula": print(text, Style::Unicode), "satisfiable": verdict(&judgement.satisfiable.verdict),
            "valid": verdict(&judgement.valid.verdict),
        });
        writeln!(lines, "{line}")?;
    }
    Ok(training::files::write(&folder.join(FILE), &lines)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_compared() {
        // By hand: 30 of 200 against 50 of 200; pooled 0.2, deviation 0.04.
        let (difference, z, p) = two_proportions(30, 200, 50, 200);
        assert!((difference + 0.1).abs() < 1e-12 && (z + 2.5).abs() < 1e-12);
        assert!((p - 0.012_419_330_651_552_318).abs() < 1e-9, "{p}");
        assert_eq!(two_proportions(0, 100, 0, 50), (0.0, 0.0, 1.0));
        assert_eq!(two_proportions(0, 0, 3, 50).2, 1.0);
    }

    /// What the law itself writes is no other than the law.
    #[test]
    fn the_law_as_a_model_has_its_own_shares() {
        let folder = tempfile::tempdir().unwrap();
        let law = Law::named("seed", &[]).unwrap();
        let texts = of_law(&law, 1500, 7).unwrap();
        let sample = |text: Option<Text>| {
            let tokens = text.map(|text| Code::PLAIN.cut(&fol::encode(&text)).unwrap()).unwrap_or_default();
            Sample { tokens, nll: 0.0, finished: true, score: None }
        };
        let samples: Vec<Sample> = texts.into_iter().map(sample).collect();
        let found = semantics(folder.path(), &Code::PLAIN, &law, &samples, 0).unwrap();
        for kind in KINDS {
            assert!(found["tests"][kind]["p"].as_f64().unwrap() > 1e-3, "{kind}: {found}");
        }
        assert!(found["model"]["contradictory"]["count"].as_u64().unwrap() > 0, "{found}");
    }

    /// A contradiction, a law of logic, and what may be either way.
    #[test]
    fn formulas_are_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let texts = ["(P1(x0) ∧ ¬P1(x0))", "(P1(x0) → P1(x0))", "∀x0 P1(x0)", "∃x0 (P2(x0) ∧ ¬P2(c0))"];
        let sample = |text: &str| {
            let read = fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Strict).unwrap();
            let tokens = Code::PLAIN.cut(&read.tokens).unwrap();
            Sample { tokens, nll: 0.0, finished: true, score: None }
        };
        let mut samples: Vec<Sample> = texts.map(sample).to_vec();
        let unfinished = Sample { finished: false, ..sample("P1(x0)") };
        samples.push(unfinished);
        let law = Law::named("public", &[]).unwrap();
        let found = semantics(folder.path(), &Code::PLAIN, &law, &samples, 0).unwrap();
        let count = |kind: &str| found["model"][kind]["count"].as_u64().unwrap();
        assert_eq!(found["model"]["formulas"], 4);
        assert_eq!(KINDS.map(count), [3, 1, 1, 0]);
        let lines = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(lines.lines().count() as u64, found["classes"].as_u64().unwrap());
        assert!(lines.contains("\"proof\"") && lines.contains("\"model\""));
    }
}
