//! How a notebook evaluates: engine, numbers, threads, limits, who looks on.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::Budget;
use crate::error::Code;
use crate::fast::{Precision, Storage};

/// Which evaluator answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// The fast one.
    #[default]
    Auto,
    /// The reference interpreter: plain loops.
    Reference,
}

/// The settings of a notebook.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) engine: EngineKind,
    pub(super) precision: Precision,
    pub(super) storage: Storage,
    pub(super) budget: Budget,
    pub(super) seed: u64,
    pub(super) folder: PathBuf,
    pub(super) pool: Option<Arc<rayon::ThreadPool>>,
    pub(super) progress: Watcher,
    pub(super) stop: Option<Arc<AtomicBool>>,
}

/// The limits of a notebook until others are set.
const BUDGET: Budget = Budget { tuples: 100_000_000, bytes: 4 << 30 };

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            engine: EngineKind::default(),
            precision: Precision::default(),
            storage: Storage::default(),
            budget: BUDGET,
            seed: 0,
            folder: PathBuf::from("."),
            pool: None,
            progress: Watcher::default(),
            stop: None,
        }
    }
}

/// What is told of a step of learning.
type Told = dyn FnMut(u64, u64, f64) + Send;

/// Who looks on while something is learned.
#[derive(Clone, Default)]
pub(super) struct Watcher(Option<Arc<Mutex<Box<Told>>>>);

impl Watcher {
    pub(super) fn new(told: impl FnMut(u64, u64, f64) + Send + 'static) -> Watcher {
        Watcher(Some(Arc::new(Mutex::new(Box::new(told)))))
    }

    pub(super) fn tell(&self, step: u64, steps: u64, loss: f64) {
        if let Some(told) = &self.0 {
            (told.lock().unwrap_or_else(PoisonError::into_inner))(step, steps, loss);
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "somebody" } else { "nobody" })
    }
}

/// Whether programs are evaluated on a device, `cpu`.
///
/// # Errors
/// A code and a message: `not-yet` for one that the language knows, `bad-argument` for any other.
pub(super) fn device(name: &str) -> Result<(), (Code, String)> {
    let numbered = name.strip_prefix("cuda:").is_some_and(|number| number.parse::<usize>().is_ok());
    if name == "cpu" {
        return Ok(());
    }
    if numbered || matches!(name, "cuda" | "metal") {
        let message = format!("programs run on the processor: there is no evaluation on `{name}` yet");
        return Err((Code::NotYet, message));
    }
    let message = format!("there is no device `{name}`: there are `cpu`, `cuda`, `cuda:N` and `metal`");
    Err((Code::BadArgument, message))
}
