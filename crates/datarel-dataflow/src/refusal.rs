//! Why there is no answer.

use datarel::{Failure, RelationId};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The relation is a sum and depends on itself. A difference must be taken back as it was given, and the sum along a
    /// cycle is a limit.
    #[error("a sum in a recursion is no dataflow")]
    SumInRecursion {
        /// The relation.
        relation: RelationId,
    },
    /// A rule makes a constant that has no code: of constants that are in no fact, integers within ±2^29 and the first 2^30
    /// symbols have one.
    #[error("rule {rule} makes a constant beyond ±2^29")]
    Constant {
        /// The position of the rule.
        rule: usize,
    },
    /// What the engine of `datarel` refuses too.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// No workers, or more than there may be.
    #[error("{workers} workers: there are from 1 to {most}")]
    Workers {
        /// How many were asked for.
        workers: usize,
        /// The most.
        most: usize,
    },
    /// A list of hosts that is none.
    #[error("line {line}, column {column}: {reason}")]
    Hosts {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// There is no such process.
    #[error("there are {processes} hosts, so that processes are 0 to {}, and this one is to be {process}", processes.saturating_sub(1))]
    Process {
        /// The number that was asked for.
        process: usize,
        /// How many there are.
        processes: usize,
    },
    /// This process cannot be reached where the list says.
    #[error("`{host}` cannot be listened on: {reason}")]
    Listen {
        /// The address.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// A host does not answer.
    #[error("`{host}` (process {process}) did not answer within {seconds} s{reason}")]
    Silent {
        /// The address.
        host: String,
        /// The process that should be there.
        process: usize,
        /// How long it was waited for.
        seconds: u64,
        /// What the system says, behind `: `.
        reason: String,
    },
    /// What runs at a host is not the same.
    #[error("`{host}` runs something else: {reason}")]
    Other {
        /// The address.
        host: String,
        /// What differs.
        reason: String,
    },
    /// Another process, or a worker of this one, has gone before the end.
    #[error("a worker has gone before the end: {reason}")]
    Lost {
        /// What it said.
        reason: String,
    },
    /// An update names a relation that does not take facts, or has the wrong number of constants.
    #[error("{reason}")]
    Update {
        /// The position of the update.
        update: usize,
        /// What is wrong.
        reason: &'static str,
    },
}
