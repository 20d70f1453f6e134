//! Where the machines put the probabilities of what comes next: by symbol, or by token of a code.

use super::model::Distribution;
use crate::index::IndexWeights;
use crate::notation::{Code, Token};
use crate::symbol::SymbolId;

/// Takes up probabilities.
pub(super) trait Sink {
    /// A symbol comes, with this probability.
    fn symbol(&mut self, symbol: SymbolId, p: f64);

    /// A name of a category comes, with this probability, its index by these weights.
    fn name(&mut self, category: SymbolId, weights: &IndexWeights<'_>, p: f64);
}

impl Sink for Distribution {
    fn symbol(&mut self, symbol: SymbolId, p: f64) {
        if let Some(place) = self.get_mut(symbol.index()) {
            *place += p;
        }
    }

    fn name(&mut self, category: SymbolId, _: &IndexWeights<'_>, p: f64) {
        self.symbol(category, p);
    }
}

/// Probabilities by token.
pub(super) struct Slots<'a> {
    pub(super) code: &'a Code,
    pub(super) by_token: &'a mut [f64],
    /// What lies on names without a token (N13).
    pub(super) rest: &'a mut f64,
}

impl Slots<'_> {
    fn add(&mut self, token: Token, p: f64) {
        if let Some(place) = self.by_token.get_mut(token.index()) {
            *place += p;
        }
    }
}

impl Sink for Slots<'_> {
    fn symbol(&mut self, symbol: SymbolId, p: f64) {
        if let Some(token) = self.code.token(symbol) {
            self.add(token, p);
        }
    }

    /// An index is one draw (N11).
    fn name(&mut self, category: SymbolId, weights: &IndexWeights<'_>, p: f64) {
        let code = self.code;
        let Some(entities) = code.entities() else { return self.symbol(category, p) };
        let (all, mut named) = (weights.total(), 0.0);
        for (index, token) in entities.of_category(category) {
            let weight = weights.range(index, index.saturating_add(1));
            if weight > 0.0 {
                named += weight;
                self.add(token, p * (weight / all));
            }
        }
        *self.rest += p * ((all - named).max(0.0) / all);
    }
}
