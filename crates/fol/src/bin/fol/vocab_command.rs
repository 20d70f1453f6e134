//! `fol vocab`

use fol::symbol::{SymbolId, VOCABULARY};
use serde_json::json;

use crate::answer::{Answer, Item};

/// The listing of the symbols.
pub(crate) fn vocab() -> Answer {
    let item = |symbol: SymbolId| {
        let (id, label, kind) = (symbol.get(), symbol.label(), symbol.kind().name());
        let (unicode, ascii) = (symbol.unicode(), symbol.ascii());
        let fields = json!({"id": id, "label": label, "kind": kind, "unicode": unicode, "ascii": ascii});
        Item::listed(fields, format!("{id:3}  {label:13}  {kind:10}  {unicode:9}  {ascii}"))
    };
    Answer { items: SymbolId::all().map(item).collect(), extra: json!({"size": VOCABULARY}) }
}
