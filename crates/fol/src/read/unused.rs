//! The indices that no name of an input has yet.

use std::collections::{BTreeMap, BTreeSet};

use crate::symbol::SymbolId;

/// What is taken of each category.
#[derive(Debug, Default)]
pub(crate) struct Unused {
    taken: BTreeSet<(SymbolId, u64)>,
    /// For each category the smallest index that may be unused.
    next: BTreeMap<SymbolId, u64>,
}

impl Unused {
    /// A name has this index.
    pub(crate) fn take(&mut self, category: SymbolId, index: u64) {
        self.taken.insert((category, index));
    }

    /// Takes the smallest index of a category that no name has.
    pub(crate) fn smallest(&mut self, category: SymbolId) -> u64 {
        let next = self.next.entry(category).or_default();
        while !self.taken.insert((category, *next)) {
            *next += 1;
        }
        *next
    }
}
