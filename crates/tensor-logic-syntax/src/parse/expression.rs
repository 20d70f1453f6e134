//! Values and literals.

use super::{Parsed, Parser};
use crate::ast::{
    Brackets, Comparison, Expr, ExprKind, IndexKind, Joint, Literal, LiteralKind, Name, Place, PlaceKind,
    Reference, Span,
};
use crate::function;
use crate::lex::TokenKind;

impl Parser<'_> {
    /// `term { ( "+" | "-" ) term }`
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let first = self.term()?;
        let start = first.span;
        let mut terms = vec![(false, first)];
        while matches!(self.peek(), TokenKind::Plus | TokenKind::Minus) {
            let subtracted = self.peek() == TokenKind::Minus;
            self.advance();
            terms.push((subtracted, self.term()?));
        }
        Ok(single_or(terms, |(_, term)| term, ExprKind::Sum, self.since(start)))
    }

    /// `[ "-" ] factor { … }`
    fn term(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if !self.eat(TokenKind::Minus) {
            return self.product();
        }
        let minus = self.since(start);
        let mut product = self.product()?;
        let whole = self.since(start);
        if let ExprKind::Product(factors) = &mut product.kind
            && self.state.comparing
            && factors.iter().any(|(joint, _)| matches!(joint, Joint::Over | Joint::Remainder))
            && let Some((_, first)) = factors.first_mut()
        {
            // From left to right, as in an index: of whole numbers, -1 / 2 is not -(1 / 2).
            let (span, factor) = (minus.to(first.span), first.clone());
            *first = Expr { kind: ExprKind::Negate(Box::new(factor)), span };
            return Ok(Expr { span: whole, ..product });
        }
        Ok(Expr { kind: ExprKind::Negate(Box::new(product)), span: whole })
    }

    fn product(&mut self) -> Parsed<Expr> {
        let first = self.factor("a value")?;
        let start = first.span;
        let mut factors = vec![(Joint::First, first)];
        loop {
            let joint = match self.peek() {
                TokenKind::Times => Joint::Times,
                TokenKind::Slash => Joint::Over,
                TokenKind::Percent if self.state.comparing => Joint::Remainder,
                kind if begins_factor(kind) => Joint::Beside,
                _ => break,
            };
            if joint != Joint::Beside {
                self.advance();
            }
            factors.push((joint, self.factor("a factor")?));
        }
        Ok(single_or(factors, |(_, factor)| factor, ExprKind::Product, self.since(start)))
    }

    /// `base [ "^" ( [ "-" ] base | "{" expr "}" ) ]`
    fn factor(&mut self, expected: &str) -> Parsed<Expr> {
        let base = self.base(expected)?;
        if !self.eat(TokenKind::Caret) {
            return Ok(base);
        }
        let start = self.span();
        let braces = self.peek() == TokenKind::LeftBrace;
        let kind = if braces {
            self.open()?;
            let inner = Box::new(self.expr()?);
            self.close(TokenKind::RightBrace, "an operator or `}`")?;
            ExprKind::Group { expr: inner, guards: Vec::new() }
        } else if self.eat(TokenKind::Minus) {
            ExprKind::Negate(Box::new(self.base("an exponent")?))
        } else {
            self.base("an exponent")?.kind
        };
        let exponent = Expr { kind, span: self.since(start) };
        let span = self.since(base.span);
        Ok(Expr { kind: ExprKind::Power(Box::new(base), Box::new(exponent), braces), span })
    }

    fn base(&mut self, expected: &str) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.peek() {
            TokenKind::Number => ExprKind::Number(self.number()),
            TokenKind::Text => ExprKind::Text(self.quoted()),
            TokenKind::Capital => ExprKind::Reference(self.reference("a tensor")?),
            TokenKind::Small => self.small()?,
            TokenKind::Not => {
                self.advance();
                ExprKind::Not(self.reference("a relation behind `not`")?)
            }
            TokenKind::LeftRound => {
                self.open()?;
                let expr = Box::new(self.expr()?);
                let guards = self.guards()?;
                self.close(TokenKind::RightRound, "an operator, `|` or `)`")?;
                ExprKind::Group { expr, guards }
            }
            _ => return Err(self.unexpected(expected)),
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// What begins with a small name: an index, a call, or (a mistake that is refused by its
    /// name) a tensor with a small letter.
    fn small(&mut self) -> Parsed<ExprKind> {
        match self.second() {
            TokenKind::LeftRound if self.small_fact() => Ok(ExprKind::Reference(self.reference("a value")?)),
            TokenKind::LeftRound => {
                let name = self.name();
                self.call(name, None)
            }
            TokenKind::LeftSquare => self.axes_or_places(),
            _ => Ok(ExprKind::Index(self.name())),
        }
    }

    /// `rain()` in a literal: no call, because a call has arguments.
    fn small_fact(&self) -> bool {
        let empty = self.kind(self.state.at + 2) == TokenKind::RightRound;
        empty && self.state.comparing && !function::is_built_in(self.text_of(self.span()))
    }

    /// `sum[j](…)`, or `w[i]` with a small letter.
    fn axes_or_places(&mut self) -> Parsed<ExprKind> {
        let reference = self.reference("a value")?;
        let touching = self.span().start == reference.span.end;
        if self.peek() != TokenKind::LeftRound {
            return Ok(ExprKind::Reference(reference));
        }
        let axes = reference.places.iter().map(axis).collect::<Option<Vec<Name>>>();
        match axes {
            Some(axes) if !axes.is_empty() => self.call(reference.name, Some(axes)),
            _ if !touching => Ok(ExprKind::Reference(reference)),
            _ => {
                let first = reference.places.iter().find(|place| axis(place).is_none());
                let mut report = self.unexpected("indices between `[` and `](`");
                report.span = first.map_or(report.span, |place| place.span);
                report.message = "expected indices between `[` and `]` of a function".to_owned();
                Err(report)
            }
        }
    }

    /// The arguments of a call, from its `(`.
    fn call(&mut self, name: Name, axes: Option<Vec<Name>>) -> Parsed<ExprKind> {
        self.open()?;
        let arguments = self.list(Self::expr)?;
        let guards = self.guards()?;
        self.close(TokenKind::RightRound, "an operator, `,`, `|` or `)`")?;
        Ok(ExprKind::Call { name, axes, arguments, guards })
    }

    /// `[ "|" literal { "," literal } ]`
    pub(super) fn guards(&mut self) -> Parsed<Vec<Literal>> {
        if self.eat(TokenKind::Bar) { self.list(Self::literal) } else { Ok(Vec::new()) }
    }

    /// A reference, a negated one, a comparison or `y = x + 1`.
    pub(super) fn literal(&mut self) -> Parsed<Literal> {
        let outside = std::mem::replace(&mut self.state.comparing, true);
        let start = self.span();
        let kind = self.literal_kind();
        self.state.comparing = outside;
        Ok(Literal { kind: kind?, span: self.since(start) })
    }

    fn literal_kind(&mut self) -> Parsed<LiteralKind> {
        let left = self.expr()?;
        if let Some(comparison) = comparison(self.peek()) {
            let sign = self.advance();
            return Ok(LiteralKind::Compare { left, comparison, sign, right: self.expr()? });
        }
        match left.kind {
            ExprKind::Index(index) if self.eat(TokenKind::Equal) => {
                Ok(LiteralKind::Assign { index, value: self.index_expr("an index expression")? })
            }
            ExprKind::Reference(reference) => Ok(LiteralKind::Positive(reference)),
            ExprKind::Not(reference) => Ok(LiteralKind::Negative(reference)),
            ExprKind::Index(name) if self.ends_literal() => Ok(LiteralKind::Positive(Reference::bare(name))),
            ExprKind::Call { name, axes: None, arguments, guards }
                if self.ends_literal() && guards.is_empty() =>
            {
                match small_relation(name, &arguments, left.span) {
                    Some(reference) => Ok(LiteralKind::Positive(reference)),
                    None => Err(self.unexpected("a sign of comparison")),
                }
            }
            _ => Err(self.unexpected("a sign of comparison")),
        }
    }

    fn ends_literal(&self) -> bool {
        self.at_end()
            || matches!(
                self.peek(),
                TokenKind::Comma | TokenKind::RightRound | TokenKind::Question | TokenKind::Dot
            )
    }
}

/// One item for itself, several as what `many` makes of them.
fn single_or<T>(
    mut items: Vec<T>,
    one: impl Fn(T) -> Expr,
    many: impl Fn(Vec<T>) -> ExprKind,
    span: Span,
) -> Expr {
    match (items.len(), items.pop()) {
        (1, Some(item)) => one(item),
        (_, last) => {
            items.extend(last);
            Expr { kind: many(items), span }
        }
    }
}

fn begins_factor(kind: TokenKind) -> bool {
    use TokenKind as K;
    matches!(kind, K::Number | K::Text | K::Capital | K::Small | K::Not | K::LeftRound)
}

fn comparison(kind: TokenKind) -> Option<Comparison> {
    Some(match kind {
        TokenKind::Less => Comparison::Less,
        TokenKind::LessEqual => Comparison::LessEqual,
        TokenKind::Greater => Comparison::Greater,
        TokenKind::GreaterEqual => Comparison::GreaterEqual,
        TokenKind::EqualEqual => Comparison::Equal,
        TokenKind::NotEqual => Comparison::NotEqual,
        _ => return None,
    })
}

/// A place that is an index and nothing else.
fn axis(place: &Place) -> Option<Name> {
    match &place.kind {
        PlaceKind::Index(index) if !place.star && !place.dot => match &index.kind {
            IndexKind::Index(text) => Some(Name { text: text.clone(), span: index.span }),
            _ => None,
        },
        _ => None,
    }
}

/// `parent(x, y)` where a literal must stand: a relation with a small letter, unless it is a
/// function or its arguments are no index expressions.
fn small_relation(name: Name, arguments: &[Expr], span: Span) -> Option<Reference> {
    if function::is_built_in(&name.text) {
        return None;
    }
    let place = |argument: &Expr| {
        let index = argument.as_index()?;
        Some(Place { kind: PlaceKind::Index(index), star: false, dot: false, span: argument.span })
    };
    let places = arguments.iter().map(place).collect::<Option<Vec<Place>>>()?;
    Some(Reference { name, brackets: Brackets::Round, places, span })
}
