//! What a cell may be told: sizes and options, as they stand in documents and configurations.
//!
//! [`Configuration`] is what a cell is built from: one variant for each kind of cell, with the options of that kind and
//! no others. [`Options`] are the same as they are written beside other keys, before it is known whose they are.

mod choices;
mod configuration;
mod masters;
mod objects;
mod sizes;

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Refusal, Result};
use crate::nearest::{did_you_mean, shortened};
pub use choices::{
    FirstInput, FirstState, Gate, GateAct, GateSource, MiWeights, Numeral, Operators, Preset, Projection,
    Sigma, VInit, VNorm, WordOrder,
};
pub use configuration::{CellKind, Configuration};
pub use masters::{Master, MasterPlace, MasterProjection, Shared, Slot, SlotKind, SlotShape};
pub(crate) use objects::Object;
pub use sizes::Sizes;
pub(crate) use sizes::{MOST_MASTERS, MOST_PROGRAMS, not_too_large, not_too_many};

/// The options of each kind of cell.
pub mod of {
    pub use super::configuration::{
        Elman, Gru, LinearLogic, Lstm, Master, Mi, Mrnn, MultiPatternNtm, Ntm, PatternNtm, SecondOrder,
    };
}

/// Options as they are written: each is one of some cell and has a value of its type; whether they belong to one and
/// the same cell is said by [`Options::of`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Options(Map<String, Value>);

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Judge)
    }
}

struct Judge;

impl<'de> Visitor<'de> for Judge {
    type Value = Options;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Options, A::Error> {
        let mut found = Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            // An option that is null is not given.
            let judged = match configuration::judged(&key, value.clone()) {
                None => return Err(A::Error::unknown_field(&key, configuration::KEYS)),
                Some(_) if value.is_null() => continue,
                Some(judged) => judged.map_err(A::Error::custom)?,
            };
            if found.insert(key.clone(), judged).is_some() {
                return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
            }
        }
        // Documents are written in one order, however they were read.
        let ordered = configuration::KEYS.iter().filter_map(|key| found.remove_entry(*key));
        Ok(Options(ordered.collect()))
    }
}

impl Options {
    /// Options from their document.
    ///
    /// # Errors
    /// `config`, for an unknown key (with the nearest known one) or a value of the wrong form.
    pub fn read(document: &Value) -> Result<Self> {
        Self::deserialize(document).map_err(|error| Refusal::config(explained(&error.to_string())))
    }

    /// The keys that are given.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// How words are read, if that is given.
    pub fn order(&self) -> Option<WordOrder> {
        self.0.get("order").and_then(|order| WordOrder::deserialize(order).ok())
    }

    /// The options as those of a cell.
    ///
    /// # Errors
    /// `config`, if one does not belong to the cell.
    pub fn of(&self, kind: CellKind) -> Result<Configuration> {
        if let Some(key) = self.given().find(|key| !kind.options().contains(key)) {
            let its = match kind.options() {
                [] => "; it has none".to_owned(),
                options => format!("; it has `{}`", options.join("`, `")),
            };
            let message = format!("`{key}` is not an option of the cell `{}`{its}", kind.name());
            return Err(Refusal::config(message));
        }
        let mut document = self.0.clone();
        document.insert("cell".to_owned(), kind.name().into());
        serde_json::from_value(Value::Object(document))
            .map_err(|error| Refusal::config(explained(&error.to_string())))
    }
}

/// serde's words for an unknown key, shortened to the nearest key.
pub fn explained(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let Some((key, known)) = rest.split_once('`') else { return message.to_owned() };
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    format!("unknown key `{}`{}", shortened(key), did_you_mean(key, known))
}
