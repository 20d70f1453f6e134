//! What every symbol of a tree is and refers to, in the order of the canonical tokens.
//!
//! Enter at [`walk`]. It knows scopes and canonical positions, so that those who ask (the checker, the free
//! variables, ...) need neither.

use crate::ast::{Definition, Formula, Statement, Term, Text, Variable};
use crate::codec::digit_count;
use crate::symbol::SymbolId;

/// One thing in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A statement begins.
    Statement,
    /// A symbol without index, COLON and the commas and parentheses of arguments included.
    Symbol(SymbolId),
    /// The DEFINE of a definition with a head of this category.
    Define(SymbolId),
    /// A DOT; the last one ends the text.
    Dot { last: bool },
    /// PRED, FUNC (with their arity) or CONST and an index; `head` if a definition defines it.
    Name { category: SymbolId, index: u64, arity: usize, head: bool },
    /// SORT and an index.
    Sort(u64),
    /// A quantifier, or the VAR of a parameter. Binders are numbered from 0 in this order.
    Binder { variable: Variable, sort: Option<u64>, quantifier: Option<SymbolId>, shadows: bool },
    /// The VAR of an occurrence, its binder, and the argument place that it fills.
    Occurrence { variable: Variable, binder: Option<usize>, place: Option<Place> },
}

/// An argument place of a predicate or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) category: SymbolId,
    pub(crate) index: u64,
    pub(crate) arity: usize,
    pub(crate) argument: usize,
}

/// Visits a text: each event with the position of its first canonical token.
pub(crate) fn walk(text: &Text, visit: &mut dyn FnMut(usize, Event)) {
    let mut walker = Walker { at: 0, scope: Vec::new(), binders: 0, visit };
    for (i, statement) in text.statements.iter().enumerate() {
        if i > 0 {
            walker.emit(Event::Dot { last: false }, 1);
        }
        walker.emit(Event::Statement, 0);
        walker.statement(statement);
    }
    if text.terminated {
        walker.emit(Event::Dot { last: true }, 1);
    }
}

/// The free variables of a text, by first occurrence.
pub fn free_variables(text: &Text) -> Vec<Variable> {
    let mut free = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    walk(text, &mut |_, event| {
        if let Event::Occurrence { variable, binder: None, .. } = event
            && seen.insert(variable)
        {
            free.push(variable);
        }
    });
    free
}

struct Walker<'a> {
    at: usize,
    /// Variables in scope with the numbers of their binders, innermost last.
    scope: Vec<(Variable, usize)>,
    binders: usize,
    visit: &'a mut dyn FnMut(usize, Event),
}

impl Walker<'_> {
    fn emit(&mut self, event: Event, tokens: usize) {
        (self.visit)(self.at, event);
        self.at += tokens;
    }

    fn symbol(&mut self, symbol: SymbolId) {
        self.emit(Event::Symbol(symbol), 1);
    }

    fn name(&mut self, category: SymbolId, index: u64, arity: usize, head: bool) {
        self.emit(Event::Name { category, index, arity, head }, 1 + digit_count(index) as usize);
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Formula(formula) => self.formula(formula),
            Statement::Sequent(turnstile, premises, conclusion) => {
                for (i, premise) in premises.iter().enumerate() {
                    if i > 0 {
                        self.symbol(SymbolId::COMMA);
                    }
                    self.formula(premise);
                }
                self.symbol(turnstile.symbol());
                match conclusion {
                    Some(formula) => self.formula(formula),
                    None => self.symbol(SymbolId::UNKNOWN),
                }
            }
            Statement::Definition(definition) => self.definition(definition),
            Statement::Equivalence(left, right) => {
                self.formula(left);
                self.symbol(SymbolId::EQUIVALENT);
                self.formula(right);
            }
        }
    }

    fn definition(&mut self, definition: &Definition) {
        match definition {
            Definition::Predicate(predicate, parameters, body) => {
                self.head(SymbolId::PRED, predicate.0, parameters);
                self.formula(body);
            }
            Definition::Function(function, parameters, body) => {
                self.head(SymbolId::FUNC, function.0, parameters);
                self.term(body, None);
            }
            Definition::Constant(constant, body) => {
                self.head(SymbolId::CONST, constant.0, &[]);
                self.term(body, None);
            }
        }
        self.scope.clear();
    }

    fn head(&mut self, category: SymbolId, index: u64, parameters: &[Variable]) {
        self.name(category, index, parameters.len(), true);
        for (i, parameter) in parameters.iter().enumerate() {
            self.symbol(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA });
            self.bind(*parameter, None, None);
            self.at += 1 + digit_count(parameter.0) as usize;
        }
        if !parameters.is_empty() {
            self.symbol(SymbolId::RPAREN);
        }
        self.emit(Event::Define(category), 1);
    }

    fn bind(&mut self, variable: Variable, sort: Option<u64>, quantifier: Option<SymbolId>) {
        let shadows = self.scope.iter().any(|(outer, _)| *outer == variable);
        self.emit(Event::Binder { variable, sort, quantifier, shadows }, 0);
        self.scope.push((variable, self.binders));
        self.binders += 1;
    }

    fn formula(&mut self, formula: &Formula) {
        match formula {
            Formula::Truth(truth) => self.symbol(if *truth { SymbolId::TRUE } else { SymbolId::FALSE }),
            Formula::Predicate(predicate, arguments) => self.applied(SymbolId::PRED, predicate.0, arguments),
            Formula::Relation(relation, left, right) => {
                self.term(left, None);
                self.symbol(relation.symbol());
                self.term(right, None);
            }
            Formula::Not(operand) => {
                self.symbol(SymbolId::NOT);
                self.formula(operand);
            }
            Formula::Binary(connective, left, right) => {
                self.symbol(SymbolId::LPAREN);
                self.formula(left);
                self.symbol(connective.symbol());
                self.formula(right);
                self.symbol(SymbolId::RPAREN);
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.bind(*variable, sort.map(|sort| sort.0), Some(quantifier.symbol()));
                self.at += 2 + digit_count(variable.0) as usize;
                if let Some(sort) = sort {
                    self.symbol(SymbolId::COLON);
                    self.emit(Event::Sort(sort.0), 1 + digit_count(sort.0) as usize);
                }
                self.formula(body);
                self.scope.pop();
            }
        }
    }

    fn term(&mut self, term: &Term, place: Option<Place>) {
        match term {
            Term::Variable(variable) => {
                let binder =
                    self.scope.iter().rev().find(|(bound, _)| bound == variable).map(|(_, binder)| *binder);
                let tokens = 1 + digit_count(variable.0) as usize;
                self.emit(Event::Occurrence { variable: *variable, binder, place }, tokens);
            }
            Term::Constant(constant) => self.name(SymbolId::CONST, constant.0, 0, false),
            Term::Function(function, arguments) => self.applied(SymbolId::FUNC, function.0, arguments),
        }
    }

    fn applied(&mut self, category: SymbolId, index: u64, arguments: &[Term]) {
        let arity = arguments.len();
        self.name(category, index, arity, false);
        for (argument, term) in arguments.iter().enumerate() {
            self.symbol(if argument == 0 { SymbolId::LPAREN } else { SymbolId::COMMA });
            self.term(term, Some(Place { category, index, arity, argument }));
        }
        if arity > 0 {
            self.symbol(SymbolId::RPAREN);
        }
    }
}
