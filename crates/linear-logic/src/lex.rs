//! Text to tokens with spans. What is no token becomes a bad token, which the parser refuses when it gets there: so of
//! several errors the first in the text is reported, lexical or not.

use crate::error::{Source, Span};

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name that is no reserved word.
    Name,
    /// ASCII digits.
    Numeral,
    /// `0b` and digits.
    Word,
    /// A reserved word; `der` is read as `derelict`.
    Keyword(&'static str),
    /// Punctuation, in its ASCII spelling.
    Sign(&'static str),
    /// No token: why.
    Bad(&'static str),
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

const KEYWORDS: [&str; 21] = [
    "def",
    "type",
    "atom",
    "let",
    "in",
    "copy",
    "as",
    "discard",
    "promote",
    "for",
    "derelict",
    "der",
    "case",
    "of",
    "inl",
    "inr",
    "fst",
    "snd",
    "coweaken",
    "cocopy",
    "coderelict",
];

/// Signs, the longer before those that they begin with, with the ASCII spelling of each.
const SIGNS: [(&str, &str); 28] = [
    ("-o", "-o"),
    ("->", "->"),
    ("⊸", "-o"),
    ("→", "->"),
    ("\\", "\\"),
    ("λ", "\\"),
    ("*", "*"),
    ("⊗", "*"),
    ("+", "+"),
    ("⊕", "+"),
    ("&", "&"),
    ("!", "!"),
    ("<", "<"),
    ("⟨", "<"),
    (">", ">"),
    ("⟩", ">"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
    (":", ":"),
    (";", ";"),
    (",", ","),
    ("=", "="),
    (".", "."),
    ("|", "|"),
];

fn begins_name(c: char) -> bool {
    (c.is_alphabetic() && c != 'λ') || c == '_'
}

/// Whether a character may stand in a name behind its first.
pub(crate) fn continues_name(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || c == '_' || c == '\'' || ('₀'..='₉').contains(&c)
}

/// Whether a text is a name of section 3.1.
pub(crate) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(begins_name) && characters.all(continues_name) && !KEYWORDS.contains(&text)
}

/// All tokens of a source, the last of them [`Kind::End`] or bad.
pub(crate) fn tokens(source: &Source) -> Vec<Token> {
    let text = source.text.as_str();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let Some(first) = rest.chars().next() else { break };
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("--") {
            at += rest.find(['\n', '\r']).unwrap_or(rest.len());
        } else {
            let (kind, length) = token(rest, first);
            found.push(Token { kind, span: Span { start: at, end: at + length } });
            at += length;
        }
    }
    let end = text.len();
    found.push(if source.broken {
        Token { kind: Kind::Bad("this byte is not UTF-8"), span: Span { start: end, end: end + 1 } }
    } else {
        Token { kind: Kind::End, span: Span { start: end, end } }
    });
    found
}

fn token(rest: &str, first: char) -> (Kind, usize) {
    if begins_name(first) {
        let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        return (word_or_name(rest.get(..length).unwrap_or("")), length);
    }
    if first.is_ascii_digit() {
        return literal(rest);
    }
    let Some((spelled, sign)) = SIGNS.iter().find(|(spelled, _)| rest.starts_with(spelled)) else {
        return (Kind::Bad("this character has no meaning here"), first.len_utf8());
    };
    if *spelled == "-o" {
        return followed(rest, 2, Kind::Sign(sign));
    }
    (Kind::Sign(sign), spelled.len())
}

fn word_or_name(text: &str) -> Kind {
    match text {
        "der" => Kind::Keyword("derelict"),
        _ => KEYWORDS.iter().find(|k| **k == text).map_or(Kind::Name, |k| Kind::Keyword(k)),
    }
}

fn literal(rest: &str) -> (Kind, usize) {
    let after = |from: usize, digit: fn(char) -> bool| {
        rest.get(from..).and_then(|s| s.find(|c| !digit(c))).map_or(rest.len(), |i| from + i)
    };
    if rest.starts_with("0b") {
        return followed(rest, after(2, |c| matches!(c, '0' | '1')), Kind::Word);
    }
    followed(rest, after(0, |c| c.is_ascii_digit()), Kind::Numeral)
}

/// A token that may not be followed at once by what would continue a name.
fn followed(rest: &str, length: usize, kind: Kind) -> (Kind, usize) {
    match rest.get(length..).and_then(|s| s.chars().next()) {
        Some(next) if continues_name(next) => {
            (Kind::Bad("this cannot be followed at once by a letter or a digit"), length + next.len_utf8())
        }
        _ => (kind, length),
    }
}
