//! The one place that sets the number of threads.

use crate::error::{Refusal, Result};

/// The threads that a setting means where `at_once` runs go on side by side: 0 is all cores, shared among them.
pub fn resolve(threads: usize, at_once: usize) -> usize {
    match threads {
        0 => (std::thread::available_parallelism().map_or(1, usize::from) / at_once.max(1)).max(1),
        n => n,
    }
}

/// Sets rayon's pool, which every kernel and product uses, to `threads`, 0 for all cores, of which the caller is one. Call it once, before any work;
/// a second call with another number is refused.
///
/// candle's own pool spins and is three to four times slower when another process holds a core, so a binary that
/// uses the composed engine should run with `CANDLE_NUM_THREADS=1` (xtask sets it at its start).
pub fn set(threads: usize) -> Result<()> {
    let threads = resolve(threads, 1);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build_global() {
        Ok(()) => Ok(()),
        Err(_) if rayon::current_num_threads() == threads => Ok(()),
        Err(e) => Err(Refusal::Setting(format!("threads = {threads}: {e}"))),
    }
}
