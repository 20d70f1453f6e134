//! Family `boltzmann`: formulas of about a size, from the grammar of family `count` with few binders on a path (F69).
//!
//! Every formula of n nodes within the window of sizes has the probability ρⁿ / W: ρ is the singularity of the grammar's
//! generating functions, so that the mass of the sizes falls no faster than n^(−3/2), and W is the mass of the window.

use serde_json::{Value as Json, json};
use toml::Table;

use super::config::Keys;
use super::count_law::CountLaw;
use super::grammar::Grammar;
use crate::error::Refusal;

const KEYS: [&str; 14] = [
    "predicates",
    "constants",
    "relations",
    "quantifiers",
    "connectives",
    "truth",
    "nodes",
    "tolerance",
    "scope",
    "names",
    "pool",
    "max_tokens",
    "family",
    "preset",
];

/// The largest size: whatever has no more nodes is not nested too deep for the readers.
const MAX_SIZE: u64 = 1024;

/// The most binders on a path.
const MAX_SCOPE: u64 = 100;

/// The keys of family `boltzmann`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoltzmannLaw {
    /// The signature and the names; its one entry of sizes is the window.
    pub(crate) grammar: CountLaw,
    /// The middle of the window.
    pub(crate) nodes: u64,
    /// How far the window reaches, in percent of the middle.
    pub(crate) tolerance: u64,
}

impl BoltzmannLaw {
    /// The law of a complete table.
    pub(super) fn read(table: Table) -> Result<Self, Refusal> {
        let keys = Keys::new(table, "", &KEYS)?;
        let (nodes, tolerance, scope) =
            (keys.number("nodes")?, keys.number("tolerance")?, keys.number("scope")?);
        if tolerance > 50 {
            return Err(keys.bad("tolerance", "at most 50 percent are possible"));
        }
        if nodes == 0 || nodes > MAX_SIZE {
            return Err(keys.bad("nodes", format!("a number from 1 to {MAX_SIZE} is needed")));
        }
        let (lo, hi) = ((nodes * (100 - tolerance)).div_ceil(100), nodes * (100 + tolerance) / 100);
        if hi > MAX_SIZE {
            return Err(keys.bad("nodes", format!("the window reaches {hi} nodes, at most {MAX_SIZE}")));
        }
        if scope > MAX_SCOPE {
            return Err(keys.bad("scope", format!("at most {MAX_SCOPE} binders on a path are possible")));
        }
        let window = (0, 1, lo.max(1) as usize, hi as usize);
        let grammar = CountLaw::of(&keys, vec![window], scope as usize)?;
        if grammar.connectives.is_empty() {
            return Err(
                keys.bad("connectives", "without a binary one the grammar has no singularity to draw at")
            );
        }
        Ok(Self { grammar, nodes, tolerance })
    }

    /// The smallest and the largest size.
    pub(crate) fn window(&self) -> (usize, usize) {
        self.grammar.sizes.first().map_or((1, 1), |s| (s.2, s.3))
    }

    /// The grammar at its singularity.
    ///
    /// # Errors
    /// `EmptySize` if no formula has a size in the window.
    pub(crate) fn singular(&self) -> Result<Grammar, Refusal> {
        self.check_window()?;
        Ok(Grammar::singular(&self.grammar))
    }

    /// Every key.
    pub(super) fn to_json(&self) -> Json {
        let mut keys = self.grammar.shared_json();
        keys["family"] = json!("boltzmann");
        (keys["nodes"], keys["tolerance"]) = (json!(self.nodes), json!(self.tolerance));
        keys["scope"] = json!(self.grammar.scope);
        keys
    }
}
