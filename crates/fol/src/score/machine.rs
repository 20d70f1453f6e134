//! What reads symbols: one way where a text has one derivation, all ways at once where it may have several.

use super::readings::Readings;
use super::sink::Sink;
use super::text::Text;
use crate::error::Refusal;
use crate::law::Law;
use crate::notation::Notation;
use crate::symbol::SymbolId;

/// The machine of a law and a way to write its texts.
#[derive(Debug, Clone)]
pub(super) enum Machine {
    Text(Box<Text>),
    Readings(Box<Readings>),
}

/// The same for both.
macro_rules! each {
    ($machine:expr, $inner:ident => $do:expr) => {
        match $machine {
            Self::Text($inner) => $do,
            Self::Readings($inner) => $do,
        }
    };
}

impl Machine {
    /// The machine of a law whose formulas stand in second pairs of parentheses in so many of 100 cases.
    pub(super) fn new(law: &Law, notation: Notation, percent: u8) -> Result<Self, Refusal> {
        Ok(if percent > 0 || law.has_vacuous() {
            Self::Readings(Box::new(Readings::new(law, notation, percent)?))
        } else {
            Self::Text(Box::new(Text::new(law, notation)?))
        })
    }

    pub(super) fn reset(&mut self) {
        each!(self, machine => machine.reset())
    }

    /// Reads a symbol; the answer is its probability. After a 0 the machine is of no use until its reset.
    pub(super) fn step(&mut self, symbol: SymbolId) -> f64 {
        each!(self, machine => machine.step(symbol))
    }

    /// Reads a whole name (N11).
    pub(super) fn name(&mut self, category: SymbolId, index: u64) -> f64 {
        each!(self, machine => machine.name(category, index))
    }

    /// Adds the distribution of the next token.
    pub(super) fn fill<S: Sink>(&mut self, out: &mut S) {
        each!(self, machine => machine.fill(out))
    }

    /// The posterior of the hidden choices.
    pub(super) fn posterior(&self) -> Vec<(String, f64)> {
        each!(self, machine => machine.posterior())
    }
}
