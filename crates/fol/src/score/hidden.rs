//! What the generator drew and does not show, as a posterior (F45).
//!
//! A node is one of four [`Event`]s: an atom, a quantifier, NOT, or a binary connective (read as its opening
//! parenthesis, its name comes later). Each value of the hidden choices gives each event a probability that
//! takes in how likely the rest of the text still reaches the drawn level or size.

use super::event::{Event, Place};
use super::hidden_count::CountHidden;
use super::hidden_depth::DepthHidden;
use super::hidden_grammar::GrammarHidden;
use crate::error::Refusal;
use crate::law::{Family, Grammar, Law};

/// The posterior over the hidden choices.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Hidden {
    Depth(DepthHidden),
    Count(CountHidden),
    Grammar(GrammarHidden),
}

/// The same for all.
macro_rules! each {
    ($hidden:expr, $inner:ident => $do:expr) => {
        match $hidden {
            Self::Depth($inner) => $do,
            Self::Count($inner) => $do,
            Self::Grammar($inner) => $do,
        }
    };
}

impl Hidden {
    pub(super) fn new(law: &Law) -> Result<Self, Refusal> {
        Ok(match &law.family {
            Family::Depth(law) => Self::Depth(DepthHidden::new(law)),
            Family::Count(law) => Self::Count(CountHidden::new(law)?),
            Family::Boltzmann(law) => Self::Count(CountHidden::of_window(law)?),
        })
    }

    /// What the grammar of a law of family `boltzmann` draws before its size is looked at.
    pub(super) fn of_grammar(grammar: &Grammar) -> Self {
        Self::Grammar(GrammarHidden::new(grammar))
    }

    /// Back to the prior, before a formula.
    pub(super) fn start(&mut self) {
        each!(self, hidden => hidden.start())
    }

    /// The probability of an event where a formula is expected.
    pub(super) fn probability(&self, event: Event, place: Place) -> f64 {
        each!(self, hidden => hidden.probability(event, place))
    }

    /// The event happens; the answer is its probability.
    pub(super) fn commit(&mut self, event: Event, place: Place) -> f64 {
        each!(self, hidden => hidden.commit(event, place))
    }

    /// The left operand of a binary formula is over, the right one begins.
    pub(super) fn next_operand(&mut self) {
        each!(self, hidden => hidden.next_operand())
    }

    /// Names and probabilities of the hidden values, given where a formula is expected, if one is.
    pub(super) fn posterior(&self, expected: Option<Place>) -> Vec<(String, f64)> {
        let values = each!(self, hidden => hidden.posterior(expected));
        let sum: f64 = values.iter().map(|v| v.1).sum();
        let mut merged: Vec<(String, f64)> = Vec::new();
        for (name, weight) in values.into_iter().filter(|v| v.1 > 0.0) {
            match merged.iter_mut().find(|m| m.0 == name) {
                Some(same) => same.1 += weight / sum,
                None => merged.push((name, weight / sum)),
            }
        }
        merged
    }
}
