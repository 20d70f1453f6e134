//! Whole texts of family `boltzmann`, at one step of constant work for each symbol.
//!
//! What the grammar draws is told by the numbers of binders alone, and rejection divides all probabilities by that of the
//! window. The distribution of a next symbol is another matter: it must know which sizes can still be reached.

use super::hidden::Hidden;
use super::text::Text;
use crate::error::Refusal;
use crate::law::{Family, Law};
use crate::notation::Notation;
use crate::symbol::{SymbolId, SymbolKind};

/// The grammar of a law, and what its window makes of it.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    text: Text,
    window: (usize, usize),
    /// ln of the probability that the grammar draws a formula of the window.
    ln_window: f64,
}

impl Whole {
    /// None for laws of other families.
    pub(super) fn new(law: &Law) -> Result<Option<Self>, Refusal> {
        let Family::Boltzmann(boltzmann) = &law.family else { return Ok(None) };
        let grammar = boltzmann.singular()?;
        let (masses, _) = boltzmann.masses(&grammar);
        Ok(Some(Self {
            text: Text::with_hidden(law, Notation::Infix, Hidden::of_grammar(&grammar)),
            window: boltzmann.window(),
            ln_window: (masses.iter().sum::<f64>() / grammar.sum(0)).ln(),
        }))
    }

    /// −ln of the probability of a text; `None` if it has none.
    pub(super) fn score(&mut self, tokens: &[SymbolId]) -> Option<f64> {
        self.text.reset();
        let (lo, hi) = self.window;
        let nodes = tokens.iter().filter(|symbol| is_node(**symbol)).count();
        let mut nll = self.ln_window;
        for &token in tokens.iter().chain([&SymbolId::EOS]) {
            let p = self.text.step(token);
            if p <= 0.0 || p.is_nan() {
                return None;
            }
            nll -= p.ln();
        }
        (lo <= nodes && nodes <= hi).then_some(nll)
    }
}

/// Each node of a formula has one such symbol.
fn is_node(symbol: SymbolId) -> bool {
    match symbol.kind() {
        SymbolKind::Connective | SymbolKind::Quantifier | SymbolKind::Relation | SymbolKind::Truth => true,
        _ => symbol == SymbolId::PRED,
    }
}
