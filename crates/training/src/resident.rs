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

    /// As the user named it.
    fn name(&self) -> &str;

    /// The summed loss of each gradient since the last time, in nats, and √Σ g². Waits for the device.
    ///
    /// # Errors
    /// The device failed.
    fn measure(&mut self) -> Result<(Vec<f64>, f64)>;

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

    /// The gradient goes onto a stack of gradients over there, and is zero.
    ///
    /// # Errors
    /// No parameters lie there.
    fn push(&mut self) -> Result<()>;

    /// In the place of the two on top of the stack their sum: the lower one is the first summand.
    ///
    /// # Errors
    /// There are no two.
    fn add(&mut self) -> Result<()>;

    /// The top of the stack is the gradient, whatever that was.
    ///
    /// # Errors
    /// The stack is empty.
    fn pop(&mut self) -> Result<()>;

    /// These numbers are the gradient, whatever that was.
    ///
    /// # Errors
    /// No parameters lie there, or more or fewer.
    fn put(&mut self, gradient: &[f32]) -> Result<()>;

    /// Weights and moments come back.
    ///
    /// # Errors
    /// The device failed.
    fn store(&mut self, theta: &mut Vec<f32>, moments: &mut Moments) -> Result<()>;
}
