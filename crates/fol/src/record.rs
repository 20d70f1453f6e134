//! One formula with what is known of it: a line of `jsonl` (F58).

use serde_json::json;

use crate::ast::Text;
use crate::symbol::SymbolId;
use crate::{Key, Style, canon, encode, measure, print};

/// A formula with its number and probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The number of the item.
    pub item: u64,
    /// The formula or text.
    pub text: Text,
    /// −ln p in nats, if a law gave the formula.
    pub nll: Option<f64>,
}

impl Record {
    /// The line, without its end: item, level and nodes (null for a text that is not one formula), text,
    /// tokens without boundaries, −ln p, and the K2 key.
    ///
    /// # Errors
    /// Those of the JSON writer.
    pub fn line(&self) -> std::io::Result<String> {
        let measures = self.text.as_formula().map(measure::measures);
        let tokens: Vec<u16> = encode(&self.text).into_iter().map(SymbolId::get).collect();
        let line = json!({
            "item": self.item,
            "level": measures.map(|m| m.level),
            "nodes": measures.map(|m| m.nodes),
            "text": print(&self.text, Style::Unicode),
            "tokens": tokens,
            "nll": self.nll,
            "key": Key::of(&canon::sig(&self.text)).to_string(),
        });
        Ok(serde_json::to_string(&line)?)
    }
}
