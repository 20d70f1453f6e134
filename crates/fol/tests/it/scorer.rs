//! The scorer: worked examples, distributions that sum to 1, refusals.

use fol::error::Kind;
use fol::law::Law;

use crate::common::{self, law};
use fol::sample::{Sampler, family};
use fol::score::{ExactScorer, Scorer};
use fol::symbol::SymbolId;
use serde_json::Value;

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1.0)
}

fn texts(law: &Law, number: u64) -> Vec<Vec<SymbolId>> {
    let mut sampler = Sampler::new(law).unwrap();
    let family = family("test", 1);
    (0..number)
        .map(|i| {
            let mut tokens = Vec::new();
            sampler.sample(&mut family.stream(i), &mut tokens);
            tokens
        })
        .collect()
}

#[test]
fn worked_texts() {
    for line in include_str!("../cases/sample.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut scorer = Scorer::new(&law(case["args"][2].as_str().unwrap(), &[])).unwrap();
        for item in case["expect"]["items"].as_array().unwrap() {
            let ids = item["tokens"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap() as u16);
            let tokens: Vec<SymbolId> = ids.filter_map(SymbolId::new).collect();
            let nll = scorer.score(&tokens).unwrap();
            assert!(close(nll, item["nll"].as_f64().unwrap(), 1e-9), "{}: {nll} {item}", case["id"]);
        }
    }
}

/// Laws that between them reach every branch of the grammar.
fn laws() -> Vec<Law> {
    let statements = ("statements.count", "[[1,1],[2,2]]");
    vec![
        law("public", &[]),
        law("public-advanced", &[]),
        law("atomic", &[]),
        law("seed", &[]),
        law("uniform", &[]),
        law("pr", &[]),
        law("full", &[]),
        law("boltzmann", &[]),
        law(
            "boltzmann",
            &[("scope", "1"), ("names", "canonical"), ("nodes", "40"), ("pool", "9"), ("truth", "true")],
        ),
        law("public", &[("levels", "[[2,1],[3,1],[4,5]]"), ("names", "2")]),
        law("public", &[("overloaded", "{ names = 700, arities = [[0,1],[1,2],[3,1]] }"), ("names", "2000")]),
        law(
            "public",
            &[
                statements,
                ("overloaded.arities", "[[0,1],[1,2],[3,1]]"),
                ("overloaded.names", "2"),
                ("constants", "700"),
                ("functions", "[[1,2]]"),
            ],
        ),
        common::statements(),
        // Nearly every binder shadows or binds nothing, and names have two digits.
        law(
            "public-advanced",
            &[("names", "627"), ("shadow", "60"), ("vacuous", "50"), ("levels", "[[2,1],[3,1],[4,5]]")],
        ),
        law("public-advanced", &[("shadow", "100"), ("recent", "100"), ("sorts", "2"), ("sorted.yes", "1")]),
        law(
            "pr",
            &[
                ("predicates", "[[0,1],[2,1]]"),
                ("truth", "true"),
                ("constants", "1"),
                ("relations", "[\"LESS_THAN\"]"),
                ("sizes", "[1,12]"),
            ],
        ),
        law("uniform", &[("levels", "[[4,1]]"), ("sizes", "[[4,3,25]]"), ("pool", "5000")]),
        law(
            "public",
            &[("depth_mix", "[[6,1],[0,1]]"), ("kinds", "{ quantifier = 1 }"), ("names", "1000000")],
        ),
    ]
}

#[test]
fn distributions_sum_to_one_and_agree_with_pushing() {
    for law in laws() {
        let mut scorer = Scorer::new(&law).unwrap();
        for tokens in texts(&law, 30) {
            scorer.reset();
            for &token in tokens.iter().chain([&SymbolId::EOS]) {
                let dist = scorer.next_dist();
                let sum: f64 = dist.iter().sum();
                assert!((sum - 1.0).abs() < 1e-12, "{} {tokens:?} {token}: {sum}", law.to_json());
                let expected = dist[token.index()];
                let p = scorer.advance(token).unwrap();
                assert!((p - expected).abs() < 1e-12, "{p} {expected}");
            }
            assert!(scorer.next_dist().iter().all(|&p| p <= 0.0));
        }
    }
}

/// Every symbol that has no probability is refused, every other is not, and a refusal changes nothing.
#[test]
fn refusals_leave_the_prefix_as_it_was() {
    for law in laws() {
        let mut scorer = Scorer::new(&law).unwrap();
        for tokens in texts(&law, 4) {
            scorer.reset();
            for (i, &token) in tokens.iter().enumerate().take(30) {
                let dist = *scorer.next_dist();
                for symbol in SymbolId::all().filter(|s| s.get() % 7 == 0 || s.get() >= 625) {
                    let mut branch = scorer.clone();
                    match branch.push(symbol) {
                        Ok(()) => assert!(dist[symbol.index()] > 0.0, "{symbol} after {tokens:?}[..{i}]"),
                        Err(refusal) => {
                            assert!(dist[symbol.index()] <= 0.0, "{symbol} after {tokens:?}[..{i}]");
                            assert_eq!((refusal.kind, refusal.token), (Kind::OffLaw, Some(i)));
                            let same =
                                branch.next_dist().iter().zip(dist).all(|(p, q)| p.to_bits() == q.to_bits());
                            assert!(same);
                        }
                    }
                }
                scorer.push(token).unwrap();
            }
        }
    }
}
