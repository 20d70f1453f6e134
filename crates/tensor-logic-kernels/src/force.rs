//! When arrays are computed: those that are asked for, together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::Yield;

use super::array::Array;
use super::number::{Buffer, Pool, Precision};
use super::schedule::{Node, Unit, units, waiting};
use super::strips;

/// For more operations than so few, with more results than this, the threads stay awake.
const FEW: usize = 2;
const LARGE: usize = 1 << 16;
/// One more thread for each so many results.
const SHARE: usize = 1 << 14;

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
        let together = is_worth_it(units.len(), entries);
        let done = Node::done();
        let mut run = move || {
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
        };
        if together {
            awake(entries, run);
        } else {
            run();
        }
    }
}

/// The other threads look for work so long after the last, before they go to sleep: to wake one takes longer than many
/// an operation.
const PATIENCE: Duration = Duration::from_micros(200);

/// Whether so many units of work with so many results are worth that threads stay awake for them.
pub(super) fn is_worth_it(units: usize, entries: usize) -> bool {
    rayon::current_num_threads() > 1 && units > FEW && entries > LARGE
}

/// Does some work with so many results on one of the threads (otherwise each operation would have all of them woken), while
/// others look for parts of it.
pub(super) fn awake(entries: usize, work: impl FnOnce() + Send) {
    let others = entries / SHARE;
    let (done, worker) = (AtomicBool::new(false), AtomicUsize::new(usize::MAX));
    let look = || {
        let mut since = Instant::now();
        // Who does the work gets here while it waits for a part that another one has.
        while rayon::current_thread_index() != Some(worker.load(Ordering::Relaxed))
            && !done.load(Ordering::Relaxed)
            && since.elapsed() < PATIENCE
        {
            match rayon::yield_now() {
                Some(Yield::Executed) => since = Instant::now(),
                _ => (0..16).for_each(|_| std::hint::spin_loop()),
            }
        }
    };
    rayon::scope(|scope| {
        worker.store(rayon::current_thread_index().unwrap_or(usize::MAX), Ordering::Relaxed);
        (1..rayon::current_num_threads()).take(others).for_each(|_| scope.spawn(|_| look()));
        work();
        done.store(true, Ordering::Relaxed);
    });
}
