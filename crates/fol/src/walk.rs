//! What every symbol of a tree is and refers to, in the order of the canonical tokens.
//!
//! Enter at [`walk`]. It knows scopes, and [`walk_placed`] canonical positions, so that those who ask (the checker, the free
//! variables, ...) need neither.

use crate::ast::{Definition, Formula, Statement, Term, Text, Variable};
use crate::codec::digit_count;
use crate::symbol::SymbolId;

/// One thing in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A statement begins.
    Statement,
    /// A symbol without index.
    Symbol(SymbolId),
    /// A symbol that only holds a name together: COLON, and the parentheses and commas of arguments.
    Punctuation(SymbolId),
    /// The DEFINE of a definition with a head of this category.
    Define(SymbolId),
    /// A DOT; the last one ends the text.
    Dot { last: bool },
    /// PRED, FUNC (with their arity) or CONST and an index; `head` if a definition defines it.
    Name { category: SymbolId, index: u64, arity: usize, head: bool },
    /// SORT and an index.
    Sort(u64),
    /// A quantifier with its VAR, or the VAR of a parameter. Binders are numbered from 0 in this order.
    Binder { variable: Variable, sort: Option<u64>, quantifier: Option<SymbolId>, shadows: bool },
    /// The VAR of an occurrence, its binder, and the argument place that it fills.
    Occurrence { variable: Variable, binder: Option<usize>, place: Option<Place> },
}

impl Event {
    /// The symbol without index and the name that the event writes.
    pub(crate) fn tokens(self) -> (Option<SymbolId>, Option<(SymbolId, u64)>) {
        match self {
            Self::Statement => (None, None),
            Self::Symbol(symbol) | Self::Punctuation(symbol) => (Some(symbol), None),
            Self::Define(_) => (Some(SymbolId::DEFINE), None),
            Self::Dot { .. } => (Some(SymbolId::DOT), None),
            Self::Name { category, index, .. } => (None, Some((category, index))),
            Self::Sort(index) => (None, Some((SymbolId::SORT, index))),
            Self::Binder { variable, quantifier, .. } => (quantifier, Some((SymbolId::VAR, variable.0))),
            Self::Occurrence { variable, .. } => (None, Some((SymbolId::VAR, variable.0))),
        }
    }
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
pub(crate) fn walk_placed(text: &Text, mut visit: impl FnMut(usize, Event)) {
    let mut at = 0;
    walk(text, |event| {
        visit(at, event);
        let (symbol, name) = event.tokens();
        at += usize::from(symbol.is_some()) + name.map_or(0, |(_, index)| 1 + digit_count(index) as usize);
    });
}

/// Visits a text.
pub(crate) fn walk(text: &Text, visit: impl FnMut(Event)) {
    let mut walker = Walker::new(visit);
    for (i, statement) in text.statements.iter().enumerate() {
        if i > 0 {
            walker.emit(Event::Dot { last: false });
        }
        walker.emit(Event::Statement);
        walker.statement(statement);
    }
    if text.terminated {
        walker.emit(Event::Dot { last: true });
    }
}

/// Visits a formula that stands alone.
pub(crate) fn walk_formula(formula: &Formula, visit: impl FnMut(Event)) {
    Walker::new(visit).formula(formula);
}

/// Visits a term that stands alone.
pub(crate) fn walk_term(term: &Term, visit: impl FnMut(Event)) {
    Walker::new(visit).term(term, None);
}

/// The free variables of a text, by first occurrence.
pub fn free_variables(text: &Text) -> Vec<Variable> {
    let mut free = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    walk(text, |event| {
        if let Event::Occurrence { variable, binder: None, .. } = event
            && seen.insert(variable)
        {
            free.push(variable);
        }
    });
    free
}

/// The variables in scope, innermost last, and their binders, numbered from 0 in the order of the tokens.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    bound: Vec<(Variable, usize)>,
    /// How many there have been.
    pub(crate) binders: usize,
}

impl Scope {
    /// The binder of a variable.
    pub(crate) fn find(&self, variable: Variable) -> Option<usize> {
        self.bound.iter().rev().find(|(bound, _)| *bound == variable).map(|(_, binder)| *binder)
    }

    pub(crate) fn bind(&mut self, variable: Variable) {
        self.bound.push((variable, self.binders));
        self.binders += 1;
    }

    pub(crate) fn leave(&mut self) {
        self.bound.pop();
    }

    /// Nothing is in scope; the numbers go on.
    pub(crate) fn clear(&mut self) {
        self.bound.clear();
    }
}

struct Walker<V> {
    scope: Scope,
    visit: V,
}

impl<V: FnMut(Event)> Walker<V> {
    fn new(visit: V) -> Self {
        Self { scope: Scope::default(), visit }
    }

    fn emit(&mut self, event: Event) {
        (self.visit)(event);
    }

    fn symbol(&mut self, symbol: SymbolId) {
        self.emit(Event::Symbol(symbol));
    }

    /// Parentheses and commas around arguments or parameters.
    fn list<T>(&mut self, members: &[T], mut each: impl FnMut(&mut Self, usize, &T)) {
        for (i, member) in members.iter().enumerate() {
            self.emit(Event::Punctuation(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA }));
            each(self, i, member);
        }
        if !members.is_empty() {
            self.emit(Event::Punctuation(SymbolId::RPAREN));
        }
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
        self.emit(Event::Name { category, index, arity: parameters.len(), head: true });
        self.list(parameters, |walker, _, parameter| walker.bind(*parameter, None, None));
        self.emit(Event::Define(category));
    }

    fn bind(&mut self, variable: Variable, sort: Option<u64>, quantifier: Option<SymbolId>) {
        let shadows = self.scope.find(variable).is_some();
        self.emit(Event::Binder { variable, sort, quantifier, shadows });
        self.scope.bind(variable);
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
                if let Some(sort) = sort {
                    self.emit(Event::Punctuation(SymbolId::COLON));
                    self.emit(Event::Sort(sort.0));
                }
                self.formula(body);
                self.scope.leave();
            }
        }
    }

    fn term(&mut self, term: &Term, place: Option<Place>) {
        match term {
            Term::Variable(variable) => {
                let binder = self.scope.find(*variable);
                self.emit(Event::Occurrence { variable: *variable, binder, place });
            }
            Term::Constant(constant) => self.applied(SymbolId::CONST, constant.0, &[]),
            Term::Function(function, arguments) => self.applied(SymbolId::FUNC, function.0, arguments),
        }
    }

    fn applied(&mut self, category: SymbolId, index: u64, arguments: &[Term]) {
        let arity = arguments.len();
        self.emit(Event::Name { category, index, arity, head: false });
        self.list(arguments, |walker, argument, term| {
            walker.term(term, Some(Place { category, index, arity, argument }));
        });
    }
}
