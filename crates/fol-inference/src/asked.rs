//! Which premises ask for a conclusion.
//!
//! Something follows from any premises: `A ⊢ A ∨ B`. So `⊢ <unknown>` needs a meaning that can be decided. Premises *ask for*
//! a conclusion if a rule that combines two of them applies: modus ponens or tollens, a disjunctive or hypothetical syllogism (also under ∀), or a
//! resolution. Conjunctions, equivalences, negated quantifiers and instances of general premises are taken apart first, and
//! the second premise of such a rule may be any consequence, by whatever proof. `<unknown>` is right where nothing is asked for.

use fol::ast::{Connective, Constant, Formula, Quantifier, Term, Variable};
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
    follows_within(premises, conclusion, Limit::Steps(STEPS))
}

/// The same within a limit.
pub fn follows_within(premises: &[Formula], conclusion: &Formula, limit: Limit) -> Option<bool> {
    let problem = Problem::new(premises.to_vec(), Some(conclusion.clone())).ok()?;
    match prove(&problem, limit).verdict {
        Verdict::Entailed(_) => Some(true),
        Verdict::Refuted(_) => Some(false),
        Verdict::Unknown { .. } => None,
    }
}

/// What the premises ask for.
pub fn asked(premises: &[Formula]) -> Asked {
    match found(premises, Limit::Steps(STEPS)) {
        Ok(Some((rule, _))) => Asked::For(rule),
        Ok(None) => Asked::Nothing,
        Err(Undecided) => Asked::Unknown,
    }
}

/// A conclusion that the premises ask for, each question to the prover within the limit. None where nothing is asked for or
/// nothing was found.
pub fn conclusion(premises: &[Formula], limit: Limit) -> Option<Formula> {
    found(premises, limit).ok().flatten().map(|(_, conclusion)| conclusion)
}

/// A limit was reached.
struct Undecided;

fn found(premises: &[Formula], limit: Limit) -> Result<Option<(Name, Formula)>, Undecided> {
    let mut open: Vec<(Formula, bool)> = premises.iter().map(|f| (f.clone(), false)).collect();
    let individuals = constants(premises);
    let (mut given, mut parts) = (Vec::new(), Vec::new());
    while let Some((formula, instance)) = open.pop() {
        if parts.len() >= MOST {
            return Err(Undecided);
        }
        open.extend(taken_apart(&formula, &individuals, instance));
        if !instance {
            given.push(formula.clone());
        }
        parts.push(formula);
    }
    if let Some(found) = pairs(&given) {
        return Ok(Some(found));
    }
    for part in &parts {
        let Formula::Binary(connective, left, right) = part else { continue };
        // The second premise, the rule, and the conclusion.
        let seconds = match connective {
            Connective::Implies => {
                [(left.as_ref().clone(), Name::Mp, right.as_ref().clone()), (not(right), Name::Mt, not(left))]
            }
            Connective::Or => {
                [(not(left), Name::Ds, right.as_ref().clone()), (not(right), Name::Ds, left.as_ref().clone())]
            }
            _ => continue,
        };
        for (second, rule, conclusion) in seconds {
            match follows_within(premises, &second, limit) {
                Some(true) => return Ok(Some((rule, conclusion))),
                Some(false) => {}
                None => return Err(Undecided),
            }
        }
    }
    Ok(None)
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

/// A rule that combines two of the formulas by their shapes alone, and what it gives.
fn pairs(given: &[Formula]) -> Option<(Name, Formula)> {
    for (at, first) in given.iter().enumerate() {
        for (other, second) in given.iter().enumerate() {
            if at == other {
                continue;
            }
            if let (Some((a, b, general)), Some((c, d, kind))) = (sides(first), sides(second))
                && general.is_some() == kind.is_some()
                && same(&under(general, &b), &under(kind, &c))
            {
                // An equivalence alone says that a side implies itself, which nobody asks for.
                if same(&under(general, &a), &under(kind, &d)) {
                    continue;
                }
                let Some(x) = general else { return Some((Name::Hs, implies(&a, &d))) };
                // Both under one variable; the second one's is not free elsewhere.
                let d = kind.map_or_else(|| d.clone(), |y| fol::substitute(&d, y, &Term::Variable(x)));
                return Some((Name::Uhs, under(Some(x), &implies(&a, &d))));
            }
            if at < other
                && let Some(resolvent) = resolvents(first, second).into_iter().next()
            {
                return Some((Name::Res, resolvent));
            }
        }
    }
    None
}

/// The sides of an implication, and its variable where it is general.
fn sides(formula: &Formula) -> Option<(Formula, Formula, Option<Variable>)> {
    match formula {
        Formula::Binary(Connective::Implies, a, b) => Some((a.as_ref().clone(), b.as_ref().clone(), None)),
        Formula::Quantified(Quantifier::Forall, x, None, body) => match body.as_ref() {
            Formula::Binary(Connective::Implies, a, b) => {
                Some((a.as_ref().clone(), b.as_ref().clone(), Some(*x)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn under(x: Option<Variable>, body: &Formula) -> Formula {
    x.map_or_else(
        || body.clone(),
        |x| Formula::Quantified(Quantifier::Forall, x, None, Box::new(body.clone())),
    )
}
