//! The settings of a task: `modulus`, `pattern`, `patterns`.

use serde_json::Value;

use crate::error::{Refusal, Result};

/// What a task may be told besides its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// m of `mod-sum`, default 5.
    pub modulus: Option<u32>,
    /// The pattern of `pattern`.
    pub pattern: Option<Vec<i64>>,
    /// The patterns of `multi-pattern`.
    pub patterns: Option<Vec<Vec<i64>>>,
}

impl Settings {
    /// The keys.
    pub const KEYS: [&'static str; 3] = ["modulus", "pattern", "patterns"];

    /// Reads one key; false if it is none of this type. A pattern is a list of integers, one integer, or a text such
    /// as `0,1`; patterns are a list of patterns or a text such as `1;0,1`.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<bool> {
        match key {
            "modulus" => self.modulus = Some(modulus(value)?),
            "pattern" => self.pattern = Some(pattern(key, value)?),
            "patterns" => self.patterns = Some(patterns(key, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn modulus(value: &Value) -> Result<u32> {
    let given = value.as_u64().or_else(|| value.as_str().and_then(|s| s.trim().parse().ok()));
    let fits = given.and_then(|m| u32::try_from(m).ok()).filter(|&m| m > 0);
    fits.ok_or_else(|| {
        Refusal::config(format!("modulus is {value}; it is an integer from 1 to {}", u32::MAX))
    })
}

fn bad(key: &str, value: &Value) -> Refusal {
    Refusal::config(format!(
        "{key} is {value}; a pattern is a list of integers, patterns are separated by `;`"
    ))
}

fn pattern(key: &str, value: &Value) -> Result<Vec<i64>> {
    let entry = |v: &Value| v.as_i64().ok_or_else(|| bad(key, value));
    match value {
        Value::Array(entries) => entries.iter().map(entry).collect(),
        Value::String(text) => {
            let pieces = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|p| !p.is_empty());
            pieces.map(|p| p.parse().map_err(|_| bad(key, value))).collect()
        }
        other => Ok(vec![entry(other)?]),
    }
}

fn patterns(key: &str, value: &Value) -> Result<Vec<Vec<i64>>> {
    match value {
        Value::Array(all) => all.iter().map(|p| pattern(key, p)).collect(),
        Value::String(text) => text.split(';').map(|p| pattern(key, &Value::from(p))).collect(),
        other => Ok(vec![pattern(key, other)?]),
    }
}
