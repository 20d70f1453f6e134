//! Whether a finite interpretation is one in which the premises hold and the conclusion does not: the formulas of the
//! problem, as they were written, are evaluated by their definition.

use fol::ast::{Connective, Formula, Quantifier, Relation, Sort, Term, Variable};

use super::Fault;
use crate::logic::{FunctionSymbol, PredicateSymbol};
use crate::model::Model;
use crate::problem::Problem;

/// Checks a countermodel, or a model of premises alone. `most` bounds the evaluated nodes: a formula of many nested quantifiers takes
/// more than anybody has, and an answer that was not checked is none.
///
/// # Errors
/// What is wrong, or that there was too much to evaluate.
pub fn check_model(problem: &Problem, model: &Model, most: u64) -> Result<(), Fault> {
    if model.size == 0 {
        return Err(Fault::new("there is no element"));
    }
    let inside = |element: &usize| *element < model.size;
    for (symbol, table) in &model.functions {
        let arity = match symbol {
            FunctionSymbol::Function(_, arity) => *arity,
            _ => 0,
        };
        let fits = |(row, value): (&Vec<usize>, &usize)| {
            row.len() == arity && row.iter().all(inside) && inside(value)
        };
        if !inside(&table.default) || !table.values.iter().all(fits) {
            return Err(Fault::new(format!("the table of {symbol} leaves the domain")));
        }
    }
    for (symbol, rows) in &model.predicates {
        if !rows.iter().all(|row| row.len() == symbol.arity() && row.iter().all(inside)) {
            return Err(Fault::new(format!("the table of {symbol} leaves the domain")));
        }
    }
    let mut evaluation = Evaluation { model, bound: Vec::new(), left: most };
    for (i, premise) in problem.premises().iter().enumerate() {
        if !evaluation.formula(premise)? {
            return Err(Fault::new(format!("premise {} is false", i + 1)));
        }
    }
    match problem.conclusion() {
        Some(conclusion) if evaluation.formula(conclusion)? => Err(Fault::new("the conclusion is true")),
        _ => Ok(()),
    }
}

struct Evaluation<'a> {
    model: &'a Model,
    bound: Vec<(Variable, usize)>,
    left: u64,
}

impl Evaluation<'_> {
    fn formula(&mut self, formula: &Formula) -> Result<bool, Fault> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Fault::new("there is too much to evaluate"))?;
        Ok(match formula {
            Formula::Truth(truth) => *truth,
            Formula::Predicate(p, terms) => {
                self.holds(PredicateSymbol::Predicate(*p, terms.len()), terms.iter())?
            }
            Formula::Relation(Relation::Equals, s, t) => self.term(s)? == self.term(t)?,
            Formula::Relation(Relation::NotEquals, s, t) => self.term(s)? != self.term(t)?,
            Formula::Relation(other, s, t) => self.holds(PredicateSymbol::Relation(*other), [s, t])?,
            Formula::Not(body) => !self.formula(body)?,
            Formula::Binary(Connective::And, left, right) => self.formula(left)? && self.formula(right)?,
            Formula::Binary(Connective::Or, left, right) => self.formula(left)? || self.formula(right)?,
            Formula::Binary(Connective::Implies, left, right) => {
                !self.formula(left)? || self.formula(right)?
            }
            Formula::Binary(Connective::Iff, left, right) => self.formula(left)? == self.formula(right)?,
            Formula::Quantified(quantifier, x, sort, body) => {
                let mut true_of = 0;
                for element in 0..self.model.size {
                    self.bound.push((*x, element));
                    let holds = self.guarded(*quantifier, *sort, element, body);
                    self.bound.pop();
                    true_of += usize::from(holds?);
                    // What is decided is not looked at further.
                    match quantifier {
                        Quantifier::Forall if true_of <= element => return Ok(false),
                        Quantifier::Exists if true_of > 0 => return Ok(true),
                        Quantifier::Exists1 if true_of > 1 => return Ok(false),
                        _ => {}
                    }
                }
                match quantifier {
                    Quantifier::Forall => true,
                    Quantifier::Exists => false,
                    Quantifier::Exists1 => true_of == 1,
                }
            }
        })
    }

    /// The body for an element; outside the sort it is true under ∀ and false under ∃ and ∃!.
    fn guarded(
        &mut self,
        quantifier: Quantifier,
        sort: Option<Sort>,
        element: usize,
        body: &Formula,
    ) -> Result<bool, Fault> {
        if let Some(sort) = sort {
            let members = self.model.predicates.get(&PredicateSymbol::Sort(sort));
            let members = members.ok_or_else(|| Fault::new(format!("S{} has no table", sort.0)))?;
            if !members.contains(&vec![element]) {
                return Ok(quantifier == Quantifier::Forall);
            }
        }
        self.formula(body)
    }

    fn holds<'t>(
        &self,
        predicate: PredicateSymbol,
        terms: impl IntoIterator<Item = &'t Term>,
    ) -> Result<bool, Fault> {
        let row = terms.into_iter().map(|term| self.term(term)).collect::<Result<Vec<_>, _>>()?;
        let rows = self.model.predicates.get(&predicate);
        Ok(rows.ok_or_else(|| Fault::new(format!("{predicate} has no table")))?.contains(&row))
    }

    fn term(&self, term: &Term) -> Result<usize, Fault> {
        let (symbol, terms) = match term {
            Term::Variable(x) => match self.bound.iter().rev().find(|(y, _)| y == x) {
                Some((_, element)) => return Ok(*element),
                None => (FunctionSymbol::Parameter(*x), [].as_slice()),
            },
            Term::Constant(c) => (FunctionSymbol::Constant(*c), [].as_slice()),
            Term::Function(f, terms) => (FunctionSymbol::Function(*f, terms.len()), terms.as_slice()),
        };
        let row = terms.iter().map(|term| self.term(term)).collect::<Result<Vec<_>, _>>()?;
        let table = self.model.functions.get(&symbol);
        Ok(table.ok_or_else(|| Fault::new(format!("{symbol} has no table")))?.value(&row))
    }
}
