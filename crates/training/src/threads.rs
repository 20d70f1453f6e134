//! The one place that sets the number of threads.

use rayon::ThreadPoolBuilder;

use crate::error::{Refusal, Result};

/// More threads than any machine has cores serve nobody, and take the machine from others.
pub const MOST: usize = 1024;

/// A number of threads that is possible.
///
/// # Errors
/// [`Refusal::Setting`] above [`MOST`].
pub fn checked(threads: usize) -> Result<usize> {
    match threads <= MOST {
        true => Ok(threads),
        false => Err(Refusal::Setting(format!("threads = {threads}: at most {MOST} are possible"))),
    }
}

/// The threads that a setting means where `at_once` runs go on side by side: 0 is all cores, shared among them.
pub fn resolve(threads: usize, at_once: usize) -> usize {
    match threads {
        0 => (std::thread::available_parallelism().map_or(1, usize::from) / at_once.max(1)).max(1),
        n => n,
    }
}

/// Sets rayon's pool, which every kernel and product uses, to `threads`, 0 for all cores. Call it once, before any work;
/// a second call with another number is refused.
///
/// candle's own pool spins and is three to four times slower when another process holds a core, so a binary that
/// uses the composed engine should run with `CANDLE_NUM_THREADS=1` (xtask sets it at its start).
pub fn set(threads: usize) -> Result<()> {
    built(ThreadPoolBuilder::new(), resolve(threads, 1))
}

/// The same, where the calling thread is one of them: what it hands over it need not wait for asleep. For a thread that
/// does all the work, as long as the process lives: the work of other threads is done by one less.
pub fn set_with_this(threads: usize) -> Result<()> {
    let (builder, threads) = (ThreadPoolBuilder::new(), resolve(threads, 1));
    // If it were the only one, nobody would do the work of other threads.
    built(if threads > 1 { builder.use_current_thread() } else { builder }, threads)
}

fn built(builder: ThreadPoolBuilder, threads: usize) -> Result<()> {
    match builder.num_threads(checked(threads)?).build_global() {
        Ok(()) => Ok(()),
        Err(_) if rayon::current_num_threads() == threads => Ok(()),
        Err(e) => Err(Refusal::Setting(format!("threads = {threads}: {e}"))),
    }
}
