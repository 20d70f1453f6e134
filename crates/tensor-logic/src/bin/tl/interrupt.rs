//! Signals: while something runs, the first one asks it to stop; a second one before it has, and one while nothing runs, end
//! the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Listens to signals.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// Whether one came while something ran.
    came: Arc<AtomicBool>,
    /// Which one it was.
    number: Arc<AtomicUsize>,
    /// Whether the next one ends the process: nothing runs, or one came already.
    armed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Ctrl-C, which people use.
    pub(crate) const KEY: [i32; 1] = [SIGINT];
    /// What programs send too.
    pub(crate) const ALL: [i32; 2] = [SIGINT, SIGTERM];

    /// From here on these signals are listened to.
    pub(crate) fn watch(signals: &[i32]) -> std::io::Result<Interrupt> {
        let interrupt = Interrupt {
            came: Arc::default(),
            number: Arc::default(),
            armed: Arc::new(AtomicBool::new(true)),
        };
        for signal in signals {
            // In this order: a signal finds `armed` as it was, and arms it for the next one.
            flag::register_conditional_shutdown(*signal, 128 + signal, Arc::clone(&interrupt.armed))?;
            flag::register(*signal, Arc::clone(&interrupt.armed))?;
            flag::register_usize(*signal, Arc::clone(&interrupt.number), signal.unsigned_abs() as usize)?;
            flag::register(*signal, Arc::clone(&interrupt.came))?;
        }
        Ok(interrupt)
    }

    /// What becomes true.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.came)
    }

    /// Does work that a signal may interrupt.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.came.store(false, Ordering::SeqCst);
        self.number.store(0, Ordering::SeqCst);
        self.armed.store(false, Ordering::SeqCst);
        let done = work();
        self.armed.store(true, Ordering::SeqCst);
        self.came.store(false, Ordering::SeqCst);
        done
    }

    /// The exit status of work that a signal has interrupted.
    pub(crate) fn status(&self) -> u8 {
        let signal = self.number.load(Ordering::SeqCst);
        u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128))
    }
}
