//! What answers are worth.

use fol::read::{Mode, Source};
use fol::task::{Task, encode, read};
use fol_inference::asked::{Asked, asked, conclusion, follows_within};
use fol_inference::instance::{Format, Label, Order};
use fol_inference::judge::{Judged, explain, judge};
use fol_prover::Limit;
use fol_prover::rules::Name;

use crate::common::{instances, space};

fn task(text: &str) -> Task {
    read(text, Source::Text, Mode::Lenient).unwrap_or_else(|r| panic!("{text}: {r}")).task
}

/// A task and an answer to it, with what the answer is.
#[test]
fn answers_by_examples() {
    let given = "P(c0), ∀x0 (P(x0) → R(x0)), S ⊢";
    let of = |wanted: &str, answer: &str, last: Option<Name>| {
        let wanted = task(&format!("{given} {wanted}"));
        let answer = encode(&task(&format!("{given} {answer}")));
        judge(&wanted, last, &answer, Limit::default())
    };
    let flags = |j: Judged| [j.exact, j.alpha, j.valid, j.relevant, j.proof];
    for (wanted, answer, expected) in [
        ("R(c0)", "R(c0)", [true; 5]),
        ("∃x0 R(x0)", "∃x1 R(x1)", [false, true, true, true, false]),
        ("R(c0)", "∃x1 R(x1)", [false, false, true, true, false]),
        // A premise; what follows from nothing; a weakening; what does not follow; `<unknown>`.
        ("R(c0)", "P(c0)", [false, false, true, false, false]),
        ("R(c0)", "S ∨ ¬S", [false, false, true, false, false]),
        ("R(c0)", "S ∨ R(c1)", [false, false, true, false, false]),
        ("R(c0)", "R(c1)", [false; 5]),
        ("R(c0)", "<unknown>", [false; 5]),
        ("<unknown>", "<unknown>", [true, true, true, true, false]),
        ("<unknown>", "R(c0)", [false, false, true, false, false]),
        // Steps: a right proof, one with a hole, one that uses what it does not need.
        ("R(c0). ∃x0 R(x0)", "R(c0). ∃x1 R(x1)", [false, true, true, true, true]),
        ("R(c0)", "S. R(c0)", [false, false, true, true, false]),
        ("R(c0). R(c0) ∧ S", "R(c0) ∧ S", [false, false, true, true, false]),
    ] {
        assert_eq!(flags(of(wanted, answer, None)), expected, "{wanted}, {answer}");
    }
    // A disjunction is asked for where the chain ends in one.
    assert!(of("S ∨ R(c1)", "S ∨ R(c1)", Some(Name::OrI)).relevant);
    let judged = of("R(c0)", "<unknown>", None);
    assert!(judged.says_unknown && !judged.is_unknown && judged.read);
    let nonsense = [fol::symbol::SymbolId::PRED];
    assert_eq!(judge(&task(&format!("{given} R(c0)")), None, &nonsense, Limit::default()), Judged::default());
    // Other premises than those that were asked about are no answer.
    let other = encode(&task("P(c0) ⊢ P(c0)"));
    assert!(!judge(&task(&format!("{given} R(c0)")), None, &other, Limit::default()).read);
}

#[test]
fn questions_and_terms_have_one_answer() {
    let asked = |answer: &str| task(&format!("P, P → Q <query> Q <answer> {answer}"));
    let right = judge(&asked("⊤"), None, &encode(&asked("⊤")), Limit::default());
    assert!(right.exact && right.valid && right.relevant && !right.says_unknown);
    let wrong = judge(&asked("⊤"), None, &encode(&asked("<unknown>")), Limit::default());
    assert!(wrong.read && !wrong.valid && wrong.says_unknown && !wrong.is_unknown);
    let term = |z: u64| task(&format!("x0 = x1 <sep> x1 = x2 <sep> <query> x0 <answer> x{z}"));
    assert!(judge(&term(2), None, &encode(&term(2)), Limit::default()).valid);
    assert!(!judge(&term(2), None, &encode(&term(1)), Limit::default()).valid);
}

/// What is right by construction is judged so, in every format; and its steps are explained.
#[test]
fn gold_answers_are_right() {
    for format in [Format::Conclusion, Format::Steps, Format::Question] {
        for instance in instances("gold", space(Order::RuleFirst, format), 80) {
            let text = fol::task::print(&instance.task, fol::Style::Unicode);
            let last = instance.rules.last().copied();
            let judged = judge(&instance.task, last, &encode(&instance.task), Limit::default());
            assert!(judged.read && judged.exact && judged.alpha && judged.valid, "{text}: {judged:?}");
            assert_eq!(judged.is_unknown, instance.label == Label::Unknown);
            assert_eq!(
                judged.steps,
                judged.right_steps.max(if format == Format::Conclusion { judged.steps } else { 0 })
            );
            if format == Format::Steps && instance.label == Label::Follows {
                assert_eq!(judged.right_steps, instance.depth, "{text}");
                let mut known = instance.premises().to_vec();
                for step in &instance.proof {
                    let (rule, from) = explain(&known, &step.conclusion).unwrap();
                    let premises: Vec<_> = from.iter().map(|at| known[*at].clone()).collect();
                    assert!(fol_prover::rules::check(rule, &premises, &step.conclusion));
                    known.push(step.conclusion.clone());
                }
            }
        }
    }
}

/// What the premises ask for follows from them.
#[test]
fn asked_conclusions_follow() {
    for instance in instances("asked", space(Order::LabelFirst, Format::Conclusion), 120) {
        let text = fol::task::print(&instance.task, fol::Style::Unicode);
        let found = conclusion(instance.premises(), Limit::default());
        assert_eq!(found.is_some(), matches!(asked(instance.premises()), Asked::For(_)), "{text}");
        assert_eq!(found.is_some(), instance.label == Label::Follows, "{text}");
        if let Some(found) = found {
            let printed = fol::print(&fol::ast::Text::formula(found.clone()), fol::Style::Unicode);
            assert_eq!(
                follows_within(instance.premises(), &found, Limit::default()),
                Some(true),
                "{text}: {printed}"
            );
        }
    }
}
