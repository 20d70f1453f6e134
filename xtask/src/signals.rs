//! SIGINT and SIGTERM: the first one asks the run to stop after a checkpoint, the second one ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use signal_hook::consts::{SIGINT, SIGTERM};

/// The number of the signal that came, or 0.
pub(crate) fn watch() -> std::io::Result<Arc<AtomicUsize>> {
    let came = Arc::new(AtomicUsize::new(0));
    let armed = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds `armed` false and arms it, the second one ends the process.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed))?;
        signal_hook::flag::register(signal, Arc::clone(&armed))?;
        signal_hook::flag::register_usize(signal, Arc::clone(&came), signal as usize)?;
    }
    Ok(came)
}
