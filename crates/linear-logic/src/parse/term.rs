//! Terms. What binds or scrutinises reaches as far to the right as it can; then `*`, then application, both to the
//! left, then the prefix words, then operands.

use super::parser::Parser;
use crate::ast::{Formula, Name, Side, Term, TermKind};
use crate::error::{Result, Span};
use crate::lex::Kind as T;

/// The largest numeral, and the longest binary word.
pub const MAX_LITERAL: usize = 1_048_576;

impl Parser<'_> {
    pub(super) fn term(&mut self) -> Result<Term> {
        self.nested(|parser| {
            let start = parser.start();
            let (T::Sign(word) | T::Keyword(word)) = parser.kind() else { return parser.product() };
            let kind = match word {
                "\\" => return parser.lambda(),
                "let" => parser.binding()?,
                "copy" => parser.copy()?,
                "discard" => return parser.discard(),
                "promote" => parser.promote()?,
                "case" => parser.case()?,
                _ => return parser.product(),
            };
            Ok(Term { kind, span: parser.since(start) })
        })
    }

    fn boxed(&mut self) -> Result<Box<Term>> {
        self.term().map(Box::new)
    }

    /// `\x y. t` is `\x. \y. t`: an inner λ begins at its binder.
    fn lambda(&mut self) -> Result<Term> {
        let start = self.start();
        self.advance();
        let mut binders: Vec<(Span, Name, Option<Formula>)> = Vec::new();
        while binders.is_empty() || self.kind() == T::Name || self.at("(") {
            let from = self.start();
            let (name, domain) = self.binder(binders.is_empty())?;
            let alone = domain.is_some() && self.text(from) != "(";
            binders.push((if binders.is_empty() { start } else { from }, name, domain));
            if alone {
                break;
            }
        }
        self.expect(".")?;
        self.deeper(binders.len())?;
        let mut term = self.term()?;
        self.nesting -= binders.len();
        for (from, binder, domain) in binders.into_iter().rev() {
            let kind = TermKind::Lambda { binder, domain, body: term.into() };
            term = Term { kind, span: self.since(from) };
        }
        Ok(term)
    }

    /// A name, a name and its formula in parentheses, or, if it is the first, a name and its formula without them.
    fn binder(&mut self, first: bool) -> Result<(Name, Option<Formula>)> {
        if self.accept("(") {
            let name = self.name()?;
            self.expect(":")?;
            let formula = self.formula()?;
            self.expect(")")?;
            return Ok((name, Some(formula)));
        }
        let name = self.name()?;
        let formula = if first && self.accept(":") { Some(self.formula()?) } else { None };
        Ok((name, formula))
    }

    fn binding(&mut self) -> Result<TermKind> {
        self.advance();
        if self.accept("(") {
            self.expect(")")?;
            self.expect("=")?;
            let scrutinee = self.boxed()?;
            self.expect("in")?;
            return Ok(TermKind::LetUnit { scrutinee, body: self.boxed()? });
        }
        let left = self.name()?;
        self.expect("*")?;
        let right = self.name()?;
        self.expect("=")?;
        let scrutinee = self.boxed()?;
        self.expect("in")?;
        Ok(TermKind::LetTensor { scrutinee, left, right, body: self.boxed()? })
    }

    fn copy(&mut self) -> Result<TermKind> {
        self.advance();
        let scrutinee = self.boxed()?;
        self.expect("as")?;
        let left = self.name()?;
        self.expect(",")?;
        let right = self.name()?;
        self.expect("in")?;
        Ok(TermKind::Copy { scrutinee, left, right, body: self.boxed()? })
    }

    /// `discard t, u in v` is `discard t in discard u in v`: an inner one begins at its scrutinee.
    fn discard(&mut self) -> Result<Term> {
        let start = self.start();
        self.advance();
        let mut scrutinees = vec![(start, self.term()?)];
        while self.accept(",") {
            scrutinees.push((self.start(), self.term()?));
        }
        self.expect("in")?;
        self.deeper(scrutinees.len())?;
        let mut term = self.term()?;
        self.nesting -= scrutinees.len();
        for (from, scrutinee) in scrutinees.into_iter().rev() {
            let kind = TermKind::Discard { scrutinee: scrutinee.into(), body: term.into() };
            term = Term { kind, span: self.since(from) };
        }
        Ok(term)
    }

    fn promote(&mut self) -> Result<TermKind> {
        self.advance();
        let mut sources = Vec::new();
        if self.accept("(") && !self.accept(")") {
            sources = self.list(|parser| {
                let source = parser.term()?;
                parser.expect("for")?;
                Ok((source, parser.name()?))
            })?;
            self.expect(")")?;
        }
        self.expect("in")?;
        Ok(TermKind::Promote { sources, body: self.boxed()? })
    }

    fn case(&mut self) -> Result<TermKind> {
        self.advance();
        let scrutinee = self.boxed()?;
        self.expect("of")?;
        let left = self.branch("inl")?;
        self.expect("|")?;
        Ok(TermKind::Case { scrutinee, left, right: self.branch("inr")? })
    }

    fn branch(&mut self, word: &str) -> Result<(Name, Box<Term>)> {
        self.expect(word)?;
        let name = self.name()?;
        self.expect("->")?;
        Ok((name, self.boxed()?))
    }

    fn product(&mut self) -> Result<Term> {
        let start = self.start();
        let first = self.application()?;
        self.chain(
            first,
            |parser| parser.accept("*"),
            |parser, left| {
                let right = parser.application()?;
                Ok(Term { kind: TermKind::Tensor(left.into(), right.into()), span: parser.since(start) })
            },
        )
    }

    fn application(&mut self) -> Result<Term> {
        let start = self.start();
        let first = self.prefix()?;
        self.chain(first, Self::begins_prefix, |parser, head| {
            let argument = parser.prefix()?;
            Ok(Term { kind: TermKind::Apply(head.into(), argument.into()), span: parser.since(start) })
        })
    }

    fn begins_prefix(&mut self) -> bool {
        match self.kind() {
            T::Name | T::Numeral | T::Word => true,
            T::Sign(sign) => matches!(sign, "(" | "[" | "<"),
            T::Keyword(word) => matches!(
                word,
                "derelict" | "fst" | "snd" | "coderelict" | "inl" | "inr" | "cocopy" | "coweaken"
            ),
            T::Bad(_) | T::End => false,
        }
    }

    fn prefix(&mut self) -> Result<Term> {
        let start = self.start();
        let T::Keyword(word) = self.kind() else { return self.operand() };
        let kind = match word {
            "derelict" => TermKind::Derelict(self.prefixed()?),
            "fst" => TermKind::First(self.prefixed()?),
            "snd" => TermKind::Second(self.prefixed()?),
            "coderelict" => TermKind::Coderelict(self.prefixed()?),
            "cocopy" => {
                let left = self.prefixed()?;
                TermKind::Cocopy(left, self.nested(Self::prefix)?.into())
            }
            "inl" | "inr" => {
                self.advance();
                let (braces, braces_span) = self.with_braces(start)?;
                let side = if word == "inl" { Side::Left } else { Side::Right };
                TermKind::Inject { side, braces, braces_span, term: self.nested(Self::prefix)?.into() }
            }
            _ => return self.operand(),
        };
        Ok(Term { kind, span: self.since(start) })
    }

    /// The prefix behind a prefix word.
    fn prefixed(&mut self) -> Result<Box<Term>> {
        self.advance();
        self.nested(Self::prefix).map(Box::new)
    }

    fn operand(&mut self) -> Result<Term> {
        let start = self.start();
        let kind = match self.kind() {
            T::Name => {
                let name = self.name()?.text;
                TermKind::Name { name, braces: self.braces()? }
            }
            T::Numeral => {
                self.advance();
                let value = self.text(start).parse().ok().filter(|n| *n as usize <= MAX_LITERAL);
                TermKind::Numeral { value, braces: self.braces()? }
            }
            T::Word => {
                self.advance();
                let digits = self.text(start).get(2..).unwrap_or("");
                let digits =
                    (digits.len() <= MAX_LITERAL).then(|| digits.bytes().map(|b| b == b'1').collect());
                TermKind::Word { digits, braces: self.braces()? }
            }
            T::Keyword("coweaken") => {
                self.advance();
                if !self.at("{") {
                    return Err(self.unexpected("`{`"));
                }
                TermKind::Coweaken { braces: self.braces()? }
            }
            T::Sign("(") => return self.parenthesised(),
            T::Sign("[") => {
                self.advance();
                let body = self.boxed()?;
                self.expect("]")?;
                TermKind::Promote { sources: Vec::new(), body }
            }
            T::Sign("<") => {
                self.advance();
                let left = self.boxed()?;
                self.expect(",")?;
                let right = self.boxed()?;
                self.expect(">")?;
                TermKind::With(left, right)
            }
            _ => return Err(self.unexpected("a term")),
        };
        Ok(Term { kind, span: self.since(start) })
    }

    /// `()`, a term in parentheses, which are not part of its span, or an ascription, which has them.
    fn parenthesised(&mut self) -> Result<Term> {
        let start = self.start();
        self.advance();
        if self.accept(")") {
            return Ok(Term { kind: TermKind::Unit, span: self.since(start) });
        }
        let term = self.term()?;
        if !self.accept(":") {
            self.expect(")")?;
            return Ok(term);
        }
        let formula = self.formula()?;
        self.expect(")")?;
        Ok(Term { kind: TermKind::Ascribe(term.into(), formula), span: self.since(start) })
    }
}
