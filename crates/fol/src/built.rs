//! What readers build: trees, or nothing but the events that a walk of the tree would give.
//!
//! A reader says how a thing is made of its parts and leaves it to a [`Make`] whether it is made. So one
//! machine reads formulas into trees ([`Trees`]) and, where only names and places count, without any.

use crate::ast::{Connective, Formula, Quantifier, Sort, Variable};
use crate::walk::Event;

/// What is made of what is read.
pub(crate) trait Make {
    /// What stands where trees have a `T`.
    type Of<T>;

    /// Makes a thing without parts.
    fn make<T>(thing: impl FnOnce() -> T) -> Self::Of<T>;

    /// Makes a thing of its two parts.
    fn both<A, B, T>(a: Self::Of<A>, b: Self::Of<B>, thing: impl FnOnce(A, B) -> T) -> Self::Of<T>;

    /// Makes a list.
    fn all<T>(parts: Vec<Self::Of<T>>) -> Self::Of<Vec<T>>;

    /// Makes a thing of its only part.
    fn map<A, T>(part: Self::Of<A>, thing: impl FnOnce(A) -> T) -> Self::Of<T> {
        Self::both(part, Self::make(|| ()), |part, ()| thing(part))
    }

    /// The next event of canonical tokens, with what the tokens up to it say.
    fn note(&mut self, _event: Event) {}

    /// The innermost quantifier has its whole formula.
    fn leave(&mut self) {}
}

/// Makes trees.
#[derive(Debug)]
pub(crate) struct Trees;

impl Make for Trees {
    type Of<T> = T;

    fn make<T>(thing: impl FnOnce() -> T) -> T {
        thing()
    }

    fn both<A, B, T>(a: A, b: B, thing: impl FnOnce(A, B) -> T) -> T {
        thing(a, b)
    }

    fn all<T>(parts: Vec<T>) -> Vec<T> {
        parts
    }
}

/// A complete formula inside a formula, for readers that learn of parentheses late.
pub(crate) struct Built<M: Make = Trees> {
    pub(crate) formula: M::Of<Formula>,
    /// How many nodes enclose its innermost node.
    pub(crate) height: usize,
    /// A binary formula whose own parentheses have not been read.
    pub(crate) bare: bool,
}

impl<M: Make> Built<M> {
    /// An atom whose terms are so deep.
    pub(crate) fn atom(formula: M::Of<Formula>, height: usize) -> Self {
        Self { formula, height, bare: false }
    }

    pub(crate) fn negated(self) -> Self {
        let formula = M::map(self.formula, |operand| Formula::Not(Box::new(operand)));
        Self { formula, height: self.height + 1, bare: false }
    }

    pub(crate) fn quantified(self, quantifier: Quantifier, variable: Variable, sort: Option<Sort>) -> Self {
        let whole = |body| Formula::Quantified(quantifier, variable, sort, Box::new(body));
        Self { formula: M::map(self.formula, whole), height: self.height + 1, bare: false }
    }

    pub(crate) fn joined(connective: Connective, left: Self, right: Self) -> Self {
        let whole = |left, right| Formula::Binary(connective, Box::new(left), Box::new(right));
        let height = left.height.max(right.height) + 1;
        Self { formula: M::both(left.formula, right.formula, whole), height, bare: true }
    }

    /// In parentheses, which a binary formula counts once with itself.
    pub(crate) fn enclosed(self) -> Self {
        Self { height: self.height + usize::from(!self.bare), bare: false, ..self }
    }
}
