//! The one place that sets the number of threads.

use crate::error::{Error, Result};

/// Sets rayon's pool, which every kernel and product uses, to `threads`. Call it once, before any work; a second
/// call with another number is refused.
///
/// candle's own pool spins and is three to four times slower when another process holds a core, so a binary that
/// uses the composed engine should run with `CANDLE_NUM_THREADS=1` (the workspace's cargo configuration says so).
pub fn set(threads: usize) -> Result<()> {
    let threads = threads.max(1);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build_global() {
        Ok(()) => Ok(()),
        Err(_) if rayon::current_num_threads() == threads => Ok(()),
        Err(e) => Err(Error::Setting(format!("threads = {threads}: {e}"))),
    }
}
