//! Small things that are done to formulas: made, counted, given other names.

use std::collections::BTreeMap;

use fol::ast::{Connective, Constant, Formula, Predicate, Quantifier, Term, Text, Variable};

/// The variable under the quantifiers that rules make.
pub(crate) const X: Variable = Variable(0);

pub(crate) fn not(formula: &Formula) -> Formula {
    Formula::Not(Box::new(formula.clone()))
}

/// The negation, or what is negated.
pub(crate) fn complement(formula: &Formula) -> Formula {
    match formula {
        Formula::Not(body) => body.as_ref().clone(),
        other => not(other),
    }
}

pub(crate) fn binary(connective: Connective, left: &Formula, right: &Formula) -> Formula {
    Formula::Binary(connective, Box::new(left.clone()), Box::new(right.clone()))
}

pub(crate) fn implies(left: &Formula, right: &Formula) -> Formula {
    binary(Connective::Implies, left, right)
}

pub(crate) fn quantified(quantifier: Quantifier, body: &Formula) -> Formula {
    Formula::Quantified(quantifier, X, None, Box::new(body.clone()))
}

/// The canonical tokens of a formula, how many.
pub(crate) fn length(formula: &Formula) -> usize {
    fol::encode(&Text::formula(formula.clone())).len()
}

/// Calls `seen` with every atom's predicate and arguments.
pub(crate) fn atoms<'a>(formula: &'a Formula, seen: &mut dyn FnMut(Predicate, &'a [Term])) {
    match formula {
        Formula::Truth(_) | Formula::Relation(..) => {}
        Formula::Predicate(predicate, terms) => seen(*predicate, terms),
        Formula::Not(body) | Formula::Quantified(_, _, _, body) => atoms(body, seen),
        Formula::Binary(_, left, right) => {
            atoms(left, seen);
            atoms(right, seen);
        }
    }
}

/// The constants of formulas, ascending, each once.
pub(crate) fn constants<'a>(formulas: impl IntoIterator<Item = &'a Formula>) -> Vec<Constant> {
    let mut found = Vec::new();
    for formula in formulas {
        atoms(formula, &mut |_, terms| {
            found.extend(terms.iter().filter_map(|term| match term {
                Term::Constant(constant) => Some(*constant),
                _ => None,
            }));
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The predicates of formulas with their arities, ascending, each once.
pub(crate) fn predicates<'a>(formulas: impl IntoIterator<Item = &'a Formula>) -> Vec<(usize, Predicate)> {
    let mut found = Vec::new();
    for formula in formulas {
        atoms(formula, &mut |predicate, terms| found.push((terms.len(), predicate)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The formula with other atoms in the places of its own.
pub(crate) fn with_atoms<F: FnMut(Predicate, &[Term]) -> (Predicate, Vec<Term>)>(
    formula: &Formula,
    put: &mut F,
) -> Formula {
    match formula {
        Formula::Truth(_) | Formula::Relation(..) => formula.clone(),
        Formula::Predicate(predicate, terms) => {
            let (predicate, terms) = put(*predicate, terms);
            Formula::Predicate(predicate, terms)
        }
        Formula::Not(body) => Formula::Not(Box::new(with_atoms(body, put))),
        Formula::Quantified(quantifier, x, sort, body) => {
            Formula::Quantified(*quantifier, *x, *sort, Box::new(with_atoms(body, put)))
        }
        Formula::Binary(connective, left, right) => {
            let left = with_atoms(left, put);
            Formula::Binary(*connective, Box::new(left), Box::new(with_atoms(right, put)))
        }
    }
}

/// The formula with a term in the place of a constant. A variable that is put there is not to be bound in the formula.
pub(crate) fn put_for(formula: &Formula, constant: Constant, term: &Term) -> Formula {
    with_atoms(formula, &mut |predicate, terms| {
        let own = Term::Constant(constant);
        (predicate, terms.iter().map(|t| if *t == own { term.clone() } else { t.clone() }).collect())
    })
}

/// Other names for predicates, within an arity, and for constants. What has none keeps its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renaming {
    pub(crate) predicates: BTreeMap<(usize, Predicate), Predicate>,
    pub(crate) constants: BTreeMap<Constant, Constant>,
}

impl Renaming {
    pub(crate) fn apply(&self, formula: &Formula) -> Formula {
        with_atoms(formula, &mut |predicate, terms| {
            let name = self.predicates.get(&(terms.len(), predicate)).copied().unwrap_or(predicate);
            let term = |term: &Term| match term {
                Term::Constant(c) => Term::Constant(self.constants.get(c).copied().unwrap_or(*c)),
                other => other.clone(),
            };
            (name, terms.iter().map(term).collect())
        })
    }
}

/// Whether a formula has no quantifier.
pub(crate) fn is_open(formula: &Formula) -> bool {
    match formula {
        Formula::Quantified(..) => false,
        Formula::Not(body) => is_open(body),
        Formula::Binary(_, left, right) => is_open(left) && is_open(right),
        _ => true,
    }
}
