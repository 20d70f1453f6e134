//! The distribution of the next symbol in each state of the parser, without moving it.

use super::{Parser, State};
use crate::ast::Quantifier;
use crate::score::event::Event;
use crate::score::hidden::Hidden;
use crate::score::model::{Distribution, Model};
use crate::symbol::SymbolId;

impl Parser {
    /// Adds the distribution of the next symbol, times `scale`; the answer is the part of `scale` with which all
    /// is read already.
    pub(in crate::score) fn fill(
        &self,
        model: &Model,
        hidden: &Hidden,
        out: &mut Distribution,
        scale: f64,
    ) -> f64 {
        let mut put = |symbol: SymbolId, p: f64| {
            if let Some(place) = out.get_mut(symbol.index()) {
                *place += scale * p;
            }
        };
        self.choices(model, &mut put);
        match self.state {
            State::Done => return scale,
            State::Formula => self.fill_formula(model, hidden, &mut put),
            State::Term => self.fill_term(model, 1.0, &mut put),
            State::Index(of) => {
                let weights = self.weights(of, model);
                let all = if self.value.is_some() { self.weight } else { weights.total() };
                weights.digits(self.value, |digit, weight| put(digit.symbol(), weight / all));
            }
            _ => {}
        }
        if !self.may_be_left() {
            return 0.0;
        }
        // What can come after this state is left without a symbol.
        let mut next = self.clone();
        let p = next.leave(model);
        if p > 0.0 { next.fill(model, hidden, out, scale * p) } else { 0.0 }
    }

    fn fill_formula(&self, model: &Model, hidden: &Hidden, put: &mut impl FnMut(SymbolId, f64)) {
        put(SymbolId::NOT, hidden.probability(Event::Not, self.place));
        put(SymbolId::LPAREN, hidden.probability(Event::Binary, self.place));
        let quantified = hidden.probability(Event::Quantifier, self.place);
        Quantifier::ALL.iter().zip(model.quantifiers).for_each(|(q, p)| put(q.symbol(), p * quantified));
        let atom = hidden.probability(Event::Atom, self.place);
        let [predicate, relation, truth] = model.atoms(self.scope.len());
        put(SymbolId::PRED, atom * predicate);
        put(SymbolId::TRUE, atom * truth * model.truth[0]);
        put(SymbolId::FALSE, atom * truth * model.truth[1]);
        self.fill_term(model, atom * relation, put);
    }

    fn fill_term(&self, model: &Model, scale: f64, put: &mut impl FnMut(SymbolId, f64)) {
        let [variable, constant, function] = self.terms(model);
        put(SymbolId::VAR, scale * variable);
        put(SymbolId::CONST, scale * constant);
        put(SymbolId::FUNC, scale * function);
    }
}
