//! What every learner needs to train: parameters, fused operations, an optimiser, checkpoints, metrics, a loop.
//!
//! It knows no symbol, no proof and no equation. A learner implements [`Task`] over one flat buffer of parameters
//! ([`Layout`]) and hands itself to a [`Trainer`]; the rest, down to resuming bit for bit, is here.
//!
//! Two engines compute a model. The *explicit* one calls the fused operations of [`kernels`], forward and
//! backward, and is what trains. The *composed* one uses candle's operations and automatic gradients: it is the
//! oracle, it runs in f64 and on a GPU. candle 0.11.1 loses some gradients silently; `tests/it/upstream_traps.rs`
//! holds each trap that this crate steps around.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod error;

pub mod device;

pub mod parameters;

pub mod kernels;

#[cfg(feature = "candle")]
pub mod composed;

pub mod optimiser;

pub mod rules;

pub mod resident;

pub mod schedule;

pub mod collective;

pub mod trainer;

pub mod files;

pub mod checkpoint;

pub mod metrics;

pub mod lines;

pub mod progress;

pub mod threads;

pub use collective::Collective;
pub use device::DeviceSpec;
pub use error::{Refusal, Result};
pub use lines::Lines;
pub use optimiser::Optimiser;
pub use parameters::{Decay, Initial, Layout};
pub use progress::Progress;
pub use resident::Resident;
pub use trainer::{Evaluation, Loss, Outcome, Piece, Ready, Settings, Task, Trainer};

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
