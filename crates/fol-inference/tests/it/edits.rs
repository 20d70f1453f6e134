//! What each small edit does to premises.

use fol::ast::{Formula, Text};
use fol_inference::edit::Edit;
use fol_inference::instance::{Format, Order};
use fol_inference::shallow::{NAMES, features};

use crate::common::{formula, instances, sequent, space};

fn skeleton(formula: &Formula) -> Vec<fol::symbol::SymbolId> {
    fol::canon::skeleton(&Text::formula(formula.clone()))
}

/// Premises of one rule and their known edits.
#[test]
fn each_edit_by_an_example() {
    let single = |name: &str, edit: Edit, check: &dyn Fn(&[Formula])| {
        let all = instances(name, space(Order::RuleFirst, Format::Question), 250);
        let found: Vec<_> = all.iter().filter(|instance| instance.edit == Some(edit)).collect();
        assert!(!found.is_empty(), "{}", edit.name());
        found.iter().for_each(|instance| check(instance.premises()));
    };
    // A swapped quantifier is there to be seen.
    single("swap", Edit::SwapQuantifiers, &|premises| {
        let has = |f: &Formula| skeleton(f).iter().any(|s| s.kind() == fol::symbol::SymbolKind::Quantifier);
        assert!(premises.iter().any(has));
    });
    single("converse", Edit::AffirmConsequent, &|premises| {
        let has = |f: &Formula| skeleton(f).contains(&fol::symbol::SymbolId::IMPLIES);
        assert!(premises.iter().any(has));
    });
}

#[test]
fn features_are_what_they_say() {
    let (premises, asked) = sequent("P(c), ∀x (P(x) → R(x, c)), Q ⊢ ¬R(c, d)");
    let found = features(&premises, Some(&asked));
    // P(c): 6 tokens; ∀x (P(x) → R(x, c)): 3 + 2 + 1 + 6 + 9; Q: 2; ¬R(c, d): 10.
    let wanted = [3.0, 29.0, 21.0, 2.0, 10.0, 4.0, 3.0, 2.0, 2.0, 1.0, 1.0, 1.0];
    assert_eq!(found, wanted);
    assert_eq!(NAMES.len(), found.len());
    assert_eq!(features(&premises, None)[4], 0.0);
    assert_eq!(
        features(&[], Some(&formula("P"))),
        [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    );
}
