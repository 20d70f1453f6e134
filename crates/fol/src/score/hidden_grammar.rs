//! No hidden choice: what a node is depends on the number of binders above it alone (family `boltzmann`).

use super::event::{Event, Place};
use crate::law::Grammar;

/// The shares of a grammar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GrammarHidden {
    /// Atom, NOT, binary, quantifier, by the number of binders above.
    shares: Vec<[f64; 4]>,
}

impl GrammarHidden {
    pub(super) fn new(grammar: &Grammar) -> Self {
        Self { shares: (0..=grammar.scope()).map(|k| grammar.shares(k)).collect() }
    }

    pub(super) fn start(&mut self) {}

    pub(super) fn probability(&self, event: Event, place: Place) -> f64 {
        let [atom, not, binary, quantifier] =
            self.shares.get(place.quantifiers as usize).copied().unwrap_or([0.0; 4]);
        match event {
            Event::Atom => atom,
            Event::Not => not,
            Event::Binary => binary,
            Event::Quantifier => quantifier,
        }
    }

    pub(super) fn commit(&mut self, event: Event, place: Place) -> f64 {
        self.probability(event, place)
    }

    pub(super) fn next_operand(&mut self) {}

    pub(super) fn posterior(&self, _: Option<Place>) -> Vec<(String, f64)> {
        Vec::new()
    }
}
