//! Cuts a text into tokens and comments.
//!
//! Enter at [`lex`]. The longest sign wins (`x <-1` is an arrow), blanks vanish, and a token knows
//! whether a line ended before it: only the parser can tell whether that ends a statement. What is
//! no token of the language becomes one of the kind [`TokenKind::Unknown`] or
//! [`TokenKind::BadText`], so that lexing never fails and the parser refuses it at its place.

use crate::ast::Span;

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A small name: an index or a function.
    Small,
    /// A capital name: a tensor or a constant.
    Capital,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
    /// A text without its closing quote, or with an escape that is none.
    BadText,
    /// `_`
    Underscore,
    /// `not`, `!`, `¬`
    Not,
    /// `(`
    LeftRound,
    /// `)`
    RightRound,
    /// `[`
    LeftSquare,
    /// `]`
    RightSquare,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// `:`
    Colon,
    /// `::`
    DoubleColon,
    /// `<-`, `←`
    Arrow,
    /// `:-`, an arrow too; in an index place it is `:` and `-`.
    Turnstile,
    /// `=`
    Equal,
    /// `+=`
    PlusEqual,
    /// `*=`
    TimesEqual,
    /// `:=`
    ColonEqual,
    /// `?`
    Question,
    /// `@`
    At,
    /// `~`
    Tilde,
    /// `|`
    Bar,
    /// `+`
    Plus,
    /// `-`, `−`
    Minus,
    /// `*`, `·`, `×`
    Times,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `^`
    Caret,
    /// `<`
    Less,
    /// `<=`, `≤`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`, `≥`
    GreaterEqual,
    /// `==`
    EqualEqual,
    /// `!=`, `≠`
    NotEqual,
    /// A character that begins no token.
    Unknown,
    /// The end of a line that ends a statement. The lexer makes none: the parser sees it.
    Newline,
    /// The end of the text.
    End,
}

impl TokenKind {
    /// Whether a statement goes on in the next line behind it: operators, signs, commas, arrows.
    pub fn continues(self) -> bool {
        use TokenKind as K;
        matches!(
            self,
            K::Comma
                | K::Colon
                | K::DoubleColon
                | K::DotDot
                | K::Arrow
                | K::Turnstile
                | K::Tilde
                | K::Bar
                | K::Not
        ) || matches!(self, K::Equal | K::PlusEqual | K::TimesEqual | K::ColonEqual)
            || matches!(self, K::Plus | K::Minus | K::Times | K::Slash | K::Percent | K::Caret)
            || self.compares()
    }

    /// Whether it is a sign of comparison.
    pub fn compares(self) -> bool {
        use TokenKind as K;
        matches!(self, K::Less | K::LessEqual | K::Greater | K::GreaterEqual | K::EqualEqual | K::NotEqual)
    }
}

/// A token and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Whether a line ended between the token before it and this one.
    pub breaks: bool,
    /// Where it stands.
    pub span: Span,
}

/// The tokens of a text, the last of the kind [`TokenKind::End`], and its comments.
#[derive(Debug, Clone, Default)]
pub struct Lexed {
    /// In order of the text.
    pub tokens: Vec<Token>,
    /// From `#` or `//` to the end of the line, without the line end.
    pub comments: Vec<Span>,
}

/// Cuts a text into tokens.
pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer { text, at: 0 };
    let mut lexed = Lexed::default();
    let mut breaks = false;
    while let Some(letter) = lexer.peek() {
        let start = lexer.at;
        if letter == '\n' {
            breaks = true;
            lexer.bump(letter);
        } else if letter.is_whitespace() || (start == 0 && letter == '\u{feff}') {
            lexer.bump(letter);
        } else if letter == '#' || lexer.rest().starts_with("//") {
            lexer.skip_while(|c| c != '\n');
            let end = start + text.get(start..lexer.at).map_or(0, |comment| comment.trim_end().len());
            lexed.comments.push(Span { start, end });
        } else {
            let kind = lexer.token(letter);
            lexed.tokens.push(Token { kind, breaks, span: Span { start, end: lexer.at } });
            breaks = false;
        }
    }
    let end = Span { start: text.len(), end: text.len() };
    lexed.tokens.push(Token { kind: TokenKind::End, breaks, span: end });
    lexed
}

/// The signs, the longer before those that begin them.
const SIGNS: &[(&str, TokenKind)] = &[
    ("<-", TokenKind::Arrow),
    ("<=", TokenKind::LessEqual),
    (">=", TokenKind::GreaterEqual),
    ("==", TokenKind::EqualEqual),
    ("!=", TokenKind::NotEqual),
    ("::", TokenKind::DoubleColon),
    (":-", TokenKind::Turnstile),
    (":=", TokenKind::ColonEqual),
    ("+=", TokenKind::PlusEqual),
    ("*=", TokenKind::TimesEqual),
    ("..", TokenKind::DotDot),
];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self, letter: char) {
        self.at += letter.len_utf8();
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while let Some(letter) = self.peek().filter(|c| wanted(*c)) {
            self.bump(letter);
        }
    }

    /// The kind of the token that begins with `letter`, which is consumed.
    fn token(&mut self, letter: char) -> TokenKind {
        if is_letter(letter) {
            return self.name(letter);
        }
        if letter.is_ascii_digit() {
            return self.number();
        }
        if letter == '"' {
            return self.quoted();
        }
        if let Some((sign, kind)) = SIGNS.iter().find(|(sign, _)| self.rest().starts_with(sign)) {
            self.at += sign.len();
            return *kind;
        }
        self.bump(letter);
        single(letter)
    }

    fn name(&mut self, first: char) -> TokenKind {
        let start = self.at;
        self.skip_while(|c| is_letter(c) || c.is_ascii_digit() || c == '_');
        self.skip_while(is_prime);
        match self.text.get(start..self.at) {
            Some("not") => TokenKind::Not,
            _ if first.is_uppercase() => TokenKind::Capital,
            _ => TokenKind::Small,
        }
    }

    /// `3`, `0.5`, `1e-3`; `2.` is the number 2 and a full stop.
    fn number(&mut self) -> TokenKind {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += digits(self.rest());
        if let Some(fraction) = self.rest().strip_prefix('.') {
            let width = digits(fraction);
            self.at += if width > 0 { 1 + width } else { 0 };
        }
        if let Some(exponent) = self.rest().strip_prefix(['e', 'E']) {
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let width = digits(unsigned);
            self.at += if width > 0 { 1 + (exponent.len() - unsigned.len()) + width } else { 0 };
        }
        TokenKind::Number
    }

    fn quoted(&mut self) -> TokenKind {
        let mut kind = TokenKind::Text;
        self.bump('"');
        while let Some(letter) = self.peek() {
            match letter {
                '\n' => return TokenKind::BadText,
                '"' => {
                    self.bump(letter);
                    return kind;
                }
                '\\' => {
                    self.bump(letter);
                    match self.peek() {
                        Some(escaped @ ('"' | '\\' | 'n' | 't')) => self.bump(escaped),
                        _ => kind = TokenKind::BadText,
                    }
                }
                _ => self.bump(letter),
            }
        }
        TokenKind::BadText
    }
}

/// The kind of a token of one character.
fn single(letter: char) -> TokenKind {
    use TokenKind as K;
    match letter {
        '_' => K::Underscore,
        '!' | '¬' => K::Not,
        '(' => K::LeftRound,
        ')' => K::RightRound,
        '[' => K::LeftSquare,
        ']' => K::RightSquare,
        '{' => K::LeftBrace,
        '}' => K::RightBrace,
        ',' => K::Comma,
        ';' => K::Semicolon,
        '.' => K::Dot,
        ':' => K::Colon,
        '←' => K::Arrow,
        '=' => K::Equal,
        '?' => K::Question,
        '@' => K::At,
        '~' => K::Tilde,
        '|' => K::Bar,
        '+' => K::Plus,
        '-' | '−' => K::Minus,
        '*' | '·' | '×' => K::Times,
        '/' => K::Slash,
        '%' => K::Percent,
        '^' => K::Caret,
        '<' => K::Less,
        '>' => K::Greater,
        '≤' => K::LessEqual,
        '≥' => K::GreaterEqual,
        '≠' => K::NotEqual,
        _ => K::Unknown,
    }
}

/// A letter of a name: Unicode letters, but not those that are set as subscripts.
fn is_letter(letter: char) -> bool {
    let subscript = matches!(letter, '\u{1d62}'..='\u{1d6a}' | '\u{2090}'..='\u{209c}' | '\u{2c7c}');
    letter.is_alphabetic() && !subscript
}

/// A prime, as it is typed or as it is printed.
fn is_prime(letter: char) -> bool {
    matches!(letter, '\'' | '′')
}

/// Whether a symbol of this spelling can be written without quotes.
pub fn is_capital_name(text: &str) -> bool {
    let mut lexer = Lexer { text, at: 0 };
    let capital =
        text.chars().next().is_some_and(|first| is_letter(first) && lexer.name(first) == TokenKind::Capital);
    capital && lexer.at == text.len()
}

/// A text without its quotes and escapes.
pub fn unquote(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut letters = inner.chars();
    let mut text = String::with_capacity(inner.len());
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            },
            other => other,
        });
    }
    text
}
