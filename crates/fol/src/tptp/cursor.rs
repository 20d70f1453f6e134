//! A place in the lexemes of a file, and the refusals that point at it.

use super::lex::{Lexeme, Token, lex};
use crate::error::{Kind, Refusal};

/// The lexemes of one file, read from the left.
pub(super) struct Cursor<'a> {
    source: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str) -> Result<Self, Refusal> {
        Ok(Self { source, lexemes: lex(source)?, at: 0 })
    }

    /// The number of lexemes read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn at_end(&self) -> bool {
        self.peek().is_none()
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.lexemes.get(self.at).map(|lexeme| &lexeme.token)
    }

    pub(super) fn sees(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(s)) if *s == sign)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Refusal> {
        if !self.sees(sign) {
            return Err(self.unexpected(sign));
        }
        self.advance();
        Ok(())
    }

    /// `, source, …` after a formula, up to the closing parenthesis of the whole.
    pub(super) fn skip_annotations(&mut self) -> Result<(), Refusal> {
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None => return Err(self.unexpected(")")),
                Some(Token::Sign(")")) if open == 0 => return Ok(()),
                Some(Token::Sign("(" | "[")) => open += 1,
                Some(Token::Sign(")" | "]")) => open = open.saturating_sub(1),
                Some(_) => {}
            }
            self.advance();
        }
    }

    /// What stands here cannot; where it is TPTP that is not read, that is said instead.
    pub(super) fn unexpected(&self, wanted: &str) -> Refusal {
        let refusal = match self.peek() {
            None => Refusal::new(Kind::UnexpectedEnd, format!("the file ends where {wanted} should stand"))
                .found("end"),
            Some(Token::Integer | Token::Foreign | Token::Dollar(_)) => {
                return self.unsupported("this part of TPTP is not read");
            }
            Some(Token::Sign("[")) if wanted == "a formula" => {
                return self.unsupported("sequents of TPTP are not read");
            }
            Some(_) => {
                Refusal::new(Kind::UnexpectedSymbol, format!("{wanted} should stand here")).found(self.text())
            }
        };
        self.here(refusal)
    }

    pub(super) fn unsupported(&self, message: &str) -> Refusal {
        self.here(
            Refusal::new(Kind::TptpUnsupported, message).found(self.text()).help(
                "fof and cnf formulas without numbers, strings and $ names but $true and $false are read",
            ),
        )
    }

    fn text(&self) -> &str {
        self.lexemes.get(self.at).and_then(|l| self.source.get(l.start..l.end)).unwrap_or("end")
    }

    pub(super) fn here(&self, refusal: Refusal) -> Refusal {
        self.located(refusal, self.at)
    }

    pub(super) fn located(&self, refusal: Refusal, at: usize) -> Refusal {
        let end = self.source.len();
        let (start, end) = self.lexemes.get(at).map_or((end, end), |l| (l.start, l.end));
        refusal.span(start, end)
    }
}
