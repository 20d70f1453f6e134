//! The certificate of an entailment: clauses from the formulas to the empty one.
//!
//! Every step carries all that is needed to follow it: its parents, the term for each variable of theirs, and the instances of
//! the axioms of equality. What it says must then follow by unit propagation alone. `check::proof` does that.

use fol::ast::{Connective, Formula, Predicate, Quantifier, Term as Given, Variable};

use crate::logic::{Clause, Substitution};

/// A refutation of the premises and the denied conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Names of sub-formulas, each over the names before it.
    pub definitions: Vec<Definition>,
    /// The premises, then the conclusion, with names in place of sub-formulas.
    pub formulas: Vec<Formula>,
    /// The steps; the clause of the last is empty.
    pub steps: Vec<Step>,
}

/// A new predicate for a formula: `∀x̄ (P(x̄) ↔ φ)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// An index that the problem does not use.
    pub predicate: Predicate,
    /// The variables that are bound where the name stands.
    pub parameters: Vec<Variable>,
    /// The formula.
    pub body: Formula,
}

impl Definition {
    /// The name, applied to its parameters.
    pub fn name(&self) -> Formula {
        Formula::Predicate(self.predicate, self.parameters.iter().map(|x| Given::Variable(*x)).collect())
    }

    /// `∀x̄ (P(x̄) → φ)`, or the other direction.
    #[must_use]
    pub fn half(&self, unfolds: bool) -> Formula {
        let (from, to) = (Box::new(self.name()), Box::new(self.body.clone()));
        let (from, to) = if unfolds { (from, to) } else { (to, from) };
        self.parameters.iter().rev().fold(Formula::Binary(Connective::Implies, from, to), |body, x| {
            Formula::Quantified(Quantifier::Forall, *x, None, Box::new(body))
        })
    }
}

/// Where a clause of the problem comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This premise.
    Premise(usize),
    /// The conclusion, denied.
    Conclusion,
    /// `P(x̄) → φ` of this definition.
    Unfold(usize),
    /// `φ → P(x̄)` of this definition.
    Fold(usize),
}

/// How a step was found. Only what it says of its parents is checked: every step holds by unit propagation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A clause of a formula, by its number among them.
    Input(Origin, usize),
    /// Of two clauses with opposite literals.
    Resolution,
    /// Equal literals of one clause.
    Factoring,
    /// An equation of one clause used in another.
    Superposition,
    /// `t ≠ t` of an instance dropped.
    EqualityResolution,
    /// Two equations of one clause.
    EqualityFactoring,
    /// Rewritten by equations, or without literals that units contradict.
    Simplification,
    /// Instances of clauses over constants that propagate to the clause: what a propositional solver learned.
    Instances,
}

impl Rule {
    /// The name, as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input(Origin::Premise(_), _) => "premise",
            Self::Input(Origin::Conclusion, _) => "denied conclusion",
            Self::Input(Origin::Unfold(_) | Origin::Fold(_), _) => "definition",
            Self::Resolution => "resolution",
            Self::Factoring => "factoring",
            Self::Superposition => "superposition",
            Self::EqualityResolution => "equality resolution",
            Self::EqualityFactoring => "equality factoring",
            Self::Simplification => "simplification",
            Self::Instances => "instances",
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// How it was found.
    pub rule: Rule,
    /// Earlier steps.
    pub parents: Vec<Parent>,
    /// Instances of `s ≠ t ∨ ¬L ∨ L′`, where L′ is L with `t` in place of some `s`.
    pub equality: Vec<Clause>,
    /// What holds.
    pub clause: Clause,
}

/// An instance of an earlier step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The number of the step.
    pub step: usize,
    /// What is put for each of its variables.
    pub substitution: Substitution,
}
