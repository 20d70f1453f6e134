//! Chains of rules, built backward from their last step: a leaf is a premise until a rule that concludes it is put above it. So
//! every chain is a proof by construction.

use fol::ast::{Connective, Formula, Quantifier, Term};
use fol_prover::rules::{self, Letters, Name};
use seeded::Stream;

use crate::tree::{X, binary, constants, implies, is_open, length, not, put_for, quantified};

/// The rules of the fragment: all named ones but those of equality.
pub const RULES: [Name; 15] = [
    Name::Mp,
    Name::Mt,
    Name::Hs,
    Name::Ds,
    Name::AndI,
    Name::AndE,
    Name::OrI,
    Name::Cp,
    Name::IffE,
    Name::Ui,
    Name::Eg,
    Name::Ump,
    Name::Uhs,
    Name::Res,
    Name::Qn,
];

/// One application of a rule. Numbers are those of formulas of the derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The rule.
    pub rule: Name,
    /// What it is applied to.
    pub premises: Vec<usize>,
    /// What follows.
    pub conclusion: usize,
}

/// A conclusion with its premises and the steps between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    formulas: Vec<Formula>,
    /// The last step first.
    backward: Vec<Step>,
    leaves: Vec<usize>,
}

/// A formula of more tokens is not made longer by another rule.
const LONGEST: usize = 48;

impl Derivation {
    /// A conclusion that is its own premise.
    pub(crate) fn of_goal(goal: Formula) -> Self {
        Self { formulas: vec![goal], backward: Vec::new(), leaves: vec![0] }
    }

    /// An instance of a rule.
    pub(crate) fn of_rule(rule: Name, letters: &mut dyn Letters, draw: &mut Stream) -> Self {
        let instance = rules::generate(rule, letters, draw);
        let mut derivation = Self::of_goal(instance.conclusion);
        derivation.put(0, rule, instance.premises);
        derivation
    }

    /// Puts a rule above a leaf.
    fn put(&mut self, leaf: usize, rule: Name, premises: Vec<Formula>) {
        let from = self.formulas.len();
        self.formulas.extend(premises);
        let numbers: Vec<usize> = (from..self.formulas.len()).collect();
        self.leaves.retain(|at| *at != leaf);
        self.leaves.extend(&numbers);
        self.backward.push(Step { rule, premises: numbers, conclusion: leaf });
    }

    /// Puts rules above leaves until there are `depth` of them; false where none fits any more.
    pub(crate) fn extend(
        &mut self,
        depth: usize,
        allowed: &[Name],
        letters: &mut dyn Letters,
        draw: &mut Stream,
    ) -> bool {
        while self.depth() < depth {
            if !self.extend_by_one(allowed, letters, draw) {
                return false;
            }
        }
        true
    }

    fn extend_by_one(&mut self, allowed: &[Name], letters: &mut dyn Letters, draw: &mut Stream) -> bool {
        // Rules that conclude formulas of one shape alone are tried first in half of the cases: others fit everywhere and
        // would leave them no place.
        let shaped_first = draw.below(2) == 0;
        let mut order: Vec<Name> = draw
            .permutation(allowed.len() as u32)
            .into_iter()
            .filter_map(|i| allowed.get(i as usize).copied())
            .collect();
        order.sort_by_key(|rule| shaped_first && fits_everywhere(*rule));
        let leaves = self.leaves.clone();
        for rule in order {
            for at in draw.permutation(leaves.len() as u32) {
                let Some(&leaf) = leaves.get(at as usize) else { continue };
                let Some(goal) = self.formulas.get(leaf).cloned() else { continue };
                if length(&goal) > LONGEST {
                    continue;
                }
                if let Some(premises) = conclude(rule, &goal, letters, draw)
                    && rules::check(rule, &premises, &goal)
                {
                    self.put(leaf, rule, premises);
                    return true;
                }
            }
        }
        false
    }

    /// How many rules are applied.
    pub fn depth(&self) -> usize {
        self.backward.len()
    }

    /// What is concluded.
    pub fn goal(&self) -> Formula {
        self.formulas.first().cloned().unwrap_or(Formula::Truth(true))
    }

    /// The premises.
    pub fn premises(&self) -> Vec<Formula> {
        self.leaves.iter().filter_map(|at| self.formulas.get(*at).cloned()).collect()
    }

    /// A formula by its number.
    pub fn formula(&self, number: usize) -> Option<&Formula> {
        self.formulas.get(number)
    }

    /// The steps, each after those that conclude its premises.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.backward.iter().rev()
    }

    /// The conclusions of the steps, in their order.
    pub fn conclusions(&self) -> Vec<Formula> {
        self.steps().filter_map(|step| self.formulas.get(step.conclusion).cloned()).collect()
    }

    /// The rules of the steps, in their order.
    pub fn rules(&self) -> Vec<Name> {
        self.steps().map(|step| step.rule).collect()
    }
}

/// Whether a rule concludes formulas of any shape.
fn fits_everywhere(rule: Name) -> bool {
    matches!(rule, Name::Mp | Name::Ds | Name::AndE | Name::Ui | Name::Ump)
}

/// Premises from which a rule concludes the goal, with new letters where the goal does not say what they are. None where it
/// does not conclude such a formula.
fn conclude(
    rule: Name,
    goal: &Formula,
    letters: &mut dyn Letters,
    draw: &mut Stream,
) -> Option<Vec<Formula>> {
    let coin = draw.below(2) == 0;
    Some(match (rule, goal) {
        (Name::Mp, _) => {
            let a = letters.formula(&[], draw);
            vec![a.clone(), implies(&a, goal)]
        }
        (Name::Mt, Formula::Not(a)) => {
            let b = letters.formula(&[], draw);
            vec![not(&b), implies(a, &b)]
        }
        (Name::Hs, Formula::Binary(Connective::Implies, a, c)) => {
            let b = letters.formula(&[], draw);
            vec![implies(a, &b), implies(&b, c)]
        }
        (Name::Ds, _) => {
            let a = letters.formula(&[], draw);
            let (left, right) = if coin { (&a, goal) } else { (goal, &a) };
            vec![binary(Connective::Or, left, right), not(&a)]
        }
        (Name::AndI, Formula::Binary(Connective::And, a, b)) => vec![a.as_ref().clone(), b.as_ref().clone()],
        (Name::AndE, _) => {
            let other = letters.formula(&[], draw);
            let (left, right) = if coin { (goal, &other) } else { (&other, goal) };
            vec![binary(Connective::And, left, right)]
        }
        (Name::OrI, Formula::Binary(Connective::Or, a, b)) => {
            vec![if coin { a } else { b }.as_ref().clone()]
        }
        (Name::Cp, Formula::Binary(Connective::Implies, not_b, not_a)) => {
            let (Formula::Not(b), Formula::Not(a)) = (not_b.as_ref(), not_a.as_ref()) else { return None };
            vec![implies(a, b)]
        }
        (Name::IffE, Formula::Binary(Connective::Implies, a, b)) => {
            let (left, right) = if coin { (a, b) } else { (b, a) };
            vec![binary(Connective::Iff, left, right)]
        }
        (Name::Ui, _) => {
            let (body, _) = generalised(goal, draw)?;
            vec![quantified(Quantifier::Forall, &body)]
        }
        (Name::Eg, Formula::Quantified(Quantifier::Exists, x, None, body)) => {
            let term = letters.term(&[], draw);
            vec![fol::substitute(body, *x, &term)]
        }
        (Name::Ump, _) => {
            let (body, term) = generalised(goal, draw)?;
            let condition = letters.formula(&[X], draw);
            let general = quantified(Quantifier::Forall, &implies(&condition, &body));
            vec![general, fol::substitute(&condition, X, &term)]
        }
        (Name::Uhs, Formula::Quantified(Quantifier::Forall, x, None, body)) if *x == X => {
            let Formula::Binary(Connective::Implies, a, c) = body.as_ref() else { return None };
            let b = letters.formula(&[X], draw);
            vec![
                quantified(Quantifier::Forall, &implies(a, &b)),
                quantified(Quantifier::Forall, &implies(&b, c)),
            ]
        }
        (Name::Res, Formula::Binary(Connective::Or, c, d)) => {
            let atom = letters.atom(&[], draw);
            vec![binary(Connective::Or, c, &atom), binary(Connective::Or, d, &not(&atom))]
        }
        (Name::Qn, Formula::Not(inner)) => {
            let Formula::Quantified(quantifier, _, None, body) = inner.as_ref() else { return None };
            vec![requantified(inner, dual(*quantifier)?, not(body))]
        }
        (Name::Qn, Formula::Quantified(quantifier, _, None, inner)) => {
            let Formula::Not(body) = inner.as_ref() else { return None };
            vec![not(&requantified(goal, dual(*quantifier)?, body.as_ref().clone()))]
        }
        _ => return None,
    })
}

fn dual(quantifier: Quantifier) -> Option<Quantifier> {
    match quantifier {
        Quantifier::Forall => Some(Quantifier::Exists),
        Quantifier::Exists => Some(Quantifier::Forall),
        Quantifier::Exists1 => None,
    }
}

/// The formula with another quantifier and body.
fn requantified(formula: &Formula, quantifier: Quantifier, body: Formula) -> Formula {
    match formula {
        Formula::Quantified(_, x, sort, _) => Formula::Quantified(quantifier, *x, *sort, Box::new(body)),
        other => other.clone(),
    }
}

/// A formula without quantifiers with the variable in the place of one of its constants, and the constant.
fn generalised(formula: &Formula, draw: &mut Stream) -> Option<(Formula, Term)> {
    let all = constants([formula]);
    if !is_open(formula) || all.is_empty() {
        return None;
    }
    let constant = *all.get(draw.below(all.len() as u64) as usize)?;
    Some((put_for(formula, constant, &Term::Variable(X)), Term::Constant(constant)))
}
