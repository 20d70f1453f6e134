//! A text, cut into lexemes: blanks separate, the longest spelling wins.
//!
//! Enter at [`cut`]. Names are resolved by [`names`](super::names) once all lexemes are known, because the
//! category of a name depends on what stands beside it and the index on the whole input.

use super::names;
use super::{Mode, Symbols};
use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;

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

/// The spellings that are not words. No spelling is tried before a longer one that begins with it.
const SIGNS: &[(&str, SymbolId)] = &[
    ("<unknown>", SymbolId::UNKNOWN),
    ("<answer>", SymbolId::ANSWER),
    ("<query>", SymbolId::QUERY),
    ("<pad>", SymbolId::PAD),
    ("<bos>", SymbolId::BOS),
    ("<eos>", SymbolId::EOS),
    ("<unk>", SymbolId::UNK),
    ("<sep>", SymbolId::SEP),
    ("<->", SymbolId::IFF),
    ("<=>", SymbolId::IFF),
    ("∃!", SymbolId::EXISTS1),
    ("&&", SymbolId::AND),
    ("/\\", SymbolId::AND),
    ("||", SymbolId::OR),
    ("\\/", SymbolId::OR),
    ("->", SymbolId::IMPLIES),
    ("=>", SymbolId::IMPLIES),
    ("!=", SymbolId::NOT_EQUALS),
    ("<=", SymbolId::LESS_EQUAL),
    (">=", SymbolId::GREATER_EQUAL),
    ("|-", SymbolId::ENTAILS),
    ("|=", SymbolId::MODELS),
    (":=", SymbolId::DEFINE),
    ("==", SymbolId::EQUIVALENT),
    ("¬", SymbolId::NOT),
    ("~", SymbolId::NOT),
    ("∧", SymbolId::AND),
    ("&", SymbolId::AND),
    ("∨", SymbolId::OR),
    ("|", SymbolId::OR),
    ("→", SymbolId::IMPLIES),
    ("↔", SymbolId::IFF),
    ("∀", SymbolId::FORALL),
    ("∃", SymbolId::EXISTS),
    ("=", SymbolId::EQUALS),
    ("≠", SymbolId::NOT_EQUALS),
    ("≤", SymbolId::LESS_EQUAL),
    ("≥", SymbolId::GREATER_EQUAL),
    ("<", SymbolId::LESS_THAN),
    (">", SymbolId::GREATER_THAN),
    ("⊤", SymbolId::TRUE),
    ("⊥", SymbolId::FALSE),
    ("⊢", SymbolId::ENTAILS),
    ("⊨", SymbolId::MODELS),
    ("≔", SymbolId::DEFINE),
    ("≡", SymbolId::EQUIVALENT),
    ("(", SymbolId::LPAREN),
    (")", SymbolId::RPAREN),
    (",", SymbolId::COMMA),
    (":", SymbolId::COLON),
    (".", SymbolId::DOT),
];

fn word(name: &str) -> Option<SymbolId> {
    Some(match name {
        "not" => SymbolId::NOT,
        "and" => SymbolId::AND,
        "or" => SymbolId::OR,
        "implies" => SymbolId::IMPLIES,
        "iff" => SymbolId::IFF,
        "forall" => SymbolId::FORALL,
        "exists" => SymbolId::EXISTS,
        "exists1" => SymbolId::EXISTS1,
        "true" => SymbolId::TRUE,
        "false" => SymbolId::FALSE,
        _ => return None,
    })
}

/// Cuts a text into symbols.
pub(super) fn cut(input: &str, mode: Mode) -> Result<Symbols, Refusal> {
    let (lexemes, unknown) = lexemes(input);
    let symbols = names::resolve(lexemes, mode)?;
    unknown.map_or(Ok(symbols), Err)
}

/// The lexemes up to the first character that is in none, and the refusal of that character.
fn lexemes(input: &str) -> (Vec<Spanned>, Option<Refusal>) {
    let mut lexemes = Vec::new();
    let mut at = 0;
    while let Some((rest, c)) = input.get(at..).and_then(|rest| Some((rest, rest.chars().next()?))) {
        let (lexeme, len) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if c.is_ascii_alphabetic() || c == '_' {
            name(rest)
        } else if let Some(&(spelling, symbol)) =
            SIGNS.iter().find(|(spelling, _)| rest.starts_with(spelling))
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
        for (i, (spelling, _)) in SIGNS.iter().enumerate() {
            assert!(SIGNS.iter().take(i).all(|(earlier, _)| !spelling.starts_with(earlier)), "{spelling}");
        }
    }

    #[test]
    fn every_symbol_but_numerals_and_categories_has_both_its_spellings() {
        use crate::symbol::SymbolKind;
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
