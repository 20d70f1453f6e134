//! Which predicate and function indices a text uses with more than one arity.
//!
//! TPTP wants one arity for each name, so such an index is written with its arity as a suffix.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::Text;
use crate::symbol::SymbolId;
use crate::walk::{Event, walk};

/// The arities of each predicate and function of a text.
pub(super) struct Arities(BTreeMap<(SymbolId, u64), BTreeSet<usize>>);

impl Arities {
    pub(super) fn of(text: &Text) -> Self {
        let mut arities: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
        walk(text, |_, event| {
            if let Event::Name { category, index, arity, .. } = event {
                arities.entry((category, index)).or_default().insert(arity);
            }
        });
        Self(arities)
    }

    /// Whether an index has more than one arity.
    pub(super) fn several(&self, category: SymbolId, index: u64) -> bool {
        self.0.get(&(category, index)).is_some_and(|arities| arities.len() > 1)
    }
}
