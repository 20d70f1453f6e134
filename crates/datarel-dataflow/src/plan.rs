//! A rule as the steps of a dataflow: what is scanned, joined, looked for in vain, computed.
//!
//! A binding is a row of the variables that are still needed, in an order that each step knows. Enter at
//! [`plan`](crate::order::plan).

use datarel::rule::{Computed, Function, Select, Test};
use datarel::{Comparison, RelationId, Ring, Value};

/// A place of the binding, or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A place of the binding.
    Slot(usize),
    /// A code.
    Constant(u32),
}

/// The tuples of a relation, or what is left of them in these places, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    /// The relation.
    pub(crate) relation: RelationId,
    /// The places that are looked at.
    pub(crate) places: Option<Vec<usize>>,
}

/// What tuples are multiplied into the value with: the ring of their relation.
pub(crate) type Factor = Option<Ring>;

/// Where a place of the next binding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// A place of the binding.
    Left(usize),
    /// A place of what the tuple has beside the key.
    Right(usize),
}

/// A step.
pub(crate) enum Step {
    /// For each tuple: the first step, or none where nothing is read.
    Scan {
        /// Of what.
        source: Source,
        /// Places with their constants.
        constants: Vec<(usize, u32)>,
        /// Places that must be equal.
        equal: Vec<(usize, usize)>,
        /// The places of the binding.
        keep: Vec<usize>,
        /// Whether it is multiplied.
        factor: Factor,
    },
    /// For each tuple with the key.
    Join {
        /// Of what.
        source: Source,
        /// The places of the key.
        key: Vec<usize>,
        /// What stands in them.
        probe: Vec<Operand>,
        /// Places of the rest that must be equal.
        equal: Vec<(usize, usize)>,
        /// The next binding.
        keep: Vec<Side>,
        /// Whether it is multiplied.
        factor: Factor,
    },
    /// Where there is no tuple.
    Missing {
        /// Of what: these are all its places.
        source: Source,
        /// What stands in them.
        probe: Vec<Operand>,
    },
    /// Without tuples: each makes the binding longer, or drops it.
    Local {
        /// What is done.
        does: Vec<Local>,
        /// What is kept of the binding.
        keep: Vec<usize>,
    },
}

/// What is done to a binding alone.
pub(crate) enum Local {
    /// A condition.
    Compare(Comparison, Operand, Operand),
    /// One more place.
    Assign(Operand),
    /// One more place: operand + number.
    Shift(Operand, i64),
    /// Whether the first is the second + number.
    ShiftTest(Operand, Operand, i64),
    /// One more place: a function.
    Compute(Vec<Operand>, Function),
    /// Whether the operand is the function.
    ComputeTest(Operand, Vec<Operand>, Function),
    /// A condition.
    Test(Vec<Operand>, Test),
}

/// A rule as steps.
pub(crate) struct Plan {
    /// Its position.
    pub(crate) rule: usize,
    /// Whether it may make a constant.
    pub(crate) makes: bool,
    /// The ring of its values, or of those that a condition looks at.
    pub(crate) ring: Ring,
    /// Whether the head has values.
    pub(crate) valued: bool,
    /// The steps.
    pub(crate) steps: Vec<Step>,
    /// The head.
    pub(crate) head: Vec<Operand>,
    /// Factors made from constants.
    pub(crate) computed: Vec<(Vec<Operand>, Computed)>,
    /// The constant factor.
    pub(crate) weight: Value,
    /// A condition on the value.
    pub(crate) select: Option<Select>,
}
