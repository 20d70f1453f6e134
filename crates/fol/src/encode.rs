//! Canonical tokens of a tree: what each event of a walk writes.

use crate::ast::Text;
use crate::codec::push_index;
use crate::symbol::SymbolId;
use crate::walk::walk;

/// The canonical tokens of a text, without `<bos>` and `<eos>`.
pub fn encode(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::with_capacity(32);
    walk(text, |event| {
        let (symbol, name) = event.tokens();
        out.extend(symbol);
        if let Some((category, index)) = name {
            out.push(category);
            push_index(&mut out, index);
        }
    });
    out
}
