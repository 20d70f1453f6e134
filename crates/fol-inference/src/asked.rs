//! Which premises ask for a conclusion.
//!
//! Something follows from any premises: `A ⊢ A ∨ B`. So `⊢ <unknown>` needs a meaning that can be decided. Premises *ask for*
//! a conclusion if a rule that combines two of them applies: modus ponens or tollens, a disjunctive or hypothetical syllogism (also under ∀), or a
//! resolution. Conjunctions, equivalences, negated quantifiers and instances of general premises are taken apart first, and
//! the second premise of such a rule may be any consequence, by whatever proof. `<unknown>` is right where nothing is asked for.

use fol::ast::{Connective, Constant, Formula, Quantifier, Term};
use fol_prover::rules::{Name, resolvents, same};
use fol_prover::{Limit, Problem, Verdict, prove};

use crate::tree::{constants, implies, not};

/// Steps for each question to the prover; the fragment needs few.
pub(crate) const STEPS: u64 = 20_000;
/// More formulas are not taken apart.
const MOST: usize = 300;

/// What premises ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The conclusion of this rule.
    For(Name),
    /// No rule that combines premises applies.
    Nothing,
    /// There are too many formulas to look at, or the prover reached its limit.
    Unknown,
}

/// Whether the conclusion follows; none where the prover reached its limit.
pub(crate) fn follows(premises: &[Formula], conclusion: &Formula) -> Option<bool> {
    let problem = Problem::new(premises.to_vec(), Some(conclusion.clone())).ok()?;
    match prove(&problem, Limit::Steps(STEPS)).verdict {
        Verdict::Entailed(_) => Some(true),
        Verdict::Refuted(_) => Some(false),
        Verdict::Unknown { .. } => None,
    }
}

/// What the premises ask for.
pub fn asked(premises: &[Formula]) -> Asked {
    let mut open: Vec<(Formula, bool)> = premises.iter().map(|f| (f.clone(), false)).collect();
    let individuals = constants(premises);
    let (mut given, mut parts) = (Vec::new(), Vec::new());
    while let Some((formula, instance)) = open.pop() {
        if parts.len() >= MOST {
            return Asked::Unknown;
        }
        open.extend(taken_apart(&formula, &individuals, instance));
        if !instance {
            given.push(formula.clone());
        }
        parts.push(formula);
    }
    if let Some(rule) = pairs(&given) {
        return Asked::For(rule);
    }
    for part in &parts {
        let Formula::Binary(connective, left, right) = part else { continue };
        let seconds = match connective {
            Connective::Implies => [(left.as_ref().clone(), Name::Mp), (not(right), Name::Mt)],
            Connective::Or => [(not(left), Name::Ds), (not(right), Name::Ds)],
            _ => continue,
        };
        for (second, rule) in seconds {
            match follows(premises, &second) {
                Some(true) => return Asked::For(rule),
                Some(false) => {}
                None => return Asked::Unknown,
            }
        }
    }
    Asked::Nothing
}

/// What a formula says by one rule with one premise, and whether that is an instance.
fn taken_apart(formula: &Formula, individuals: &[Constant], instance: bool) -> Vec<(Formula, bool)> {
    match formula {
        Formula::Binary(Connective::And, left, right) => {
            [left, right].map(|side| (side.as_ref().clone(), instance)).to_vec()
        }
        Formula::Binary(Connective::Iff, left, right) => {
            vec![(implies(left, right), instance), (implies(right, left), instance)]
        }
        Formula::Quantified(Quantifier::Forall, x, None, body) => {
            let put = |constant: &Constant| fol::substitute(body, *x, &Term::Constant(*constant));
            individuals.iter().map(|constant| (put(constant), true)).collect()
        }
        Formula::Not(inner) => match inner.as_ref() {
            Formula::Quantified(quantifier, x, None, body) => {
                let dual = match quantifier {
                    Quantifier::Forall => Quantifier::Exists,
                    Quantifier::Exists => Quantifier::Forall,
                    Quantifier::Exists1 => return Vec::new(),
                };
                vec![(Formula::Quantified(dual, *x, None, Box::new(not(body))), instance)]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A rule that combines two of the formulas by their shapes alone.
fn pairs(given: &[Formula]) -> Option<Name> {
    let sides = |formula: &Formula| match formula {
        Formula::Binary(Connective::Implies, a, b) => {
            Some((a.as_ref().clone(), b.as_ref().clone(), Name::Hs))
        }
        Formula::Quantified(Quantifier::Forall, x, None, body) => {
            let Formula::Binary(Connective::Implies, a, b) = body.as_ref() else { return None };
            let under =
                |side: &Formula| Formula::Quantified(Quantifier::Forall, *x, None, Box::new(side.clone()));
            Some((under(a), under(b), Name::Uhs))
        }
        _ => None,
    };
    for (at, first) in given.iter().enumerate() {
        for (other, second) in given.iter().enumerate() {
            if at == other {
                continue;
            }
            if let (Some((_, b, rule)), Some((c, _, kind))) = (sides(first), sides(second))
                && rule == kind
                && same(&b, &c)
            {
                return Some(rule);
            }
            if at < other && !resolvents(first, second).is_empty() {
                return Some(Name::Res);
            }
        }
    }
    None
}
