//! Tables that several keys of laws share: blocks of symbols, weights by name.

use serde_json::{Value as Json, json};

use super::config::Keys;
use crate::ast::Sign;
use crate::error::Refusal;
use crate::symbol::SymbolId;

/// The largest arity.
pub(super) const MAX_ARITY: u64 = 255;

/// The largest number of predicates, or of functions.
pub(super) const MAX_SYMBOLS: u64 = 1_000_000;

/// The names of a yes or no.
pub(super) const SORTED: [&str; 2] = ["no", "yes"];

/// Blocks of arity and number, empty blocks left out.
pub(super) fn blocks(keys: &Keys, key: &str, least: u64) -> Result<Vec<(usize, u64)>, Refusal> {
    let rows = keys.rows::<2>(key)?;
    if rows.iter().any(|r| r[0] < least || r[0] > MAX_ARITY) {
        return Err(keys.bad(key, format!("arities go from {least} to {MAX_ARITY}")));
    }
    let number = rows.iter().try_fold(0u64, |a, r| a.checked_add(r[1]));
    if number.is_none_or(|n| n > MAX_SYMBOLS) {
        return Err(keys.bad(key, format!("at most {MAX_SYMBOLS} symbols are possible")));
    }
    Ok(rows.into_iter().filter(|r| r[1] > 0).map(|[arity, number]| (arity as usize, number)).collect())
}

/// For each symbol, numbered through, its one arity.
pub(super) fn spread(blocks: &[(usize, u64)]) -> Vec<Vec<usize>> {
    blocks.iter().flat_map(|&(arity, number)| (0..number).map(move |_| vec![arity])).collect()
}

/// The signs with a positive weight.
pub(super) fn drawn<T: Sign>(weights: &[u64]) -> Vec<T> {
    T::ALL.iter().zip(weights).filter(|(_, weight)| **weight > 0).map(|(sign, _)| *sign).collect()
}

/// Weights by name.
pub(super) fn named(names: &[&str], weights: &[u64]) -> Json {
    Json::Object(names.iter().zip(weights).map(|(n, w)| ((*n).to_owned(), json!(w))).collect())
}

/// The symbols of the five connectives in the order of their weights.
pub(crate) const CONNECTIVE_SYMBOLS: &[SymbolId] =
    &[SymbolId::NOT, SymbolId::AND, SymbolId::OR, SymbolId::IMPLIES, SymbolId::IFF];
