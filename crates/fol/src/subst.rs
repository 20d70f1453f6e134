//! Substitution of a term for a variable, without capture.

use std::collections::BTreeSet;

use crate::ast::{Formula, Term, Variable};

/// `φ[t/v]`: the free occurrences of `variable` become `term`.
///
/// At a quantifier with variable y: if y = v, or v is not free in the body, the formula stays as it is. If y
/// occurs in t, y is first renamed to the smallest index that is neither free in the body nor in t.
#[must_use]
pub fn substitute(formula: &Formula, variable: Variable, term: &Term) -> Formula {
    let mut captured = BTreeSet::new();
    variables_of_term(term, &mut captured);
    Substitution { variable, term, captured }.formula(formula)
}

struct Substitution<'a> {
    variable: Variable,
    term: &'a Term,
    /// The variables of the term.
    captured: BTreeSet<Variable>,
}

impl Substitution<'_> {
    fn formula(&self, formula: &Formula) -> Formula {
        match formula {
            Formula::Truth(truth) => Formula::Truth(*truth),
            Formula::Predicate(predicate, arguments) => Formula::Predicate(*predicate, self.terms(arguments)),
            Formula::Relation(relation, left, right) => {
                Formula::Relation(*relation, self.term(left), self.term(right))
            }
            Formula::Not(operand) => Formula::Not(Box::new(self.formula(operand))),
            Formula::Binary(connective, left, right) => {
                Formula::Binary(*connective, Box::new(self.formula(left)), Box::new(self.formula(right)))
            }
            Formula::Quantified(quantifier, y, sort, body) => {
                let free = free_in(body);
                if *y == self.variable || !free.contains(&self.variable) {
                    return formula.clone();
                }
                let (y, body) = if self.captured.contains(y) {
                    let unused = |index: &u64| {
                        let z = Variable(*index);
                        !free.contains(&z) && !self.captured.contains(&z)
                    };
                    let z = (0..=u64::MAX).find(unused).map_or(*y, Variable);
                    (z, self.formula(&substitute(body, *y, &Term::Variable(z))))
                } else {
                    (*y, self.formula(body))
                };
                Formula::Quantified(*quantifier, y, *sort, Box::new(body))
            }
        }
    }

    fn term(&self, term: &Term) -> Term {
        match term {
            Term::Variable(variable) if *variable == self.variable => self.term.clone(),
            Term::Variable(_) | Term::Constant(_) => term.clone(),
            Term::Function(function, arguments) => Term::Function(*function, self.terms(arguments)),
        }
    }

    fn terms(&self, terms: &[Term]) -> Vec<Term> {
        terms.iter().map(|term| self.term(term)).collect()
    }
}

/// The free variables of a formula.
fn free_in(formula: &Formula) -> BTreeSet<Variable> {
    let mut free = BTreeSet::new();
    collect(formula, &mut Vec::new(), &mut free);
    free
}

fn collect(formula: &Formula, scope: &mut Vec<Variable>, free: &mut BTreeSet<Variable>) {
    let mut occurring = BTreeSet::new();
    match formula {
        Formula::Truth(_) => {}
        Formula::Predicate(_, arguments) => {
            arguments.iter().for_each(|t| variables_of_term(t, &mut occurring))
        }
        Formula::Relation(_, left, right) => {
            [left, right].into_iter().for_each(|t| variables_of_term(t, &mut occurring))
        }
        Formula::Not(operand) => collect(operand, scope, free),
        Formula::Binary(_, left, right) => {
            collect(left, scope, free);
            collect(right, scope, free);
        }
        Formula::Quantified(_, variable, _, body) => {
            scope.push(*variable);
            collect(body, scope, free);
            scope.pop();
        }
    }
    free.extend(occurring.into_iter().filter(|variable| !scope.contains(variable)));
}

fn variables_of_term(term: &Term, variables: &mut BTreeSet<Variable>) {
    match term {
        Term::Variable(variable) => {
            variables.insert(*variable);
        }
        Term::Constant(_) => {}
        Term::Function(_, arguments) => {
            arguments.iter().for_each(|argument| variables_of_term(argument, variables))
        }
    }
}
