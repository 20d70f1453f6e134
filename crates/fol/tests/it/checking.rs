//! The checker: each rule accepted and refused, at its place.

use fol::ast::{Connective, Quantifier, Relation, Turnstile};
use fol::check::{Options, Report, check as check_text};
use fol::error::Kind;
use fol::read::{Mode, Source, parse};
use fol::signature::{Signature, Statements};

fn outcome(text: &str, options: &Options) -> Result<Report, (Kind, usize)> {
    let read =
        parse(text, Source::Text, Mode::Lenient).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
    check_text(&read, options).map_err(|refusal| {
        let at = refusal.token.unwrap();
        assert_eq!(refusal.found.as_deref(), Some(read.given.symbols[at].label()));
        assert_eq!(refusal.span, Some(read.given.spans[at]));
        (refusal.kind, at)
    })
}

#[track_caller]
fn check(text: &str, options: &Options, wanted: Option<(Kind, usize)>) {
    assert_eq!(outcome(text, options).err(), wanted, "{text}");
}

#[test]
fn arities() {
    let (plain, overloaded) = (Options::default(), Options { overloaded: true, ..Options::default() });
    check("(P1(x1) ∧ P2(x1, x1))", &plain, None);
    check("(P5(x1) ∧ P5(x1, x2))", &plain, Some((Kind::ArityMismatch, 8)));
    check("(P5(x1) ∧ P5(x1, x2))", &overloaded, None);
    check("f1(x1) = f1(x1, x2)", &plain, Some((Kind::ArityMismatch, 7)));
    check("f1(f1(x1, x2)) = c0", &plain, Some((Kind::ArityMismatch, 3)));
    check("P1(x1) := P2. P1", &plain, Some((Kind::ArityMismatch, 10)));
    check("P1(f1(c0))", &plain, None);
}

#[test]
fn binders() {
    let options =
        |closed, no_vacuous, no_shadow| Options { closed, no_vacuous, no_shadow, ..Options::default() };
    check("∀x1 P5(x1, x2)", &options(true, false, false), Some((Kind::FreeVariable, 9)));
    check("P1(x1) := ∀x2 P2(x1, x2)", &options(true, true, true), None);
    check("∀x1 ∀x2 P1(x2)", &options(false, true, false), Some((Kind::VacuousBinder, 0)));
    check("∀x1 ∀x1 P1(x1)", &options(false, true, false), Some((Kind::VacuousBinder, 0)));
    check("∀x1 ∀x1 P1(x1)", &options(false, false, true), Some((Kind::ShadowedBinder, 3)));
    check("(∀x1 P1(x1) ∧ ∀x1 P1(x1))", &options(true, true, true), None);
    check("P1(x1) := ∀x1 P2(x1)", &options(false, false, true), Some((Kind::ShadowedBinder, 7)));
    check("(∀x1 ∀x1 P0 ∧ P1(x2))", &options(true, true, true), Some((Kind::VacuousBinder, 1)));
    let report = outcome("(∀x1 (∃x1 P1(x3)) ∧ P1(x1)) ∧ P1(x3)", &Options::default()).unwrap();
    assert_eq!((report.vacuous, report.shadowed, report.free), (vec![1, 5], vec![5], vec![3, 1]));
}

#[test]
fn definitions() {
    let plain = Options::default();
    check("P1(x1, x1) := P2", &plain, Some((Kind::DuplicateParameter, 6)));
    check("f1(x1, x1) := x2", &plain, Some((Kind::DuplicateParameter, 6)));
    check("P1(x1) := P2(x1, x2)", &plain, Some((Kind::FreeInDefinition, 13)));
    check("c1 := x1", &plain, Some((Kind::FreeInDefinition, 3)));
    check("c1 := x1", &Options { closed: true, ..plain.clone() }, Some((Kind::FreeVariable, 3)));
    check("P1(x1) := (P2 ∧ P1(x1))", &plain, Some((Kind::CircularDefinition, 11)));
    check("f1(x1) := f2(f1(x1))", &plain, Some((Kind::CircularDefinition, 10)));
    check("c1 := c1", &plain, Some((Kind::CircularDefinition, 3)));
    check("c1 := c2. c2 := c1. P1 := f1(c1) = c2", &plain, None);
}

#[test]
fn sorts() {
    let sorts = Options { sorts: true, ..Options::default() };
    check("∀x1:S1 ∀x2:S2 (P1(x1) ∧ P1(x2))", &Options::default(), None);
    check("∀x1:S1 ∀x2:S2 (P1(x1) ∧ P1(x2))", &sorts, Some((Kind::SortMismatch, 23)));
    check("∀x1:S1 ∀x2:S2 (P1(x1) ∧ P2(x2))", &sorts, None);
    check("∀x1:S1 ∀x2:S2 (P1(x1, x2) ∧ P1(x1, x1))", &sorts, Some((Kind::SortMismatch, 29)));
    check("∀x1:S1 (P1(c0) ∧ (P1(x1) ∧ P1(f1(x1))))", &sorts, None);
    check("∀x1:S1 (P1(x1) ∧ P1(x2))", &sorts, Some((Kind::SortMismatch, 17)));
    check("∀x1:S1 ∀x2 f1(x1) = f1(x2)", &sorts, Some((Kind::SortMismatch, 19)));
    check("∀x1:S1 ∀x2 (x1 = x2 ∧ P1)", &sorts, None);
}

fn law() -> Signature {
    Signature {
        not: true,
        connectives: vec![Connective::And],
        quantifiers: vec![Quantifier::Forall],
        relations: vec![Relation::Equals],
        truth: vec![true],
        predicates: vec![vec![0], vec![1, 2]],
        functions: vec![vec![1]],
        constants: 2,
        variables: 3,
        sorts: 1,
        unsorted: true,
        closed: false,
        statements: Some(Statements {
            formula: true,
            sequents: vec![Turnstile::Entails],
            unknown_conclusion: false,
            equivalence: false,
            define_predicate: true,
            define_function: false,
            define_constant: false,
            several: true,
            terminated: false,
        }),
    }
}

#[test]
fn what_a_law_can_produce() {
    let within = Options { within: Some(law()), ..Options::default() };
    let refused = |text: &str, at: usize| check(text, &within, Some((Kind::NotInSignature, at)));
    check(
        "∀x2:S0 (P1(x2) ∧ P1(c1, f0(x0))), ¬⊤ ⊢ P0. P0 := x0 = c1",
        &within,
        Some((Kind::FreeInDefinition, 38)),
    );
    check("∀x2:S0 (P1(x2) ∧ P1(c1, f0(x0))), ¬⊤ ⊢ P0", &within, None);
    refused("∃x9 P9", 0);
    refused("∀x3 P0", 1);
    refused("∀x1:S1 P0", 4);
    refused("P0(c0)", 0);
    refused("P2", 0);
    refused("P1(c2)", 3);
    refused("P1(x3)", 3);
    refused("P1(f0(c0, c0))", 3);
    refused("⊥", 0);
    refused("P0 ∨ P0", 2);
    refused("P0 ∧ (P0 ↔ P0)", 6);
    refused("c0 < c1", 2);
    refused("P0 ⊨ P0", 2);
    refused("P0 ≡ P0", 2);
    refused("⊢ <unknown>", 1);
    refused("f0(x0) := c1", 6);
    refused("P0. P0.", 5);
    let bare = Options { within: Some(Signature { statements: None, ..law() }), ..Options::default() };
    check("P0.", &bare, Some((Kind::NotInSignature, 2)));
    check("P0 := P0", &bare, Some((Kind::NotInSignature, 2)));
}
