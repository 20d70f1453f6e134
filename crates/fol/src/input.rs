//! Inputs: what they are made of, how freely they are read, and the symbols that they are cut into.

use std::collections::BTreeMap;

use crate::error::Refusal;
use crate::symbol::SymbolId;

/// What an input is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Formulas as people write them.
    Text,
    /// Decimal ids, separated by blanks or commas.
    Tokens,
    /// Labels, separated by blanks.
    Words,
}

/// How much freedom an input has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Canonical form only.
    Strict,
    /// With precedence, redundant parentheses and leading zeros.
    Lenient,
}

/// The indices given to names: category label, then name.
pub type Names = BTreeMap<&'static str, BTreeMap<String, u64>>;

/// An input, cut into symbols.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbols {
    /// The symbols as given.
    pub symbols: Vec<SymbolId>,
    /// For each symbol its bytes in the text; empty unless the source is a text.
    pub spans: Vec<(usize, usize)>,
    /// The indices given to names that do not carry their own.
    pub names: Names,
}

impl Symbols {
    /// Puts a refusal at a token of the input.
    pub fn locate(&self, refusal: Refusal, at: usize) -> Refusal {
        let mut refusal = refusal.at(at);
        refusal.found = Some(self.symbols.get(at).map_or("end", |symbol| symbol.label()).to_owned());
        refusal.span = self.spans.get(at).copied();
        refusal
    }
}

/// The pieces of a list of numbers.
pub(crate) fn pieces(input: &str) -> impl Iterator<Item = &str> {
    input.split(|c: char| c == ',' || c.is_whitespace()).filter(|piece| !piece.is_empty())
}
