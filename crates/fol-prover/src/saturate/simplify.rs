//! What makes clauses smaller or needless: rewriting by equations, units that contradict literals, tautologies, subsumption.

use super::bank::{Id, TOP};
use super::clause::{ClauseId, Draft, From, Literal, bit};
use super::order::greater;
use super::{Budget, Saturation, Spent};
use crate::proof::Rule;

/// A clause is rewritten at most so many times.
const REWRITES: usize = 200;
/// A term is put for a variable if the symbols of the clause times those of the term are at most so many.
const GROWTH: u64 = 20_000;
/// A subsumption that takes more trials than this is given up: the clause stays.
const TRIALS: u32 = 2_000;

impl Saturation {
    /// A draft in its simplest form; none if it says nothing new. Long clauses are compared with it only where `fully`.
    pub(super) fn simplified(
        &mut self,
        mut draft: Draft,
        fully: bool,
        budget: &mut Budget,
    ) -> Result<Option<Draft>, Spent> {
        for _ in 0..REWRITES {
            if !self.tidy(&mut draft) {
                return Ok(None);
            }
            if !self.rewrite(&mut draft) {
                break;
            }
        }
        if !self.tidy(&mut draft) {
            return Ok(None);
        }
        self.cut(&mut draft);
        if draft.literals.is_empty() {
            return Ok(Some(draft));
        }
        budget.spend(self.index.long.len() as u64 / 512)?;
        let own =
            draft.parents.first().map(|parent| parent.clause).filter(|_| draft.rule == Rule::Simplification);
        let subsumed = self.is_subsumed(&draft.literals, own, fully);
        Ok((!subsumed).then_some(draft))
    }

    /// Drops what is false or said twice, and puts `t` for x where `x ≠ t`; false if the clause is a tautology.
    fn tidy(&mut self, draft: &mut Draft) -> bool {
        let mut at = 0;
        while at < draft.literals.len() {
            let literal = draft.literals[at];
            if literal.left == literal.right {
                if literal.positive {
                    return false;
                }
                draft.literals.remove(at);
                continue;
            }
            let before = &draft.literals[..at];
            if let Some(same) = before.iter().find(|other| other.same_atom(&literal)) {
                if same.positive != literal.positive {
                    return false;
                }
                draft.literals.remove(at);
                continue;
            }
            if !literal.positive && literal.is_equation() {
                let (l, r) = (literal.left, literal.right);
                let free = |x: Id, t: Id| self.bank.as_variable(x).is_some() && !self.bank.contains(t, x);
                let pair = if free(l, r) {
                    Some((l, r))
                } else if free(r, l) {
                    Some((r, l))
                } else {
                    None
                };
                if let Some((x, t)) = pair.filter(|(_, t)| self.may_put(draft, *t)) {
                    self.put(draft, x, t);
                    at = 0;
                    continue;
                }
            }
            at += 1;
        }
        true
    }

    /// Whether a draft stays of a reasonable size if a term is put for a variable. Without that bound a chain of `x ≠ f(y, y)`
    /// doubles terms once for each of its literals.
    fn may_put(&self, draft: &Draft, t: Id) -> bool {
        let literals = draft.literals.iter().map(|literal| literal.weight(&self.bank));
        let terms = draft.parents.iter().flat_map(|parent| &parent.terms).map(|term| self.bank.weight(*term));
        let all: u64 = literals.chain(terms).map(u64::from).sum();
        all.saturating_mul(u64::from(self.bank.weight(t))) <= GROWTH
    }

    /// Puts a term for a variable, everywhere.
    fn put(&mut self, draft: &mut Draft, x: Id, t: Id) {
        let bank = &mut self.bank;
        let mut change = |literal: &mut Literal| {
            literal.left = bank.replaced(literal.left, x, t);
            literal.right = bank.replaced(literal.right, x, t);
        };
        draft.literals.iter_mut().for_each(&mut change);
        draft.equality.iter_mut().flatten().for_each(change);
        for term in draft.parents.iter_mut().flat_map(|parent| &mut parent.terms) {
            *term = self.bank.replaced(*term, x, t);
        }
    }

    /// Rewrites one part by one equation; false if nothing can be.
    fn rewrite(&mut self, draft: &mut Draft) -> bool {
        if self.index.rewrites.is_empty() {
            return false;
        }
        for at in 0..draft.literals.len() {
            let literal = draft.literals[at];
            let mut parts = Vec::new();
            self.terms(&literal, &mut parts);
            for part in parts {
                let Some((from, new)) = self.normal(part) else { continue };
                let left = self.bank.replaced(literal.left, part, new);
                let right = self.bank.replaced(literal.right, part, new);
                let changed = Literal { left, right, ..literal };
                let equation = Literal { positive: false, left: part, right: new };
                draft.equality.push([equation, literal.negated(), changed]);
                draft.parents.push(from);
                draft.literals[at] = changed;
                return true;
            }
        }
        false
    }

    /// Adds the terms of a literal that are no variables; an atom is none.
    fn terms(&self, literal: &Literal, parts: &mut Vec<Id>) {
        if literal.is_equation() {
            self.bank.parts(literal.left, parts);
            self.bank.parts(literal.right, parts);
        } else {
            self.bank.arguments(literal.left).iter().for_each(|term| self.bank.parts(*term, parts));
        }
    }

    /// A smaller term that equals a part, and the equation.
    fn normal(&mut self, part: Id) -> Option<(From, Id)> {
        for head in [self.bank.symbol(part), None] {
            let count = self.index.rewrites.get(&head).map_or(0, Vec::len);
            for at in 0..count {
                let Some(rewrite) = self.index.rewrites.get(&head).map(|all| all[at]) else { break };
                if !self.clauses[rewrite.clause].active {
                    continue;
                }
                self.bindings.clear();
                if !self.bindings.matches(&self.bank, rewrite.left, part) {
                    continue;
                }
                let new = self.bindings.matched(&mut self.bank, rewrite.right);
                if !rewrite.oriented && !greater(&self.bank, &self.rank, part, new) {
                    continue;
                }
                return Some((self.matched_parent(rewrite.clause), new));
            }
        }
        None
    }

    /// A clause under the matcher.
    fn matched_parent(&mut self, clause: ClauseId) -> From {
        let mut terms = Vec::with_capacity(self.clauses[clause].variables);
        for n in 0..self.clauses[clause].variables as u32 {
            let variable = self.bank.variable(n);
            terms.push(self.bindings.matched(&mut self.bank, variable));
        }
        From { clause, terms }
    }

    /// Drops literals that active units contradict.
    fn cut(&mut self, draft: &mut Draft) {
        let mut at = 0;
        while at < draft.literals.len() {
            match self.unit_against(draft.literals[at]) {
                Some(from) => {
                    draft.parents.push(from);
                    draft.literals.remove(at);
                }
                None => at += 1,
            }
        }
    }

    fn unit_against(&mut self, literal: Literal) -> Option<From> {
        let head = if literal.is_equation() { 0 } else { self.bank.symbol(literal.left)? };
        let key = (head, !literal.positive);
        for at in 0..self.index.units.get(&key).map_or(0, Vec::len) {
            let Some(unit) = self.index.units.get(&key).map(|all| all[at]) else { break };
            if !self.clauses[unit].active {
                continue;
            }
            let other = self.clauses[unit].literals[0];
            if self.matches_literal(&other, &literal) {
                return Some(self.matched_parent(unit));
            }
        }
        None
    }

    /// Whether an atom is an instance of another, on either side.
    fn matches_literal(&mut self, pattern: &Literal, literal: &Literal) -> bool {
        for (left, right) in [(literal.left, literal.right), (literal.right, literal.left)] {
            self.bindings.clear();
            if self.bindings.matches(&self.bank, pattern.left, left)
                && self.bindings.matches(&self.bank, pattern.right, right)
            {
                return true;
            }
            if !literal.is_equation() {
                break;
            }
        }
        false
    }

    /// Whether an active clause says as much.
    fn is_subsumed(&mut self, literals: &[Literal], own: Option<ClauseId>, fully: bool) -> bool {
        for literal in literals {
            let head = if literal.is_equation() { 0 } else { self.bank.symbol(literal.left).unwrap_or(0) };
            let key = (head, literal.positive);
            for at in 0..self.index.units.get(&key).map_or(0, Vec::len) {
                let Some(unit) = self.index.units.get(&key).map(|all| all[at]) else { break };
                let clause = &self.clauses[unit];
                if clause.active && Some(unit) != own {
                    let pattern = clause.literals[0];
                    if self.matches_literal(&pattern, literal) {
                        return true;
                    }
                }
            }
        }
        // An equation of one pair of parts makes an equation of what contains them hold; that is left to rewriting.
        if !fully && self.index.long.len() > 4_000 {
            return false;
        }
        let mask = literals.iter().fold(0, |mask, literal| mask | bit(&self.bank, literal));
        let weight = literals.iter().map(|literal| literal.weight(&self.bank)).fold(0, u32::saturating_add);
        for at in 0..self.index.long.len() {
            let id = self.index.long[at];
            let clause = &self.clauses[id];
            let fits = clause.active
                && Some(id) != own
                && clause.mask & !mask == 0
                && clause.weight <= weight
                && clause.literals.len() <= literals.len();
            if fits {
                let pattern = clause.literals.clone();
                if self.subsumes(&pattern, literals) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether some instance of one clause is part of another, no literal used twice.
    fn subsumes(&mut self, pattern: &[Literal], literals: &[Literal]) -> bool {
        self.bindings.clear();
        let mut trials = 0;
        let mut used = vec![false; literals.len()];
        self.subsumes_from(pattern, 0, literals, &mut used, &mut trials)
    }

    fn subsumes_from(
        &mut self,
        pattern: &[Literal],
        at: usize,
        literals: &[Literal],
        used: &mut [bool],
        trials: &mut u32,
    ) -> bool {
        let Some(wanted) = pattern.get(at) else { return true };
        for (place, literal) in literals.iter().enumerate() {
            if used[place]
                || wanted.positive != literal.positive
                || wanted.is_equation() != literal.is_equation()
            {
                continue;
            }
            let pairs = [(literal.left, literal.right), (literal.right, literal.left)];
            let ways = if literal.is_equation() { &pairs[..] } else { &pairs[..1] };
            for &(left, right) in ways {
                *trials += 1;
                if *trials > TRIALS {
                    return false;
                }
                let mark = self.bindings.mark();
                let fits = self.bindings.matches(&self.bank, wanted.left, left)
                    && (right == TOP || self.bindings.matches(&self.bank, wanted.right, right));
                if fits {
                    used[place] = true;
                    if self.subsumes_from(pattern, at + 1, literals, used, trials) {
                        return true;
                    }
                    used[place] = false;
                }
                self.bindings.back(mark);
            }
        }
        false
    }

    /// Takes out active clauses that a new one makes needless; those that it would rewrite wait again.
    pub(super) fn simplify_active(&mut self, given: ClauseId, budget: &mut Budget) -> Result<(), Spent> {
        budget.spend(self.index.all.len() as u64 / 512)?;
        let pattern = self.clauses[given].literals.clone();
        let (mask, weight) = (self.clauses[given].mask, self.clauses[given].weight);
        let rewrites = match pattern.as_slice() {
            [literal] if literal.positive && literal.is_equation() => {
                vec![(literal.left, literal.right), (literal.right, literal.left)]
            }
            _ => vec![],
        };
        for at in 0..self.index.all.len() {
            self.settle(budget)?;
            let id = self.index.all[at];
            let clause = &self.clauses[id];
            if !clause.active {
                continue;
            }
            let literals = clause.literals.clone();
            let fits = mask & !clause.mask == 0 && weight <= clause.weight && pattern.len() <= literals.len();
            if fits && self.subsumes(&pattern, &literals) {
                self.clauses[id].active = false;
                continue;
            }
            if rewrites.iter().any(|(left, right)| self.would_rewrite(*left, *right, &literals)) {
                self.wait_again(id);
            }
        }
        let clauses = &self.clauses;
        self.index.all.retain(|id| clauses[*id].active);
        self.index.long.retain(|id| clauses[*id].active);
        Ok(())
    }

    fn would_rewrite(&mut self, left: Id, right: Id, literals: &[Literal]) -> bool {
        let mut parts = Vec::new();
        literals.iter().for_each(|literal| self.terms(literal, &mut parts));
        let least = self.bank.weight(left);
        parts.into_iter().any(|part| {
            if self.bank.weight(part) < least {
                return false;
            }
            self.bindings.clear();
            if !self.bindings.matches(&self.bank, left, part) {
                return false;
            }
            let new = self.bindings.matched(&mut self.bank, right);
            greater(&self.bank, &self.rank, part, new)
        })
    }
}
