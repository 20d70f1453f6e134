//! What premises ask for, and which formulas are of the fragment.

use fol_inference::asked::{Asked, asked};
use fol_inference::fragment::is_certain;
use fol_prover::rules::Name;

use crate::common::{formula, sequent};

#[test]
fn premises_ask_for_what_a_rule_gives_of_two() {
    for (text, wanted) in [
        ("P, P → Q", Some(Name::Mp)),
        ("¬Q, P → Q", Some(Name::Mt)),
        ("P → Q, Q → R", Some(Name::Hs)),
        ("P ∨ Q, ¬P", Some(Name::Res)),
        ("(P ∧ R) ∨ Q, ¬(P ∧ R)", Some(Name::Ds)),
        ("P(c), ∀x (P(x) → Q(x))", Some(Name::Mp)),
        ("∀x (P(x) → Q(x)), ∀y (Q(y) → R(y))", Some(Name::Uhs)),
        ("P ∨ Q, ¬P ∨ R", Some(Name::Res)),
        // The second premise by another proof; the first one inside a conjunction or an equivalence.
        ("P, Q, (P ∧ Q) → R", Some(Name::Mp)),
        ("P ∧ (P → Q)", Some(Name::Mp)),
        ("P ↔ Q, P", Some(Name::Mp)),
        ("∀x P(x), P(c) → Q", Some(Name::Mp)),
        ("P(c), (∃x P(x)) → Q", Some(Name::Mp)),
        // Fallacies, and what says nothing together.
        ("Q, P → Q", None),
        ("¬P, P → Q", None),
        ("P ∨ Q, P", None),
        ("P → Q, R → Q", None),
        ("P(d), ∀x (P(c) → Q(x))", None),
        ("∃x P(x), P(c) → Q", None),
        ("P, Q", None),
        ("∀x (P(x) → Q(x)), ∃y P(y)", None),
        ("P ∧ Q", None),
        ("P ↔ Q", None),
    ] {
        let (premises, _) = sequent(&format!("{text} ⊢ ⊤"));
        let wanted = wanted.map_or(Asked::Nothing, Asked::For);
        assert_eq!(asked(&premises), wanted, "{text}");
        let backwards: Vec<_> = premises.into_iter().rev().collect();
        assert_eq!(asked(&backwards), wanted, "{text}, the other way round");
    }
}

#[test]
fn the_fragment_has_no_witness_below_a_general_premise() {
    for (text, as_premise, as_conclusion) in [
        ("P(c)", true, true),
        ("∀x ∀y R(x, y)", true, true),
        ("∃x ∀y R(x, y)", true, false),
        ("∀x ∃y R(x, y)", false, true),
        ("¬∀x ∃y R(x, y)", true, false),
        ("(∀x P(x)) → (∃y Q(y))", true, true),
        ("∀x (P(x) → ∃y Q(y))", false, true),
        ("∀x ((∃y Q(y)) → P(x))", true, true),
        ("(∀x P(x)) ↔ (∃y Q(y))", true, true),
        ("∀x (P(x) ↔ ∀y Q(y))", false, true),
        ("c = d", false, false),
        ("P(f(c))", false, false),
        ("∃!x P(x)", false, false),
        ("∀x:S P(x)", false, false),
    ] {
        let formula = formula(text);
        assert_eq!(is_certain([&formula], None), as_premise, "{text}");
        assert_eq!(is_certain([], Some(&formula)), as_conclusion, "{text}");
    }
}
