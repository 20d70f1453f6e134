//! How the parser reads terms, arguments and parameters: what may begin, and what a complete one leads to.

use super::{Frame, Head, Parser, State, Use};
use crate::score::model::{Arity, Model};
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
        self.terms_at(self.term_depth(), model)
    }

    /// The same inside so many functions.
    pub(super) fn terms_at(&self, depth: u32, model: &Model) -> [f64; 3] {
        match self.public(model) {
            true => [1.0, 0.0, 0.0],
            false => model.terms(self.scope.len(), depth),
        }
    }

    pub(super) fn term_start(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let [variable, constant, function] = self.terms(model);
        let (of, p) = match symbol {
            SymbolId::VAR => (self.variable(self.frames.last(), model), variable),
            SymbolId::CONST => (Use::Constant, constant),
            SymbolId::FUNC => (Use::Function, function),
            _ => return 0.0,
        };
        if p > 0.0 {
            self.begin_index(of, model);
        }
        p
    }

    /// Which variables may stand as the term that begins inside a frame.
    pub(super) fn variable(&self, frame: Option<&Frame>, model: &Model) -> Use {
        let scope = self.scope.len();
        match frame {
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

    /// The probability that another argument or parameter follows.
    pub(super) fn another(&self, model: &Model) -> f64 {
        match self.frames.last() {
            Some(&Frame::Predicate { arity, done } | &Frame::Parameters { arity, done }) => {
                model.more(arity, done)
            }
            Some(&Frame::Function { arity, done, .. }) => model.more(Arity::Fixed(arity), done),
            _ => 0.0,
        }
    }

    pub(super) fn after_argument(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let more = self.another(model);
        match symbol {
            SymbolId::COMMA => {
                self.next_one();
                more
            }
            SymbolId::RPAREN => {
                self.last_one(model);
                1.0 - more
            }
            _ => 0.0,
        }
    }

    /// After an argument or parameter: a sign, or in prefix notation what the arity says.
    pub(super) fn after_one(&mut self, model: &Model) {
        if !model.is_prefix() {
            self.state = State::AfterArgument;
        } else if self.another(model) > 0.0 {
            self.next_one();
        } else {
            self.last_one(model);
        }
    }

    /// Another argument or parameter follows.
    fn next_one(&mut self) {
        let parameters = matches!(self.frames.last(), Some(Frame::Parameters { .. }));
        self.state = if parameters { State::Parameter } else { State::Term };
    }

    /// That was the last argument or parameter.
    fn last_one(&mut self, model: &Model) {
        match self.frames.pop() {
            Some(Frame::Function { .. }) => self.complete_term(0, model),
            Some(Frame::Parameters { .. }) => self.state = State::Define,
            _ => self.complete_formula(model),
        }
    }

    pub(super) fn complete_term(&mut self, index: u64, model: &Model) {
        match self.frames.last_mut() {
            Some(Frame::Predicate { done, .. } | Frame::Function { done, .. }) => {
                *done += 1;
                self.after_one(model);
            }
            Some(side @ Frame::LeftSide) => {
                let left = (model.public && self.scope.len() >= 2).then_some(index);
                *side = Frame::RightSide { left };
                self.state = if model.is_prefix() { State::Term } else { State::Relation };
            }
            Some(Frame::RightSide { .. }) => {
                self.frames.pop();
                self.complete_formula(model);
            }
            _ => self.state = State::Done,
        }
    }
}
