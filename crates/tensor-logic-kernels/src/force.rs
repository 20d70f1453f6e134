//! When arrays are computed: those that are asked for, together.

use std::sync::Arc;

use super::array::Array;
use super::number::{Buffer, Pool, Precision};
use super::schedule::{Node, Unit, units, waiting};
use super::strips;
use super::threads::together;

impl Array {
    /// Computes it, and what it needs.
    pub fn force(&self, precision: Precision, pool: &Arc<Pool>) -> Buffer {
        if self.is_waiting() {
            Array::force_all(&[(self, true)], precision, pool);
        }
        self.done().unwrap_or_else(|| Buffer::Truths(Arc::default()))
    }

    /// Computes those of these arrays that are asked for, and what they need, in the order of the list. The others are
    /// handles whose numbers nobody will look at: what is needed on the way only, and is held by nobody else, may be left
    /// waiting, for it never stood anywhere in whole.
    pub fn force_all(arrays: &[(&Array, bool)], precision: Precision, pool: &Arc<Pool>) {
        let mut nodes = waiting(arrays);
        let units = units(&nodes);
        let entries: usize = nodes.iter().map(|node| node.array.len()).sum();
        let done = Node::done();
        together(units.len(), entries, move || {
            for unit in &units {
                // What only readers hold that are done is free for what comes.
                match unit {
                    Unit::One(at) => {
                        nodes[*at].array.compute(precision, pool);
                        nodes[*at] = done.clone();
                    }
                    Unit::Group(group) => {
                        match precision {
                            Precision::Double => strips::run::<f64>(&nodes, group, pool),
                            Precision::Single => strips::run::<f32>(&nodes, group, pool),
                        }
                        group.members.iter().for_each(|member| nodes[member.node] = done.clone());
                    }
                }
            }
        });
    }
}
