//! Canonical text of a tree, in the styles that the readers read back (F17, F18).
//!
//! Enter at [`print`]. The text follows the canonical tokens one by one: the layout, blanks around what stands
//! between two things, is one for all styles; a style chooses spellings and digits.

use crate::ast::Text;
use crate::codec::shifted;
use crate::encode::encode;
use crate::symbol::{SymbolId, SymbolKind};

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Style {
    /// `∀x1 (P5(x1) ∧ ¬x1 = c2)`
    Unicode,
    /// `forall x1 (P5(x1) & ~x1 = c2)`
    Ascii,
    /// As `Unicode`, with subscript digits.
    Subscript,
    /// Labels, separated by one blank.
    Words,
}

/// The canonical text.
pub fn print(text: &Text, style: Style) -> String {
    let tokens = encode(text);
    if style == Style::Words {
        return words(&tokens);
    }
    let mut out = String::new();
    let mut rest = tokens.iter().copied().peekable();
    let (mut before, mut binder) = (SymbolId::DOT, false);
    while let Some(symbol) = rest.next() {
        let spelling = if style == Style::Ascii { symbol.ascii() } else { symbol.unicode() };
        let [left, right] = blanks(symbol, before, rest.peek().copied(), style);
        out.push_str(left);
        out.push_str(spelling);
        out.push_str(right);
        if symbol.kind() == SymbolKind::Category {
            let mut index = 0;
            while let Some(digit) = rest.peek().and_then(|next| next.numeral()) {
                index = shifted(index, digit).unwrap_or(u64::MAX);
                rest.next();
            }
            let digits = index.to_string();
            match style {
                Style::Subscript => out.extend(digits.chars().filter_map(subscript)),
                _ => out.push_str(&digits),
            }
            if binder && rest.peek() != Some(&SymbolId::COLON) {
                out.push(' ');
                binder = false;
            }
        }
        binder |= symbol.kind() == SymbolKind::Quantifier;
        before = symbol;
    }
    out
}

/// What stands on both sides of a symbol.
fn blanks(symbol: SymbolId, before: SymbolId, next: Option<SymbolId>, style: Style) -> [&'static str; 2] {
    match (symbol, symbol.kind()) {
        (SymbolId::NOT, _) => ["", ""],
        (SymbolId::ENTAILS | SymbolId::MODELS, _) if before == SymbolId::DOT => ["", " "],
        (_, SymbolKind::Connective | SymbolKind::Relation | SymbolKind::Meta) => [" ", " "],
        (_, SymbolKind::Quantifier) if style == Style::Ascii => ["", " "],
        (SymbolId::COMMA, _) => ["", " "],
        (SymbolId::DOT, _) if next.is_some() => ["", " "],
        _ => ["", ""],
    }
}

fn subscript(digit: char) -> Option<char> {
    "₀₁₂₃₄₅₆₇₈₉".chars().nth(digit.to_digit(10)? as usize)
}

/// The labels of symbols, separated by one blank.
pub fn words(symbols: &[SymbolId]) -> String {
    symbols.iter().map(|symbol| symbol.label()).collect::<Vec<_>>().join(" ")
}
