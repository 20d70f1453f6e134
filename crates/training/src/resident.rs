//! Parameters that lie where they are computed on, and not in this process's memory.

use crate::error::Result;
use crate::optimiser::{Moments, Optimiser, Update};
use crate::parameters::Layout;

/// What the trainer asks of a device that holds the parameters, their gradient and their moments. Between two evaluations or
/// checkpoints nothing of them crosses over: an update sends its tokens, and gets its loss and a norm back.
pub trait Resident {
    /// Weights and moments go there; the gradient is zero.
    ///
    /// # Errors
    /// The device has no room, or failed.
    fn load(&mut self, theta: &[f32], moments: &Moments) -> Result<()>;

    /// The summed loss since the last time, in nats, and √Σ g². Waits for the device.
    ///
    /// # Errors
    /// The device failed.
    fn measure(&mut self) -> Result<(f64, f64)>;

    /// One update; the gradient is cleared.
    ///
    /// # Errors
    /// The optimiser is none that the device has.
    fn update(&mut self, layout: &Layout, optimiser: &Optimiser, update: Update) -> Result<()>;

    /// The gradient is zero again.
    fn clear(&mut self);

    /// The gradient comes back: for the checks of the first update, and for the name of what diverged.
    ///
    /// # Errors
    /// The device failed.
    fn gradient(&mut self) -> Result<Vec<f32>>;

    /// Weights and moments come back.
    ///
    /// # Errors
    /// The device failed.
    fn store(&mut self, theta: &mut Vec<f32>, moments: &mut Moments) -> Result<()>;
}
