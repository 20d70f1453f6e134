//! What every rule of the grammar reads with: the next token, lists, chains, and how deep they nest.

use std::rc::Rc;

use crate::ast::Name;
use crate::error::{Kind, Refusal, Result, Source, Span};
use crate::lex::{Kind as T, Token, tokens};

/// The deepest nesting of a text, in rules of the grammar that contain themselves.
pub const MAX_NESTING: usize = 2_000;

pub(super) struct Parser<'a> {
    pub(super) source: &'a Rc<Source>,
    tokens: Vec<Token>,
    next: usize,
    pub(super) nesting: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a Rc<Source>) -> Self {
        Self { source, tokens: tokens(source), next: 0, nesting: 0 }
    }

    pub(super) fn token(&self) -> Token {
        let end = Token { kind: T::End, span: Span::default() };
        self.tokens.get(self.next).or(self.tokens.last()).copied().unwrap_or(end)
    }

    pub(super) fn kind(&self) -> T {
        self.token().kind
    }

    /// Where the next token begins.
    pub(super) fn start(&self) -> Span {
        self.token().span
    }

    /// From a token to the last one that was read.
    pub(super) fn since(&self, start: Span) -> Span {
        let last = self.next.checked_sub(1).and_then(|i| self.tokens.get(i));
        last.map_or(start, |last| start.to(last.span))
    }

    pub(super) fn text(&self, span: Span) -> &'a str {
        self.source.text.get(span.start..span.end).unwrap_or("")
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.token();
        self.next += 1;
        token
    }

    pub(super) fn at(&self, sign: &str) -> bool {
        matches!(self.kind(), T::Sign(s) | T::Keyword(s) if s == sign)
    }

    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let there = self.at(sign);
        self.next += usize::from(there);
        there
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    pub(super) fn name(&mut self) -> Result<Name> {
        if self.kind() != T::Name {
            return Err(self.unexpected("a name"));
        }
        let span = self.advance().span;
        Ok(Name { text: self.text(span).into(), span })
    }

    /// One or more, separated by commas.
    pub(super) fn list<X>(&mut self, item: impl Fn(&mut Self) -> Result<X>) -> Result<Vec<X>> {
        let mut items = vec![item(self)?];
        while self.accept(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Refuses the next token.
    pub(super) fn unexpected(&self, wanted: &str) -> Refusal {
        let Token { kind, span } = self.token();
        let message = match kind {
            T::Bad(why) => why.to_owned(),
            T::End => format!("the text ends where {wanted} is wanted"),
            _ => format!("`{}` stands where {wanted} is wanted", self.text(span)),
        };
        Refusal::new(Kind::Syntax, message).at(self.source, span)
    }

    /// Reads something that may contain itself.
    pub(super) fn nested<X>(&mut self, read: impl FnOnce(&mut Self) -> Result<X>) -> Result<X> {
        self.deeper(1)?;
        let found = read(self)?;
        self.nesting -= 1;
        Ok(found)
    }

    /// Counts further levels, which the caller takes back.
    pub(super) fn deeper(&mut self, levels: usize) -> Result<()> {
        self.nesting += levels;
        if self.nesting <= MAX_NESTING {
            return Ok(());
        }
        let message = format!("nesting goes deeper than {MAX_NESTING} levels");
        Err(Refusal::new(Kind::Limit, message).at(self.source, self.token().span))
    }

    /// Reads a chain of a left associative operator, whose tree is as deep as the chain is long.
    pub(super) fn chain<X>(
        &mut self,
        first: X,
        more: impl Fn(&mut Self) -> bool,
        next: impl Fn(&mut Self, X) -> Result<X>,
    ) -> Result<X> {
        let before = self.nesting;
        let mut found = first;
        while more(self) {
            self.deeper(1)?;
            found = next(self, found)?;
        }
        self.nesting = before;
        Ok(found)
    }
}
