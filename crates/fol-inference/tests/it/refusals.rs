//! Spaces that are refused, by the key that is wrong.

use fol::error::Kind;
use fol::law::Law;
use fol_inference::generate::Maker;
use fol_inference::instance::{Format, Order};
use fol_inference::space::Space;
use fol_prover::rules::Name;

use crate::common::{drawn, space};

#[test]
fn spaces_without_instances_or_with_two_answers() {
    let usual = || Space::usual(Order::RuleFirst).unwrap();
    let cases: [(&str, Space); 15] = [
        ("formats", Space { formats: [0; 4], ..usual() }),
        ("formats", Space { formats: [1, 1, 0, 0], ..usual() }),
        ("rules", Space { rules: vec![], ..usual() }),
        ("rules", Space { rules: vec![Name::Mp, Name::EqSub], ..usual() }),
        ("rules", Space { rules: vec![Name::AndI, Name::OrI], ..usual() }),
        ("depths", Space { depths: vec![], ..usual() }),
        ("depths", Space { depths: vec![(2, 0)], ..usual() }),
        ("depths", Space { depths: vec![(0, 1)], ..usual() }),
        ("depths", Space { depths: vec![(17, 1)], ..usual() }),
        ("distractors", Space { distractors: 21, ..usual() }),
        ("names", Space { names: 15, ..usual() }),
        ("names", Space { names: 626, ..usual() }),
        // A chain of eight and twenty distractors of two variables each: 49 that differ.
        (
            "names",
            Space { names: 48, formats: [0, 0, 0, 1], depths: vec![(8, 1)], distractors: 20, ..usual() },
        ),
        ("max_tokens", Space { max_tokens: 31, ..usual() }),
        ("max_tokens", Space { max_tokens: 5000, ..usual() }),
    ];
    for (key, space) in cases {
        let refusal = Maker::new(space.clone()).unwrap_err();
        assert_eq!(refusal.kind, Kind::BadValue);
        assert!(refusal.message.starts_with(&format!("{key}: ")), "{refusal}: {space:?}");
    }
    let just = Space { names: 49, formats: [0, 0, 0, 1], depths: vec![(8, 1)], distractors: 20, ..usual() };
    assert!(Maker::new(just).is_ok());
    // Rules that combine nothing have questions.
    let asking = Space { rules: vec![Name::AndI, Name::OrI], formats: [0, 0, 1, 0], ..usual() };
    assert!(Maker::new(asking).is_ok());
}

#[test]
fn laws_outside_the_fragment() {
    for (law, changes, why) in [
        ("uniform", vec![], "relations"),
        ("seed", vec![], "relations"),
        ("full", vec![], "functions"),
        ("pr", vec![], "no constants"),
        ("uniform", vec![("relations", "[]"), ("truth", "true")], "⊤"),
        ("uniform", vec![("relations", "[]"), ("quantifiers", "[\"EXISTS1\"]")], "∃!"),
    ] {
        let changes: Vec<_> =
            changes.iter().map(|(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned())).collect();
        let law = Law::named(law, &changes).unwrap();
        let refusal = Maker::new(Space { law, ..Space::usual(Order::RuleFirst).unwrap() }).unwrap_err();
        assert_eq!(refusal.kind, Kind::BadValue);
        assert!(refusal.message.contains(why), "{refusal}");
    }
}

#[test]
fn a_space_in_which_nothing_fits_is_refused_in_finite_time() {
    let mut space = space(Order::RuleFirst, Format::Question);
    space.depths = vec![(16, 1)];
    space.max_tokens = 32;
    let refusal = Maker::new(space).unwrap().instance(&mut drawn("nothing", 0)).unwrap_err();
    assert_eq!(refusal.kind, Kind::EmptySize);
    assert!(refusal.help.is_some_and(|help| help.contains("max_tokens")));
}
