//! Formulas: `!` binds tightest, then `*`, `&`, `+`, all to the left, then `-o`, to the right.

use super::parser::Parser;
use crate::ast::{Formula, FormulaKind};
use crate::error::{Result, Span};
use crate::lex::Kind as T;

type Build = fn(Box<Formula>, Box<Formula>) -> FormulaKind;

impl Parser<'_> {
    pub(super) fn formula(&mut self) -> Result<Formula> {
        self.nested(|parser| {
            let start = parser.start();
            let left = parser.sum()?;
            if !parser.accept("-o") {
                return Ok(left);
            }
            let right = parser.formula()?;
            Ok(Formula { kind: FormulaKind::Lolli(left.into(), right.into()), span: parser.since(start) })
        })
    }

    fn sum(&mut self) -> Result<Formula> {
        self.infix("+", FormulaKind::Plus, Self::with)
    }

    fn with(&mut self) -> Result<Formula> {
        self.infix("&", FormulaKind::With, Self::tensor)
    }

    fn tensor(&mut self) -> Result<Formula> {
        self.infix("*", FormulaKind::Tensor, Self::unary)
    }

    fn infix(&mut self, sign: &str, build: Build, part: fn(&mut Self) -> Result<Formula>) -> Result<Formula> {
        let start = self.start();
        let first = part(self)?;
        self.chain(
            first,
            |parser| parser.accept(sign),
            |parser, left| {
                let right = part(parser)?;
                Ok(Formula { kind: build(left.into(), right.into()), span: parser.since(start) })
            },
        )
    }

    fn unary(&mut self) -> Result<Formula> {
        let start = self.start();
        if self.accept("!") {
            let inner = self.nested(Self::unary)?;
            return Ok(Formula { kind: FormulaKind::Bang(inner.into()), span: self.since(start) });
        }
        if self.accept("(") {
            let inner = self.formula()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.kind() == T::Numeral && self.text(start) == "1" {
            self.advance();
            return Ok(Formula { kind: FormulaKind::One, span: start });
        }
        if self.kind() != T::Name {
            return Err(self.unexpected("a formula"));
        }
        let name = self.name()?.text;
        let arguments = self.braces()?;
        Ok(Formula { kind: FormulaKind::Name { name, arguments }, span: self.since(start) })
    }

    /// `{A, B}`, if an opening brace follows.
    pub(super) fn braces(&mut self) -> Result<Option<Vec<Formula>>> {
        if !self.accept("{") {
            return Ok(None);
        }
        let formulas = self.list(Self::formula)?;
        self.expect("}")?;
        Ok(Some(formulas))
    }

    /// The span of a word with its braces.
    pub(super) fn with_braces(&mut self, start: Span) -> Result<(Option<Vec<Formula>>, Span)> {
        let braces = self.braces()?;
        Ok((braces, self.since(start)))
    }
}
