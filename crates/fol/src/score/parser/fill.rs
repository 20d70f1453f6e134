//! The distribution of the next symbol in each state of the parser, without moving it.

use super::{Parser, State};
use crate::ast::{Connective, Quantifier, Relation};
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
        if let Some((symbol, _)) = self.forced() {
            put(symbol, 1.0);
        }
        match self.state {
            State::Done => return scale,
            State::Formula => self.fill_formula(model, hidden, &mut put),
            State::AfterBinder => put(SymbolId::COLON, model.sorted.map_or(0.0, |[_, yes]| yes)),
            State::Term => self.fill_term(model, 1.0, &mut put),
            State::Index(of) => {
                let weights = self.weights(of, model);
                let all = if self.value.is_some() { self.weight } else { weights.total() };
                weights.digits(self.value, |digit, weight| put(digit.symbol(), weight / all));
            }
            State::PredicateOpen(arity) => put(SymbolId::LPAREN, model.more(arity, 0)),
            State::AfterArgument => {
                let more = self.another(model);
                put(SymbolId::COMMA, more);
                put(SymbolId::RPAREN, 1.0 - more);
            }
            State::Relation => {
                Relation::ALL.iter().zip(model.relations).for_each(|(r, p)| put(r.symbol(), p));
            }
            State::Connective => {
                Connective::ALL.iter().zip(model.binary).for_each(|(c, p)| put(c.symbol(), p));
            }
            _ => {}
        }
        self.fill_left(model, hidden, out, scale)
    }

    /// What can come after this state is left without a symbol.
    fn fill_left(&self, model: &Model, hidden: &Hidden, out: &mut Distribution, scale: f64) -> f64 {
        let may_be_left = match self.state {
            State::AfterBinder | State::PredicateOpen(_) => true,
            State::Index(_) => self.value.is_some(),
            _ => false,
        };
        if !may_be_left {
            return 0.0;
        }
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
