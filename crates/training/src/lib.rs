//! What every learner needs to train: parameters, fused operations, an optimiser, checkpoints, metrics, a loop.
//!
//! It knows no symbol, no proof and no equation. A learner implements [`Task`] over one flat buffer of parameters
//! ([`Layout`]) and hands itself to a [`Trainer`]; the rest, down to resuming bit for bit, is here.
//!
//! Two engines compute a model. The *explicit* one calls the fused operations of [`kernels`], forward and
//! backward, and is what trains. The *composed* one uses candle's operations and automatic gradients: it is the
//! oracle, it runs in f64 and on a GPU. candle 0.11.1 loses some gradients silently; `tests/upstream_traps.rs`
//! holds each trap that this crate steps around.

pub mod checkpoint;
pub mod composed;
pub mod device;
pub mod error;
pub mod files;
pub mod kernels;
pub mod metrics;
pub mod optimiser;
pub mod parameters;
pub mod progress;
pub mod schedule;
pub mod threads;
pub mod trainer;

pub use device::DeviceSpec;
pub use error::{Error, Result};
pub use parameters::{Decay, Initial, Layout};
pub use progress::Progress;
pub use trainer::{Evaluation, Loss, Outcome, Piece, Settings, Task, Trainer};
