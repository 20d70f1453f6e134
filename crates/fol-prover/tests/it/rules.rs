//! The named rules: what is generated is an instance, what is an instance follows, and changed ones are told.

use fol::ast::Formula;
use fol::read::{Mode, Source, parse};
use fol_prover::random::Shape;
use fol_prover::rules::{Instance, Name, check, generate, same};
use fol_prover::{Limit, Problem, prove};

use crate::common::{checked, drawn};

fn formula(text: &str) -> Formula {
    let read = parse(text, Source::Text, Mode::Lenient).unwrap();
    read.text.as_formula().unwrap().clone()
}

/// Whether a sequent is an instance of a rule.
fn is_instance(rule: Name, text: &str) -> bool {
    let problem = Problem::read(text).unwrap();
    check(rule, problem.premises(), problem.conclusion().unwrap())
}

#[test]
fn generated_instances_are_accepted_and_follow() {
    // No number of steps is enough for every one: an instance may be as hard as its letters.
    let (mut all, mut unknown) = (0, 0);
    for &rule in Name::ALL {
        for item in 0..60 {
            let mut draw = drawn(rule.name(), item);
            let mut letters = if item % 2 == 0 { Shape::everything() } else { Shape::fragment() };
            let Instance { premises, conclusion } = generate(rule, &mut letters, &mut draw);
            let problem = Problem::new(premises.clone(), Some(conclusion.clone())).unwrap();
            let text = fol::print(&problem.to_text(), fol::Style::Unicode);
            assert!(check(rule, &premises, &conclusion), "{}: {text}", rule.name());
            let backwards: Vec<Formula> = premises.iter().rev().cloned().collect();
            assert!(check(rule, &backwards, &conclusion), "{}: {text}", rule.name());
            let found = checked(&problem, &prove(&problem, Limit::Steps(20_000)).verdict);
            assert_ne!(found, "refuted", "{}: {text}", rule.name());
            (all, unknown) = (all + 1, unknown + u64::from(found == "unknown"));
        }
    }
    assert!(unknown * 100 < all, "{unknown} of {all} are not decided");
}

/// Instances of one rule and pieces of others, put together at random: what a checker accepts is never refuted.
#[test]
fn what_is_accepted_is_never_refuted() {
    let mut accepted = 0;
    for item in 0..3_000 {
        let mut draw = drawn("mixed", item);
        let mut letters = Shape { predicates: vec![0, 1], constants: 2, depth: 1, ..Shape::everything() };
        let rule = Name::ALL[draw.below(Name::ALL.len() as u64) as usize];
        let made: Vec<Instance> = (0..3).map(|_| generate(rule, &mut letters, &mut draw)).collect();
        let mut pool: Vec<Formula> = made.iter().flat_map(|instance| instance.premises.clone()).collect();
        pool.extend(made.iter().map(|instance| instance.conclusion.clone()));
        let mut pick = || pool[draw.below(pool.len() as u64) as usize].clone();
        let (premises, conclusion) =
            ((0..made[0].premises.len()).map(|_| pick()).collect::<Vec<_>>(), pick());
        if check(rule, &premises, &conclusion) {
            accepted += 1;
            let problem = Problem::new(premises, Some(conclusion)).unwrap();
            let text = fol::print(&problem.to_text(), fol::Style::Unicode);
            assert_ne!(
                checked(&problem, &prove(&problem, Limit::Steps(5_000)).verdict),
                "refuted",
                "{}: {text}",
                rule.name()
            );
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn each_rule_by_an_instance_and_by_what_is_none() {
    use Name::*;
    let table: &[(Name, &[&str], &[&str])] = &[
        (
            Mp,
            &["P, P → Q ⊢ Q", "P → Q, P ⊢ Q", "∀x P(x), ∀y P(y) → Q ⊢ Q"],
            &["Q, P → Q ⊢ P", "P, P → Q ⊢ P", "P ⊢ P"],
        ),
        (Mt, &["¬Q, P → Q ⊢ ¬P"], &["¬P, P → Q ⊢ ¬Q", "Q, P → ¬Q ⊢ ¬P"]),
        (
            Hs,
            &["P → Q, Q → R ⊢ P → R", "Q → R, P → Q ⊢ P → R"],
            &["P → Q, Q → R ⊢ R → P", "P → Q, P → R ⊢ Q → R"],
        ),
        (Ds, &["P ∨ Q, ¬P ⊢ Q", "P ∨ Q, ¬Q ⊢ P"], &["P ∨ Q, P ⊢ Q", "P ∨ Q, ¬P ⊢ P"]),
        (AndI, &["P, Q ⊢ P ∧ Q", "P, Q ⊢ Q ∧ P"], &["P, Q ⊢ P ∧ R", "P, Q ⊢ P ∨ Q"]),
        (AndE, &["P ∧ Q ⊢ P", "P ∧ Q ⊢ Q"], &["P ∨ Q ⊢ P", "P ∧ Q ⊢ R"]),
        (OrI, &["P ⊢ P ∨ Q", "P ⊢ Q ∨ P"], &["P ⊢ P ∧ Q", "P ⊢ Q ∨ R"]),
        (Cp, &["P → Q ⊢ ¬Q → ¬P"], &["P → Q ⊢ ¬P → ¬Q", "P → Q ⊢ Q → P"]),
        (IffE, &["P ↔ Q ⊢ P → Q", "P ↔ Q ⊢ Q → P"], &["P → Q ⊢ P → Q", "P ↔ Q ⊢ P → P"]),
        (
            Ui,
            &[
                "∀x P(x) ⊢ P(c)",
                "∀x R(x, x) ⊢ R(f(y), f(y))",
                "∀x P(c) ⊢ P(c)",
                "∀x P(x) ⊢ P(x)",
                "∀x ∃y R(x, y) ⊢ ∃z R(y, z)",
            ],
            &[
                "∀x R(x, x) ⊢ R(c, d)",
                "∀x ∃y R(x, y) ⊢ ∃y R(y, y)",
                "∀x:S P(x) ⊢ P(c)",
                "∃x P(x) ⊢ P(c)",
                "∀x R(x, x) ⊢ R(x, c)",
            ],
        ),
        (
            Eg,
            &["P(c) ⊢ ∃x P(x)", "R(c, c) ⊢ ∃x R(x, c)", "R(c, c) ⊢ ∃x R(x, x)"],
            &["R(c, d) ⊢ ∃x R(x, x)", "P(c) ⊢ ∀x P(x)", "P(c) ⊢ ∃x:S P(x)", "∃y R(y, y) ⊢ ∃x ∃y R(x, y)"],
        ),
        (
            Ump,
            &[
                "∀x (P(x) → Q(x)), P(c) ⊢ Q(c)",
                "∀x (P(x) → Q(d)), P(c) ⊢ Q(d)",
                "∀x (P(x) → Q(x)), P(x) ⊢ Q(x)",
            ],
            &[
                "∀x (P(x) → Q(x)), P(c) ⊢ Q(d)",
                "∀x (P(x) → Q(x)), Q(c) ⊢ P(c)",
                "∀x (P(x) → Q(x)), P(x) ⊢ Q(c)",
                "∀x:S (P(x) → Q(x)), P(c) ⊢ Q(c)",
            ],
        ),
        (
            Uhs,
            &[
                "∀x (P(x) → Q(x)), ∀y (Q(y) → R(y, c)) ⊢ ∀z (P(z) → R(z, c))",
                "∀x:S (P(x) → Q(x)), ∀x:S (Q(x) → A(x)) ⊢ ∀x:S (P(x) → A(x))",
            ],
            &[
                "∀x (P(x) → Q(x)), ∀x (Q(x) → A(x)) ⊢ ∀x (A(x) → P(x))",
                "∀x:S (P(x) → Q(x)), ∀x (Q(x) → A(x)) ⊢ ∀x (P(x) → A(x))",
            ],
        ),
        (
            Res,
            &[
                "∀x (P(x) ∨ Q(x)), ∀x (¬P(f(x)) ∨ A(x)) ⊢ ∀x (Q(f(x)) ∨ A(x))",
                "P(c), ∀x ¬P(x) ⊢ ⊥",
                "∀x (P(x) ∨ Q(x)), ∀x ¬P(x) ⊢ ∀y Q(y)",
                "P ∨ Q, ¬P ∨ R ⊢ R ∨ Q",
                "P(x) ∨ Q, ¬P(x) ⊢ Q",
            ],
            &[
                "∀x (P(x) ∨ Q(x)), ∀x ¬P(f(x)) ⊢ ∀x Q(x)",
                "∀x (P(x) ∨ Q(x)), ∀x ¬P(x) ⊢ Q(c)",
                "P(c), ¬P(d) ⊢ ⊥",
                "P(x), ¬P(y) ⊢ ⊥",
                "∀x P(x, f(x)), ∀x ¬P(x, x) ⊢ ⊥",
                "P ∨ Q, ¬P ∨ R ⊢ Q",
                "P ∨ Q, ¬P ⊢ Q ∨ R",
            ],
        ),
        (
            EqSub,
            &[
                "a = b, P(a) ⊢ P(b)",
                "a = b, R(a, a) ⊢ R(a, b)",
                "a = b, P(f(a)) ⊢ P(f(b))",
                "a = b, ∀x R(x, a) ⊢ ∀y R(y, b)",
                "x = c, P(x) ⊢ P(c)",
            ],
            &[
                "a = b, P(a) ⊢ P(d)",
                "a = b, P(b) ⊢ P(a)",
                "x = c, ∀x P(x) ⊢ ∀x P(c)",
                "c = x, ∀x P(c) ⊢ ∀x P(x)",
            ],
        ),
        (EqTrans, &["a = b, b = d ⊢ a = d"], &["a = b, b = d ⊢ d = a", "a = b, d = b ⊢ a = d"]),
        (
            Qn,
            &[
                "¬∀x P(x) ⊢ ∃x ¬P(x)",
                "¬∃x P(x) ⊢ ∀y ¬P(y)",
                "∃x ¬P(x) ⊢ ¬∀x P(x)",
                "∀x ¬P(x) ⊢ ¬∃x P(x)",
                "¬∀x:S P(x) ⊢ ∃x:S ¬P(x)",
            ],
            &["¬∀x P(x) ⊢ ∀x ¬P(x)", "¬∀x P(x) ⊢ ¬∃x P(x)", "¬∃!x P(x) ⊢ ∀x ¬P(x)", "¬∀x:S P(x) ⊢ ∃x ¬P(x)"],
        ),
    ];
    assert_eq!(table.iter().map(|row| row.0).collect::<Vec<_>>(), Name::ALL);
    for (rule, yes, no) in table {
        for text in *yes {
            assert!(is_instance(*rule, text), "{}: {text}", rule.name());
            assert_eq!(crate::common::verdict(text), "entailed", "{text}");
        }
        for text in *no {
            assert!(!is_instance(*rule, text), "{}: {text}", rule.name());
        }
    }
}

#[test]
fn bound_names_do_not_matter() {
    for (one, other, equal) in [
        ("∀x P(x)", "∀y P(y)", true),
        ("∀x P(x)", "∃y P(y)", false),
        ("∀x ∀y R(x, y)", "∀y ∀x R(y, x)", true),
        ("∀x ∀y R(x, y)", "∀y ∀x R(x, y)", false),
        ("∀x P(y)", "∀y P(y)", false),
        ("∀x ∀x P(x)", "∀x ∀y P(y)", true),
        ("∀x ∀x P(x)", "∀y ∀x P(y)", false),
        ("∀x:S P(x)", "∀x P(x)", false),
        ("P(x)", "P(x)", true),
        ("c0 = c1", "c1 = c0", false),
    ] {
        assert_eq!(same(&formula(one), &formula(other)), equal, "{one} and {other}");
        assert_eq!(same(&formula(other), &formula(one)), equal, "{other} and {one}");
    }
}
