//! SIGINT and SIGTERM: the first one asks the work to stop at a place where it can go on, the second one ends it at
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether a signal came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    number: Arc<AtomicUsize>,
    /// Whether one has come: the next one ends the process.
    armed: Arc<AtomicBool>,
    /// Whether several runs listen to it.
    shared: bool,
}

impl Stop {
    /// From here on the first signal is remembered.
    pub(crate) fn watch() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `armed` false and arms it, the second one ends the process.
            let armed = || Arc::clone(&stop.armed);
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, armed())?;
            signal_hook::flag::register(signal, armed())?;
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.number), signal as usize)?;
        }
        Ok(stop)
    }

    /// The same for several runs at once: one has something to lose while another is judged.
    pub(crate) fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// The number of the signal that came, or 0.
    pub(crate) fn number(&self) -> &AtomicUsize {
        &self.number
    }

    /// Whether one came, for those who only ask that.
    pub(crate) fn came(&self) -> &AtomicBool {
        &self.armed
    }

    /// The signal that came.
    pub(crate) fn signal(&self) -> Option<usize> {
        Some(self.number.load(Ordering::Relaxed)).filter(|&n| n != 0)
    }

    /// Asks as a signal of this number would.
    pub(crate) fn ask(&self, number: usize) {
        self.number.store(number, Ordering::Relaxed);
        self.armed.store(true, Ordering::Relaxed);
    }

    /// What is left to do loses nothing when it is cut short: the first signal now ends the process.
    pub(crate) fn nothing_to_lose(&self) {
        if !self.shared {
            self.armed.store(true, Ordering::Relaxed);
        }
    }
}

/// The exit status after a signal.
pub(crate) fn status(signal: usize) -> u8 {
    128 + signal as u8
}

/// Work that a signal stopped before it had anything to answer.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) signal: usize,
    pub(crate) what: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stopped: {}", self.what)
    }
}

impl std::error::Error for Stopped {}
