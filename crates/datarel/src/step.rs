//! The steps of a join, made by `plan` and run by `join`.

use crate::constant::Comparison;

use super::database::IndexId;
use super::ring::{Ring, Value};
use super::rule::{Computed, Function, RelationId, Select, Test};

/// How a rule is joined.
pub(super) struct Plan {
    /// The relation it adds to.
    pub(super) head: RelationId,
    /// The ring of its values, or that of the values that a condition looks at.
    pub(super) ring: Ring,
    /// Whether the head has values.
    pub(super) valued: bool,
    /// The condition on values.
    pub(super) select: Option<Select>,
    /// The head's arguments.
    pub(super) head_terms: Vec<Operand>,
    /// The steps.
    pub(super) steps: Vec<Step>,
    /// The constant factor.
    pub(super) weight: Value,
    /// Factors made from constants.
    pub(super) computed: Vec<(Vec<Operand>, Computed)>,
    /// The number of variables.
    pub(super) slots: usize,
    /// Whether it may make new constants.
    pub(super) interns: bool,
}

/// A bound variable or a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    /// A variable.
    Slot(usize),
    /// A constant.
    Constant(u32),
}

impl Operand {
    /// The constant that it stands for.
    #[inline]
    pub(super) fn of(self, slots: &[u32]) -> u32 {
        match self {
            Operand::Slot(slot) => slots[slot],
            Operand::Constant(constant) => constant,
        }
    }
}

/// Which rows of a growing relation take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// Those whose turn it is: new ones, or better ones.
    Delta,
    /// All others.
    Old,
    /// All.
    Current,
}

/// Where tuples come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// A relation at rest, by an order of its columns.
    Sorted(RelationId, IndexId),
    /// A growing relation, row by row.
    Whole(RelationId, Version),
    /// A growing relation, by an index.
    Chain(RelationId, usize, Version),
    /// One tuple of a growing relation.
    Row(RelationId, Version),
}

/// Where a factor's values come from, if it is one: the ring of its relation.
pub(super) type Factor = Option<Ring>;

/// One atom among those that agree on a variable.
pub(super) struct Candidate {
    /// The relation, at rest; its order has the key's places first, then that of the variable.
    pub(super) relation: RelationId,
    /// The order.
    pub(super) index: IndexId,
    /// The bound places.
    pub(super) key: Vec<Operand>,
    /// Whether its value is multiplied.
    pub(super) factor: Factor,
}

/// A step.
pub(super) enum Step {
    /// For each tuple with this key.
    Match {
        /// Where from.
        source: Source,
        /// The bound places.
        key: Vec<Operand>,
        /// Positions of columns, and the variables that they bind.
        bind: Vec<(usize, usize)>,
        /// Positions of columns that must be equal to an operand.
        same: Vec<(usize, Operand)>,
        /// Whether its value is multiplied.
        factor: Factor,
        /// Rows that are equal in the columns up to this one are taken once.
        distinct: Option<usize>,
    },
    /// If a tuple with this key exists.
    Exists {
        /// Where.
        source: Source,
        /// The bound places.
        key: Vec<Operand>,
        /// Whether its value is multiplied (the key is then the whole tuple).
        factor: Factor,
    },
    /// If no tuple with this key exists.
    Missing(RelationId, IndexId, Vec<Operand>),
    /// For each value of a variable on which all candidates agree.
    Extend(usize, Vec<Candidate>),
    /// If a comparison holds.
    Compare(Comparison, Operand, Operand),
    /// variable = operand + number
    Shift(usize, Operand, i64),
    /// If operand = operand + number.
    ShiftTest(Operand, Operand, i64),
    /// variable = function(arguments)
    Compute(usize, Vec<Operand>, Function),
    /// If operand = function(arguments).
    ComputeTest(Operand, Vec<Operand>, Function),
    /// If the predicate holds.
    Test(Vec<Operand>, Test),
}
