//! Updates, one a line: `+Edge(a, b)`, `-Road(A, "b c") = 4`.
//!
//! There are no indices in an update, so that a small word is a symbol like a capital one.

use crate::ast::Span;
use crate::error::{Code, Refusal, Result};
use crate::lex::{Token, TokenKind, lex, unquote};

/// An update as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// Whether the fact comes.
    pub(super) comes: bool,
    /// The name of its relation.
    pub(super) name: (String, Span),
    /// Its constants.
    pub(super) constants: Vec<(Word, Span)>,
    /// Its value.
    pub(super) value: Option<(f64, Span)>,
}

/// A constant as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// An integer.
    Integer(i64),
    /// A symbol.
    Symbol(String),
}

/// Reads a line; `None` where there is nothing but a comment.
///
/// # Errors
/// `syntax`, with the place in the line.
pub(super) fn read(line: &str) -> Result<Option<Written>> {
    let tokens = lex(line).tokens;
    let mut reader = Reader { line, tokens: &tokens, at: 0 };
    if reader.kind() == TokenKind::End {
        return Ok(None);
    }
    let comes = match reader.take().kind {
        TokenKind::Plus => true,
        TokenKind::Minus => false,
        _ => return Err(reader.expected_before("`+` or `-`, and a fact, as in `+Edge(A, B)`")),
    };
    let name = reader.name()?;
    let mut constants = Vec::new();
    if reader.is(TokenKind::LeftRound) {
        while !(constants.is_empty() && reader.is(TokenKind::RightRound)) {
            constants.push(reader.constant()?);
            if reader.is(TokenKind::RightRound) {
                break;
            }
            reader.expect(TokenKind::Comma, "`,` or `)`")?;
        }
    }
    let value = if reader.is(TokenKind::Equal) { Some(reader.number()?) } else { None };
    reader.is(TokenKind::Dot);
    reader.expect(TokenKind::End, "the end of the line: there is one update a line")?;
    Ok(Some(Written { comes, name, constants, value }))
}

struct Reader<'a> {
    line: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    fn token(&self) -> Token {
        let end = Span { start: self.line.len(), end: self.line.len() };
        let none = Token { kind: TokenKind::End, breaks: false, span: end };
        self.tokens.get(self.at).copied().unwrap_or(none)
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    fn take(&mut self) -> Token {
        let token = self.token();
        self.at += 1;
        token
    }

    fn is(&mut self, kind: TokenKind) -> bool {
        let is = self.kind() == kind;
        self.at += usize::from(is);
        is
    }

    fn word(&self, token: Token) -> &str {
        self.line.get(token.span.start..token.span.end).unwrap_or("")
    }

    /// What was expected where a token stands.
    fn expected(&self, token: Token, what: &str) -> Refusal {
        let found = match token.kind {
            TokenKind::End => "the line ends".to_owned(),
            _ => format!("`{}` stands", self.word(token)),
        };
        Refusal::new(Code::Syntax, token.span, format!("{found} where {what} is expected"))
    }

    fn expected_before(&self, what: &str) -> Refusal {
        let token = self.tokens.get(self.at.saturating_sub(1)).copied();
        self.expected(token.unwrap_or_else(|| self.token()), what)
    }

    fn expect(&mut self, kind: TokenKind, what: &str) -> Result<Token> {
        let token = self.token();
        if token.kind != kind {
            return Err(self.expected(token, what));
        }
        Ok(self.take())
    }

    fn name(&mut self) -> Result<(String, Span)> {
        let token = self.expect(TokenKind::Capital, "the name of a relation")?;
        Ok((self.word(token).replace('′', "'"), token.span))
    }

    fn constant(&mut self) -> Result<(Word, Span)> {
        let what = "a constant";
        let token = self.take();
        let word = match token.kind {
            TokenKind::Small | TokenKind::Capital => Word::Symbol(self.word(token).replace('′', "'")),
            TokenKind::Text => Word::Symbol(unquote(self.word(token))),
            TokenKind::Number => return self.integer(token, ""),
            TokenKind::Minus => {
                let number = self.expect(TokenKind::Number, "an integer")?;
                let span = Span { start: token.span.start, end: number.span.end };
                return self.integer(Token { span, ..number }, "-").or_else(|_| self.integer(number, "-"));
            }
            _ => return Err(self.expected(token, what)),
        };
        Ok((word, token.span))
    }

    fn integer(&self, token: Token, sign: &str) -> Result<(Word, Span)> {
        let word = self.word(token).trim_start_matches(['-', '−', ' ']);
        let value =
            format!("{sign}{word}").parse().map_err(|_| self.expected(token, "an integer of 64 bits"))?;
        Ok((Word::Integer(value), token.span))
    }

    fn number(&mut self) -> Result<(f64, Span)> {
        let minus = self.is(TokenKind::Minus);
        let token = self.expect(TokenKind::Number, "a number")?;
        let value: f64 = self.word(token).parse().map_err(|_| self.expected(token, "a number"))?;
        if !value.is_finite() {
            return Err(self.expected(token, "a finite number"));
        }
        Ok((if minus { -value } else { value }, token.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        match read(line) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Written { comes, name, constants, value })) => {
                let constants: Vec<Word> = constants.into_iter().map(|(word, _)| word).collect();
                format!("{comes} {} {constants:?} {:?}", name.0, value.map(|(value, _)| value))
            }
            Err(refusal) => format!("{} {}: {}", refusal.span.start, refusal.span.end, refusal.message),
        }
    }

    #[test]
    fn lines_are_read() {
        let cases = [
            ("+Edge(a, B)", "true Edge [Symbol(\"a\"), Symbol(\"B\")] None"),
            (" - Edge( \"b c\" , -7).  # gone", "false Edge [Symbol(\"b c\"), Integer(-7)] None"),
            ("+Road(A, 3) = -2.5", "true Road [Symbol(\"A\"), Integer(3)] Some(-2.5)"),
            ("+Rain", "true Rain [] None"),
            ("+Rain()", "true Rain [] None"),
            ("+N(-9223372036854775808)", "true N [Integer(-9223372036854775808)] None"),
            ("# a remark", "nothing"),
            ("   ", "nothing"),
        ];
        for (line, expected) in cases {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_that_are_no_updates_are_refused_with_their_places() {
        let cases = [
            ("Edge(A, B)", "0 4: `Edge` stands where `+` or `-`"),
            ("+edge(A)", "1 5: `edge` stands where the name"),
            ("+", "1 1: the line ends where the name"),
            ("+Edge(A B)", "8 9: `B` stands where `,` or `)`"),
            ("+Edge(A,", "8 8: the line ends where a constant"),
            ("+Edge(A,)", "8 9: `)` stands where a constant"),
            ("+Edge(1.5)", "6 9: `1.5` stands where an integer"),
            ("+Edge(99999999999999999999)", "6 26: `99999999999999999999` stands where an integer"),
            ("+Edge(-x)", "7 8: `x` stands where an integer"),
            ("+Edge(_)", "6 7: `_` stands where a constant"),
            ("+Edge(\"a)", "6 9: `\"a)` stands where a constant"),
            ("+Edge(A) = ", "11 11: the line ends where a number"),
            ("+Edge(A) = B", "11 12: `B` stands where a number"),
            ("+Edge(A) = 1e999", "11 16: `1e999` stands where a finite number"),
            ("+Edge(A) +Edge(B)", "9 10: `+` stands where the end of the line"),
            ("+Edge(A)?", "8 9: `?` stands where the end of the line"),
            ("\u{0}", "0 1: `\u{0}` stands where `+` or `-`"),
        ];
        for (line, expected) in cases {
            let found = shown(line);
            assert!(found.starts_with(expected), "{line}: {found}");
        }
    }
}
