//! A text, cut into lexemes: blanks separate, the longest spelling wins (F13).
//!
//! Enter at [`lexemes`]. Names are resolved by [`names`](super::names) once all lexemes are known, because the
//! category of a name depends on what stands beside it and the index on the whole input.

use std::sync::LazyLock;

use crate::error::{Kind, Refusal};
use crate::symbol::{SymbolId, SymbolKind};

/// What a piece of text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lexeme {
    /// A symbol in one of its spellings.
    Symbol(SymbolId),
    /// A name, its digits written plainly.
    Name(String),
}

/// A lexeme and its bytes.
pub(super) type Spanned = (Lexeme, (usize, usize));

/// Spellings beside those of the vocabulary.
const MORE: [(&str, SymbolId); 11] = [
    ("not", SymbolId::NOT),
    ("and", SymbolId::AND),
    ("&&", SymbolId::AND),
    ("/\\", SymbolId::AND),
    ("or", SymbolId::OR),
    ("||", SymbolId::OR),
    ("\\/", SymbolId::OR),
    ("implies", SymbolId::IMPLIES),
    ("=>", SymbolId::IMPLIES),
    ("iff", SymbolId::IFF),
    ("<=>", SymbolId::IFF),
];

/// The spellings of symbols, words and signs, a longer one before all that it begins with. Numerals and
/// categories have none: they are parts of names.
static SPELLINGS: LazyLock<Vec<(&str, SymbolId)>> = LazyLock::new(|| {
    let spelled = |symbol: &SymbolId| !matches!(symbol.kind(), SymbolKind::Numeral | SymbolKind::Category);
    let own = SymbolId::all().filter(spelled).flat_map(|s| [(s.unicode(), s), (s.ascii(), s)]);
    let mut all: Vec<_> = own.chain(MORE).collect();
    all.sort_by_key(|(spelling, _)| std::cmp::Reverse(spelling.len()));
    all
});

/// The symbol that a whole word spells.
fn word(name: &str) -> Option<SymbolId> {
    SPELLINGS.iter().find(|(spelling, _)| *spelling == name).map(|(_, symbol)| *symbol)
}

/// The lexemes up to the first character that is in none, and the refusal of that character.
pub(super) fn lexemes(input: &str) -> (Vec<Spanned>, Option<Refusal>) {
    let mut lexemes = Vec::new();
    let mut at = 0;
    while let Some((rest, c)) = input.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        let (lexeme, len) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if c.is_ascii_alphabetic() || c == '_' {
            name(rest)
        } else if let Some(&(spelling, symbol)) =
            SPELLINGS.iter().find(|(spelling, _)| rest.starts_with(spelling))
        {
            (Lexeme::Symbol(symbol), spelling.len())
        } else {
            let refusal =
                Refusal::new(Kind::UnknownCharacter, format!("{c:?} is in no symbol and in no name"));
            return (lexemes, Some(refusal.found(c).span(at, at + c.len_utf8())));
        };
        lexemes.push((lexeme, (at, at + len)));
        at += len;
    }
    (lexemes, None)
}

/// The name or word at the start of a text, and its length in bytes.
fn name(rest: &str) -> (Lexeme, usize) {
    let mut name = String::new();
    let mut len = 0;
    for c in rest.chars() {
        match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '\'' => name.push(c),
            '₀'..='₉' => name.extend(char::from_digit(u32::from(c) - u32::from('₀'), 10)),
            _ => break,
        }
        len += c.len_utf8();
    }
    if name == "exists" && rest.get(len..).is_some_and(|after| after.starts_with('!')) {
        return (Lexeme::Symbol(SymbolId::EXISTS1), len + 1);
    }
    match word(&name) {
        Some(symbol) => (Lexeme::Symbol(symbol), len),
        None => (Lexeme::Name(name), len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sign_hides_a_longer_one() {
        for (i, (spelling, _)) in SPELLINGS.iter().enumerate() {
            assert!(
                SPELLINGS.iter().take(i).all(|(e, _)| e == spelling || !spelling.starts_with(e)),
                "{spelling}"
            );
        }
    }

    #[test]
    fn every_symbol_but_numerals_and_categories_has_both_its_spellings() {
        for symbol in SymbolId::all() {
            if matches!(symbol.kind(), SymbolKind::Numeral | SymbolKind::Category) {
                continue;
            }
            for spelling in [symbol.unicode(), symbol.ascii()] {
                let (lexemes, unknown) = lexemes(spelling);
                assert_eq!(unknown, None);
                assert_eq!(lexemes, [(Lexeme::Symbol(symbol), (0, spelling.len()))]);
            }
        }
    }
}
