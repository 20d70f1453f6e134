//! A proof from what the propositional solver learned: each learned clause that the refutation needs is a step, whose parents are the
//! instances and the learned clauses that it came from.

use std::collections::BTreeMap;

use super::{EQUALITY, Search, Source};
use crate::logic::{Atom, Clause, Literal, Term};
use crate::proof::{Parent, Rule, Step};
use crate::sat::ClauseId;

impl Search {
    /// Steps to the empty clause. The parents with numbers below that of `clauses` are those clauses.
    pub(super) fn refutation(&self, clauses: &[Clause]) -> Vec<Step> {
        let last = self.solver.refutation().unwrap_or(&[]);
        let mut needed = BTreeMap::new();
        let mut open: Vec<ClauseId> = last.to_vec();
        while let Some(id) = open.pop() {
            let from = self.solver.antecedents(id);
            if !from.is_empty() && needed.insert(id, 0).is_none() {
                open.extend(from);
            }
        }
        // What was learned earlier comes first.
        for (at, number) in needed.values_mut().enumerate() {
            *number = clauses.len() + at;
        }
        let learned = needed.keys().map(|id| {
            let literals = self.solver.literals(*id).iter();
            let clause =
                Clause(literals.map(|lit| self.literal(lit.variable(), lit.is_positive())).collect());
            self.step(self.solver.antecedents(*id), clause, &needed)
        });
        let mut steps: Vec<Step> = learned.collect();
        steps.push(self.step(last, Clause::default(), &needed));
        steps
    }

    fn step(&self, from: &[ClauseId], clause: Clause, needed: &BTreeMap<ClauseId, usize>) -> Step {
        let mut step = Step { rule: Rule::Instances, parents: Vec::new(), equality: Vec::new(), clause };
        // Backwards, units come before what they are used in.
        for id in from.iter().rev() {
            match (needed.get(id), self.sources.get(id)) {
                (Some(&learned), _) => step.parents.push(Parent { step: learned, substitution: Vec::new() }),
                (None, Some(Source::Instance(clause, values))) => {
                    let constant = |value: &u32| Term::constant(self.constants[*value as usize]);
                    let substitution = values.iter().map(constant).collect();
                    let parent = Parent { step: *clause, substitution };
                    if !step.parents.contains(&parent) {
                        step.parents.push(parent);
                    }
                }
                (None, _) => {
                    let literals = self.solver.literals(*id).iter();
                    let literals = literals.map(|lit| self.literal(lit.variable(), lit.is_positive()));
                    step.equality.push(Clause(literals.collect()));
                }
            }
        }
        step
    }

    fn literal(&self, variable: usize, positive: bool) -> Literal {
        let atom = &self.atoms[variable];
        let mut terms: Vec<Term> =
            atom[1..].iter().map(|constant| Term::constant(self.constants[*constant as usize])).collect();
        let atom = match (atom[0], terms.pop()) {
            (EQUALITY, Some(right)) => Atom::Equal(terms.pop().unwrap_or_else(|| right.clone()), right),
            (predicate, last) => {
                terms.extend(last);
                Atom::Predicate(self.predicates[predicate as usize - 1], terms)
            }
        };
        Literal { positive, atom }
    }
}
