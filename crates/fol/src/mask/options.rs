//! What a mask allows (F49).

use crate::signature::Signature;

/// What a complete input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// One formula.
    Formula,
    /// Any text.
    Text,
}

/// What a mask allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What a complete input is.
    pub grammar: Grammar,
    /// Only symbols, indices and arities that a law with this signature can produce.
    pub within: Option<Signature>,
    /// Every variable occurrence is bound.
    pub closed: bool,
    /// The rest, `<eos>` included, fits in so many tokens.
    pub budget: Option<u32>,
    /// The largest index.
    pub max_index: u64,
}

impl Options {
    /// The whole grammar.
    pub fn new(grammar: Grammar) -> Self {
        Self { grammar, within: None, closed: false, budget: None, max_index: u64::MAX }
    }
}
