//! Sub-formulas that come again become names, whatever they say: what follows by their places alone is seen at once then.

use std::collections::{BTreeSet, HashMap};

use fol::ast::{Formula, Predicate, Variable};

use super::{fold, free_variables};
use crate::problem::Problem;
use crate::proof::Definition;

/// A problem over names for what comes again, and the names; nothing where nothing does.
pub(super) fn share(problem: &Problem) -> Option<(Problem, Vec<Definition>)> {
    let given: Vec<&Formula> = problem.premises().iter().chain(problem.conclusion()).collect();
    let mut counts = HashMap::new();
    for formula in &given {
        count(formula, &mut Vec::new(), &mut counts);
    }
    if counts.values().all(|&count| count < 2) {
        return None;
    }
    let mut taken = BTreeSet::new();
    given.iter().for_each(|formula| fold::predicates(formula, &mut taken));
    let mut sharing = Sharing { counts, taken, named: Vec::new() };
    let premises = problem.premises().iter().map(|f| sharing.formula(f, &mut Vec::new())).collect();
    let conclusion = problem.conclusion().map(|f| sharing.formula(f, &mut Vec::new()));
    let definitions = sharing.named.into_iter().map(|(body, predicate)| Definition {
        predicate,
        parameters: Vec::new(),
        body: body.clone(),
    });
    let definitions = definitions.collect();
    Some((Problem::new(premises, conclusion).ok()?, definitions))
}

/// Whether a formula has parts, and none of its variables is bound around it.
fn stands_alone(formula: &Formula, scope: &[Variable]) -> bool {
    if !matches!(formula, Formula::Binary(..) | Formula::Quantified(..)) {
        return false;
    }
    if scope.is_empty() {
        return true;
    }
    let mut free = BTreeSet::new();
    free_variables(formula, &mut Vec::new(), &mut free);
    scope.iter().all(|bound| !free.contains(bound))
}

fn count<'a>(formula: &'a Formula, scope: &mut Vec<Variable>, counts: &mut HashMap<&'a Formula, usize>) {
    if stands_alone(formula, scope) {
        *counts.entry(formula).or_default() += 1;
    }
    match formula {
        Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => {}
        Formula::Not(body) => count(body, scope, counts),
        Formula::Binary(_, left, right) => {
            count(left, scope, counts);
            count(right, scope, counts);
        }
        Formula::Quantified(_, x, _, body) => {
            scope.push(*x);
            count(body, scope, counts);
            scope.pop();
        }
    }
}

struct Sharing<'a> {
    counts: HashMap<&'a Formula, usize>,
    /// The predicates that stand somewhere.
    taken: BTreeSet<u64>,
    named: Vec<(&'a Formula, Predicate)>,
}

impl<'a> Sharing<'a> {
    fn formula(&mut self, formula: &'a Formula, scope: &mut Vec<Variable>) -> Formula {
        if stands_alone(formula, scope) && self.counts.get(formula).is_some_and(|&count| count > 1) {
            return Formula::Predicate(self.name(formula), Vec::new());
        }
        match formula {
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => formula.clone(),
            Formula::Not(body) => Formula::Not(Box::new(self.formula(body, scope))),
            Formula::Binary(connective, left, right) => {
                let left = Box::new(self.formula(left, scope));
                Formula::Binary(*connective, left, Box::new(self.formula(right, scope)))
            }
            Formula::Quantified(quantifier, x, sort, body) => {
                scope.push(*x);
                let body = self.formula(body, scope);
                scope.pop();
                Formula::Quantified(*quantifier, *x, *sort, Box::new(body))
            }
        }
    }

    fn name(&mut self, formula: &'a Formula) -> Predicate {
        if let Some((_, name)) = self.named.iter().find(|(known, _)| *known == formula) {
            return *name;
        }
        let free = (0..=u64::MAX).find(|n| !self.taken.contains(n)).unwrap_or(u64::MAX);
        self.taken.insert(free);
        self.named.push((formula, Predicate(free)));
        Predicate(free)
    }
}
