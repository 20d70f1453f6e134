//! Clauses of the search, and where each came from.

use super::bank::{Bank, Id, TOP};
use crate::proof::Rule;

/// An equation or its negation. An atom of a predicate equals the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) positive: bool,
    pub(super) left: Id,
    pub(super) right: Id,
}

impl Literal {
    pub(super) fn is_equation(&self) -> bool {
        self.right != TOP
    }

    pub(super) fn negated(self) -> Self {
        Self { positive: !self.positive, ..self }
    }

    /// Equal up to the order of the sides.
    pub(super) fn same_atom(&self, other: &Self) -> bool {
        (self.left, self.right) == (other.left, other.right)
            || (self.left, self.right) == (other.right, other.left)
    }

    pub(super) fn weight(&self, bank: &Bank) -> u32 {
        let right = if self.is_equation() { bank.weight(self.right).saturating_add(1) } else { 0 };
        bank.weight(self.left).saturating_add(right)
    }

    pub(super) fn map(self, mut change: impl FnMut(Id) -> Option<Id>) -> Option<Self> {
        let right = if self.is_equation() { change(self.right)? } else { TOP };
        Some(Self { positive: self.positive, left: change(self.left)?, right })
    }
}

pub(super) type ClauseId = usize;

/// An instance of a clause: the terms for its variables.
#[derive(Debug, Clone)]
pub(super) struct From {
    pub(super) clause: ClauseId,
    pub(super) terms: Vec<Id>,
}

/// Where a clause came from. Its terms are over the variables of the inference.
#[derive(Debug, Clone)]
pub(super) struct Derivation {
    /// None for a clause of the problem.
    pub(super) rule: Option<Rule>,
    pub(super) parents: Vec<From>,
    pub(super) equality: Vec<[Literal; 3]>,
    /// Of each variable of the clause the one of the inference.
    pub(super) names: Vec<u32>,
}

/// A clause that is kept.
#[derive(Debug)]
pub(super) struct Clause {
    pub(super) literals: Vec<Literal>,
    pub(super) variables: usize,
    pub(super) weight: u32,
    /// Of which heads and signs there are literals.
    pub(super) mask: u64,
    /// The literals that take part in inferences, once the clause is active.
    pub(super) eligible: Vec<usize>,
    pub(super) active: bool,
    pub(super) derivation: Derivation,
}

/// A clause in the making.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) rule: Rule,
    pub(super) literals: Vec<Literal>,
    pub(super) parents: Vec<From>,
    pub(super) equality: Vec<[Literal; 3]>,
}

/// A bit for a head and a sign.
pub(super) fn bit(bank: &Bank, literal: &Literal) -> u64 {
    let head = if literal.is_equation() { 0 } else { bank.symbol(literal.left).unwrap_or(0) };
    1 << (2 * (head % 32) + u32::from(literal.positive))
}
