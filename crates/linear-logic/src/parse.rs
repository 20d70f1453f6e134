//! Tokens to surface trees: recursive descent over the grammar of section 3.2, one function for each of its rules.
//!
//! Enter at [`file()`] or [`query`]. The first token that cannot stand where it stands is refused. Nesting beyond
//! [`MAX_NESTING`] is refused too, so that everything behind the parser may recurse over a tree.

mod formula;
mod term;

pub use term::MAX_LITERAL;

use std::rc::Rc;

use crate::ast::{Declaration, Name, Query};
use crate::error::{Kind, Refusal, Result, Source, Span};
use crate::lex::{Kind as T, Token, tokens};

/// The deepest nesting of a text, in rules of the grammar that contain themselves.
pub const MAX_NESTING: usize = 2_000;

/// The declarations of a file.
///
/// # Errors
/// The first syntax error of the text, or nesting that is too deep.
pub fn file(source: &Rc<Source>) -> Result<Vec<Declaration>> {
    let mut parser = Parser::new(source);
    let mut declarations = Vec::new();
    while parser.kind() != T::End {
        declarations.push(parser.declaration()?);
    }
    Ok(declarations)
}

/// A term, and a formula if a colon follows.
///
/// # Errors
/// As for [`file()`].
pub fn query(source: &Rc<Source>) -> Result<Query> {
    let mut parser = Parser::new(source);
    let term = parser.term()?;
    let formula = if parser.accept(":") { Some(parser.formula()?) } else { None };
    if parser.kind() == T::End {
        Ok(Query { term, formula })
    } else {
        Err(parser.unexpected("the end of the text"))
    }
}

struct Parser<'a> {
    source: &'a Rc<Source>,
    tokens: Vec<Token>,
    next: usize,
    nesting: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Rc<Source>) -> Self {
        Self { source, tokens: tokens(source), next: 0, nesting: 0 }
    }

    fn token(&self) -> Token {
        let end = Token { kind: T::End, span: Span::default() };
        self.tokens.get(self.next).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn kind(&self) -> T {
        self.token().kind
    }

    /// Where the next token begins.
    fn start(&self) -> Span {
        self.token().span
    }

    /// From a token to the last one that was read.
    fn since(&self, start: Span) -> Span {
        let last = self.next.checked_sub(1).and_then(|i| self.tokens.get(i));
        last.map_or(start, |last| start.to(last.span))
    }

    fn text(&self, span: Span) -> &'a str {
        self.source.text.get(span.start..span.end).unwrap_or("")
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        self.next += 1;
        token
    }

    fn at(&self, sign: &str) -> bool {
        matches!(self.kind(), T::Sign(s) | T::Keyword(s) if s == sign)
    }

    fn accept(&mut self, sign: &str) -> bool {
        let there = self.at(sign);
        self.next += usize::from(there);
        there
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn name(&mut self) -> Result<Name> {
        if self.kind() != T::Name {
            return Err(self.unexpected("a name"));
        }
        let span = self.advance().span;
        Ok(Name { text: self.text(span).into(), span })
    }

    /// One or more, separated by commas.
    fn list<X>(&mut self, item: impl Fn(&mut Self) -> Result<X>) -> Result<Vec<X>> {
        let mut items = vec![item(self)?];
        while self.accept(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Refuses the next token.
    fn unexpected(&self, wanted: &str) -> Refusal {
        let Token { kind, span } = self.token();
        let message = match kind {
            T::Bad(why) => why.to_owned(),
            T::End => format!("the text ends where {wanted} is wanted"),
            _ => format!("`{}` stands where {wanted} is wanted", self.text(span)),
        };
        Refusal::new(Kind::Syntax, message).at(self.source, span)
    }

    /// Reads something that may contain itself.
    fn nested<X>(&mut self, read: impl FnOnce(&mut Self) -> Result<X>) -> Result<X> {
        self.deeper(1)?;
        let found = read(self)?;
        self.nesting -= 1;
        Ok(found)
    }

    /// Counts further levels, which the caller takes back.
    fn deeper(&mut self, levels: usize) -> Result<()> {
        self.nesting += levels;
        if self.nesting <= MAX_NESTING {
            return Ok(());
        }
        let message = format!("nesting goes deeper than {MAX_NESTING} levels");
        Err(Refusal::new(Kind::Limit, message).at(self.source, self.token().span))
    }

    /// Reads a chain of a left associative operator, whose tree is as deep as the chain is long.
    fn chain<X>(
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

    fn declaration(&mut self) -> Result<Declaration> {
        let declaration = if self.accept("def") {
            let name = self.name()?;
            let parameters = self.parameters()?;
            self.expect(":")?;
            let formula = self.formula()?;
            self.expect("=")?;
            Declaration::Definition { name, parameters, formula, term: self.term()? }
        } else if self.accept("type") {
            let name = self.name()?;
            let parameters = self.parameters()?;
            self.expect("=")?;
            Declaration::Type { name, parameters, formula: self.formula()? }
        } else if self.accept("atom") {
            Declaration::Atoms(self.list(Self::name)?)
        } else {
            return Err(self.unexpected("`def`, `type` or `atom`"));
        };
        self.expect(";")?;
        Ok(declaration)
    }

    fn parameters(&mut self) -> Result<Vec<Name>> {
        if !self.accept("{") {
            return Ok(Vec::new());
        }
        let names = self.list(Self::name)?;
        self.expect("}")?;
        Ok(names)
    }
}
