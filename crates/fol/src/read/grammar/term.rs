//! Terms, arguments and indices (F11).

use super::{Read, Reader, bit};
use crate::ast::{Constant, Function, Term, Variable};
use crate::built::Make;
use crate::codec::{BASE_U64, following, shifted};
use crate::error::MAX_DEPTH;
use crate::input::Mode;
use crate::symbol::SymbolId;
use crate::walk::Event;

impl<M: Make> Reader<'_, M> {
    /// A term inside `depth` nodes, and how many of its own nodes enclose its innermost one.
    pub(super) fn term(&mut self, depth: usize) -> Read<(M::Of<Term>, usize)> {
        let mut open: Vec<(Function, Vec<M::Of<Term>>)> = Vec::new();
        let mut height = 0;
        loop {
            let deepest = depth + open.len() >= MAX_DEPTH;
            self.ask(
                bit(SymbolId::VAR) | bit(SymbolId::CONST) | if deepest { 0 } else { bit(SymbolId::FUNC) },
            );
            let mut term = match self.next() {
                Some(SymbolId::VAR) => {
                    self.advance();
                    let variable = Variable(self.index()?);
                    self.make.note(Event::Occurrence { variable, binder: None, place: None });
                    M::make(|| Term::Variable(variable))
                }
                Some(SymbolId::CONST) => {
                    let constant = Constant(self.name(SymbolId::CONST)?);
                    M::make(|| Term::Constant(constant))
                }
                Some(SymbolId::FUNC) if deepest => return self.refuse_as("an open term", true),
                Some(SymbolId::FUNC) => {
                    let function = Function(self.name(SymbolId::FUNC)?);
                    if !self.take_as(SymbolId::LPAREN, Event::Punctuation) {
                        return self.refuse("the index of a function");
                    }
                    open.push((function, Vec::new()));
                    height = height.max(open.len());
                    continue;
                }
                _ => return self.refuse("what wants a term"),
            };
            loop {
                let Some((function, mut arguments)) = open.pop() else { return Ok((term, height)) };
                arguments.push(term);
                if self.take_as(SymbolId::COMMA, Event::Punctuation) {
                    open.push((function, arguments));
                    break;
                }
                if !self.take_as(SymbolId::RPAREN, Event::Punctuation) {
                    return self.refuse("an argument");
                }
                term = M::map(M::all(arguments), |arguments| Term::Function(function, arguments));
            }
        }
    }

    /// The arguments of a predicate, if there are any, and their height.
    pub(super) fn arguments(&mut self, depth: usize) -> Read<(Vec<M::Of<Term>>, usize)> {
        let (mut arguments, mut height) = (Vec::new(), 0);
        if !self.take_as(SymbolId::LPAREN, Event::Punctuation) {
            return Ok((arguments, height));
        }
        loop {
            let (term, own) = self.term(depth)?;
            arguments.push(term);
            height = height.max(own);
            if self.take_as(SymbolId::RPAREN, Event::Punctuation) {
                return Ok((arguments, height));
            }
            if !self.take_as(SymbolId::COMMA, Event::Punctuation) {
                return self.refuse("an argument");
            }
        }
    }

    /// A category symbol that is there, and its index.
    pub(super) fn name(&mut self, category: SymbolId) -> Read<u64> {
        self.advance();
        let index = self.index()?;
        self.make.note(Event::Name { category, index, arity: 0, head: false });
        Ok(index)
    }

    pub(super) fn index(&mut self) -> Read<u64> {
        let mut value = None;
        loop {
            let more = match value {
                None => BASE_U64,
                Some(0) if self.mode == Mode::Lenient => BASE_U64,
                Some(value) => following(value, u64::MAX),
            };
            self.tried_numerals = more;
            let digit = self.next().and_then(SymbolId::numeral).filter(|digit| u64::from(digit.get()) < more);
            match (digit, value) {
                (Some(digit), _) => {
                    value = shifted(value.unwrap_or(0), digit);
                    self.advance();
                }
                (None, Some(value)) => {
                    self.index_before = Some(value);
                    return Ok(value);
                }
                (None, None) => return self.refuse("a category symbol"),
            }
        }
    }
}
