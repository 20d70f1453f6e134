//! TPTP text to lexemes.
//!
//! A file is cut completely before it is parsed, so an unknown character is reported before any mistake of
//! grammar. What TPTP has and we have not (numbers, distinct objects, `$` names, operators of the typed
//! languages) becomes [`Token::Foreign`], which only the parser refuses: an annotation may hold it.

use crate::error::{Kind, Refusal};

/// A lexeme with its bytes.
#[derive(Debug, Clone)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name; `'p'` and `p` are the same, a quoted name that is no word keeps its quotes.
    Lower(String),
    /// A variable.
    Upper(String),
    /// `$true` and other names with a dollar.
    Dollar(String),
    /// A decimal integer.
    Integer,
    /// Punctuation and connectives.
    Sign(&'static str),
    /// TPTP that has no reading here.
    Foreign,
}

/// Longest first.
const SIGNS: [&str; 18] =
    ["<=>", "<~>", "<=", "=>", "!=", "~|", "~&", "(", ")", "[", "]", ",", ".", ":", "~", "&", "|", "="];

/// `!` and `?` are signs only where no longer operator of the higher-order language starts.
const FOREIGN: [&str; 26] = [
    "-->", "!!", "??", "!>", "?*", "@@+", "@@-", "@@=", "@+", "@-", "@=", "==", ":=", "<<", "@", "^", "+",
    "-", "*", "/", "{", "}", "<", ">", ";", "#",
];

/// Cuts a file.
///
/// # Errors
/// `UnknownCharacter`; `UnexpectedEnd` in a comment or between quotes.
pub(super) fn lex(source: &str) -> Result<Vec<Lexeme>, Refusal> {
    let mut lexemes = vec![];
    let mut at = 0;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let (token, length) = next(rest, at)?;
        if let Some(token) = token {
            lexemes.push(Lexeme { token, start: at, end: at + length });
        }
        at += length;
    }
    Ok(lexemes)
}

/// The first lexeme of `rest` (none for blanks and comments) and its length in bytes, which is not 0.
fn next(rest: &str, at: usize) -> Result<(Option<Token>, usize), Refusal> {
    let Some(first) = rest.chars().next() else { return Ok((None, 1)) };
    if first.is_ascii_whitespace() {
        return Ok((None, span(rest, |c| c.is_ascii_whitespace())));
    }
    if first == '%' {
        return Ok((None, span(rest, |c| c != '\n')));
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        let end = comment.find("*/").ok_or_else(|| unterminated("a comment", at, rest))?;
        return Ok((None, end + 4));
    }
    if first == '\'' || first == '"' {
        return quoted(rest, first, at).map(|(token, length)| (Some(token), length));
    }
    let word = |tail: &str| span(tail, |c| c.is_ascii_alphanumeric() || c == '_');
    let (token, length) = match first {
        'a'..='z' => (Token::Lower(taken(rest, word(rest))), word(rest)),
        'A'..='Z' => (Token::Upper(taken(rest, word(rest))), word(rest)),
        '$' => {
            let length = span(rest, |c| c == '$' || c.is_ascii_alphanumeric() || c == '_');
            (Token::Dollar(taken(rest, length)), length)
        }
        '0'..='9' => number(rest),
        _ => return sign(rest, first, at),
    };
    Ok((Some(token), length))
}

fn sign(rest: &str, first: char, at: usize) -> Result<(Option<Token>, usize), Refusal> {
    // `!=` before the quantifier `!`, and `! [` beside `!!` and `!>`; a longer sign wins.
    let foreign = FOREIGN.iter().filter(|sign| rest.starts_with(**sign)).map(|sign| sign.len()).max();
    let ours = SIGNS.iter().copied().chain(["!", "?"]).find(|sign| rest.starts_with(sign));
    match (ours, foreign) {
        (Some(sign), foreign) if foreign.is_none_or(|length| length <= sign.len()) => {
            Ok((Some(Token::Sign(sign)), sign.len()))
        }
        (_, Some(length)) => Ok((Some(Token::Foreign), length)),
        _ => Err(Refusal::new(Kind::UnknownCharacter, format!("{first:?} is no character of TPTP"))
            .span(at, at + first.len_utf8())
            .found(first)),
    }
}

/// A decimal integer; rationals and reals are foreign.
fn number(rest: &str) -> (Token, usize) {
    let digits = |tail: &str| span(tail, |c| c.is_ascii_digit());
    let mut length = digits(rest);
    let mut token = Token::Integer;
    for mark in ['/', '.'] {
        let fraction = rest.get(length..).and_then(|tail| tail.strip_prefix(mark)).map_or(0, digits);
        if fraction > 0 {
            length += 1 + fraction;
            token = Token::Foreign;
        }
    }
    (token, length)
}

/// `'…'` is a name, `"…"` a distinct object; a backslash protects the next character.
fn quoted(rest: &str, quote: char, at: usize) -> Result<(Token, usize), Refusal> {
    let mut content = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((i, c)) = characters.next() {
        if c == quote {
            let token = if quote == '"' { Token::Foreign } else { Token::Lower(name(content)) };
            return Ok((token, i + 1));
        }
        let c = if c == '\\' { characters.next().map_or(c, |(_, c)| c) } else { c };
        content.push(c);
    }
    Err(unterminated("a quoted name", at, rest))
}

/// A quoted word is that word.
fn name(content: String) -> String {
    let word = content.starts_with(|c: char| c.is_ascii_lowercase())
        && content.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if word { content } else { format!("'{content}'") }
}

fn unterminated(what: &str, at: usize, rest: &str) -> Refusal {
    Refusal::new(Kind::UnexpectedEnd, format!("{what} does not end")).span(at, at + rest.len()).found("end")
}

/// The bytes of the longest prefix of such characters.
fn span(text: &str, accept: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accept(c)).unwrap_or(text.len())
}

fn taken(text: &str, length: usize) -> String {
    text.get(..length).unwrap_or("").to_owned()
}
