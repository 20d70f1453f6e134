//! References, their places, and index expressions.

use super::{NESTING, Parsed, Parser};
use crate::ast::{Brackets, IndexExpr, IndexKind, IndexOperator, Place, PlaceKind, Reference, Span};
use crate::lex::TokenKind;

impl Parser<'_> {
    /// `NAME [ "[" … "]" | "(" … ")" ]`. A small name is read too, see [`Reference`].
    pub(super) fn reference(&mut self, expected: &str) -> Parsed<Reference> {
        if !matches!(self.peek(), TokenKind::Capital | TokenKind::Small) {
            return Err(self.unexpected(expected));
        }
        let name = self.name();
        let (brackets, closing, more) = match self.peek() {
            TokenKind::LeftSquare => (Brackets::Square, TokenKind::RightSquare, "an operator, `,` or `]`"),
            TokenKind::LeftRound => (Brackets::Round, TokenKind::RightRound, "an operator, `,` or `)`"),
            _ => return Ok(Reference::bare(name)),
        };
        self.open()?;
        let places = if self.peek() == closing { Vec::new() } else { self.list(Self::place)? };
        self.close(closing, more)?;
        Ok(Reference { brackets, places, span: self.since(name.span), name })
    }

    /// `[ "*" ] iexpr [ "." ] | [ iexpr ] ":" [ iexpr ] | "_"`
    fn place(&mut self) -> Parsed<Place> {
        let start = self.span();
        let star = self.eat(TokenKind::Times);
        if !star && self.eat(TokenKind::Underscore) {
            return Ok(Place { kind: PlaceKind::Wildcard, star, dot: false, span: start });
        }
        let from = match self.peek() {
            TokenKind::Colon | TokenKind::Turnstile if !star => None,
            _ => Some(self.index_expr(if star {
                "an index"
            } else {
                "an index, a constant, `_` or a slice"
            })?),
        };
        let kind = match (from, self.peek()) {
            (Some(index), kind) if star || !matches!(kind, TokenKind::Colon | TokenKind::Turnstile) => {
                let dot = self.eat(TokenKind::Dot);
                return Ok(Place { kind: PlaceKind::Index(index), star, dot, span: self.since(start) });
            }
            (from, TokenKind::Turnstile) => {
                // `X[:-1]`: no arrow can stand here.
                self.state.half = true;
                PlaceKind::Slice(from, Some(self.index_expr("the end of the slice")?))
            }
            (from, _) => {
                self.advance();
                let open =
                    matches!(self.peek(), TokenKind::Comma | TokenKind::RightSquare | TokenKind::RightRound);
                let to = if open {
                    None
                } else {
                    Some(self.index_expr("the end of the slice, `,` or a bracket")?)
                };
                PlaceKind::Slice(from, to)
            }
        };
        Ok(Place { kind, star, dot: false, span: self.since(start) })
    }

    /// `iterm { ( "+" | "-" ) iterm }`
    pub(super) fn index_expr(&mut self, expected: &str) -> Parsed<IndexExpr> {
        self.state.operators = 0;
        self.index_sum(expected)
    }

    fn index_sum(&mut self, expected: &str) -> Parsed<IndexExpr> {
        let mut left = self.index_term(expected)?;
        loop {
            let operator = match self.peek() {
                TokenKind::Plus => IndexOperator::Add,
                TokenKind::Minus => IndexOperator::Subtract,
                _ => return Ok(left),
            };
            self.operator()?;
            left = binary(operator, left, self.index_term("an index or a constant")?);
        }
    }

    fn index_term(&mut self, expected: &str) -> Parsed<IndexExpr> {
        let mut left = self.index_atom(expected)?;
        loop {
            let operator = match self.peek() {
                TokenKind::Times => IndexOperator::Multiply,
                TokenKind::Slash => IndexOperator::Divide,
                TokenKind::Percent => IndexOperator::Remainder,
                _ => return Ok(left),
            };
            self.operator()?;
            left = binary(operator, left, self.index_atom("an index or a constant")?);
        }
    }

    fn index_atom(&mut self, expected: &str) -> Parsed<IndexExpr> {
        let mut signs = Vec::new();
        while self.peek() == TokenKind::Minus {
            signs.push(self.operator()?);
        }
        let start = self.span();
        let kind = match self.peek() {
            TokenKind::Number => IndexKind::Integer(self.integer()?),
            TokenKind::Small => IndexKind::Index(self.name().text),
            TokenKind::Capital => IndexKind::Name(self.name().text),
            TokenKind::Text => IndexKind::Text(self.quoted().value),
            TokenKind::LeftRound => {
                self.open()?;
                let inner = Box::new(self.index_sum("an index or a constant")?);
                self.close(TokenKind::RightRound, "an operator or `)`")?;
                IndexKind::Group(inner)
            }
            _ => return Err(self.unexpected(expected)),
        };
        let atom = IndexExpr { kind, span: self.since(start) };
        let negated = |inner: IndexExpr, sign: Span| IndexExpr {
            span: sign.to(inner.span),
            kind: IndexKind::Negate(Box::new(inner)),
        };
        Ok(signs.into_iter().rev().fold(atom, negated))
    }

    /// Passes an operator of an index expression. Each makes the tree deeper by one at most, so
    /// counting them bounds its depth.
    fn operator(&mut self) -> Parsed<Span> {
        if self.state.operators >= NESTING {
            return Err(self.too_deep("index expressions"));
        }
        self.state.operators += 1;
        Ok(self.advance())
    }
}

fn binary(operator: IndexOperator, left: IndexExpr, right: IndexExpr) -> IndexExpr {
    let span = left.span.to(right.span);
    IndexExpr { kind: IndexKind::Binary(operator, Box::new(left), Box::new(right)), span }
}
