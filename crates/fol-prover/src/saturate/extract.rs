//! The steps that led to the empty clause.

use std::collections::BTreeMap;

use super::bank::Id;
use super::clause::{ClauseId, Literal};
use super::{Saturation, Symbol};
use crate::hash::Map;
use crate::logic::{Atom, Clause, Literal as Public, Term};
use crate::proof::{Parent, Rule, Step};

impl Saturation {
    pub(super) fn steps(&self, empty: ClauseId) -> Vec<Step> {
        let mut needed = BTreeMap::new();
        let mut open = vec![empty];
        while let Some(id) = open.pop() {
            let derivation = &self.clauses[id].derivation;
            if derivation.rule.is_some() && needed.insert(id, 0).is_none() {
                open.extend(derivation.parents.iter().map(|parent| parent.clause));
            }
        }
        for (at, number) in needed.values_mut().enumerate() {
            *number = self.inputs + at;
        }
        if needed.is_empty() {
            // The empty clause is one of the problem: the last step repeats it.
            let parents = vec![Parent { step: empty, substitution: Vec::new() }];
            return vec![Step {
                rule: Rule::Simplification,
                parents,
                equality: vec![],
                clause: Clause::default(),
            }];
        }
        needed.keys().map(|id| self.step(*id, &needed)).collect()
    }

    fn step(&self, id: ClauseId, needed: &BTreeMap<ClauseId, usize>) -> Step {
        let clause = &self.clauses[id];
        // Variables of the inference get the numbers of the clause, and further ones.
        let mut names: Map<u32, usize> = clause.derivation.names.iter().copied().zip(0..).collect();
        let mut parents = Vec::new();
        for from in &clause.derivation.parents {
            let substitution = from.terms.iter().map(|term| self.tree(*term, &mut names)).collect();
            parents.push(Parent {
                step: needed.get(&from.clause).copied().unwrap_or(from.clause),
                substitution,
            });
        }
        let mut equality = Vec::new();
        for axiom in &clause.derivation.equality {
            equality.push(Clause(axiom.iter().map(|literal| self.literal(literal, &mut names)).collect()));
        }
        let mut own: Map<u32, usize> = (0..clause.variables).map(|n| (n as u32, n)).collect();
        let literals = clause.literals.iter().map(|literal| self.literal(literal, &mut own)).collect();
        let rule = clause.derivation.rule.unwrap_or(Rule::Simplification);
        Step { rule, parents, equality, clause: Clause(literals) }
    }

    fn literal(&self, literal: &Literal, names: &mut Map<u32, usize>) -> Public {
        let atom = match (literal.is_equation(), self.bank.symbol(literal.left)) {
            (false, Some(head)) => match self.symbols[head as usize - 1] {
                Symbol::Predicate(predicate) => {
                    let terms = self.bank.arguments(literal.left);
                    Atom::Predicate(predicate, terms.iter().map(|term| self.tree(*term, names)).collect())
                }
                Symbol::Function(_) => {
                    Atom::Equal(self.tree(literal.left, names), self.tree(literal.right, names))
                }
            },
            _ => Atom::Equal(self.tree(literal.left, names), self.tree(literal.right, names)),
        };
        Public { positive: literal.positive, atom }
    }

    fn tree(&self, term: Id, names: &mut Map<u32, usize>) -> Term {
        if let Some(variable) = self.bank.as_variable(term) {
            let next = names.len();
            return Term::Variable(*names.entry(variable).or_insert(next));
        }
        let terms = self.bank.arguments(term).iter().map(|term| self.tree(*term, names)).collect();
        match self.bank.symbol(term).and_then(|head| self.symbols.get((head as usize).wrapping_sub(1))) {
            Some(Symbol::Function(symbol)) => Term::Apply(*symbol, terms),
            // Neither the truth nor an atom is part of a term.
            _ => Term::Variable(usize::MAX),
        }
    }
}
