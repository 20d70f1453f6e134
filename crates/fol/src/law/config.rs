//! Reading flat configurations: every key known, every value of its type, every refusal named.
//!
//! [`Keys`] wraps a TOML table. Its constructor refuses unknown keys and names the nearest known one; its
//! readers refuse missing and ill-typed values as `BadValue`. Laws and data sets are read through it.

use toml::{Table, Value};

use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;

/// A table all of whose keys are known.
pub(crate) struct Keys {
    table: Table,
    /// What stands before a key in messages: empty, or `statements.`.
    prefix: String,
}

pub(crate) use calculemus_base::word::nearest;

/// The refusal of a key that is not known.
pub(crate) fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Refusal {
    let last = key.rsplit('.').next().unwrap_or(key);
    let refusal = Refusal::new(Kind::UnknownKey, format!("there is no key {key}"));
    match nearest(last, known) {
        Some(near) => refusal.help(format!("the nearest known key is {near}")),
        None => refusal,
    }
}

/// The refusal of a value that its key cannot have.
pub(crate) fn bad_value(key: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::BadValue, format!("{key}: {why}"))
}

/// Reads a TOML document.
pub(crate) fn document(text: &str) -> Result<Table, Refusal> {
    text.parse::<Table>().map_err(|e| bad_value("configuration", e.message()))
}

/// The value of `KEY=VALUE`: TOML, or else the text itself.
pub(crate) fn loose_value(text: &str) -> Value {
    let parsed = format!("v = {text}").parse::<Table>().ok();
    // More than one key means that the text broke out of its line.
    parsed
        .filter(|t| t.len() == 1)
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Sets a dotted key, making the tables on its way.
pub(crate) fn set(table: &mut Table, key: &str, value: Value) -> Result<(), Refusal> {
    let Some((head, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    match table.entry(head).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value),
        _ => Err(unknown_key(key, [head])),
    }
}

impl Keys {
    /// The table, if all its keys are among `known`.
    pub(crate) fn new(table: Table, prefix: &str, known: &[&str]) -> Result<Self, Refusal> {
        match table.keys().find(|k| !known.contains(&k.as_str())) {
            Some(key) => Err(unknown_key(&format!("{prefix}{key}"), known.iter().copied())),
            None => Ok(Self { table, prefix: prefix.to_owned() }),
        }
    }

    /// The full name of a key.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// A refusal of the value of `key`.
    pub(crate) fn bad(&self, key: &str, why: impl std::fmt::Display) -> Refusal {
        bad_value(&self.name(key), why)
    }

    /// The raw value, if the key is there.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.table.get(key)
    }

    fn need(&self, key: &str) -> Result<&Value, Refusal> {
        self.get(key).ok_or_else(|| self.bad(key, "is missing"))
    }

    /// An integer that is not negative.
    pub(crate) fn number(&self, key: &str) -> Result<u64, Refusal> {
        natural(self.need(key)?).ok_or_else(|| self.bad(key, "a natural number is needed"))
    }

    /// A natural number that is a size of something; one beyond all sizes stands for the largest.
    pub(crate) fn size(&self, key: &str) -> Result<usize, Refusal> {
        Ok(usize::try_from(self.number(key)?).unwrap_or(usize::MAX))
    }

    /// A truth value.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Refusal> {
        self.need(key)?.as_bool().ok_or_else(|| self.bad(key, "true or false is needed"))
    }

    /// A string.
    pub(crate) fn string(&self, key: &str) -> Result<String, Refusal> {
        self.need(key)?.as_str().map(str::to_owned).ok_or_else(|| self.bad(key, "a string is needed"))
    }

    /// One of the listed words.
    pub(crate) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T, Refusal> {
        let given = self.string(key)?;
        words.iter().find(|w| w.0 == given).map(|w| w.1).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|w| w.0).collect();
            self.bad(key, format!("one of {} is needed", known.join(", ")))
        })
    }

    /// A table of weights by name; a name that is not given has weight 0.
    pub(crate) fn weights<const N: usize>(&self, key: &str, names: &[&str; N]) -> Result<[u64; N], Refusal> {
        let Some(table) = self.need(key)?.as_table() else {
            return Err(self.bad(key, "a table of weights is needed"));
        };
        let inner = Self::new(table.clone(), &format!("{}.", self.name(key)), names)?;
        let mut weights = [0; N];
        for (weight, name) in weights.iter_mut().zip(names) {
            *weight = if table.contains_key(*name) { inner.number(name)? } else { 0 };
        }
        sum_fits(&weights).then_some(weights).ok_or_else(|| self.bad(key, "the weights are too large"))
    }

    /// A list of rows of `N` natural numbers.
    pub(crate) fn rows<const N: usize>(&self, key: &str) -> Result<Vec<[u64; N]>, Refusal> {
        let bad = || self.bad(key, format!("a list of lists of {N} natural numbers is needed"));
        let rows = self.need(key)?.as_array().ok_or_else(bad)?;
        rows.iter().map(|row| numbers(row).and_then(|r| r.try_into().ok()).ok_or_else(bad)).collect()
    }

    /// A list of `N` natural numbers.
    pub(crate) fn row<const N: usize>(&self, key: &str) -> Result<[u64; N], Refusal> {
        let bad = || self.bad(key, format!("a list of {N} natural numbers is needed"));
        numbers(self.need(key)?).and_then(|r| r.try_into().ok()).ok_or_else(bad)
    }

    /// Pairs of a small number and a weight.
    pub(crate) fn weighted(&self, key: &str, largest: u64) -> Result<Vec<(u64, u64)>, Refusal> {
        let pairs: Vec<(u64, u64)> = self.rows::<2>(key)?.into_iter().map(|[n, w]| (n, w)).collect();
        if let Some((n, _)) = pairs.iter().find(|p| p.0 > largest) {
            return Err(self.bad(key, format!("{n} is more than {largest}")));
        }
        let weights: Vec<u64> = pairs.iter().map(|p| p.1).collect();
        sum_fits(&weights).then_some(pairs).ok_or_else(|| self.bad(key, "the weights are too large"))
    }

    /// Symbols among `all`, by label, without repetition.
    pub(crate) fn signs(&self, key: &str, all: &[SymbolId]) -> Result<Vec<SymbolId>, Refusal> {
        let Some(list) = self.need(key)?.as_array() else {
            return Err(self.bad(key, "a list of labels is needed"));
        };
        let mut chosen = Vec::new();
        for value in list {
            let label = value.as_str().unwrap_or("");
            let Some(symbol) = all.iter().find(|symbol| symbol.label() == label) else {
                let known: Vec<&str> = all.iter().map(|symbol| symbol.label()).collect();
                return Err(self.bad(key, format!("{value} is none of {}", known.join(", "))));
            };
            if chosen.contains(symbol) {
                return Err(self.bad(key, format!("{label} stands twice")));
            }
            chosen.push(*symbol);
        }
        Ok(chosen)
    }
}

/// A number up to 2⁶⁴ − 1. Integers of TOML end at 2⁶³ − 1; a larger one is written as a string, which is also
/// what `--set` makes of it.
fn natural(value: &Value) -> Option<u64> {
    match value {
        Value::String(digits) => digits.parse().ok().filter(|&n| n > i64::MAX as u64),
        value => value.as_integer().and_then(|n| u64::try_from(n).ok()),
    }
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(natural).collect()
}

fn sum_fits(weights: &[u64]) -> bool {
    weights.iter().try_fold(0u64, |a, &w| a.checked_add(w)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_toml_or_else_a_string() {
        assert_eq!(loose_value("3"), Value::Integer(3));
        assert_eq!(loose_value("[[1,2]]").as_array().map(Vec::len), Some(1));
        assert_eq!(loose_value("distinct").as_str(), Some("distinct"));
        assert_eq!(loose_value("3\nw = 4").as_str(), Some("3\nw = 4"));
    }

    #[test]
    fn numbers_reach_beyond_those_of_toml() {
        let number = |text| natural(&loose_value(text));
        assert_eq!((number("0"), number("18446744073709551615")), (Some(0), Some(u64::MAX)));
        assert_eq!((number("18446744073709551616"), number("-1"), number("\"3\"")), (None, None, None));
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let table = document("drawz = 5").unwrap();
        let refusal = Keys::new(table, "", &["draws", "dedup"]).err().unwrap();
        assert_eq!(refusal.kind, Kind::UnknownKey);
        assert!(refusal.help.unwrap().contains("draws"));
    }
}
