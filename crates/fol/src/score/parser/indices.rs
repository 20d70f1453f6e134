//! How the parser reads indices: which are possible, digit by digit, and what their end leads to.

use super::{Frame, Head, Parser, State, Use};
use crate::blocks::arity_in;
use crate::codec::shifted;
use crate::index::IndexWeights;
use crate::sample::distinct::insert_sorted;
use crate::score::model::{Arity, BinderLaw, Model};
use crate::symbol::Numeral;

impl Parser {
    pub(super) fn weights<'a>(&'a self, of: Use, model: &'a Model) -> IndexWeights<'a> {
        let blocks = |blocks: &'a [_]| IndexWeights { blocks, points: &[], point: 0.0, without: None };
        let points = |points: &'a [u64], without| IndexWeights { blocks: &[], points, point: 1.0, without };
        let rest = |used: &'a [u64]| IndexWeights { points: used, point: -1.0, ..blocks(&model.all_names) };
        match of {
            Use::Binder => match model.binder {
                BinderLaw::Pool => blocks(&model.all_names),
                BinderLaw::Numbered => points(&self.number, None),
                BinderLaw::Distinct => rest(&self.used),
                BinderLaw::Apart if self.binds_nothing() => rest(&self.used),
                BinderLaw::Apart => match model.apart.get(self.used.len()) {
                    Some(apart) => {
                        IndexWeights { points: &self.used, point: apart.again, ..blocks(&apart.names) }
                    }
                    None => blocks(&[]),
                },
            },
            Use::Sort => blocks(&model.all_sorts),
            Use::Predicate => blocks(model.predicates(self.scope.len())),
            Use::Function | Use::Head(Head::Function) => blocks(&model.all_functions),
            Use::Constant | Use::Head(Head::Constant) => blocks(&model.all_constants),
            Use::Head(Head::Predicate) => blocks(&model.all_predicates),
            Use::Scope if model.recent > 0.0 => {
                IndexWeights { points: &self.scope, point: 1.0 - model.recent, ..blocks(&self.recent) }
            }
            Use::Scope => points(&self.scope, None),
            Use::ScopeWithout(left) => points(&self.scope, Some(left)),
            Use::Name => blocks(&model.all_names),
            Use::Parameter => rest(&self.scope),
        }
    }

    /// Whether the binder that is being read was drawn as one that binds nothing.
    fn binds_nothing(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Quantifier { vacuous: true }))
    }

    /// The variable of a binder has been read.
    fn open_binder(&mut self, index: u64, model: &Model) {
        self.number = [self.number[0] + 1];
        if !self.binds_nothing() {
            self.scope.push(index);
            self.weigh_innermost(model);
        }
        match model.binder {
            BinderLaw::Distinct => insert_sorted(&mut self.used, index),
            BinderLaw::Apart => {
                self.above.push(index);
                self.sort_above();
            }
            BinderLaw::Pool | BinderLaw::Numbered => {}
        }
    }

    /// What a binder governs is over.
    pub(super) fn close_binder(&mut self, vacuous: bool, model: &Model) {
        if !vacuous {
            self.scope.pop();
            self.weigh_innermost(model);
        }
        if model.binder == BinderLaw::Apart {
            self.above.pop();
            self.sort_above();
        }
    }

    fn weigh_innermost(&mut self, model: &Model) {
        if model.recent > 0.0 {
            let weight = model.recent * self.scope.len() as f64;
            self.recent = self.scope.last().map_or([(0, 0, 0.0)], |&v| [(v, v.saturating_add(1), weight)]);
        }
    }

    fn sort_above(&mut self) {
        self.used.clone_from(&self.above);
        self.used.sort_unstable();
        self.used.dedup();
    }

    pub(super) fn begin_index(&mut self, of: Use, model: &Model) {
        self.state = State::Index(of);
        self.value = None;
        self.weight = self.weights(of, model).total();
    }

    pub(super) fn digit(&mut self, of: Use, digit: Numeral, model: &Model) -> f64 {
        // States that name an index directly have not weighed it yet.
        if self.value.is_none() {
            self.weight = self.weights(of, model).total();
        }
        let value = match self.value {
            None => u64::from(digit.get()),
            Some(0) => return 0.0,
            Some(value) => match shifted(value, digit) {
                Some(value) => value,
                None => return 0.0,
            },
        };
        let weights = self.weights(of, model);
        let longer = weights.longer(value);
        let weight = longer + weights.range(value, value.saturating_add(1));
        let p = weight / self.weight;
        if p <= 0.0 {
            return 0.0;
        }
        if longer > 0.0 {
            (self.value, self.weight) = (Some(value), weight);
        } else {
            self.finish_index(of, value, model);
        }
        p
    }

    pub(super) fn finish_index(&mut self, of: Use, index: u64, model: &Model) {
        self.value = None;
        // What was read leaves nothing behind: readings of one text that meet again are the same.
        self.weight = 0.0;
        match of {
            Use::Binder => {
                self.open_binder(index, model);
                self.state = if model.sorted.is_some() { State::AfterBinder } else { State::Formula };
            }
            Use::Sort => self.state = State::Formula,
            Use::Predicate => match model.arity(index) {
                Arity::Fixed(0) => self.complete_formula(model),
                arity if model.is_prefix() => self.open(arity),
                arity => self.state = State::PredicateOpen(arity),
            },
            Use::Function => {
                let (arity, depth) = (arity_in(&model.functions, index), self.term_depth());
                self.frames.push(Frame::Function { arity, done: 0, depth });
                self.state = if model.is_prefix() { State::Term } else { State::FunctionOpen };
            }
            Use::Constant | Use::Scope | Use::ScopeWithout(_) | Use::Name => self.complete_term(index, model),
            Use::Head(Head::Predicate) => match model.arity(index) {
                Arity::Fixed(0) => self.state = State::Define,
                arity if model.is_prefix() => self.open(arity),
                arity => self.state = State::PredicateOpen(arity),
            },
            Use::Head(Head::Function) => {
                let arity = Arity::Fixed(arity_in(&model.functions, index));
                if model.is_prefix() {
                    self.open(arity);
                } else {
                    self.state = State::PredicateOpen(arity);
                }
            }
            Use::Head(Head::Constant) => self.state = State::Define,
            Use::Parameter => {
                insert_sorted(&mut self.scope, index);
                if let Some(Frame::Parameters { done, .. }) = self.frames.last_mut() {
                    *done += 1;
                }
                self.after_one(model);
            }
        }
    }
}
