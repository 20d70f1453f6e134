//! When several threads share the work of an operation, and when they stay awake between operations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::{Scope, Yield};

/// For more operations than so few, with more results than this, the threads stay awake.
const FEW: usize = 2;
const LARGE: usize = 1 << 16;
/// One more thread for each so many results.
const SHARE: usize = 1 << 14;

/// The other threads look for work so long after the last, before they go to sleep: to wake one takes longer than many
/// an operation.
const PATIENCE: Duration = Duration::from_millis(1);

/// While others look for work, so many entries are a task: to hand them over takes as long as a few hundred of them.
const LITTLE: usize = 1 << 12;
/// How many threads look for work.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// Whether so many units of work with so many results are worth that threads stay awake for them.
pub(super) fn is_worth_it(units: usize, entries: usize) -> bool {
    rayon::current_num_threads() > 1 && units > FEW && entries > LARGE
}

/// Of how many entries at most a task is, of which `task` are one where threads are to be woken; `None`, if so few are done
/// by one thread. To be asked only where the bits are the same for all tasks.
pub(super) fn shared(entries: usize, task: usize) -> Option<usize> {
    if entries <= 2 * LITTLE.min(task) || rayon::current_num_threads() == 1 {
        return None;
    }
    match LOOKING.load(Ordering::Relaxed) {
        0 => (entries > 2 * task).then_some(task),
        _ => Some(task.min(LITTLE)),
    }
}

/// Does some work as if others looked for parts of it all the time.
#[cfg(test)]
pub(super) fn looked_for<R>(work: impl FnOnce() -> R) -> R {
    LOOKING.fetch_add(1, Ordering::Relaxed);
    let done = work();
    LOOKING.fetch_sub(1, Ordering::Relaxed);
    done
}

/// Does some work of so many units and results, while threads look for parts of it if it is worth that.
pub fn together(units: usize, entries: usize, work: impl FnOnce() + Send) {
    match is_worth_it(units, entries) {
        true => awake(entries, work),
        false => work(),
    }
}

/// Does some work with so many results on one of the threads (otherwise each operation would have all of them woken), while
/// others look for parts of it.
fn awake(entries: usize, work: impl FnOnce() + Send) {
    let watch = Watch::default();
    rayon::scope(|scope| {
        watch.begin(scope, entries);
        work();
        watch.done.store(true, Ordering::Relaxed);
    });
}

/// Does some work with so many results that cannot go to another thread, while others look for parts of it, if this one is
/// among those that share work.
pub fn together_here<R>(entries: usize, work: impl FnOnce() -> R) -> R {
    if rayon::current_thread_index().is_none() || !is_worth_it(usize::MAX, entries) {
        return work();
    }
    let watch = Watch::default();
    rayon::in_place_scope(|scope| {
        watch.begin(scope, entries);
        let done = work();
        watch.done.store(true, Ordering::Relaxed);
        done
    })
}

/// Some work that one thread does.
#[derive(Default)]
struct Watch {
    done: AtomicBool,
    worker: AtomicUsize,
}

impl Watch {
    /// This thread works; others look, one more for each so many results.
    fn begin<'s>(&'s self, scope: &Scope<'s>, entries: usize) {
        self.worker.store(rayon::current_thread_index().unwrap_or(usize::MAX), Ordering::Relaxed);
        let others = (rayon::current_num_threads() - 1).min(entries / SHARE);
        (0..others).for_each(|_| scope.spawn(|scope| self.look(scope)));
    }

    /// Looks for parts of it.
    fn look<'s>(&'s self, scope: &Scope<'s>) {
        let done = || self.done.load(Ordering::Relaxed);
        if done() {
            return;
        }
        // Who does the work gets here while it waits for a part that another one has; that it looks helps nobody.
        if rayon::current_thread_index() == Some(self.worker.load(Ordering::Relaxed)) {
            return scope.spawn(|scope| self.look(scope));
        }
        LOOKING.fetch_add(1, Ordering::Relaxed);
        let mut since = Instant::now();
        while !done() && since.elapsed() < PATIENCE {
            match rayon::yield_now() {
                Some(Yield::Executed) => since = Instant::now(),
                _ => (0..16).for_each(|_| std::hint::spin_loop()),
            }
        }
        LOOKING.fetch_sub(1, Ordering::Relaxed);
    }
}
