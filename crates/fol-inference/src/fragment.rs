//! The fragment in which every label is certain: no functions, no equality, and no ∃ in the scope of a ∀ once the conclusion is
//! denied (∃*∀*, Bernays–Schönfinkel). Its clauses have no functions, so the prover decides it by their instances.

use fol::ast::{Connective, Formula, Quantifier, Term};

/// Whether formulas as premises, and one as a conclusion, are of the fragment.
pub fn is_certain<'a>(
    premises: impl IntoIterator<Item = &'a Formula>,
    conclusion: Option<&'a Formula>,
) -> bool {
    premises.into_iter().all(|premise| fits(premise, true))
        && conclusion.is_none_or(|asked| fits(asked, false))
}

/// Whether a formula may be a part of any premise and of any conclusion, outside of quantifiers.
pub(crate) fn fits_anywhere(formula: &Formula) -> bool {
    fits(formula, true) && fits(formula, false)
}

fn fits(formula: &Formula, positive: bool) -> bool {
    no_witness_below(formula, positive, false)
}

/// Whether no quantifier that asks for a witness stands under one that speaks of all.
fn no_witness_below(formula: &Formula, positive: bool, below: bool) -> bool {
    match formula {
        Formula::Truth(_) => true,
        Formula::Predicate(_, terms) => terms.iter().all(|term| !matches!(term, Term::Function(..))),
        Formula::Relation(..) => false,
        Formula::Not(body) => no_witness_below(body, !positive, below),
        Formula::Binary(connective, left, right) => {
            let side = |formula, positive| no_witness_below(formula, positive, below);
            match connective {
                Connective::And | Connective::Or => side(left, positive) && side(right, positive),
                Connective::Implies => side(left, !positive) && side(right, positive),
                Connective::Iff => {
                    [left, right].into_iter().all(|formula| side(formula, true) && side(formula, false))
                }
            }
        }
        Formula::Quantified(Quantifier::Exists1, ..) | Formula::Quantified(_, _, Some(_), _) => false,
        Formula::Quantified(quantifier, _, None, body) => {
            let all = (*quantifier == Quantifier::Forall) == positive;
            (all || !below) && no_witness_below(body, positive, below || all)
        }
    }
}
