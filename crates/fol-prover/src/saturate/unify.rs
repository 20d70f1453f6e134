//! Terms in place of variables: unification, matching, and instances.

use super::bank::{Bank, Id};

/// The variables of a clause are below this; of two clauses the second has its variables shifted by it.
pub(super) const SHIFT: u32 = 256;

/// A unification or an instance that takes more visits than this is given up.
const VISITS: u32 = 20_000;

/// An instance that is deeper than this is given up: what works on terms recurses.
const DEPTH: u32 = 2_000;

const FREE: Id = Id::MAX;

/// What stands for each variable.
#[derive(Debug)]
pub(super) struct Bindings {
    terms: Vec<Id>,
    bound: Vec<u32>,
    visits: u32,
    /// Visits of terms that were not yet counted as steps.
    pub(super) work: u64,
    /// Something was given up: what follows is not all that could be found.
    pub(super) gave_up: bool,
}

impl Bindings {
    pub(super) fn new() -> Self {
        Self { terms: vec![FREE; 2 * SHIFT as usize], bound: Vec::new(), visits: 0, work: 0, gave_up: false }
    }

    pub(super) fn clear(&mut self) {
        for variable in self.bound.drain(..) {
            self.terms[variable as usize] = FREE;
        }
        self.visits = 0;
    }

    /// How many variables are bound, to go back to.
    pub(super) fn mark(&self) -> usize {
        self.bound.len()
    }

    pub(super) fn back(&mut self, mark: usize) {
        while self.bound.len() > mark {
            if let Some(variable) = self.bound.pop() {
                self.terms[variable as usize] = FREE;
            }
        }
    }

    fn bind(&mut self, variable: u32, term: Id) {
        self.terms[variable as usize] = term;
        self.bound.push(variable);
    }

    fn visit(&mut self) -> bool {
        self.visits += 1;
        self.work += 1;
        if self.visits > VISITS {
            self.gave_up = true;
            return false;
        }
        true
    }

    /// What a variable stands for, until it is no bound variable.
    fn resolved(&self, bank: &Bank, mut term: Id) -> Id {
        while let Some(variable) = bank.as_variable(term) {
            match self.terms[variable as usize] {
                FREE => break,
                bound => term = bound,
            }
        }
        term
    }

    /// Makes two terms equal, with the bindings so far.
    pub(super) fn unify(&mut self, bank: &Bank, s: Id, t: Id) -> bool {
        self.work += 1;
        let mut open = vec![(s, t)];
        while let Some((s, t)) = open.pop() {
            let (s, t) = (self.resolved(bank, s), self.resolved(bank, t));
            if s == t {
                continue;
            }
            if !self.visit() {
                return false;
            }
            match (bank.as_variable(s), bank.as_variable(t)) {
                (Some(x), _) => {
                    if self.occurs(bank, x, t) {
                        return false;
                    }
                    self.bind(x, t);
                }
                (None, Some(y)) => {
                    if self.occurs(bank, y, s) {
                        return false;
                    }
                    self.bind(y, s);
                }
                (None, None) => {
                    if bank.symbol(s) != bank.symbol(t) {
                        return false;
                    }
                    open.extend(bank.arguments(s).iter().copied().zip(bank.arguments(t).iter().copied()));
                }
            }
        }
        true
    }

    fn occurs(&mut self, bank: &Bank, variable: u32, term: Id) -> bool {
        let mut open = vec![term];
        while let Some(term) = open.pop() {
            let term = self.resolved(bank, term);
            if bank.is_ground(term) {
                continue;
            }
            if bank.as_variable(term) == Some(variable) || !self.visit() {
                return true;
            }
            open.extend(bank.arguments(term));
        }
        false
    }

    /// Binds the variables of a pattern so that it becomes the term, in which variables count as constants.
    pub(super) fn matches(&mut self, bank: &Bank, pattern: Id, term: Id) -> bool {
        self.work += 1;
        if let Some(variable) = bank.as_variable(pattern) {
            return match self.terms[variable as usize] {
                FREE => {
                    self.bind(variable, term);
                    true
                }
                bound => bound == term,
            };
        }
        if bank.is_ground(pattern) {
            return pattern == term;
        }
        if bank.symbol(pattern) != bank.symbol(term) || bank.weight(pattern) > bank.weight(term) {
            return false;
        }
        let arity = bank.arguments(pattern).len();
        (0..arity).all(|at| self.matches(bank, bank.arguments(pattern)[at], bank.arguments(term)[at]))
    }

    /// The instance under a unifier, if it is not too large or too deep.
    pub(super) fn instance(&mut self, bank: &mut Bank, term: Id) -> Option<Id> {
        self.instance_below(bank, term, 0)
    }

    fn instance_below(&mut self, bank: &mut Bank, term: Id, depth: u32) -> Option<Id> {
        if bank.is_ground(term) {
            return Some(term);
        }
        if depth > DEPTH || !self.visit() {
            self.gave_up = true;
            return None;
        }
        let resolved = self.resolved(bank, term);
        if bank.as_variable(resolved).is_some() {
            return Some(resolved);
        }
        let Some(symbol) = bank.symbol(resolved) else { return Some(resolved) };
        let count = bank.arguments(resolved).len();
        let mut arguments = Vec::with_capacity(count);
        for at in 0..count {
            arguments.push(self.instance_below(bank, bank.arguments(resolved)[at], depth + 1)?);
        }
        Some(bank.apply(symbol, &arguments))
    }

    /// The instance under a matcher, whose terms are not looked into. An unbound variable stays.
    pub(super) fn matched(&self, bank: &mut Bank, pattern: Id) -> Id {
        if bank.is_ground(pattern) {
            return pattern;
        }
        if let Some(variable) = bank.as_variable(pattern) {
            return match self.terms[variable as usize] {
                FREE => pattern,
                bound => bound,
            };
        }
        let Some(symbol) = bank.symbol(pattern) else { return pattern };
        let count = bank.arguments(pattern).len();
        let mut arguments = Vec::with_capacity(count);
        for at in 0..count {
            arguments.push(self.matched(bank, bank.arguments(pattern)[at]));
        }
        bank.apply(symbol, &arguments)
    }

    /// Shifts the variables of a term.
    pub(super) fn shifted(bank: &mut Bank, term: Id) -> Id {
        if bank.is_ground(term) {
            return term;
        }
        if let Some(variable) = bank.as_variable(term) {
            return bank.variable(variable + SHIFT);
        }
        let Some(symbol) = bank.symbol(term) else { return term };
        let count = bank.arguments(term).len();
        let mut arguments = Vec::with_capacity(count);
        for at in 0..count {
            let argument = bank.arguments(term)[at];
            arguments.push(Self::shifted(bank, argument));
        }
        bank.apply(symbol, &arguments)
    }
}
