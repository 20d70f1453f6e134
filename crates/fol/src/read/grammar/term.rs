//! Terms, arguments and indices (F11).

use super::{Read, Reader};
use crate::ast::{Constant, Function, Term, Variable};
use crate::codec::{BASE_U64, following, shifted};
use crate::error::MAX_DEPTH;
use crate::input::Mode;
use crate::symbol::SymbolId;

impl Reader<'_> {
    /// A term inside `depth` nodes, and how many of its own nodes enclose its innermost one.
    pub(super) fn term(&mut self, depth: usize) -> Read<(Term, usize)> {
        let mut open: Vec<(Function, Vec<Term>)> = Vec::new();
        let mut height = 0;
        loop {
            self.ask(&[SymbolId::VAR, SymbolId::CONST]);
            let deepest = depth + open.len() >= MAX_DEPTH;
            if !deepest {
                self.ask(&[SymbolId::FUNC]);
            }
            let mut term = match self.next() {
                Some(SymbolId::VAR) => {
                    self.advance();
                    Term::Variable(Variable(self.index()?))
                }
                Some(SymbolId::CONST) => {
                    self.advance();
                    Term::Constant(Constant(self.index()?))
                }
                Some(SymbolId::FUNC) if deepest => return self.refuse_as("an open term", true),
                Some(SymbolId::FUNC) => {
                    self.advance();
                    let function = Function(self.index()?);
                    if !self.take(SymbolId::LPAREN) {
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
                if self.take(SymbolId::COMMA) {
                    open.push((function, arguments));
                    break;
                }
                if !self.take(SymbolId::RPAREN) {
                    return self.refuse("an argument");
                }
                term = Term::Function(function, arguments);
            }
        }
    }

    /// The arguments of a predicate, if there are any, and their height.
    pub(super) fn arguments(&mut self, depth: usize) -> Read<(Vec<Term>, usize)> {
        let (mut arguments, mut height) = (Vec::new(), 0);
        if !self.take(SymbolId::LPAREN) {
            return Ok((arguments, height));
        }
        loop {
            let (term, own) = self.term(depth)?;
            arguments.push(term);
            height = height.max(own);
            if self.take(SymbolId::RPAREN) {
                return Ok((arguments, height));
            }
            if !self.take(SymbolId::COMMA) {
                return self.refuse("an argument");
            }
        }
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
