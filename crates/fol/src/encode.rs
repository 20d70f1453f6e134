//! Canonical tokens of a tree: what each event of a walk writes.

use crate::ast::Text;
use crate::codec::push_index;
use crate::symbol::SymbolId;
use crate::walk::{Event, walk};

/// The canonical tokens of a text, without `<bos>` and `<eos>`.
pub fn encode(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::new();
    walk(text, |_, event| push(&mut out, event, None));
    out
}

/// Writes the tokens of an event; `renamed` takes the place of its index.
pub(crate) fn push(out: &mut Vec<SymbolId>, event: Event, renamed: Option<u64>) {
    let (symbol, name) = event.tokens();
    out.extend(symbol);
    if let Some((category, index)) = name {
        out.push(category);
        push_index(out, renamed.unwrap_or(index));
    }
}
