//! The statements of a law of family `depth`: the table `statements`.

use serde_json::{Value as Json, json};

use super::config::Keys;
use super::depth_law::{DepthLaw, Predicates, SORTED, named, select};
use crate::ast::Turnstile;
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

    /// Refuses tables that leave a draw without an alternative.
    pub(super) fn check(&self, law: &DepthLaw, keys: &Keys) -> Result<(), Refusal> {
        let need = |holds: bool, key: &str, why: &str| {
            if holds { Ok(()) } else { Err(keys.bad(&format!("statements.{key}"), why)) }
        };
        let positive = "some weight must be positive";
        let sequents = self.kinds[1] > 0 || self.kinds[2] > 0;
        need(self.count.iter().any(|c| c.1 > 0), "count", positive)?;
        need(self.count.iter().all(|c| c.0 > 0 || c.1 == 0), "count", "a text has at least one statement")?;
        need(self.dot.iter().any(|&w| w > 0), "dot", positive)?;
        need(self.kinds.iter().any(|&w| w > 0), "kinds", positive)?;
        need(!sequents || self.premises.iter().any(|p| p.1 > 0), "premises", positive)?;
        need(!sequents || self.conclusion.iter().any(|&w| w > 0), "conclusion", positive)?;
        need(
            self.kinds[4] == 0 || law.predicates.number() > 0,
            "kinds",
            "there are no predicates to define",
        )?;
        need(self.kinds[5] == 0 || !law.functions.is_empty(), "kinds", "there are no functions to define")?;
        need(self.kinds[6] == 0 || law.constants > 0, "kinds", "there are no constants to define")?;
        let functions = law.functions.iter().map(|f| f.0).max().filter(|_| self.kinds[5] > 0).unwrap_or(0);
        let predicates = match &law.predicates {
            Predicates::Overloaded { arities: list, .. } | Predicates::Blocks(list) => {
                list.iter().filter(|a| a.1 > 0).map(|a| a.0).max().filter(|_| self.kinds[4] > 0).unwrap_or(0)
            }
        };
        need(law.names >= functions.max(predicates) as u64, "kinds", "there are fewer names than parameters")
    }

    /// The statements that the law can produce.
    pub(super) fn signature(&self) -> Statements {
        let [formula, entails, models, equivalence, predicate, function, constant] =
            self.kinds.map(|w| w > 0);
        Statements {
            formula,
            sequents: select(Turnstile::ALL, |i| [entails, models].get(i).copied().unwrap_or(false)),
            unknown_conclusion: (entails || models) && self.conclusion[1] > 0,
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
