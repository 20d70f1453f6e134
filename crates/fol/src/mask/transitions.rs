//! Transitions: how a legal symbol changes the state of a mask.

use super::indices::{self, Digits};
use super::{Bound, Category, Frame, Head, Mask, Phase, Spot};
use crate::symbol::SymbolId;

impl Mask {
    pub(super) fn step(&mut self, symbol: SymbolId) {
        match self.spot {
            Spot::Statement { .. } => {
                if self.rules.defines(symbol) {
                    self.head = Some(Head { category: symbol, parameters: Vec::new(), plain: true });
                }
                self.begin_operand(symbol);
            }
            Spot::Conclusion | Spot::Operand => self.begin_operand(symbol),
            Spot::Term => self.begin_term(symbol),
            Spot::Binder => self.spot = Spot::Index(Category::Binder, Digits::NONE),
            Spot::Sort => self.spot = Spot::Index(Category::Sort, Digits::NONE),
            Spot::AfterTerm => self.after_term(symbol),
            Spot::AfterFormula => self.after_formula(symbol),
            Spot::Index(..) | Spot::End => {}
        }
    }

    fn begin_operand(&mut self, symbol: SymbolId) {
        match symbol {
            SymbolId::NOT => {
                self.depth += 1;
                self.spot = Spot::Operand;
            }
            SymbolId::LPAREN => {
                let outer = self.rest();
                self.depth += 1;
                let (depth, scope) = (self.depth, self.scope.len());
                self.frames.push(Frame::Paren { connective: false, depth, scope, outer });
                self.spot = Spot::Operand;
            }
            SymbolId::TRUE | SymbolId::FALSE | SymbolId::UNKNOWN => self.spot = Spot::AfterFormula,
            SymbolId::PRED => self.spot = Spot::Index(Category::Predicate, Digits::NONE),
            SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => {
                let outer = self.rest();
                self.frames.push(Frame::Relation { right: false, outer });
                self.name(symbol);
            }
            SymbolId::ENTAILS | SymbolId::MODELS => self.turnstile(),
            SymbolId::EOS => self.spot = Spot::End,
            _ => {
                self.depth += 1;
                self.spot = Spot::Binder;
            }
        }
    }

    fn begin_term(&mut self, symbol: SymbolId) {
        match (&mut self.head, symbol) {
            (Some(head), SymbolId::VAR) => {
                head.parameters.push(Digits::NONE);
                head.plain &= !self.rules.closed; // nothing is in scope at the start of a statement
            }
            (head, _) => *head = None,
        }
        self.name(symbol);
    }

    fn name(&mut self, symbol: SymbolId) {
        let category = match symbol {
            SymbolId::VAR => Category::Variable,
            SymbolId::CONST => Category::Constant,
            _ => Category::Function,
        };
        self.spot = Spot::Index(category, Digits::NONE);
    }

    fn turnstile(&mut self) {
        self.begin_formula(Phase::Last);
        self.spot = Spot::Conclusion;
    }

    /// A formula at the top of the statement is to begin.
    fn begin_formula(&mut self, phase: Phase) {
        self.scope.clear();
        self.depth = 0;
        self.head = None;
        self.phase = phase;
        self.spot = Spot::Operand;
    }

    pub(super) fn digit(&mut self, category: Category, digits: Digits, symbol: SymbolId) {
        let digits = match category {
            Category::Predicate => self.rules.predicates.step(digits, symbol),
            Category::Function => self.rules.functions.step(digits, symbol),
            _ => indices::step(digits, symbol),
        };
        if let (Category::Variable, Some(parameter)) =
            (category, self.head.as_mut().and_then(|head| head.parameters.last_mut()))
        {
            *parameter = digits;
        }
        self.spot = Spot::Index(category, digits);
    }

    /// An index ends before a symbol, which is then taken.
    pub(super) fn end_index(&mut self, category: Category, digits: Digits, symbol: SymbolId) {
        match (category, symbol) {
            (Category::Binder, _) => {
                self.bind(digits);
                if symbol == SymbolId::COLON {
                    self.spot = Spot::Sort;
                    return;
                }
                self.spot = Spot::Operand;
            }
            (Category::Sort, _) => self.spot = Spot::Operand,
            (Category::Predicate | Category::Function, SymbolId::LPAREN) => {
                let function = category == Category::Function;
                let (outer, depth) = (self.rest(), self.depth);
                self.depth += usize::from(function);
                self.frames.push(Frame::Arguments { function, digits, count: 1, depth, outer });
                self.spot = Spot::Term;
                return;
            }
            (Category::Predicate, _) => self.spot = Spot::AfterFormula,
            (Category::Variable | Category::Constant | Category::Function, _) => self.spot = Spot::AfterTerm,
        }
        self.step(symbol);
    }

    pub(super) fn bind(&mut self, variable: Digits) {
        let fewest = self.fewest_digits().map_or(variable.count, |fewest| fewest.min(variable.count));
        self.scope.push(Bound { index: variable.value, digits: variable.count, fewest });
    }

    fn after_term(&mut self, symbol: SymbolId) {
        match (self.frames.last_mut(), symbol) {
            (_, SymbolId::DEFINE) => self.define(),
            (Some(Frame::Relation { right: true, .. }), _) => {
                self.frames.pop();
                self.after_formula(symbol);
            }
            (Some(Frame::Relation { right, .. }), _) => {
                *right = true;
                self.head = None;
                self.spot = Spot::Term;
            }
            (Some(Frame::Arguments { count, .. }), SymbolId::COMMA) => {
                *count += 1;
                self.spot = Spot::Term;
            }
            (Some(&mut Frame::Arguments { function, depth, .. }), _) => {
                self.frames.pop();
                self.depth = depth;
                self.spot = if function { Spot::AfterTerm } else { Spot::AfterFormula };
            }
            _ => self.after_formula(symbol),
        }
    }

    fn after_formula(&mut self, symbol: SymbolId) {
        match (self.frames.last_mut(), symbol) {
            (Some(Frame::Paren { connective: true, .. }), _) => {
                self.frames.pop();
                self.spot = Spot::AfterFormula;
            }
            (Some(Frame::Paren { connective, depth, scope, .. }), _) => {
                *connective = true;
                self.depth = *depth;
                self.scope.truncate(*scope);
                self.spot = Spot::Operand;
            }
            (_, SymbolId::COMMA) => self.begin_formula(Phase::Premise),
            (_, SymbolId::EQUIVALENT) => self.begin_formula(Phase::Last),
            (_, SymbolId::ENTAILS | SymbolId::MODELS) => self.turnstile(),
            (_, SymbolId::DEFINE) => self.define(),
            (_, SymbolId::DOT) => {
                self.begin_formula(Phase::First);
                self.spot = Spot::Statement { after_dot: true };
            }
            _ => self.spot = Spot::End,
        }
    }

    /// DEFINE: the parameters are in scope of the body.
    fn define(&mut self) {
        let Some(head) = self.head.take() else { return };
        self.frames.clear();
        self.begin_formula(Phase::Last);
        for parameter in head.parameters {
            self.bind(parameter);
        }
        if head.category != SymbolId::PRED {
            self.spot = Spot::Term;
        }
    }
}
