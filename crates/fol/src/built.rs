//! Formulas under construction, for readers that learn of parentheses late.

use crate::ast::{Connective, Formula, Quantifier, Sort, Variable};

/// A complete formula inside a formula.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) formula: Formula,
    /// How many nodes enclose its innermost node.
    pub(crate) height: usize,
    /// A binary formula whose own parentheses have not been read.
    pub(crate) bare: bool,
}

impl Built {
    /// An atom whose terms are so deep.
    pub(crate) fn atom(formula: Formula, height: usize) -> Self {
        Self { formula, height, bare: false }
    }

    pub(crate) fn negated(self) -> Self {
        Self { formula: Formula::Not(Box::new(self.formula)), height: self.height + 1, bare: false }
    }

    pub(crate) fn quantified(self, quantifier: Quantifier, variable: Variable, sort: Option<Sort>) -> Self {
        let formula = Formula::Quantified(quantifier, variable, sort, Box::new(self.formula));
        Self { formula, height: self.height + 1, bare: false }
    }

    pub(crate) fn joined(connective: Connective, left: Self, right: Self) -> Self {
        Self {
            height: left.height.max(right.height) + 1,
            formula: Formula::Binary(connective, Box::new(left.formula), Box::new(right.formula)),
            bare: true,
        }
    }

    /// In parentheses, which a binary formula counts once with itself.
    pub(crate) fn enclosed(self) -> Self {
        Self { height: self.height + usize::from(!self.bare), bare: false, ..self }
    }
}
