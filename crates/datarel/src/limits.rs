//! What an evaluation may use, and how it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::rule::RelationId;

/// Limits of an evaluation; all are checked while it runs, before memory is taken.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most tuples that all relations may hold together.
    pub tuples: u64,
    /// The most bytes.
    pub bytes: u64,
    /// The most rounds that a recursion of sums may be worth.
    pub rounds: u64,
    /// Ends the evaluation when it becomes true.
    pub stop: Option<Arc<AtomicBool>>,
    /// Whether recursions of a special shape may be run by methods of their own. The answer is
    /// the same; tests turn it off.
    pub shapes: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { tuples: 100_000_000, bytes: u64::MAX, rounds: u64::MAX, stop: None, shapes: true }
    }
}

impl Limits {
    /// Refuses when asked to stop.
    pub(super) fn interrupted(&self) -> Result<(), Failure> {
        match &self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Failure::Interrupted),
            _ => Ok(()),
        }
    }
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// More tuples than allowed; the relation that was growing.
    #[error("more than {limit} tuples are stored")]
    Tuples {
        /// The relation that was growing.
        relation: RelationId,
        /// The limit.
        limit: u64,
    },
    /// More memory than allowed.
    #[error("{needed} bytes are needed, {limit} are allowed")]
    Bytes {
        /// The relation that was growing.
        relation: RelationId,
        /// What is needed.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// A valued closure is not at rest after N + 1 rounds over N tuples. So many are enough where every rule multiplies
    /// the values of what it joins; where one asks only whether a tuple exists whose value then counts as 1̄, a closure
    /// that would come to rest a round later is refused too.
    #[error("values still change after {rounds} rounds over {tuples} tuples")]
    Divergence {
        /// A relation whose values change.
        relation: RelationId,
        /// The rounds taken.
        rounds: u64,
        /// The tuples reached.
        tuples: u64,
    },
    /// A count left 64 bits.
    #[error("a count leaves 64 bits")]
    Overflow {
        /// The relation.
        relation: RelationId,
        /// The tuple.
        tuple: Vec<u32>,
    },
    /// What is inserted is not so many tuples of the relation's arity.
    #[error("{constants} constants with {values} values are no tuples of the relation")]
    Shape {
        /// The relation.
        relation: RelationId,
        /// The constants.
        constants: usize,
        /// The values.
        values: usize,
    },
    /// Asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// All ids of constants are taken.
    #[error("more than 2^32 constants")]
    TooManyConstants,
    /// A negation within a recursion, or a sum, unless it is linear and its data have no cycle.
    #[error("a relation depends on its own negation or sum")]
    NotStratified {
        /// The relation.
        relation: RelationId,
    },
    /// A rule whose variables cannot all be bound, or whose arguments do not fit.
    #[error("rule {rule}: {reason}")]
    Rule {
        /// The position of the rule.
        rule: usize,
        /// What is wrong.
        reason: &'static str,
    },
}
