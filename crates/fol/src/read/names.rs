//! Names: which category a name belongs to (F14), and which index it gets (F15, F16).
//!
//! Enter at [`resolve`]. A name of its category's own shape (`x12` for a variable) keeps its number; every
//! other one gets the smallest index of its category that is still free, in order of first appearance.

use std::collections::BTreeSet;

use super::lex::{Lexeme, Spanned};
use super::unused::Unused;
use crate::codec;
use crate::error::{Kind, Refusal, Stage};
use crate::input::{Mode, Names, Symbols};
use crate::symbol::{SymbolId, SymbolKind};

/// Names that several inputs have in common: those of predicates, functions, constants and sorts. A variable belongs to its input.
#[derive(Debug, Default)]
pub(super) struct Shared {
    names: Names,
    unused: Unused,
}

impl Shared {
    /// The numbers of an input are none that another name gets.
    pub(super) fn take(&mut self, lexemes: &[Spanned]) {
        for ((lexeme, _), category) in lexemes.iter().zip(categories(lexemes)) {
            let (Lexeme::Name(name), Some(category)) = (lexeme, category) else { continue };
            if let Some(index) = shape(name, category).and_then(|digits| digits.parse().ok()) {
                self.unused.take(category, index);
            }
        }
    }
}

/// Turns lexemes into symbols.
pub(super) fn resolve(
    lexemes: Vec<Spanned>,
    mode: Mode,
    mut shared: Option<&mut Shared>,
) -> Result<Symbols, Refusal> {
    let categories = categories(&lexemes);
    let mut unused = Unused::default();
    for ((lexeme, _), category) in lexemes.iter().zip(&categories) {
        let (Lexeme::Name(name), Some(category)) = (lexeme, category) else { continue };
        if let Some(index) = shape(name, *category).and_then(|digits| digits.parse().ok()) {
            unused.take(*category, index);
        }
    }
    let mut out = Symbols::default();
    for ((lexeme, span), category) in lexemes.into_iter().zip(categories) {
        match (lexeme, category) {
            (Lexeme::Symbol(symbol), _) => out.symbols.push(symbol),
            (Lexeme::Name(name), Some(category)) => {
                out.symbols.push(category);
                let index = match shape(&name, category) {
                    Some(digits) => number(digits, mode)
                        .map_err(|r| r.at(out.symbols.len()).span(span.0, span.1).found(name.as_str()))?,
                    None => {
                        let own = out.names.entry(category.label()).or_default();
                        match shared.as_deref_mut().filter(|_| category != SymbolId::VAR) {
                            None => *own.entry(name).or_insert_with(|| unused.smallest(category)),
                            Some(Shared { names, unused }) => {
                                let all = names.entry(category.label()).or_default();
                                let index =
                                    *all.entry(name.clone()).or_insert_with(|| unused.smallest(category));
                                *own.entry(name).or_insert(index)
                            }
                        }
                    }
                };
                codec::push_index(&mut out.symbols, index);
            }
            (Lexeme::Name(_), None) => {}
        }
        out.spans.resize(out.symbols.len(), span);
    }
    Ok(out)
}

/// For each lexeme that is a name its category. The order of the rules is that of (F14).
fn categories(lexemes: &[Spanned]) -> Vec<Option<SymbolId>> {
    let symbol_at = |at: Option<usize>| match lexemes.get(at?) {
        Some((Lexeme::Symbol(symbol), _)) => Some(*symbol),
        _ => None,
    };
    let bound = |at: usize| symbol_at(at.checked_sub(1)).is_some_and(|s| s.kind() == SymbolKind::Quantifier);
    let name_at = |at: usize| match lexemes.get(at) {
        Some((Lexeme::Name(name), _)) => Some(name.as_str()),
        _ => None,
    };
    let binders: BTreeSet<&str> = (0..lexemes.len()).filter(|&at| bound(at)).filter_map(name_at).collect();
    let category = |at: usize| {
        let name = name_at(at)?;
        let mut letters = name.chars();
        let first = letters.next()?;
        Some(if bound(at) {
            SymbolId::VAR
        } else if symbol_at(at.checked_sub(1)) == Some(SymbolId::COLON) {
            SymbolId::SORT
        } else if first.is_ascii_uppercase() {
            SymbolId::PRED
        } else if symbol_at(at.checked_add(1)) == Some(SymbolId::LPAREN) {
            SymbolId::FUNC
        } else if binders.contains(name) {
            SymbolId::VAR
        } else if shape(name, SymbolId::CONST).is_some() {
            SymbolId::CONST
        } else if ('u'..='z').contains(&first) {
            SymbolId::VAR
        } else {
            SymbolId::CONST
        })
    };
    (0..lexemes.len()).map(category).collect()
}

/// The digits of a name that is the category's letter and digits.
fn shape(name: &str, category: SymbolId) -> Option<&str> {
    let digits = name.strip_prefix(category.ascii())?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

/// The number in a name.
fn number(digits: &str, mode: Mode) -> Result<u64, Refusal> {
    if mode == Mode::Strict && digits.len() > 1 && digits.starts_with('0') {
        return Err(Refusal::new(Kind::LeadingZero, "an index does not start with a zero").stage(Stage::Lex));
    }
    digits.parse().map_err(|_| Refusal::index_overflow().stage(Stage::Lex))
}
