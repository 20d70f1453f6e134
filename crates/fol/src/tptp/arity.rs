//! Which predicate and function indices a text uses with more than one arity.
//!
//! TPTP wants one arity for each name, so such an index is written with its arity as a suffix.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Definition, Formula, Statement, Term, Text};

/// The overloaded indices of a text.
#[derive(Default)]
pub(super) struct Overloaded {
    predicates: Uses,
    functions: Uses,
}

/// The arities of each index.
#[derive(Default)]
struct Uses(BTreeMap<u64, BTreeSet<usize>>);

impl Uses {
    fn see(&mut self, index: u64, arity: usize) {
        self.0.entry(index).or_default().insert(arity);
    }

    fn overloaded(&self, index: u64) -> bool {
        self.0.get(&index).is_some_and(|arities| arities.len() > 1)
    }
}

impl Overloaded {
    pub(super) fn of(text: &Text) -> Self {
        let mut uses = Self::default();
        for statement in &text.statements {
            uses.statement(statement);
        }
        uses
    }

    pub(super) fn predicate(&self, index: u64) -> bool {
        self.predicates.overloaded(index)
    }

    pub(super) fn function(&self, index: u64) -> bool {
        self.functions.overloaded(index)
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Formula(f) => self.formula(f),
            Statement::Sequent(_, premises, conclusion) => {
                premises.iter().chain(conclusion).for_each(|f| self.formula(f));
            }
            Statement::Equivalence(left, right) => {
                self.formula(left);
                self.formula(right);
            }
            Statement::Definition(Definition::Predicate(p, parameters, body)) => {
                self.predicates.see(p.0, parameters.len());
                self.formula(body);
            }
            Statement::Definition(Definition::Function(f, parameters, body)) => {
                self.functions.see(f.0, parameters.len());
                self.term(body);
            }
            Statement::Definition(Definition::Constant(_, body)) => self.term(body),
        }
    }

    fn formula(&mut self, formula: &Formula) {
        match formula {
            Formula::Truth(_) => {}
            Formula::Predicate(p, arguments) => {
                self.predicates.see(p.0, arguments.len());
                arguments.iter().for_each(|t| self.term(t));
            }
            Formula::Relation(_, left, right) => {
                self.term(left);
                self.term(right);
            }
            Formula::Not(body) | Formula::Quantified(_, _, _, body) => self.formula(body),
            Formula::Binary(_, left, right) => {
                self.formula(left);
                self.formula(right);
            }
        }
    }

    fn term(&mut self, term: &Term) {
        if let Term::Function(f, arguments) = term {
            self.functions.see(f.0, arguments.len());
            arguments.iter().for_each(|t| self.term(t));
        }
    }
}
