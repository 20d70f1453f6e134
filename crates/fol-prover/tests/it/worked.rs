//! Examples that are worked by hand, and theorems that are known.

use fol_prover::{Limit, Problem, Verdict, prove};

use crate::common::{satisfiable, verdict};

#[test]
fn the_worked_examples() {
    for text in [
        "P(c), P(c) → Q(c) ⊢ Q(c)",
        "¬Q(c), P(c) → Q(c) ⊢ ¬P(c)",
        "∀x P(x) ⊢ P(c)",
        "P(c) ⊢ ∃x P(x)",
        "P(x), P(x) → Q(x) ⊢ Q(x)",
        "P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)",
        "P(c), ∀x (P(x) → Q(x)) ⊨ Q(c)",
    ] {
        assert_eq!(verdict(text), "entailed", "{text}");
    }
    for text in ["Q(c), P(c) → Q(c) ⊢ P(c)", "P(x) ⊢ ∀x P(x)"] {
        let problem = Problem::read(text).unwrap();
        let Verdict::Refuted(model) = prove(&problem, Limit::default()).verdict else { panic!("{text}") };
        assert!(model.size <= 2, "{text}");
    }
    assert_eq!(satisfiable(&["P(c)", "¬P(c)"]), "unsatisfiable");
    assert_eq!(satisfiable(&["P(c)"]), "satisfiable");
}

#[test]
fn theorems() {
    for text in [
        // A domain is not empty.
        "⊢ ∃x x = x",
        "∀x P(x) ⊢ ∃x P(x)",
        // Drinker.
        "⊢ ∃x (P(x) → ∀y P(y))",
        // Nobody shaves all who do not shave themselves.
        "⊢ ¬∃x ∀y (R(x, y) ↔ ¬R(y, y))",
        // Pelletier 18, 19, 21, 24, 28, 34 (Andrews's challenge), 38.
        "⊢ ∃y ∀x (F(y) → F(x))",
        "⊢ ∃x ∀y ∀z ((P(y) → Q(z)) → (P(x) → Q(x)))",
        "∃x (A → F(x)), ∃x (F(x) → A) ⊢ ∃x (A ↔ F(x))",
        "¬∃x (S(x) ∧ Q(x)), ∀x (P(x) → Q(x) ∨ R(x)), ¬∃x P(x) → ∃x Q(x), ∀x (Q(x) ∨ R(x) → S(x)) ⊢ ∃x (P(x) ∧ R(x))",
        "∀x (P(x) → ∀x Q(x)), ∀x (Q(x) ∨ R(x)) → ∃x (Q(x) ∧ S(x)), ∃x S(x) → ∀x (F(x) → G(x)) ⊢ ∀x (P(x) ∧ F(x) → G(x))",
        "⊢ (∃x ∀y (P(x) ↔ P(y)) ↔ (∃x Q(x) ↔ ∀y Q(y))) ↔ (∃x ∀y (Q(x) ↔ Q(y)) ↔ (∃x P(x) ↔ ∀y P(y)))",
        // Propositional.
        "⊢ ((P → Q) → P) → P",
        "⊢ (P ↔ (Q ↔ R)) ↔ ((P ↔ Q) ↔ R)",
        "⊢ (((((P ↔ Q) ↔ R) ↔ S) ↔ T) ↔ U) ↔ (U ↔ (T ↔ (S ↔ (R ↔ (Q ↔ P)))))",
        // Equality.
        "a = b, b = d ⊢ a = d",
        "a = b ⊢ f(a) = f(b)",
        "f(a) = a ⊢ f(f(f(f(a)))) = a",
        "f(f(f(a))) = a, f(f(f(f(f(a))))) = a ⊢ f(a) = a",
        "a = b, P(a) ⊢ P(b)",
        "∀x (P(x) → x = a) ⊢ P(b) → b = a",
        "a ≠ b, ∀x (x = a ∨ x = b) ⊢ ∃x ∀y (y = x ∨ y = b)",
        // Pelletier 48, 49, 51, 56, 58.
        "a = b ∨ d = e, a = d ∨ b = e ⊢ a = e ∨ b = d",
        "∃x ∃y ∀z (z = x ∨ z = y), P(a), P(b), a ≠ b ⊢ ∀x P(x)",
        "∃z ∃w ∀x ∀y (F(x, y) ↔ x = z ∧ y = w) ⊢ ∃z ∀x (∃w ∀y (F(x, y) ↔ y = w) ↔ x = z)",
        "⊢ ∀x (∃y (F(y) ∧ x = f(y)) → F(x)) ↔ ∀x (F(x) → F(f(x)))",
        "∀x ∀y f(x) = g(y) ⊢ ∀x ∀y f(f(x)) = f(g(y))",
        // Uniqueness.
        "∃!x P(x), P(a), P(b) ⊢ a = b",
        "P(a), ∀x (P(x) → x = a) ⊢ ∃!x P(x)",
        "∃!x P(x) ⊢ ∃x P(x)",
        "⊢ ∃!x P(x) ↔ ∃x ∀y (P(y) ↔ y = x)",
        "⊢ ∀x ∃!y y = f(x)",
        // Groups: one identity, one inverse; exponent two is commutative.
        "∀x ∀y ∀z m(m(x, y), z) = m(x, m(y, z)), ∀x m(e, x) = x, ∀x m(i(x), x) = e ⊢ ∀x m(x, i(x)) = e",
        "∀x ∀y ∀z m(m(x, y), z) = m(x, m(y, z)), ∀x m(e, x) = x, ∀x m(i(x), x) = e ⊢ ∀x m(x, e) = x",
        "∀x ∀y ∀z m(m(x, y), z) = m(x, m(y, z)), ∀x m(e, x) = x, ∀x m(i(x), x) = e, ∀x m(x, x) = e ⊢ ∀x ∀y m(x, y) = m(y, x)",
        // Sorts are guards.
        "∀x:S P(x) ⊢ ∀y:S P(y)",
        "∀x:S P(x), ∃x:S Q(x) ⊢ ∃x (P(x) ∧ Q(x))",
        "∃!x:S P(x) ⊢ ∃x:S P(x)",
        // Relations.
        "∀x ∀y (x < y → ¬y < x) ⊢ ¬a < a",
    ] {
        assert_eq!(verdict(text), "entailed", "{text}");
    }
}

#[test]
fn what_does_not_follow() {
    for text in [
        "∀x ∃y R(x, y) ⊢ ∃y ∀x R(x, y)",
        "∃x P(x), ∃x Q(x) ⊢ ∃x (P(x) ∧ Q(x))",
        "f(a) = f(b) ⊢ a = b",
        "∀x:S P(x) ⊢ ∃x:S P(x)",
        "∀x:S P(x) ⊢ ∀x P(x)",
        "∃x P(x) ⊢ ∃!x P(x)",
        // Sorts whose members contradict each other have none.
        "∀x:S ¬P(x), ∀x:S P(x) ⊢ ⊥",
        // Relations have no meaning of their own.
        "a < b ⊢ b > a",
        "⊢ a ≤ a",
        "a < b, b < d ⊢ a < d",
        "⊢ ⊥",
        "⊤ ⊢ P",
        "f(f(a)) = a ⊢ f(a) = a",
        "∀x f(f(x)) = x ⊢ ∀x f(x) = x",
        // Two symbols of one index.
        "P1(c0) ⊢ P1(c0, c0)",
        "∀x ∀y ∀z m(m(x, y), z) = m(x, m(y, z)), ∀x m(e, x) = x, ∀x m(i(x), x) = e ⊢ ∀x x = e",
    ] {
        assert_eq!(verdict(text), "refuted", "{text}");
    }
    // A serial, transitive and irreflexive relation has infinite models only.
    let text = "∀x ∃y R(x, y), ∀x ¬R(x, x), ∀x ∀y ∀z (R(x, y) ∧ R(y, z) → R(x, z)) ⊢ ⊥";
    assert_eq!(verdict(text), "unknown");
    // Injective and not surjective.
    assert_eq!(verdict("∀x ∀y (f(x) = f(y) → x = y), ∀x f(x) ≠ a ⊢ ⊥"), "unknown");
}

#[test]
fn models_of_more_than_four_elements() {
    let distinct = |n: u64| {
        let pairs = (0..n).flat_map(|i| (0..i).map(move |j| format!("c{i} ≠ c{j}")));
        pairs.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(verdict(&format!("{}, ∀x f(x) = f(f(x)) ⊢ P", distinct(6))), "refuted");
    assert_eq!(verdict(&format!("{}, ∃x ∃y ∀z (z = x ∨ z = y) ⊢ ⊥", distinct(3))), "entailed");
}
