//! Text to tree: the grammar of the language, by recursive descent.
//!
//! Enter at [`parse`]. One file for each part of the grammar: statements, goals and directives,
//! values and literals, references and index expressions. A function reads what its name says
//! and leaves the parser behind it, or leaves it at the first token that cannot stand there and
//! says what was expected. After a mistake reading goes on at the next line.
//!
//! Lines end statements, except inside brackets and behind a token that a statement cannot end
//! with; `Parser::peek` shows such a line end as a token. Brackets deeper than [`NESTING`] are
//! refused, so the recursion of the parser, and of all who walk the tree, is bounded.

mod expression;
mod goal;
mod reference;
mod statement;

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::ast::{Name, Number, Program, Span, Text};
use crate::error::{Code, Refusal};
use crate::lex::{Token, TokenKind, lex, unquote};

/// The deepest nesting of brackets, and of one index expression.
pub const NESTING: usize = 256;

/// Reads a program. The statements that could be read are there also if others could not; then
/// there are reports of the code `syntax`, in order of place.
pub fn parse(text: &str) -> (Program, Vec<Refusal>) {
    let lexed = lex(text);
    let mut parser = Parser::new(text, &lexed.tokens);
    let mut reports = Vec::new();
    let statements = parser.program(&mut reports);
    (Program { statements, comments: lexed.comments }, reports)
}

/// What a function of the parser returns: a part of the tree, or the one thing that is wrong.
type Parsed<T> = Result<T, Refusal>;

/// The state between two tokens. Cheap to copy, so that a statement can be tried in two ways.
#[derive(Debug, Clone, Copy)]
struct State {
    /// The token that comes next.
    at: usize,
    /// The token whose line break is spent: the first of a statement.
    fresh: usize,
    /// How many brackets are open.
    depth: usize,
    /// Whether the `:` of a `:-` in an index place is spent, and it now stands for `-`.
    half: bool,
    /// Whether `%` may stand in a value: inside comparisons.
    comparing: bool,
    /// How many operators the index expression at hand has.
    operators: usize,
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    state: State,
    /// For every token whether it is a bracket that is closed somewhere; made where it is asked for.
    closed: OnceCell<Vec<bool>>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: &'a [Token]) -> Parser<'a> {
        let state = State { at: 0, fresh: 0, depth: 0, half: false, comparing: false, operators: 0 };
        Parser { text, tokens, state, closed: OnceCell::new() }
    }

    // -- looking ----------------------------------------------------------------------------

    fn token(&self, index: usize) -> Token {
        let end = Span { start: self.text.len(), end: self.text.len() };
        let beyond = Token { kind: TokenKind::End, breaks: false, span: end };
        self.tokens.get(index).copied().unwrap_or(beyond)
    }

    /// The kind of the token at `index`, or that of the line end before it.
    fn kind(&self, index: usize) -> TokenKind {
        let token = self.token(index);
        let ends = token.breaks && self.state.depth == 0 && index > self.state.fresh;
        if ends && !self.token(index - 1).kind.continues() { TokenKind::Newline } else { token.kind }
    }

    /// The token that comes next.
    fn peek(&self) -> TokenKind {
        if self.state.half { TokenKind::Minus } else { self.kind(self.state.at) }
    }

    /// The token after the next.
    fn second(&self) -> TokenKind {
        self.kind(self.state.at + 1)
    }

    /// The place of the next token.
    fn span(&self) -> Span {
        self.token(self.state.at).span
    }

    /// From `start` to the last token that was read.
    fn since(&self, start: Span) -> Span {
        start.to(self.token(self.state.at.saturating_sub(1)).span)
    }

    fn text_of(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// Whether a statement may end here.
    fn at_end(&self) -> bool {
        matches!(self.peek(), TokenKind::Newline | TokenKind::Semicolon | TokenKind::End)
    }

    // -- reading ----------------------------------------------------------------------------

    /// Passes the next token.
    fn advance(&mut self) -> Span {
        let span = self.span();
        self.state.half = false;
        if self.state.at + 1 < self.tokens.len() {
            self.state.at += 1;
        }
        span
    }

    /// Passes the next token if it is of this kind.
    fn eat(&mut self, kind: TokenKind) -> bool {
        let here = self.peek() == kind;
        if here {
            self.advance();
        }
        here
    }

    fn expect(&mut self, kind: TokenKind, expected: &str) -> Parsed<Span> {
        if self.peek() == kind { Ok(self.advance()) } else { Err(self.unexpected(expected)) }
    }

    /// Passes an opening bracket.
    fn open(&mut self) -> Parsed<Span> {
        if self.state.depth >= NESTING {
            return Err(self.too_deep("brackets"));
        }
        self.state.depth += 1;
        Ok(self.advance())
    }

    /// Passes a closing bracket; `expected` says what else could stand here.
    fn close(&mut self, kind: TokenKind, expected: &str) -> Parsed<Span> {
        if self.peek() != kind {
            return Err(self.unexpected(expected));
        }
        self.state.depth = self.state.depth.saturating_sub(1);
        Ok(self.advance())
    }

    /// The next token as a name.
    fn name(&mut self) -> Name {
        let span = self.advance();
        Name { text: self.text_of(span).replace('′', "'"), span }
    }

    /// A name of this kind.
    fn named(&mut self, kind: TokenKind, expected: &str) -> Parsed<Name> {
        if self.peek() == kind { Ok(self.name()) } else { Err(self.unexpected(expected)) }
    }

    fn number(&mut self) -> Number {
        let span = self.advance();
        let text = self.text_of(span).to_owned();
        // A token of digits is always read; one that is too large becomes infinite.
        Number { value: text.parse().unwrap_or(f64::INFINITY), text, span }
    }

    /// `[ "-" ] number`, the sign applied.
    fn signed(&mut self, expected: &str) -> Parsed<Number> {
        let start = self.span();
        let negative = self.eat(TokenKind::Minus);
        if self.peek() != TokenKind::Number {
            return Err(self.unexpected(if negative { "a number" } else { expected }));
        }
        let number = self.number();
        if !negative {
            return Ok(number);
        }
        Ok(Number { value: -number.value, text: format!("-{}", number.text), span: start.to(number.span) })
    }

    /// A whole number of 64 bits.
    fn integer(&mut self) -> Parsed<i64> {
        let digits = self.text_of(self.span());
        match digits.parse() {
            Ok(value) => {
                self.advance();
                Ok(value)
            }
            Err(_) => Err(self.unexpected("a whole number of at most 64 bits")),
        }
    }

    fn quoted(&mut self) -> Text {
        let span = self.advance();
        Text { value: unquote(self.text_of(span)), span }
    }

    /// `item { "," item }`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(TokenKind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    // -- refusing ---------------------------------------------------------------------------

    /// The next token cannot stand here.
    fn unexpected(&self, expected: &str) -> Refusal {
        if let Some(report) = self.unclosed() {
            return report;
        }
        let token = self.token(self.state.at);
        let (span, found) = match self.peek() {
            TokenKind::Newline => (self.line_end(), "the end of the line".to_owned()),
            TokenKind::End => (token.span, "the end of the text".to_owned()),
            TokenKind::BadText => (token.span, self.bad_text(token.span)),
            _ => (token.span, quote(self.text_of(token.span))),
        };
        let refusal = Refusal::new(Code::Syntax, span, format!("expected {expected}, found {found}"));
        // `.5`
        let next = self.token(self.state.at + 1);
        let digits = self.text_of(next.span);
        let number = digits.starts_with(|first: char| first.is_ascii_digit());
        match token.span.end == next.span.start && self.text_of(token.span) == "." && number {
            true => refusal.help(format!("a number has a digit before the point: `0.{digits}`")),
            false => refusal,
        }
    }

    /// A bracket that nothing closes takes the next lines in; the mistake stands where the line ends
    /// behind which reading fails, not in the statement that comes next.
    fn unclosed(&self) -> Option<Refusal> {
        let mut open = Vec::new();
        for at in self.state.fresh..self.state.at {
            match bracket(self.token(at).kind) {
                Some((_, true)) => open.push(at),
                Some((_, false)) => drop(open.pop()),
                None => {}
            }
        }
        let opened = open.pop().filter(|_| self.state.depth > 0)?;
        let line = (opened + 1..=self.state.at).rev().find(|at| self.token(*at).breaks)?;
        if self.closed.get_or_init(|| closed(self.tokens)).get(opened) == Some(&true) {
            return None;
        }
        let token = self.token(opened);
        let close = match token.kind {
            TokenKind::LeftRound => ")",
            TokenKind::LeftSquare => "]",
            _ => "}",
        };
        let message = format!("expected `{close}`, found the end of the line");
        let report = Refusal::new(Code::Syntax, self.line_end_behind(line.saturating_sub(1)), message);
        Some(report.label(token.span, "this is not closed"))
    }

    fn bad_text(&self, span: Span) -> String {
        let text = self.text_of(span);
        if text.len() > 1 && text.ends_with('"') && !text.ends_with("\\\"") {
            "a text with an escape other than `\\\"`, `\\\\`, `\\n`, `\\t`".to_owned()
        } else {
            "a text whose closing `\"` is missing in its line".to_owned()
        }
    }

    fn too_deep(&self, what: &str) -> Refusal {
        let message = format!("{what} are nested deeper than {NESTING}");
        Refusal::new(Code::Syntax, self.span(), message).help("give parts of it names of their own")
    }

    /// Where the line of the last token ends.
    fn line_end(&self) -> Span {
        self.line_end_behind(self.state.at.saturating_sub(1))
    }

    /// Where the line of a token ends.
    fn line_end_behind(&self, token: usize) -> Span {
        let from = self.token(token).span.end;
        let rest = self.text.get(from..).unwrap_or("");
        let width = rest.find('\n').unwrap_or(rest.len());
        let line = rest.get(..width).unwrap_or("");
        let start = from + line.strip_suffix('\r').unwrap_or(line).len();
        Span { start, end: start }
    }
}

/// The kind of a bracket, as that of the opening one, and whether it opens.
fn bracket(kind: TokenKind) -> Option<(TokenKind, bool)> {
    use TokenKind as K;
    match kind {
        K::LeftRound | K::LeftSquare | K::LeftBrace => Some((kind, true)),
        K::RightRound => Some((K::LeftRound, false)),
        K::RightSquare => Some((K::LeftSquare, false)),
        K::RightBrace => Some((K::LeftBrace, false)),
        _ => None,
    }
}

/// For every token whether it is an opening bracket that a later one closes. A closing bracket closes
/// the nearest open one of its kind; those opened behind that one stay open.
fn closed(tokens: &[Token]) -> Vec<bool> {
    let mut closed = vec![false; tokens.len()];
    let mut open: Vec<(usize, TokenKind)> = Vec::new();
    let mut waiting: HashMap<TokenKind, usize> = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        match bracket(token.kind) {
            Some((kind, true)) => {
                open.push((at, kind));
                *waiting.entry(kind).or_insert(0usize) += 1;
            }
            // Only where one waits, so that every bracket is passed once.
            Some((kind, false)) if waiting.get(&kind).is_some_and(|count| *count > 0) => {
                while let Some((nearest, opened)) = open.pop() {
                    *waiting.entry(opened).or_insert(1) -= 1;
                    if opened == kind {
                        closed[nearest] = true;
                        break;
                    }
                }
            }
            Some(_) => {}
            None => {}
        }
    }
    closed
}

/// A piece of the text for a message: short, and without what would steer a terminal.
fn quote(piece: &str) -> String {
    let shown: String = piece.chars().take(40).map(|c| if c.is_control() { '·' } else { c }).collect();
    let more = if piece.chars().nth(40).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}
