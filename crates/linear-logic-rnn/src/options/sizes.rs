//! The sizes of a cell, and how large they and its lists may be.

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Result};

/// Sizes. Those that a cell has no use for are not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// i
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// H, or S of a Turing machine
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// K
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aux: Option<usize>,
    /// K₂
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aux2: Option<usize>,
    /// o; without it there is no readout
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
    /// y; H if it is not given, for Turing machines 0
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout: Option<usize>,
    /// N
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<usize>,
    /// c
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<usize>,
    /// Addresses of rings 2, 3 and 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern_addresses: Option<usize>,
}

/// The largest size: with it no product of three sizes overflows, and no cell fits into memory.
const LARGEST: usize = 1 << 20;

/// The size, if it may be computed with.
///
/// # Errors
/// `config`
pub(crate) fn not_too_large(name: &str, size: usize) -> Result<usize> {
    if size > LARGEST {
        return Err(Refusal::too_large(format!("`{name}` = {size} is too large")));
    }
    Ok(size)
}

impl Sizes {
    /// A size that the cell needs.
    ///
    /// # Errors
    /// `config` if it is not given, is 0, or is larger than any cell that fits into memory.
    pub fn need(&self, name: &str) -> Result<usize> {
        let size = match name {
            "input" => self.input,
            "hidden" => self.hidden,
            "aux" => self.aux,
            "aux2" => self.aux2,
            "output" => self.output,
            "addresses" => self.addresses,
            "content" => self.content,
            "pattern_addresses" => Some(self.pattern_addresses.unwrap_or(20)),
            _ => None,
        };
        match size {
            None => Err(Refusal::config(format!("this cell needs the size `{name}`"))),
            Some(0) => Err(Refusal::config(format!("the size `{name}` is 0"))),
            Some(size) => not_too_large(name, size),
        }
    }
}

/// The most programs of a list. Each is checked and compiled.
pub(crate) const MOST_PROGRAMS: usize = 10_000;

/// The most masters of a cell. Each is compiled on a stack of its own.
pub(crate) const MOST_MASTERS: usize = 1000;

/// Refuses a list that is too long to be checked.
///
/// # Errors
/// `config`
pub(crate) fn not_too_many(name: &str, count: usize, most: usize) -> Result<()> {
    if count > most {
        return Err(Refusal::config(format!("{name} has {count} entries; at most {most} are computed with")));
    }
    Ok(())
}
