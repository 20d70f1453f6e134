//! How the parser reads terms, arguments and parameters: what may begin, and what a complete one leads to.

use super::{Arity, Frame, Head, Parser, State, Use};
use crate::blocks::arity_in;
use crate::score::model::{Arities, Model};
use crate::symbol::SymbolId;

impl Parser {
    /// How many functions stand around a term here.
    pub(super) fn term_depth(&self) -> u32 {
        match self.frames.last() {
            Some(Frame::Function { depth, .. }) => depth + 1,
            _ => 0,
        }
    }

    /// Arguments are drawn as in the public generator; the body of a definition is a term in any case.
    pub(super) fn public(&self, model: &Model) -> bool {
        model.public && !matches!(self.defining, Some(Head::Function | Head::Constant))
    }

    /// Variable, constant, function.
    pub(super) fn terms(&self, model: &Model) -> [f64; 3] {
        match self.public(model) {
            true => [1.0, 0.0, 0.0],
            false => model.terms(self.scope.len(), self.term_depth()),
        }
    }

    pub(super) fn term_start(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let [variable, constant, function] = self.terms(model);
        let (of, p) = match symbol {
            SymbolId::VAR => (self.variable(model), variable),
            SymbolId::CONST => (Use::Constant, constant),
            SymbolId::FUNC => (Use::Function, function),
            _ => return 0.0,
        };
        if p > 0.0 {
            self.begin_index(of, model);
        }
        p
    }

    /// Which variables may stand as the term that begins.
    pub(super) fn variable(&self, model: &Model) -> Use {
        let scope = self.scope.len();
        match self.frames.last() {
            Some(Frame::RightSide { left: Some(left) }) => Use::ScopeWithout(*left),
            Some(Frame::LeftSide | Frame::RightSide { .. }) if self.public(model) && scope < 2 => Use::Name,
            _ if self.public(model) && scope == 0 => Use::Name,
            _ => Use::Scope,
        }
    }

    /// The parenthesis after a predicate, or after what a definition defines.
    pub(super) fn open(&mut self, arity: Arity) {
        if self.in_head() {
            self.frames.push(Frame::Parameters { arity, done: 0 });
            self.state = State::Parameter;
        } else {
            self.frames.push(Frame::Predicate { arity, done: 0 });
            self.state = State::Term;
        }
    }

    pub(super) fn after_argument(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let (arity, done) = match self.frames.last() {
            Some(&Frame::Predicate { arity, done }) => (arity, done),
            Some(&Frame::Function { arity, done, .. }) => (Arity::Fixed(arity), done),
            _ => return 0.0,
        };
        let more = more(arity, done, model);
        match symbol {
            SymbolId::COMMA => {
                self.state = State::Term;
                more
            }
            SymbolId::RPAREN => {
                match self.frames.pop() {
                    Some(Frame::Function { .. }) => self.complete_term(0, model),
                    _ => self.complete_formula(),
                }
                1.0 - more
            }
            _ => 0.0,
        }
    }

    pub(super) fn after_parameter(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let Some(&Frame::Parameters { arity, done }) = self.frames.last() else { return 0.0 };
        let more = more(arity, done, model);
        match symbol {
            SymbolId::COMMA => {
                self.state = State::Parameter;
                more
            }
            SymbolId::RPAREN => {
                self.frames.pop();
                self.state = State::Define;
                1.0 - more
            }
            _ => 0.0,
        }
    }

    pub(super) fn complete_term(&mut self, index: u64, model: &Model) {
        match self.frames.last_mut() {
            Some(Frame::Predicate { done, .. } | Frame::Function { done, .. }) => {
                *done += 1;
                self.state = State::AfterArgument;
            }
            Some(side @ Frame::LeftSide) => {
                let left = (model.public && self.scope.len() >= 2).then_some(index);
                *side = Frame::RightSide { left };
                self.state = State::Relation;
            }
            Some(Frame::RightSide { .. }) => {
                self.frames.pop();
                self.complete_formula();
            }
            _ => self.state = State::Done,
        }
    }
}

pub(super) fn predicate_arity(index: u64, model: &Model) -> Arity {
    match &model.arities {
        Arities::Fixed(blocks) => Arity::Fixed(arity_in(blocks, index)),
        Arities::Drawn(_) => Arity::Drawn,
    }
}

/// The probability of one more argument after so many.
pub(super) fn more(arity: Arity, done: usize, model: &Model) -> f64 {
    match (arity, &model.arities) {
        (Arity::Fixed(arity), _) => f64::from(u8::from(done < arity)),
        // An exact 1 where no arity is `done`.
        (Arity::Drawn, Arities::Drawn(arities)) if arities.exactly(done) <= 0.0 => 1.0,
        (Arity::Drawn, Arities::Drawn(arities)) => arities.at_least(done + 1) / arities.at_least(done),
        (Arity::Drawn, Arities::Fixed(_)) => 0.0,
    }
}
