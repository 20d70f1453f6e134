//! Inferences: resolution, superposition, factoring, and the two rules for equality.

use super::bank::{Id, TOP};
use super::clause::{ClauseId, Draft, From, Literal};
use super::index::{Place, Rewrite};
use super::order::{greater, literal_greater};
use super::unify::Bindings;
use super::{Budget, HEAVY, SHIFT, Saturation, Spent};
use crate::proof::Rule;

/// What has more symbols than this is not even simplified.
const VAST: u32 = 8 * HEAVY;

impl Saturation {
    /// Chooses the literals that take part in inferences: a negative one, the heaviest, or else the greatest ones.
    pub(super) fn choose(&mut self, id: ClauseId) {
        let literals = &self.clauses[id].literals;
        let negative = (0..literals.len()).filter(|at| !literals[*at].positive);
        let heaviest = negative.max_by_key(|at| (literals[*at].weight(&self.bank), std::cmp::Reverse(*at)));
        let eligible = match heaviest {
            Some(at) => vec![at],
            None => {
                let below = |at: &usize| {
                    literals
                        .iter()
                        .any(|other| literal_greater(&self.bank, &self.rank, other, &literals[*at]))
                };
                (0..literals.len()).filter(|at| !below(at)).collect()
            }
        };
        self.clauses[id].eligible = eligible;
    }

    /// The sides of an equation that are not less than the other, each with the other.
    fn sides(&self, literal: &Literal) -> Vec<(Id, Id)> {
        let (l, r) = (literal.left, literal.right);
        if greater(&self.bank, &self.rank, l, r) {
            vec![(l, r)]
        } else if greater(&self.bank, &self.rank, r, l) {
            vec![(r, l)]
        } else {
            vec![(l, r), (r, l)]
        }
    }

    /// The parts of an eligible literal into which an equation may be put.
    fn parts(&self, literal: &Literal) -> Vec<Id> {
        let mut parts = Vec::new();
        if literal.is_equation() {
            for (side, _) in self.sides(literal) {
                self.bank.parts(side, &mut parts);
            }
        } else {
            self.bank.arguments(literal.left).iter().for_each(|term| self.bank.parts(*term, &mut parts));
        }
        parts
    }

    /// Adds an active clause to the tables.
    pub(super) fn insert(&mut self, id: ClauseId) {
        self.clauses[id].active = true;
        self.index.all.push(id);
        let literals = self.clauses[id].literals.clone();
        for &at in &self.clauses[id].eligible.clone() {
            let literal = literals[at];
            let place = |term| Place { clause: id, literal: at, term };
            if literal.is_equation() {
                if literal.positive {
                    for (side, _) in self.sides(&literal) {
                        self.index.sides.entry(self.bank.symbol(side)).or_default().push(place(side));
                    }
                }
            } else if let Some(head) = self.bank.symbol(literal.left) {
                self.index.atoms.entry((head, literal.positive)).or_default().push(place(literal.left));
            }
            for part in self.parts(&literal) {
                if let Some(head) = self.bank.symbol(part) {
                    self.index.parts.entry(head).or_default().push(place(part));
                }
            }
        }
        if let [literal] = literals.as_slice() {
            let head = if literal.is_equation() { 0 } else { self.bank.symbol(literal.left).unwrap_or(0) };
            self.index.units.entry((head, literal.positive)).or_default().push(id);
            if literal.positive && literal.is_equation() {
                let sides = self.sides(literal);
                let oriented = sides.len() == 1;
                for (left, right) in sides {
                    let rewrite = Rewrite { clause: id, left, right, oriented };
                    self.index.rewrites.entry(self.bank.symbol(left)).or_default().push(rewrite);
                }
            }
        } else {
            self.index.long.push(id);
        }
    }

    /// Draws all inferences of an active clause with the active ones, itself among them.
    pub(super) fn infer(&mut self, given: ClauseId, budget: &mut Budget) -> Result<(), Spent> {
        let literals = self.clauses[given].literals.clone();
        let shifted: Vec<Literal> = literals
            .iter()
            .filter_map(|literal| literal.map(|term| Some(Bindings::shifted(&mut self.bank, term))))
            .collect();
        for &at in &self.clauses[given].eligible.clone() {
            let literal = shifted[at];
            if literal.is_equation() {
                if literal.positive {
                    for (left, right) in self.sides(&literal) {
                        self.superpose_from(given, &shifted, at, left, right, budget)?;
                    }
                    self.factor_equation(given, &literals, at, budget)?;
                } else {
                    self.resolve_equality(given, &literals, at, budget)?;
                }
            } else {
                self.resolve(given, &shifted, at, budget)?;
                if literal.positive {
                    self.factor(given, &literals, at, budget)?;
                }
            }
            for part in self.parts(&literal) {
                self.superpose_into(given, &shifted, at, part, budget)?;
            }
            if self.empty.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn active(&self, places: Option<&Vec<Place>>) -> Vec<Place> {
        places.map_or(Vec::new(), |places| {
            places.iter().filter(|place| self.clauses[place.clause].active).copied().collect()
        })
    }

    fn resolve(
        &mut self,
        given: ClauseId,
        shifted: &[Literal],
        at: usize,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        let literal = shifted[at];
        let Some(head) = self.bank.symbol(literal.left) else { return Ok(()) };
        for place in self.active(self.index.atoms.get(&(head, !literal.positive))) {
            self.bindings.clear();
            if !self.bindings.unify(&self.bank, literal.left, place.term) {
                continue;
            }
            let mut rest: Vec<Literal> = without(shifted, at);
            rest.extend(without(&self.clauses[place.clause].literals, place.literal));
            self.conclude(Rule::Resolution, rest, &[(given, true), (place.clause, false)], vec![], budget)?;
        }
        Ok(())
    }

    /// Equal atoms of one clause.
    fn factor(
        &mut self,
        given: ClauseId,
        literals: &[Literal],
        at: usize,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        for other in 0..literals.len() {
            let (one, two) = (literals[at], literals[other]);
            if other == at || two.is_equation() || !two.positive {
                continue;
            }
            self.bindings.clear();
            if self.bindings.unify(&self.bank, one.left, two.left) {
                self.conclude(Rule::Factoring, without(literals, other), &[(given, false)], vec![], budget)?;
            }
        }
        Ok(())
    }

    fn resolve_equality(
        &mut self,
        given: ClauseId,
        literals: &[Literal],
        at: usize,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        self.bindings.clear();
        if self.bindings.unify(&self.bank, literals[at].left, literals[at].right) {
            self.conclude(
                Rule::EqualityResolution,
                without(literals, at),
                &[(given, false)],
                vec![],
                budget,
            )?;
        }
        Ok(())
    }

    /// From `s = t ∨ s′ = t′` with equal s and s′: `s = t′ ∨ t ≠ t′`.
    fn factor_equation(
        &mut self,
        given: ClauseId,
        literals: &[Literal],
        at: usize,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        for other in 0..literals.len() {
            if other == at || !literals[other].positive || !literals[other].is_equation() {
                continue;
            }
            let (o, p) = (literals[other].left, literals[other].right);
            for (s, t) in self.sides(&literals[at]) {
                for (u, v) in [(o, p), (p, o)] {
                    self.bindings.clear();
                    if !self.bindings.unify(&self.bank, s, u) {
                        continue;
                    }
                    let denied = Literal { positive: false, left: t, right: v };
                    let kept = Literal { positive: true, left: s, right: v };
                    let axiom = [denied, Literal { positive: false, left: s, right: t }, kept];
                    let mut rest: Vec<Literal> = (0..literals.len())
                        .filter(|i| *i != at && *i != other)
                        .map(|i| literals[i])
                        .collect();
                    rest.extend([denied, kept]);
                    self.conclude(Rule::EqualityFactoring, rest, &[(given, false)], vec![axiom], budget)?;
                }
            }
        }
        Ok(())
    }

    /// The given equation in parts of active clauses.
    fn superpose_from(
        &mut self,
        given: ClauseId,
        shifted: &[Literal],
        at: usize,
        left: Id,
        right: Id,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        let places = match self.bank.symbol(left) {
            Some(head) => self.active(self.index.parts.get(&head)),
            // A variable is equal to every part.
            None => {
                let mut heads: Vec<u32> = (1..self.rank.len() as u32).collect();
                heads.retain(|head| self.index.parts.contains_key(head));
                heads.iter().flat_map(|head| self.active(self.index.parts.get(head))).collect()
            }
        };
        for place in places {
            let into = self.clauses[place.clause].literals.clone();
            let (from, into) =
                ((given, shifted, at, true), (place.clause, into.as_slice(), place.literal, false));
            self.superpose(from, into, left, right, place.term, budget)?;
        }
        Ok(())
    }

    /// Active equations in a part of the given clause.
    fn superpose_into(
        &mut self,
        given: ClauseId,
        shifted: &[Literal],
        at: usize,
        part: Id,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        let mut places = self.active(self.index.sides.get(&self.bank.symbol(part)));
        places.extend(self.active(self.index.sides.get(&None)));
        for place in places {
            let from = self.clauses[place.clause].literals.clone();
            let equation = from[place.literal];
            let right = if equation.left == place.term { equation.right } else { equation.left };
            let (from, into) =
                ((place.clause, from.as_slice(), place.literal, false), (given, shifted, at, true));
            self.superpose(from, into, place.term, right, part, budget)?;
        }
        Ok(())
    }

    fn superpose(
        &mut self,
        (from, from_literals, from_at, from_shifted): (ClauseId, &[Literal], usize, bool),
        (into, into_literals, into_at, into_shifted): (ClauseId, &[Literal], usize, bool),
        left: Id,
        right: Id,
        part: Id,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        self.bindings.clear();
        if !self.bindings.unify(&self.bank, left, part) {
            return Ok(());
        }
        let Some([old, new]) = self.instances([left, right]) else { return Ok(()) };
        if self.bank.weight(old).max(self.bank.weight(new)) > VAST {
            self.incomplete = true;
            return Ok(());
        }
        if greater(&self.bank, &self.rank, new, old) {
            return Ok(());
        }
        let target = into_literals[into_at];
        let Some([left, right]) = self.instances([target.left, target.right]) else { return Ok(()) };
        let target = Literal { left, right, ..target };
        let changed = Literal {
            left: self.bank.replaced(left, old, new),
            right: self.bank.replaced(right, old, new),
            ..target
        };
        let axiom = [Literal { positive: false, left: old, right: new }, target.negated(), changed];
        let mut rest = without(into_literals, into_at);
        rest.push(changed);
        rest.extend(without(from_literals, from_at));
        let parents = [(from, from_shifted), (into, into_shifted)];
        self.conclude(Rule::Superposition, rest, &parents, vec![axiom], budget)
    }

    fn instances(&mut self, terms: [Id; 2]) -> Option<[Id; 2]> {
        let [one, other] = terms;
        Some([self.bindings.instance(&mut self.bank, one)?, self.bindings.instance(&mut self.bank, other)?])
    }

    /// Makes a clause of literals under the unifier, and keeps it if it says something new.
    fn conclude(
        &mut self,
        rule: Rule,
        literals: Vec<Literal>,
        parents: &[(ClauseId, bool)],
        equality: Vec<[Literal; 3]>,
        budget: &mut Budget,
    ) -> Result<(), Spent> {
        budget.spend(1)?;
        self.settle(budget)?;
        let draft = self.draft(rule, literals, parents, equality);
        let is_vast = |draft: &Draft| draft.literals.iter().any(|literal| literal.weight(&self.bank) > VAST);
        let Some(draft) = draft.filter(|draft| !is_vast(draft)) else {
            self.incomplete = true;
            return Ok(());
        };
        if let Some(draft) = self.simplified(draft, false, budget)? {
            if self.is_too_large(&draft.literals) {
                self.incomplete = true;
            } else {
                self.finish(draft);
            }
        }
        Ok(())
    }

    fn draft(
        &mut self,
        rule: Rule,
        literals: Vec<Literal>,
        parents: &[(ClauseId, bool)],
        equality: Vec<[Literal; 3]>,
    ) -> Option<Draft> {
        let (bindings, bank) = (&mut self.bindings, &mut self.bank);
        let mut place = |literal: Literal| literal.map(|term| bindings.instance(bank, term));
        let literals = literals.into_iter().map(&mut place).collect::<Option<Vec<_>>>()?;
        let mut axioms = Vec::with_capacity(equality.len());
        for [a, b, c] in equality {
            axioms.push([place(a)?, place(b)?, place(c)?]);
        }
        let mut from = Vec::with_capacity(parents.len());
        for &(clause, is_shifted) in parents {
            let shift = if is_shifted { SHIFT } else { 0 };
            let mut terms = Vec::with_capacity(self.clauses[clause].variables);
            for n in 0..self.clauses[clause].variables as u32 {
                let variable = self.bank.variable(n + shift);
                terms.push(self.bindings.instance(&mut self.bank, variable)?);
            }
            from.push(From { clause, terms });
        }
        Some(Draft { rule, literals, parents: from, equality: axioms })
    }
}

/// The literals but one.
fn without(literals: &[Literal], at: usize) -> Vec<Literal> {
    let mut rest = literals.to_vec();
    rest.remove(at);
    rest
}

/// An atom equals the truth on the right.
const _: () = assert!(TOP == 0);
