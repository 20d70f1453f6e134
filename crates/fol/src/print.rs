//! Canonical text of a tree, in the styles that the readers read back (F17, F18).
//!
//! Enter at [`print`]. The text follows a walk of the tree: the layout, blanks around what stands between two
//! things, is one for all styles; a style chooses spellings and digits.

use crate::ast::Text;
use crate::codec::shifted;
use crate::encode::encode;
use crate::symbol::{SymbolId, SymbolKind};
use crate::walk::{Event, walk};

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
    if style == Style::Words {
        return words(&encode(text));
    }
    let spelling = |symbol: SymbolId| if style == Style::Ascii { symbol.ascii() } else { symbol.unicode() };
    let zero = if style == Style::Subscript { '₀' } else { '0' };
    let mut out = String::with_capacity(64);
    walk(text, |event| {
        let (symbol, name) = event.tokens();
        if let Some(symbol) = symbol {
            let (left, right) = match (symbol, symbol.kind()) {
                (SymbolId::NOT, _) => (false, false),
                (SymbolId::ENTAILS | SymbolId::MODELS, _) => (!out.is_empty() && !out.ends_with(' '), true),
                (_, SymbolKind::Connective | SymbolKind::Relation | SymbolKind::Meta) => (true, true),
                (_, SymbolKind::Quantifier) => (false, style == Style::Ascii),
                (SymbolId::COMMA, _) => (false, true),
                _ => (false, event == (Event::Dot { last: false })),
            };
            if left {
                out.push(' ');
            }
            out.push_str(spelling(symbol));
            if right {
                out.push(' ');
            }
        }
        if let Some((category, index)) = name {
            out.push_str(spelling(category));
            push_decimal(&mut out, index, zero);
        }
        if let Event::Sort(_) | Event::Binder { sort: None, quantifier: Some(_), .. } = event {
            out.push(' ');
        }
    });
    out
}

/// Writes an index in decimal digits, of which this one is the first.
fn push_decimal(out: &mut String, index: u64, zero: char) {
    if index >= 10 {
        push_decimal(out, index / 10, zero);
    }
    out.push(char::from_u32(u32::from(zero) + (index % 10) as u32).unwrap_or(zero));
}

/// The symbols of a formula in the layout of [`Style::Unicode`], in whatever pairs of parentheses they stand: of
/// canonical symbols what [`print()`] makes of their text.
pub fn written(symbols: &[SymbolId]) -> String {
    let mut out = String::with_capacity(64);
    // The index that is being read, and whether a binder stands before it.
    let (mut index, mut binder) = (None, false);
    let mut last = SymbolId::PAD;
    for &symbol in symbols.iter().chain([&SymbolId::EOS]) {
        if let Some(digit) = symbol.numeral() {
            index = index.map_or(Some(u64::from(digit.get())), |value| shifted(value, digit));
            continue;
        }
        if let Some(index) = index.take() {
            push_decimal(&mut out, index, '0');
            if binder && symbol != SymbolId::COLON {
                (binder, last) = (false, SymbolId::PAD);
                out.push(' ');
            }
        }
        let apart = matches!(symbol.kind(), SymbolKind::Connective | SymbolKind::Relation);
        match symbol {
            SymbolId::EOS => break,
            SymbolId::NOT => out.push_str(symbol.unicode()),
            _ if apart => out.extend([" ", symbol.unicode(), " "]),
            SymbolId::COMMA => out.push_str(", "),
            _ => out.push_str(symbol.unicode()),
        }
        binder |= symbol.kind() == SymbolKind::Quantifier || last.kind() == SymbolKind::Quantifier;
        last = symbol;
    }
    out
}

/// The labels of symbols, separated by one blank.
pub fn words(symbols: &[SymbolId]) -> String {
    symbols.iter().map(|symbol| symbol.label()).collect::<Vec<_>>().join(" ")
}
