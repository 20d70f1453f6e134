//! Statements, and the loop over them.

use super::{Parsed, Parser};
use crate::ast::{
    Array, Brackets, DomainExpr, DomainKind, Item, Name, Number, PlaceKind, Reference, RightSide, Sign,
    Start, Statement, StatementKind, Text, TypeExpr,
};
use crate::error::Refusal;
use crate::lex::TokenKind;

impl Parser<'_> {
    /// All statements; what cannot be read is reported and passed up to the next line.
    pub(super) fn program(&mut self, reports: &mut Vec<Refusal>) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            self.state.fresh = self.state.at;
            match self.peek() {
                TokenKind::End => return statements,
                TokenKind::Semicolon => {
                    self.advance();
                    continue;
                }
                _ => {}
            }
            match self.statement().and_then(|statement| self.full_stop().map(|()| statement)) {
                Ok(statement) => statements.push(statement),
                Err(report) => {
                    self.recover(&report);
                    reports.push(self.advised(report));
                }
            }
        }
    }

    /// A mistake with what is written instead, where a weight stands that is none.
    fn advised(&self, report: Refusal) -> Refusal {
        let at = self.tokens.partition_point(|token| token.span.start < report.span.start);
        let weighted = (1..=2).any(|behind| self.kind(self.state.fresh + behind) == TokenKind::DoubleColon);
        match self.kind(at) {
            TokenKind::DoubleColon => report.help(
                "in front of `::` stands a number; weights that are computed are read by a rule: `E(x) : prob` and `E(x) <- P[x]`",
            ),
            TokenKind::Arrow | TokenKind::Turnstile if weighted => report
                .help("a rule has no weight: give one to a fact in its body, as to `C()` by `0.3 :: C()`"),
            _ => report,
        }
    }

    /// Goes on behind the line in which the mistake stands.
    fn recover(&mut self, report: &Refusal) {
        let behind = self.tokens.partition_point(|token| token.span.start <= report.span.start);
        let rest = self.tokens.get(behind..).unwrap_or(&[]);
        let next = rest.iter().position(|token| token.breaks).map_or(self.tokens.len() - 1, |at| behind + at);
        // A mistake never stands before its statement, so this only ever goes forward.
        self.state.at = next.max(self.state.fresh);
        self.state.depth = 0;
        self.state.half = false;
        self.state.comparing = false;
    }

    /// The end of a statement, with or without its full stop.
    fn full_stop(&mut self) -> Parsed<()> {
        let dotted = self.eat(TokenKind::Dot);
        if self.at_end() {
            return Ok(());
        }
        Err(self.unexpected(if dotted {
            "the end of the statement"
        } else {
            "an operator or the end of the statement"
        }))
    }

    fn statement(&mut self) -> Parsed<Statement> {
        use TokenKind as K;
        let start = self.span();
        let kind = match (self.peek(), self.second()) {
            (K::At, _) => StatementKind::Directive(self.directive()?),
            (K::Text, K::Equal) => self.write()?,
            (K::Number, K::DoubleColon) => self.weighted()?,
            (K::Minus, K::Number) if self.kind(self.state.at + 2) == K::DoubleColon => self.weighted()?,
            (K::Small, K::Comma | K::Colon) => self.indices()?,
            (K::Small, _) => self.small_start()?,
            (K::Capital, K::Colon) if self.kind(self.state.at + 2) != K::Small => self.set()?,
            (K::Capital, _) => self.capital_start()?,
            (K::Number | K::Text | K::Not | K::Minus | K::LeftRound, _) => self.query()?,
            _ => return Err(self.unexpected("a statement")),
        };
        Ok(Statement { kind, span: self.since(start) })
    }

    /// `i, j : 4`
    fn indices(&mut self) -> Parsed<StatementKind> {
        let names = self.list(|parser| parser.named(TokenKind::Small, "an index"))?;
        self.expect(TokenKind::Colon, "`,` or `:`")?;
        Ok(StatementKind::Indices { names, domain: self.domain()? })
    }

    /// `Person : {Ann, Bob}`
    fn set(&mut self) -> Parsed<StatementKind> {
        let name = self.name();
        self.expect(TokenKind::Colon, "`:`")?;
        Ok(StatementKind::Set { name, domain: self.domain()? })
    }

    fn domain(&mut self) -> Parsed<DomainExpr> {
        let start = self.span();
        let kind = if self.peek() == TokenKind::LeftBrace {
            self.open()?;
            let constants = self.list(Self::constant)?;
            self.close(TokenKind::RightBrace, "`,` or `}`")?;
            DomainKind::Listed(constants)
        } else {
            let first = self.index_expr("a size, an interval, a set or its name")?;
            if self.eat(TokenKind::DotDot) {
                DomainKind::Interval(first, self.index_expr("the last value of the interval")?)
            } else {
                DomainKind::Size(first)
            }
        };
        Ok(DomainExpr { kind, span: self.since(start) })
    }

    /// `0.3 :: Rain(Mon)`. What is below 0 is refused as a probability, by the stage behind.
    fn weighted(&mut self) -> Parsed<StatementKind> {
        let start = self.span();
        let below = self.eat(TokenKind::Minus);
        let mut weight = self.number();
        if below {
            let (value, text) = (0.0 - weight.value, format!("-{}", weight.text));
            weight = Number { value, text, span: self.since(start) };
        }
        self.expect(TokenKind::DoubleColon, "`::`")?;
        Ok(StatementKind::Weighted { weight, reference: self.reference("a fact")? })
    }

    /// `"out.csv" = Y`
    fn write(&mut self) -> Parsed<StatementKind> {
        let file = self.quoted();
        self.expect(TokenKind::Equal, "`=`")?;
        Ok(StatementKind::Write { file, reference: self.reference("the tensor to write")? })
    }

    /// A statement that begins with a capital name: it is a query where nothing defines.
    fn capital_start(&mut self) -> Parsed<StatementKind> {
        let before = self.state;
        if self.second() != TokenKind::Bar {
            match self.reference("a tensor") {
                Ok(reference) => {
                    if let Some(kind) = self.defined(reference)? {
                        return Ok(kind);
                    }
                }
                Err(report) if !self.at_condition(before) => return Err(report),
                Err(_) => {}
            }
            self.state = before;
        }
        self.query()
    }

    /// A statement that begins with a small name: a query. One that only a capital name could
    /// begin (`w[i] = …`) is read as if it stood there; the stage behind refuses the name.
    fn small_start(&mut self) -> Parsed<StatementKind> {
        let before = self.state;
        let report = match self.query() {
            Ok(kind) => return Ok(kind),
            Err(report) => report,
        };
        let failed = self.state;
        self.state = before;
        let meant = self.reference("a tensor").and_then(|reference| self.defined(reference));
        match meant {
            Ok(Some(kind)) if self.at_end() || self.peek() == TokenKind::Dot => Ok(kind),
            _ => {
                self.state = failed;
                Err(report)
            }
        }
    }

    /// What is said of a tensor behind its left side, if anything is.
    fn defined(&mut self, reference: Reference) -> Parsed<Option<StatementKind>> {
        use TokenKind as K;
        Ok(Some(match self.peek() {
            K::Colon => {
                self.advance();
                let kind = Some(self.type_expr()?);
                if self.peek() == K::Tilde {
                    self.parameter(reference, kind)?
                } else {
                    StatementKind::Bare { reference, kind }
                }
            }
            K::Tilde => self.parameter(reference, None)?,
            K::Arrow | K::Turnstile => {
                self.left_side(&reference)?;
                let arrow = self.advance();
                StatementKind::Rule { head: reference, arrow, body: self.list(Self::literal)? }
            }
            K::Newline | K::Semicolon | K::End | K::Dot => StatementKind::Bare { reference, kind: None },
            _ => match self.sign() {
                Some(sign) => {
                    self.left_side(&reference)?;
                    self.equation(reference, sign)?
                }
                None => return Ok(None),
            },
        }))
    }

    /// Slices and wildcards stand in what is read only: the sign behind them cannot follow.
    fn left_side(&self, reference: &Reference) -> Parsed<()> {
        if reference.places.iter().all(|place| matches!(place.kind, PlaceKind::Index(_))) {
            return Ok(());
        }
        Err(self.unexpected("`?`, because a slice or `_` cannot stand on the left"))
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        let name = self.named(TokenKind::Small, "a type")?;
        let mut argument = None;
        if self.peek() == TokenKind::LeftRound {
            self.open()?;
            argument = Some(self.integer()?);
            self.close(TokenKind::RightRound, "`)`")?;
        }
        Ok(TypeExpr { argument, span: self.since(name.span), name })
    }

    /// `~ normal(0, 0.1)`
    fn parameter(&mut self, reference: Reference, kind: Option<TypeExpr>) -> Parsed<StatementKind> {
        let tilde = self.advance();
        self.left_side(&reference)?;
        let start = match self.peek() {
            TokenKind::LeftSquare => Start::Array(self.array()?),
            TokenKind::Small => {
                let name = self.name();
                let arguments = if self.peek() == TokenKind::LeftRound { self.values()? } else { Vec::new() };
                Start::Call { span: self.since(name.span), name, arguments }
            }
            _ => Start::Number(self.signed("an array, a number or a distribution")?),
        };
        Ok(StatementKind::Parameter { reference, kind, tilde, start })
    }

    /// The sign of assignment that comes next; `max =` may have a blank.
    fn sign(&self) -> Option<Sign> {
        match (self.peek(), self.second()) {
            (TokenKind::Equal, _) => Some(Sign::Equal),
            (TokenKind::PlusEqual, _) => Some(Sign::Plus),
            (TokenKind::TimesEqual, _) => Some(Sign::Times),
            (TokenKind::ColonEqual, _) => Some(Sign::Redefine),
            (TokenKind::Small, TokenKind::Equal) => match self.text_of(self.span()) {
                "max" => Some(Sign::Max),
                "min" => Some(Sign::Min),
                "avg" => Some(Sign::Avg),
                "or" => Some(Sign::Or),
                _ => None,
            },
            _ => None,
        }
    }

    fn equation(&mut self, head: Reference, sign: Sign) -> Parsed<StatementKind> {
        let mut sign_span = self.advance();
        if matches!(sign, Sign::Max | Sign::Min | Sign::Avg | Sign::Or) {
            sign_span = sign_span.to(self.advance());
        }
        let right = match self.peek() {
            TokenKind::LeftSquare => RightSide::Array(self.array()?),
            TokenKind::Text => self.file()?,
            _ => {
                let expr = self.expr()?;
                RightSide::Expr { expr, guards: self.guards()? }
            }
        };
        Ok(StatementKind::Equation { head, sign, sign_span, right })
    }

    /// `"a.csv" as values, header`, `"m.safetensors" as "layers.0.weight"`
    fn file(&mut self) -> Parsed<RightSide> {
        let file = self.quoted();
        let mut options = Vec::new();
        if self.peek() == TokenKind::Small && self.text_of(self.span()) == "as" {
            self.advance();
            options = self.list(|parser| match parser.peek() {
                TokenKind::Text => {
                    let Text { value, span } = parser.quoted();
                    Ok(Name { text: value, span })
                }
                _ => parser.named(TokenKind::Small, "an option of the file"),
            })?;
        }
        Ok(RightSide::File { file, options })
    }

    fn array(&mut self) -> Parsed<Array> {
        let start = self.open()?;
        let mut items = Vec::new();
        while self.peek() != TokenKind::RightSquare {
            items.push(match self.peek() {
                TokenKind::LeftSquare => Item::Array(self.array()?),
                _ => Item::Number(self.signed("a number, `[` or `]`")?),
            });
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(TokenKind::RightSquare, "`,` or `]`")?;
        Ok(Array { items, span: self.since(start) })
    }

    /// Whether a reference that began at `before` stopped where `Z[s | w=1]` goes on.
    fn at_condition(&self, before: super::State) -> bool {
        self.state.depth == before.depth + 1 && matches!(self.peek(), TokenKind::Equal | TokenKind::Bar)
    }

    /// A goal that begins with a capital name and `[`: a reference, or a conditional query.
    pub(super) fn conditional_ahead(&mut self) -> bool {
        let before = self.state;
        let square = self.peek() == TokenKind::Capital && self.second() == TokenKind::LeftSquare;
        let conditional = square && self.reference("a tensor").is_err() && self.at_condition(before);
        self.state = before;
        conditional
    }
}

impl Reference {
    /// A bare name.
    pub(super) fn bare(name: Name) -> Reference {
        Reference { span: name.span, name, brackets: Brackets::None, places: Vec::new() }
    }
}
