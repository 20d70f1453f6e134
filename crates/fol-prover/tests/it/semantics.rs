//! Classes of formulas, and shares of them under a law.

use std::collections::BTreeMap;

use fol::read::{Mode, Source, parse};
use fol_prover::Limit;
use fol_prover::semantics::{Class, judge};

#[track_caller]
fn class(text: &str) -> Class {
    judge(&parse(text, Source::Text, Mode::Lenient).unwrap().text, Limit::default()).unwrap().class()
}

#[test]
fn formulas_have_classes() {
    assert_eq!(class("∃x (P(x) → ∀y P(y))"), Class::Valid);
    assert_eq!(class("∃x ∀y (R(x, y) ↔ ¬R(y, y))"), Class::Contradictory);
    assert_eq!(class("∀x P(x)"), Class::Contingent);
    assert_eq!(class("x = x"), Class::Valid);
    // A parameter is one element.
    assert_eq!(class("P(x) → ∀x P(x)"), Class::Contingent);
    let infinite = "(∀x ∀y (f(x) = f(y) → x = y) ∧ ∀x f(x) ≠ a)";
    assert_eq!(class(infinite), Class::Falsifiable);
    assert_eq!(class(&format!("¬{infinite}")), Class::Satisfiable);
    let text = parse("P ⊢ P", Source::Text, Mode::Lenient).unwrap().text;
    assert_eq!(judge(&text, Limit::default()).unwrap_err().kind, fol::error::Kind::NotAFormula);
}

/// The formulas that a law draws are judged, and every one of them is certain.
#[test]
fn the_formulas_of_the_laws_are_judged() {
    for name in ["public", "seed", "uniform", "pr"] {
        let law = fol::law::Law::named(name, &[]).unwrap();
        let (mut sampler, mut tokens) = (fol::sample::Sampler::new(&law).unwrap(), Vec::new());
        let mut shares: BTreeMap<Class, u32> = BTreeMap::new();
        for item in 0..200 {
            sampler.sample(&mut fol::sample::family("sample", seeded::test_seed()).stream(item), &mut tokens);
            let text = fol::decode(&tokens).unwrap();
            *shares.entry(judge(&text, Limit::Milliseconds(100)).unwrap().class()).or_default() += 1;
        }
        let known = [Class::Valid, Class::Contradictory, Class::Contingent]
            .iter()
            .filter_map(|class| shares.get(class))
            .sum::<u32>();
        assert!(known >= 198 && shares[&Class::Contingent] > 20, "{name}: {shares:?}");
    }
}
