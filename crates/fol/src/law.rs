//! Laws: distributions over texts whose probabilities are computable (F35).
//!
//! Enter at [`Law::named`]. A law is a TOML table of family `depth` (draw a maximal depth, then node by node),
//! `count` (uniform over the formulas of a size) or `boltzmann` (the same of about a size, node by node); `preset` names a built-in law whose keys are then the
//! defaults. What a law can draw is [`sample`](crate::sample), how probable a text is [`score`](crate::score).

pub(crate) mod atoms;
mod boltzmann_law;
pub(crate) mod by_size;
pub(crate) mod classes;
pub(crate) mod config;
mod count_law;
mod depth_law;
mod family;
mod grammar;
mod lengths;
mod parts;
mod presets;
mod tables;

use serde_json::Value as Json;
use toml::{Table, Value};

pub(crate) use boltzmann_law::BoltzmannLaw;
pub(crate) use count_law::{BinderNames, CountLaw};
pub(crate) use depth_law::{Arguments, Binder, DepthLaw, Predicates};
pub(crate) use family::Family;
pub(crate) use grammar::Grammar;
pub(crate) use parts::Parts;
pub(crate) use tables::CONNECTIVE_SYMBOLS;

use crate::error::{Kind, Refusal};
use crate::signature::Signature;
use config::{bad_value, document, loose_value, nearest, set};

/// The largest number of nodes for which formulas are counted.
pub const MAX_NODES: usize = 512;

/// A distribution over texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Law {
    pub(crate) family: Family,
}

impl Law {
    /// A built-in law or the law of a TOML file, with some keys changed (dotted keys reach into tables; a value
    /// is TOML, or else a string).
    ///
    /// # Errors
    /// `NotFound` and `Io` for the file, `UnknownKey` and `BadValue` for what it says.
    pub fn named(name: &str, changes: &[(String, String)]) -> Result<Self, Refusal> {
        let changes: Vec<(String, Value)> =
            changes.iter().map(|(k, v)| (k.clone(), loose_value(v))).collect();
        Self::named_with(name, &changes)
    }

    /// The same with values of the changes that are TOML already.
    pub(crate) fn named_with(name: &str, changes: &[(String, Value)]) -> Result<Self, Refusal> {
        let table = if presets::NAMES.contains(&name) {
            Table::from_iter([("preset".to_owned(), Value::String(name.to_owned()))])
        } else {
            let text = std::fs::read_to_string(name).map_err(|e| unreadable(name, &e))?;
            document(&text)?
        };
        Self::from_table(table, changes)
    }

    /// The names of the built-in laws.
    pub fn presets() -> &'static [&'static str] {
        &presets::NAMES
    }

    /// The law of a table, with some keys changed.
    pub fn from_table(mut table: Table, changes: &[(String, Value)]) -> Result<Self, Refusal> {
        for key in ["preset", "family"] {
            if let Some((_, value)) = changes.iter().rev().find(|(k, _)| k == key) {
                table.insert(key.to_owned(), value.clone());
            }
        }
        let mut full = defaults(&mut table)?;
        for (key, value) in table {
            assign(&mut full, &key, value)?;
        }
        for (key, value) in changes.iter().filter(|(k, _)| k != "preset" && k != "family") {
            assign(&mut full, key, value.clone())?;
        }
        fill(&mut full, "overloaded", "names = 5\narities = [[1,1],[2,1]]")?;
        fill(&mut full, "statements", presets::STATEMENTS)?;
        let family = match full.remove("family").as_ref().and_then(Value::as_str) {
            Some("count") => Family::Count(CountLaw::read(full)?),
            Some("boltzmann") => Family::Boltzmann(BoltzmannLaw::read(full)?),
            _ => Family::Depth(Box::new(DepthLaw::read(full)?)),
        };
        Ok(Self { family })
    }

    /// Every key, as a configuration file could hold it.
    pub fn to_json(&self) -> Json {
        match &self.family {
            Family::Depth(law) => law.to_json(),
            Family::Count(law) => law.to_json(),
            Family::Boltzmann(law) => law.to_json(),
        }
    }

    /// BLAKE3 over the keys in their order, in hexadecimal: equal for equal laws, however they were written.
    pub fn digest(&self) -> String {
        digest_of(&self.to_json())
    }

    /// The number of tokens of the longest text, `<bos>` and `<eos>` included; `None` for laws with statements,
    /// which only `max_tokens` bounds, and where the number passes 2⁶⁴.
    pub fn max_tokens_bound(&self) -> Option<usize> {
        lengths::longest(&self.family)
    }

    /// Longer texts, `<bos>` and `<eos>` included, are drawn again.
    pub fn max_tokens(&self) -> usize {
        match &self.family {
            Family::Depth(law) => law.max_tokens,
            Family::Count(law) => law.max_tokens,
            Family::Boltzmann(law) => law.grammar.max_tokens,
        }
    }

    /// Whether texts may be more than one formula.
    pub fn has_statements(&self) -> bool {
        matches!(&self.family, Family::Depth(law) if law.statements.is_some())
    }

    /// Of 100 binary and atomic formulas, how many are written in a second pair of parentheses (N15). What a law draws
    /// is canonical text; the pairs are draws of the code that writes it, as they are for any law.
    pub fn parentheses(&self) -> u8 {
        match &self.family {
            Family::Depth(law) => law.parentheses,
            Family::Count(_) | Family::Boltzmann(_) => 0,
        }
    }

    /// Whether a binder may be drawn as one that binds nothing, which the text does not say.
    pub(crate) fn has_vacuous(&self) -> bool {
        matches!(&self.family, Family::Depth(law) if law.vacuous > 0)
    }

    /// The symbols, indices and arities that the law can produce.
    pub fn signature(&self) -> Signature {
        match &self.family {
            Family::Depth(law) => law.signature(),
            Family::Count(law) => law.signature(),
            Family::Boltzmann(law) => law.grammar.signature(),
        }
    }

    /// The counting law, or the refusal of a command that needs one, or of too many nodes.
    pub(crate) fn counting(&self, nodes: usize) -> Result<&CountLaw, Refusal> {
        match &self.family {
            Family::Count(_) if nodes > MAX_NODES => {
                Err(bad_value("nodes", format!("at most {MAX_NODES} nodes are counted")))
            }
            Family::Count(law) => Ok(law),
            Family::Depth(_) => {
                Err(bad_value("law", "the family is depth; counting needs a law of family count"))
            }
            Family::Boltzmann(_) => {
                Err(bad_value("law", "the family is boltzmann; counting needs a law of family count"))
            }
        }
    }

    /// Refuses a law that could never draw a text.
    pub(crate) fn check_drawable(&self) -> Result<(), Refusal> {
        match &self.family {
            Family::Count(law) => law.check_sizes()?,
            Family::Boltzmann(law) => drop(law.singular()?),
            Family::Depth(_) => {}
        }
        if lengths::shortest(&self.family) > self.max_tokens() {
            return Err(bad_value("max_tokens", "every text of this law is longer"));
        }
        Ok(())
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Refusal {
    if error.kind() == std::io::ErrorKind::NotFound {
        let refusal = Refusal::new(Kind::NotFound, format!("no law and no file is called {name}"));
        return match nearest(name, presets::NAMES) {
            Some(near) => refusal.help(format!("the nearest built-in law is {near}")),
            None => refusal,
        };
    }
    Refusal::new(Kind::Io, format!("{name}: {error}"))
}

/// Takes `preset` and `family` out of a table and answers with the keys that they stand for.
fn defaults(table: &mut Table) -> Result<Table, Refusal> {
    let mut word = |key: &str| match table.remove(key) {
        None => Ok(None),
        Some(Value::String(word)) => Ok(Some(word)),
        Some(_) => Err(bad_value(key, "a string is needed")),
    };
    let (preset, family) = (word("preset")?, word("family")?);
    let (base, changes) = match (&preset, &family) {
        (Some(name), _) => presets::preset(name)
            .ok_or_else(|| bad_value("preset", format!("one of {} is needed", presets::NAMES.join(", "))))?,
        (None, Some(name)) => (
            presets::family(name)
                .ok_or_else(|| bad_value("family", "one of depth, count, boltzmann is needed"))?,
            "",
        ),
        (None, None) => return Err(bad_value("family", "a law needs the key family or preset")),
    };
    let mut full = document(base)?;
    if preset.is_some() && family.is_some() && full.get("family").and_then(Value::as_str) != family.as_deref()
    {
        return Err(bad_value("family", "the preset is of another family"));
    }
    for (key, value) in document(changes)? {
        assign(&mut full, &key, value)?;
    }
    Ok(full)
}

/// Sets one key. `predicates` and `overloaded` replace each other, the later one holds; in one table
/// `predicates` holds, because it comes later in the order of keys.
fn assign(full: &mut Table, key: &str, value: Value) -> Result<(), Refusal> {
    match key.split('.').next() {
        Some("predicates") => drop(full.remove("overloaded")),
        Some("overloaded") => drop(full.remove("predicates")),
        _ => {}
    }
    set(full, key, value)
}

/// Gives the table under `key`, if it is there, the defaults of what it does not say.
fn fill(full: &mut Table, key: &str, defaults: &str) -> Result<(), Refusal> {
    if let Some(Value::Table(inner)) = full.get_mut(key) {
        for (name, value) in document(defaults)? {
            inner.entry(name).or_insert(value);
        }
    }
    Ok(())
}

/// BLAKE3 of a value's one text, in hexadecimal.
pub(crate) fn digest_of(value: &Json) -> String {
    blake3::hash(canonical_json(value).as_bytes()).to_hex().to_string()
}

/// JSON with sorted keys and without blanks: one text for one value.
fn canonical_json(value: &Json) -> String {
    match value {
        Json::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let member = |k: &String| {
                let inner = map.get(k).map_or_else(String::new, canonical_json);
                format!("{}:{inner}", Json::String(k.clone()))
            };
            format!("{{{}}}", keys.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Json::Array(list) => format!("[{}]", list.iter().map(canonical_json).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
