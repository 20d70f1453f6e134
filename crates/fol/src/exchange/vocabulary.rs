//! The labels of the public project's vocabulary, and our symbols for them.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;

use super::format::bad;
use crate::error::{Kind, Refusal};
use crate::symbol::{BASE, SymbolId};

/// The labels of the public vocabulary after its 625 numerals.
const LABELS: &str = "X PLUS MINUS DIV EQUALS LPAREN RPAREN POW DOT SQRT FACTORIAL NOT AND OR IMPLIES IFF FORALL \
    EXISTS EXISTS1 NOT_EQUALS LESS_THAN GREATER_THAN LESS_EQUAL GREATER_EQUAL COMMA COLON TRUE FALSE VAR CONST \
    PRED FUNC SORT ENTAILS MODELS DEFINE EQUIVALENT MESSAGE_START MESSAGE_END PAD UNK SEP QUERY ANSWER END \
    UNKNOWN";

/// Which label has which id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    labels: BTreeMap<u64, String>,
    ids: BTreeMap<String, u64>,
}

impl Default for Vocabulary {
    /// The 671 labels of the public project.
    fn default() -> Self {
        let numerals = (0..BASE).map(numeral_label);
        Self::of((0..).zip(numerals.chain(LABELS.split_whitespace().map(str::to_owned))))
    }
}

fn numeral_label(n: u16) -> String {
    format!("NUM_{n:03}")
}

impl Vocabulary {
    fn of(labels: impl IntoIterator<Item = (u64, String)>) -> Self {
        let labels: BTreeMap<u64, String> = labels.into_iter().collect();
        let ids = labels.iter().map(|(id, label)| (label.clone(), *id)).collect();
        Self { labels, ids }
    }

    /// Reads a vocabulary: a JSON list of labels, an object with `id_to_label`, `label_to_id` or `tokens` (a list
    /// of objects with `id` and `label`), an object from labels to ids, or one label a line.
    ///
    /// # Errors
    /// `BadRecord` if it is none of these.
    pub fn read(mut file: impl Read) -> Result<Self, Refusal> {
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| bad(&format!("the vocabulary is no text: {error}")))?;
        let labels: Option<Vec<(u64, String)>> = match serde_json::from_str(&text) {
            Ok(Value::Array(list)) => {
                (0..).zip(&list).map(|(id, label)| Some((id, label.as_str()?.to_owned()))).collect()
            }
            Ok(Value::Object(object)) => {
                let part = ["id_to_label", "label_to_id", "tokens"].iter().find_map(|key| object.get(*key));
                match part {
                    Some(Value::Array(list)) => {
                        list.iter().map(|token| pair(&token["id"], &token["label"])).collect()
                    }
                    Some(Value::Object(map)) => entries(map),
                    Some(_) => None,
                    None => entries(&object),
                }
            }
            Ok(_) => None,
            Err(_) => Some((0..).zip(text.lines().map(|line| line.trim().to_owned())).collect()),
        };
        labels
            .filter(|labels| !labels.is_empty())
            .map(Self::of)
            .ok_or_else(|| bad("the vocabulary has no labels with ids"))
    }

    /// The label of a token, which is an id or the label itself.
    pub(super) fn label<'a>(&'a self, token: &'a Value) -> Option<&'a str> {
        match token {
            Value::String(label) => Some(label),
            id => self.labels.get(&id.as_u64()?).map(String::as_str),
        }
    }

    /// The id of a symbol of ours.
    pub(super) fn id(&self, symbol: SymbolId) -> Result<u64, Refusal> {
        let label = match symbol {
            SymbolId::BOS => "MESSAGE_START".to_owned(),
            SymbolId::EOS => "MESSAGE_END".to_owned(),
            _ => match symbol.numeral() {
                Some(numeral) => numeral_label(numeral.get()),
                None => symbol.label().trim_matches(['<', '>']).to_uppercase(),
            },
        };
        self.ids.get(&label).copied().ok_or_else(|| {
            Refusal::new(Kind::UnmappedSymbol, format!("the vocabulary has no {label}")).found(symbol.label())
        })
    }
}

/// From ids to labels, or from labels to ids.
fn entries(map: &serde_json::Map<String, Value>) -> Option<Vec<(u64, String)>> {
    map.iter()
        .map(|(key, value)| match value {
            Value::String(label) => Some((key.parse().ok()?, label.clone())),
            id => Some((id.as_u64()?, key.clone())),
        })
        .collect()
}

fn pair(id: &Value, label: &Value) -> Option<(u64, String)> {
    Some((id.as_u64()?, label.as_str()?.to_owned()))
}

/// Whether a label closes a formula.
pub(super) fn is_end(label: &str) -> bool {
    matches!(label, "MESSAGE_END" | "END")
}

/// Our symbol for a public label.
pub(super) fn symbol(label: &str) -> Option<SymbolId> {
    if let Some(digits) = label.strip_prefix("NUM_") {
        return digits.parse().ok().filter(|n| *n < BASE).and_then(SymbolId::new);
    }
    match label {
        "MESSAGE_START" => Some(SymbolId::BOS),
        _ if is_end(label) => Some(SymbolId::EOS),
        "PAD" | "UNK" | "SEP" | "QUERY" | "ANSWER" | "UNKNOWN" => {
            SymbolId::from_label(&format!("<{}>", label.to_lowercase()))
        }
        _ => SymbolId::from_label(label),
    }
}
