//! Texts whose derivations are ambiguous: every way to read what stands so far, with its share (N17).
//!
//! An opening parenthesis can be that of a binary formula, the second one of a binary formula, or the second one of an
//! atom. A binder can be one that was drawn to bind nothing, or one whose variable just has not come yet. Each is a reading
//! of its own, with its own stack and its own hidden choices, until the symbols exclude it or until it meets another: where
//! a quantified formula is over, it no longer matters how its binder was drawn.

use super::hidden::Hidden;
use super::model::Model;
use super::parser::Parser;
use super::sink::Sink;
use crate::codec::push_index;
use crate::error::{Kind, Refusal};
use crate::law::Law;
use crate::notation::Notation;
use crate::symbol::SymbolId;

/// The readings of a prefix.
#[derive(Debug, Clone)]
pub(super) struct Readings {
    model: Model,
    readings: Vec<(f64, Parser, Hidden)>,
    start: Hidden,
    ended: bool,
}

impl Readings {
    /// The machine of a law whose texts are formulas, so many of 100 in a second pair of parentheses.
    pub(super) fn new(law: &Law, notation: Notation, percent: u8) -> Result<Self, Refusal> {
        if law.has_statements() {
            let message = "redundant parentheses are for laws whose texts are single formulas";
            return Err(Refusal::new(Kind::BadValue, message));
        }
        let mut model = Model::new(law, notation);
        model.doubled = f64::from(percent) / 100.0;
        let mut machine = Self { model, readings: Vec::new(), start: Hidden::new(law)?, ended: false };
        machine.start.start();
        machine.reset();
        Ok(machine)
    }

    pub(super) fn reset(&mut self) {
        self.ended = false;
        self.readings = vec![(1.0, Parser::formula(), self.start.clone())];
    }

    /// Reads a symbol; the answer is its probability. After a 0 the machine is of no use until its reset.
    pub(super) fn step(&mut self, symbol: SymbolId) -> f64 {
        if self.ended {
            return 0.0;
        }
        if symbol == SymbolId::EOS {
            self.ended = true;
            return self.readings.iter().map(|(share, parser, _)| share * parser.over(&self.model)).sum();
        }
        let mut next: Vec<(f64, Parser, Hidden)> = Vec::new();
        for (share, parser, hidden) in &self.readings {
            parser.readings(symbol, &self.model, hidden, |p, parser, hidden| {
                match next.iter_mut().find(|other| other.1 == parser && other.2 == hidden) {
                    Some(same) => same.0 += share * p,
                    None => next.push((share * p, parser, hidden)),
                }
            });
        }
        self.readings = next;
        self.weigh()
    }

    /// Reads a whole name (N11).
    pub(super) fn name(&mut self, category: SymbolId, index: u64) -> f64 {
        let mut p = self.step(category);
        let mut digits = Vec::new();
        push_index(&mut digits, index);
        for digit in digits {
            p *= self.step(digit);
        }
        for (share, parser, _) in &mut self.readings {
            *share *= parser.end_index(&self.model);
        }
        p * self.weigh()
    }

    /// The posterior of the hidden choices, over all readings.
    pub(super) fn posterior(&self) -> Vec<(String, f64)> {
        let mut all: Vec<(String, f64)> = Vec::new();
        for (share, parser, hidden) in &self.readings {
            for (name, p) in hidden.posterior(parser.expected()) {
                match all.iter_mut().find(|value| value.0 == name) {
                    Some(same) => same.1 += share * p,
                    None => all.push((name, share * p)),
                }
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Makes shares of weights; the answer is their sum.
    fn weigh(&mut self) -> f64 {
        self.readings.retain(|reading| reading.0 > 0.0);
        let sum: f64 = self.readings.iter().map(|reading| reading.0).sum();
        self.readings.iter_mut().for_each(|reading| reading.0 /= sum);
        sum
    }

    /// Adds the distribution of the next token.
    pub(super) fn fill<S: Sink>(&self, out: &mut S) {
        if self.ended {
            return;
        }
        for (share, parser, hidden) in &self.readings {
            let over = parser.fill(&self.model, hidden, out, *share);
            out.symbol(SymbolId::EOS, over);
        }
    }
}
