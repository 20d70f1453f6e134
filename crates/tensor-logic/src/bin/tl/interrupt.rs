//! SIGINT: while a query runs, the first one asks it to stop; a second one before it has, and one while nothing runs, end
//! the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// Listens to SIGINT.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// Whether one came while something ran.
    came: Arc<AtomicBool>,
    /// Whether the next one ends the process: nothing runs, or one came already.
    armed: Arc<AtomicBool>,
}

impl Interrupt {
    /// From here on the signal is listened to.
    pub(crate) fn watch() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt { came: Arc::default(), armed: Arc::new(AtomicBool::new(true)) };
        // In this order: a signal finds `armed` as it was, and arms it for the next one.
        flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, Arc::clone(&interrupt.armed))?;
        flag::register(SIGINT, Arc::clone(&interrupt.armed))?;
        flag::register(SIGINT, Arc::clone(&interrupt.came))?;
        Ok(interrupt)
    }

    /// What becomes true.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.came)
    }

    /// Does work that a signal may interrupt.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.came.store(false, Ordering::SeqCst);
        self.armed.store(false, Ordering::SeqCst);
        let done = work();
        self.armed.store(true, Ordering::SeqCst);
        self.came.store(false, Ordering::SeqCst);
        done
    }
}
