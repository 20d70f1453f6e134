//! The distribution of the next token in each state of the parser, without moving it.

use super::{Frame, Parser, State, Use};
use crate::ast::{Connective, Quantifier, Relation};
use crate::score::event::Event;
use crate::score::hidden::Hidden;
use crate::score::model::Model;
use crate::score::sink::Sink;
use crate::symbol::SymbolId;

impl Parser {
    /// Adds the distribution of the next token, times `scale`; the answer is the part of `scale` with which all
    /// is read already.
    pub(in crate::score) fn fill<S: Sink>(
        &self,
        model: &Model,
        hidden: &Hidden,
        out: &mut S,
        scale: f64,
    ) -> f64 {
        if let Some((symbol, next)) = self.forced() {
            match next {
                State::Index(of) => self.fill_name(symbol, of, model, out, scale),
                _ => out.symbol(symbol, scale),
            }
        }
        match self.state {
            State::Done => return scale,
            State::Formula => self.fill_formula(model, hidden, out, scale),
            State::Atom => self.fill_atom(model, out, scale),
            State::AfterBinder => {
                out.symbol(SymbolId::COLON, scale * model.sorted.map_or(0.0, |[_, yes]| yes));
            }
            State::Term => self.fill_term(self.frames.last(), model, out, scale),
            State::Index(of) => {
                let weights = self.weights(of, model);
                let all = if self.value.is_some() { self.weight } else { weights.total() };
                let share = |weight: f64| scale * (weight / all);
                weights.digits(self.value, |digit, weight| out.symbol(digit.symbol(), share(weight)));
            }
            State::PredicateOpen(arity) => out.symbol(SymbolId::LPAREN, scale * model.more(arity, 0)),
            State::AfterArgument => {
                let more = self.another(model);
                out.symbol(SymbolId::COMMA, scale * more);
                out.symbol(SymbolId::RPAREN, scale * (1.0 - more));
            }
            State::Relation => {
                let all = Relation::ALL.iter().zip(model.relations);
                all.for_each(|(r, p)| out.symbol(r.symbol(), scale * p));
            }
            State::Connective if model.is_prefix() => {
                let (mut next, mut hidden) = (self.clone(), hidden.clone());
                next.right_operand(&mut hidden);
                next.fill_formula(model, &hidden, out, scale);
            }
            State::Connective => {
                let all = Connective::ALL.iter().zip(model.binary);
                all.for_each(|(c, p)| out.symbol(c.symbol(), scale * p));
            }
            _ => {}
        }
        self.fill_left(model, hidden, out, scale)
    }

    /// A name of a category, with this probability of the category.
    fn fill_name<S: Sink>(&self, category: SymbolId, of: Use, model: &Model, out: &mut S, p: f64) {
        if p > 0.0 {
            out.name(category, &self.weights(of, model), p);
        }
    }

    /// What can come after this state is left without a symbol.
    fn fill_left<S: Sink>(&self, model: &Model, hidden: &Hidden, out: &mut S, scale: f64) -> f64 {
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

    fn fill_formula<S: Sink>(&self, model: &Model, hidden: &Hidden, out: &mut S, scale: f64) {
        out.symbol(SymbolId::NOT, scale * hidden.probability(Event::Not, self.place));
        let binary = hidden.probability(Event::Binary, self.place);
        if model.is_prefix() {
            let all = Connective::ALL.iter().zip(model.binary);
            all.for_each(|(c, p)| out.symbol(c.symbol(), scale * (binary * p)));
        } else {
            out.symbol(SymbolId::LPAREN, scale * binary);
            if model.doubled > 0.0 {
                let atom = hidden.probability(Event::Atom, self.place);
                out.symbol(SymbolId::LPAREN, scale * (atom * model.doubled));
            }
        }
        let quantified = hidden.probability(Event::Quantifier, self.place);
        let all = Quantifier::ALL.iter().zip(model.quantifiers);
        all.for_each(|(q, p)| out.symbol(q.symbol(), scale * (p * quantified)));
        let atom = hidden.probability(Event::Atom, self.place);
        self.fill_atom(model, out, scale * (atom * (1.0 - model.doubled)));
    }

    /// An atom, where one comes.
    fn fill_atom<S: Sink>(&self, model: &Model, out: &mut S, scale: f64) {
        let [predicate, relation, truth] = model.atoms(self.scope.len());
        self.fill_name(SymbolId::PRED, Use::Predicate, model, out, scale * predicate);
        out.symbol(SymbolId::TRUE, scale * (truth * model.truth[0]));
        out.symbol(SymbolId::FALSE, scale * (truth * model.truth[1]));
        if model.is_prefix() {
            let all = Relation::ALL.iter().zip(model.relations);
            all.for_each(|(r, p)| out.symbol(r.symbol(), scale * (relation * p)));
        } else {
            self.fill_term(Some(&Frame::LeftSide), model, out, scale * relation);
        }
    }

    /// A term inside a frame.
    fn fill_term<S: Sink>(&self, frame: Option<&Frame>, model: &Model, out: &mut S, scale: f64) {
        let [variable, constant, function] = match frame {
            Some(Frame::LeftSide) => self.terms_at(0, model),
            _ => self.terms(model),
        };
        self.fill_name(SymbolId::VAR, self.variable(frame, model), model, out, scale * variable);
        self.fill_name(SymbolId::CONST, Use::Constant, model, out, scale * constant);
        self.fill_name(SymbolId::FUNC, Use::Function, model, out, scale * function);
    }
}
