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

/// What random problems hardly contain.
#[test]
fn strange_inputs() {
    for (text, wanted) in [
        // Names that are bound here and free there.
        ("∀x P(x), Q(x) ⊢ P(x) ∧ ∃x Q(x)", "entailed"),
        ("P(x), ∀x (P(x) → Q(x)) ⊢ Q(x)", "entailed"),
        ("∃x (P(x) ∧ ∀x Q(x)) ⊢ ∀y Q(y)", "entailed"),
        ("∃!x (P(x) ∧ ∃!x Q(x)) ⊢ ∃!y Q(y)", "entailed"),
        ("∃!x ∃!x P(x) ⊢ ∀x ∀y x = y", "entailed"),
        ("∃!x Q(y) ⊢ Q(y) ∧ ∀x ∀z x = z", "entailed"),
        // Quantifiers that bind nothing, with and without a sort.
        ("∀x P ⊢ P", "entailed"),
        ("∃x P ⊢ P", "entailed"),
        ("∃x:S P ⊢ P", "entailed"),
        ("∀x:S P ⊢ P", "refuted"),
        ("∃x:S ⊤ ⊢ ∃x S1(x)", "refuted"),
        ("∀x:S ⊥ ⊢ ¬∃x:S x = x", "entailed"),
        ("∃!x:S ⊤, ∀x:S P(x) ⊢ ∃!x:S P(x)", "entailed"),
        ("¬∃!x:S P(x), ∃x:S P(x) ⊢ ∃x:S ∃y:S x ≠ y", "entailed"),
        ("¬∃!x P(x), P(a) ⊢ ∃x (P(x) ∧ x ≠ a)", "entailed"),
        ("∃x:S ∀y:S1 R(x, y) ⊢ ∀y:S1 ∃x:S R(x, y)", "entailed"),
        // Truth values.
        ("⊥ ⊢ P", "entailed"),
        ("P ⊢ ⊤", "entailed"),
        ("⊢ ∃x ⊤", "entailed"),
        ("⊢ ∀x ⊥", "refuted"),
        ("⊢ ⊤ ↔ ¬⊥", "entailed"),
        // Premises that are one, and none.
        ("P, P, P ⊢ P", "entailed"),
        ("⊢ a = a", "entailed"),
        ("⊢ a = b", "refuted"),
        ("⊢ x = x", "entailed"),
        ("⊢ x = y", "refuted"),
        ("⊢ ∃x ∃y x ≠ y", "refuted"),
        ("⊢ ∀x ∀y x = y", "refuted"),
        ("∀x ∀y x = y, P(a) ⊢ P(b)", "entailed"),
        ("∀x x = a, ∀x x ≠ b ⊢ P", "entailed"),
        // An equation with a variable alone on a side.
        ("∀x f(x) = a ⊢ f(f(b)) = f(a)", "entailed"),
        ("∀x ∀y (x = y ∨ P(x)), ¬P(a) ⊢ a = b", "entailed"),
        ("∀x (x = a ∨ x = b), P(a), P(b) ⊢ ∀x P(x)", "entailed"),
        ("∀x (x = a ∨ x = b ∨ x = d), a ≠ b ⊢ ∃x ∀y (y = x ∨ y = a ∨ y = b)", "entailed"),
        // The same index as predicate, function, constant, variable and sort; two arities.
        ("∀x0:S0 P0(f0(x0), c0), S(c0) ⊢ P0(f0(c0), c0)", "refuted"),
        ("P0, ¬P0(c0), P0(c0, c0) ⊢ P0(x0)", "refuted"),
        ("f0(f0(c0, c1)) = c0 ⊢ f0(c0) = f0(f0(f0(c0, c1)))", "entailed"),
        // Relations beside each other.
        ("∀x ∀y (x < y ↔ y > x), a < b ⊢ b > a", "entailed"),
        ("a ≤ b, ¬a ≤ b ⊢ ⊥", "entailed"),
        ("a = b, a < d ⊢ b < d", "entailed"),
        ("a ≠ b ∨ a = b ⊢ ⊥", "refuted"),
        // Largest indices, of which names for sub-formulas must not be made.
        (
            "P18446744073709551615 ↔ (P0 ↔ (P1 ↔ (P2 ↔ (P3 ↔ (P4 ↔ P5))))) ⊢ ((((((P18446744073709551615 ↔ P0) ↔ P1) ↔ P2) ↔ P3) ↔ P4) ↔ P5)",
            "entailed",
        ),
        // Names for sub-formulas under quantifiers, with a parameter of a bound name beside them.
        (
            "∀x ∀y (((P(x) ↔ Q(y)) ↔ (P(y) ↔ R(x, z))) ↔ (Q(x) ↔ (R(y, z) ↔ P(x)))), ∀x P(x), ∀x Q(x) ⊢ ∀x (R(x, z) ↔ R(a, z))",
            "entailed",
        ),
    ] {
        assert_eq!(verdict(text), wanted, "{text}");
    }
}

#[test]
fn many_premises() {
    let chain: Vec<String> = (0..600).map(|n| format!("P{n}(c0) → P{}(c0)", n + 1)).collect();
    assert_eq!(verdict(&format!("P0(c0), {} ⊢ P600(c0)", chain.join(", "))), "entailed");
    assert_eq!(verdict(&format!("{} ⊢ P600(c0)", chain.join(", "))), "refuted");
    let chain: Vec<String> = (0..120).map(|n| format!("f(c{n}) = c{}", n + 1)).collect();
    assert_eq!(verdict(&format!("{}, f(c5) = c5 ⊢ c6 = c120", chain.join(", "))), "entailed");
    let equal: Vec<String> = (0..40).map(|n| format!("c{n} = c{}", n + 1)).collect();
    assert_eq!(verdict(&format!("{}, P(c40) ⊢ P(c0)", equal.join(", "))), "entailed");
    assert_eq!(verdict(&format!("{}, P(c40) ⊢ P(c41)", equal.join(", "))), "refuted");
}

/// Pigeons and holes, which take a propositional solver many conflicts.
#[test]
fn pigeons() {
    let (holes, pigeons) = (4, 5);
    let inside: Vec<String> = (0..pigeons)
        .map(|p| (0..holes).map(|h| format!("R(c{p}, d{h})")).collect::<Vec<_>>().join(" ∨ "))
        .collect();
    let apart: Vec<String> = (0..pigeons).flat_map(|p| (0..p).map(move |q| format!("c{p} ≠ c{q}"))).collect();
    let text =
        format!("{}, {}, ∀x ∀y ∀z (R(x, z) ∧ R(y, z) → x = y) ⊢ ⊥", inside.join(", "), apart.join(", "));
    assert_eq!(verdict(&text), "entailed");
}
