//! The statements of a law of family `depth`: the table `statements` (F38, F39).

use serde_json::{Value as Json, json};

use super::config::Keys;
use super::tables::{SORTED, drawn, named};
use crate::error::Refusal;
use crate::signature::Statements;

const STATEMENT_KINDS: [&str; 7] =
    ["formula", "entails", "models", "equivalent", "define_predicate", "define_function", "define_constant"];

/// How a text is put together from statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Number of statements and weight.
    pub(crate) count: Vec<(u64, u64)>,
    /// Without, with a final DOT.
    pub(crate) dot: [u64; 2],
    /// Formula, entails, models, equivalent, define predicate, function, constant.
    pub(crate) kinds: [u64; 7],
    /// Number of premises and weight.
    pub(crate) premises: Vec<(u64, u64)>,
    /// A formula, `<unknown>`.
    pub(crate) conclusion: [u64; 2],
}

impl Parts {
    /// The table `statements`, if there is one.
    pub(super) fn read(keys: &Keys) -> Result<Option<Self>, Refusal> {
        let Some(value) = keys.get("statements") else { return Ok(None) };
        let Some(table) = value.as_table() else { return Err(keys.bad("statements", "a table is needed")) };
        let inner =
            Keys::new(table.clone(), "statements.", &["count", "dot", "kinds", "premises", "conclusion"])?;
        Ok(Some(Self {
            count: inner.weighted("count", 1000)?,
            dot: inner.weights("dot", &SORTED)?,
            kinds: inner.weights("kinds", &STATEMENT_KINDS)?,
            premises: inner.weighted("premises", 1000)?,
            conclusion: inner.weights("conclusion", &["formula", "unknown"])?,
        }))
    }

    /// The statements that the law can produce.
    pub(super) fn signature(&self) -> Statements {
        let [_, entails, models, ..] = self.kinds;
        let [formula, _, _, equivalence, predicate, function, constant] = self.kinds.map(|w| w > 0);
        Statements {
            formula,
            sequents: drawn(&[entails, models]),
            unknown_conclusion: entails.max(models) > 0 && self.conclusion[1] > 0,
            equivalence,
            define_predicate: predicate,
            define_function: function,
            define_constant: constant,
            several: self.count.iter().any(|c| c.0 > 1 && c.1 > 0),
            terminated: self.dot[1] > 0,
        }
    }

    /// Every key.
    pub(super) fn to_json(&self) -> Json {
        json!({
            "count": self.count,
            "dot": named(&SORTED, &self.dot),
            "kinds": named(&STATEMENT_KINDS, &self.kinds),
            "premises": self.premises,
            "conclusion": named(&["formula", "unknown"], &self.conclusion),
        })
    }
}
