//! Tapes: a start symbol, content, an end symbol, then the transformed content (section 7.3).
//!
//! ```text
//! input   8, content, 9, 9, …                        length n + n_out
//! target  9 repeated L+1 times, f(content), 9, 9, …
//! ```

use super::walk::Pattern;
use super::{Example, LONGEST};
use crate::error::{Kind, Refusal, Result};

/// Symbols 0 … 7 are content.
pub const CONTENT: u32 = 8;
/// Starts a tape, and stands between the pattern and the string of `variable-pattern`.
pub const START: u32 = 8;
/// Ends a tape, and fills it.
pub const END: u32 = 9;
/// Separates the sections of `multi-pattern`.
pub const DIVIDER: u32 = 7;
/// Symbols and classes of a tape.
pub const SYMBOLS: u32 = 10;

/// What becomes of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transform {
    /// A walk by one pattern.
    Walk(Pattern),
    /// Sections between dividers, walked by the patterns in turn.
    Sections {
        /// Not empty.
        patterns: Vec<Pattern>,
        /// Whether a drawn content has a divider for certain.
        divider: Divider,
    },
    /// The content is a pattern, 8, and the string that it walks.
    Variable(Variable),
}

/// Whether a drawn content has a divider for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Divider {
    Free,
    Forced,
}

/// Where the patterns of `variable-pattern` come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// One of a list.
    Listed(Vec<Vec<i64>>),
    /// Random entries in `-below ..= 2`, written as the symbols p + `below`.
    Random {
        /// 0 or 2.
        below: u8,
    },
}

impl Variable {
    /// What is added to an entry to write it as a symbol.
    pub(super) fn offset(&self) -> i64 {
        match self {
            Self::Listed(_) => 0,
            Self::Random { below } => i64::from(*below),
        }
    }
}

/// Lengths of a tape other than the smallest: before the output, and from there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// n; L + 2 if absent.
    pub n: Option<usize>,
    /// `n_out`; the length of the output if absent.
    pub n_out: Option<usize>,
}

impl Transform {
    /// f(content).
    pub fn apply(&self, content: &[u32]) -> Result<Vec<u32>> {
        match self {
            Self::Walk(pattern) => pattern.walk(content),
            Self::Sections { patterns, .. } => {
                let mut out = Vec::new();
                for (section, pattern) in content.split(|&s| s == DIVIDER).zip(patterns.iter().cycle()) {
                    out.extend(pattern.walk(section)?);
                }
                Ok(out)
            }
            Self::Variable(variable) => {
                let mut halves = content.splitn(2, |&s| s == START);
                let (pattern, string) =
                    (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
                let entries = pattern.iter().map(|&s| i64::from(s) - variable.offset()).collect();
                Pattern::new(entries)?.walk(string)
            }
        }
    }

    /// Refuses (`symbol`) a content that is none of this task.
    pub(super) fn check(&self, content: &[u32]) -> Result<()> {
        let starts = content.iter().filter(|&&s| s == START).count();
        let separators = usize::from(matches!(self, Self::Variable(_)));
        if let Some(s) = content.iter().find(|&&s| s >= CONTENT && (s != START || separators == 0)) {
            return Err(Refusal::new(
                Kind::Symbol,
                format!("{s} is no content; the content has symbols 0 to 7"),
            ));
        }
        if starts != separators {
            let message =
                format!("the content is a pattern, one 8, and a string; here are {starts} symbols 8");
            return Err(Refusal::new(Kind::Symbol, message));
        }
        Ok(())
    }
}

/// The tape of a content and its transform.
pub(super) fn lay(content: &[u32], walk: Vec<u32>, size: Size) -> Result<Example> {
    let n = at_least("n", size.n, content.len() + 2)?;
    let n_out = at_least("n_out", size.n_out, walk.len())?;
    let length = n.saturating_add(n_out);
    if length > LONGEST {
        let message = format!("the tape has {length} symbols; the longest has {LONGEST}");
        return Err(Refusal::new(Kind::Tape, message));
    }
    let mut input = Vec::with_capacity(length);
    input.push(START);
    input.extend_from_slice(content);
    input.resize(length, END);
    let mut target = vec![END; content.len() + 1];
    target.extend_from_slice(&walk);
    target.resize(length, END);
    let mask = target.iter().map(|&t| t != END).collect();
    Ok(Example { input, target, mask, walk: Some(walk) })
}

fn at_least(name: &str, given: Option<usize>, default: usize) -> Result<usize> {
    match given {
        Some(given) if given < default => {
            let message = format!("{name} = {given} is too short for this tape; it needs {default}");
            Err(Refusal::new(Kind::Tape, message))
        }
        given => Ok(given.unwrap_or(default)),
    }
}
