//! The sampler: worked items, level shares, uniformity, every symbol.

use std::collections::BTreeMap;

use fol::count::Counter;
use fol::law::Law;

use crate::common::law;
use fol::sample::{Facts, Sampler, family};
use fol::symbol::SymbolId;
use serde_json::Value;

fn items(law: &Law, number: u64) -> impl Iterator<Item = (Vec<SymbolId>, Facts)> {
    let mut sampler = Sampler::new(law).unwrap();
    let family = family("data", 0);
    (0..number).map(move |i| {
        let mut tokens = Vec::new();
        let facts = sampler.sample(&mut family.stream(i), &mut tokens);
        (tokens, facts)
    })
}

#[test]
fn worked_items() {
    let mut laws = 0;
    for line in include_str!("../cases/sample.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let law = law(case["args"][2].as_str().unwrap(), &[]);
        let expected = case["expect"]["items"].as_array().unwrap();
        for ((tokens, facts), expected) in items(&law, expected.len() as u64).zip(expected) {
            let ids: Vec<u16> = tokens.iter().map(|t| t.get()).collect();
            assert_eq!(Value::from(ids), expected["tokens"], "{}", case["id"]);
            if !expected["level"].is_null() {
                assert_eq!(Value::from(facts.level), expected["level"]);
                assert_eq!(Value::from(facts.nodes), expected["nodes"]);
            } else {
                assert_eq!(facts.level, 0);
            }
        }
        laws += 1;
    }
    assert_eq!(laws, 5);
}

#[test]
fn level_shares() {
    for name in ["seed", "uniform"] {
        let mut counts = [0u32; 5];
        for (_, facts) in items(&law(name, &[]), 100_000) {
            counts[facts.level as usize] += 1;
        }
        for (level, percent) in [(1, 20.0), (2, 40.0), (3, 30.0), (4, 10.0)] {
            let share = f64::from(counts[level]) / 1000.0;
            assert!((share - percent).abs() <= 0.4, "{name}: level {level} has {share} %");
        }
    }
}

/// χ² over the 32 classes of `pr`, n = 3: 31 degrees of freedom, rejected at 61.1 with probability 0.001.
#[test]
fn formulas_of_a_size_are_uniform() {
    let mut counts = BTreeMap::new();
    for (tokens, _) in items(&law("pr", &[("sizes", "[3,3]")]), 32_000) {
        *counts.entry(tokens).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 32);
    let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
    assert!(chi2 < 61.1, "{chi2}");
}

#[test]
fn full_draws_every_symbol() {
    let mut counts = [0u32; 663];
    for (tokens, _) in items(&law("full", &[]), 100_000) {
        tokens.iter().for_each(|t| counts[t.index()] += 1);
    }
    assert!(counts.iter().take(655).all(|&count| count >= 1000), "{counts:?}");
}

#[test]
fn too_long_texts_are_drawn_again() {
    let law = law("public", &[("max_tokens", "30")]);
    let redrawn =
        items(&law, 2000).inspect(|(tokens, _)| assert!(tokens.len() <= 28)).filter(|i| i.1.redraws > 0);
    assert!(redrawn.count() > 10);
    let error =
        Law::named("public", &[("max_tokens".into(), "6".into())]).map(|law| Sampler::new(&law).err());
    assert_eq!(error.unwrap().unwrap().kind, fol::error::Kind::BadValue);
}

#[test]
fn big_and_wide_tables_draw_the_same_law() {
    // Sizes of 60 nodes need more than 128 bits; the drawn formulas have that size.
    let big = law("pr", &[("sizes", "[60,60]"), ("max_tokens", "2000")]);
    let counter = Counter::new(&big, 60, 0, None).unwrap();
    assert!(counter.count(60).bits() > 128);
    for (tokens, facts) in items(&big, 20) {
        assert_eq!(facts.nodes, 60);
        assert!(tokens.len() >= 60);
    }
}
