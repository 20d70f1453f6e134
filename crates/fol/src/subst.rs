//! Substitution of a term for a variable, without capture (F29).
//!
//! A binder in the way is renamed first, which is a substitution of its own. All that is to be substituted is
//! carried down in one pass, in its order, instead of rewriting the body once for each binder.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::ast::{Formula, Term, Variable};
use crate::walk::{Event, walk_formula, walk_term};

/// `φ[t/v]`: the free occurrences of `variable` become `term`.
///
/// At a quantifier with variable y: if y = v, or v is not free in the body, the formula stays as it is. If y
/// occurs in t, y is first renamed to the smallest index that is neither free in the body nor in t.
#[must_use]
pub fn substitute(formula: &Formula, variable: Variable, term: &Term) -> Formula {
    in_formula(formula, &[Rc::new(Replacement::new(variable, term.clone()))])
}

struct Replacement {
    variable: Variable,
    term: Term,
    /// The variables of the term.
    captured: BTreeSet<Variable>,
}

impl Replacement {
    fn new(variable: Variable, term: Term) -> Self {
        let mut captured = BTreeSet::new();
        walk_term(&term, |event| {
            if let Event::Occurrence { variable, .. } = event {
                captured.insert(variable);
            }
        });
        Self { variable, term, captured }
    }

    /// What is free once the variable, which was free, is replaced.
    fn change(&self, free: &mut BTreeSet<Variable>) {
        free.remove(&self.variable);
        free.extend(&self.captured);
    }
}

/// The replacements, one after the other.
type Pending<'a> = &'a [Rc<Replacement>];

fn in_formula(formula: &Formula, pending: Pending) -> Formula {
    match formula {
        _ if pending.is_empty() => formula.clone(),
        Formula::Truth(truth) => Formula::Truth(*truth),
        Formula::Predicate(predicate, arguments) => {
            Formula::Predicate(*predicate, in_terms(arguments, pending))
        }
        Formula::Relation(relation, left, right) => {
            Formula::Relation(*relation, in_term(left, pending), in_term(right, pending))
        }
        Formula::Not(operand) => Formula::Not(Box::new(in_formula(operand, pending))),
        Formula::Binary(connective, left, right) => {
            let left = in_formula(left, pending);
            Formula::Binary(*connective, Box::new(left), Box::new(in_formula(right, pending)))
        }
        Formula::Quantified(quantifier, y, sort, body) => {
            let (y, inside) = under_binder(*y, free_in(body), pending);
            Formula::Quantified(*quantifier, y, *sort, Box::new(in_formula(body, &inside)))
        }
    }
}

/// The variable that the binder of y gets, and what is to be replaced in its body, where `free` is free.
fn under_binder(
    mut y: Variable,
    mut free: BTreeSet<Variable>,
    pending: Pending,
) -> (Variable, Vec<Rc<Replacement>>) {
    let mut inside = Vec::new();
    for replacement in pending {
        if y == replacement.variable || !free.contains(&replacement.variable) {
            continue;
        }
        if replacement.captured.contains(&y) {
            let unused = |z: &Variable| !free.contains(z) && !replacement.captured.contains(z);
            let z = (0..=u64::MAX).map(Variable).find(unused).unwrap_or(y);
            if free.contains(&y) {
                let renaming = Replacement::new(y, Term::Variable(z));
                renaming.change(&mut free);
                inside.push(Rc::new(renaming));
            }
            y = z;
        }
        replacement.change(&mut free);
        inside.push(Rc::clone(replacement));
    }
    (y, inside)
}

fn in_terms(terms: &[Term], pending: Pending) -> Vec<Term> {
    terms.iter().map(|term| in_term(term, pending)).collect()
}

fn in_term(term: &Term, pending: Pending) -> Term {
    match term {
        Term::Variable(variable) => {
            let found = pending.iter().position(|replacement| replacement.variable == *variable);
            match found.and_then(|at| Some((pending.get(at)?, pending.get(at + 1..)?))) {
                Some((replacement, rest)) => in_term(&replacement.term, rest),
                None => term.clone(),
            }
        }
        Term::Constant(_) => term.clone(),
        Term::Function(function, arguments) => Term::Function(*function, in_terms(arguments, pending)),
    }
}

/// The free variables of a formula.
fn free_in(formula: &Formula) -> BTreeSet<Variable> {
    let mut free = BTreeSet::new();
    walk_formula(formula, |event| {
        if let Event::Occurrence { variable, binder: None, .. } = event {
            free.insert(variable);
        }
    });
    free
}
