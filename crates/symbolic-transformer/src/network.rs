//! What the trainer and the evaluation need of a model, whichever engine computes it.

use training::kernels::cross_entropy;
use training::{Layout, Loss, Ready, Result};

use crate::batch::Batch;

/// The randomness of one update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the update.
    pub update: u64,
    /// Label smoothing of the training loss.
    pub smoothing: f64,
}

/// How the sensors look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensing {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the update: each draws directions of its own.
    pub update: u64,
    /// A component of a normalised state is active if its absolute value is above this.
    pub threshold: f64,
}

/// What the sensors saw, layer by layer. No gradient goes through it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Active components of each row, [L + 1, rows]: behind the embedding and behind every layer.
    pub active: Vec<Vec<u32>>,
    /// χ of each layer: ‖Jᵀu‖² / ‖u‖², J the layer's Jacobian and u a random direction.
    pub chi: Vec<f64>,
    /// For each layer the spectral radius of its attention, averaged over heads, and its map of values.
    pub rho: Vec<f64>,
}

/// A model over symbols: logits and gradients from a flat buffer of parameters.
pub trait Network {
    /// The parameters.
    fn layout(&self) -> &Layout;

    /// The logits of every row, [rows, V], without dropout.
    fn logits(&mut self, theta: &[f32], batch: &Batch) -> Result<&[f32]>;

    /// Adds the gradient of the summed loss to `gradient`; the loss it returns is the plain cross-entropy.
    fn gradient(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) -> Result<Loss>;

    /// As [`gradient`](Self::gradient); `ready` is told of the gradient and of the place from which on it changes no more.
    fn gradient_as_it_comes(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
        _ready: Ready<'_>,
    ) -> Result<Loss> {
        self.gradient(theta, batch, noise, gradient)
    }

    /// Where the parameters lie, if they are on a device while it trains; `gradient` is then called with empty slices.
    fn resident(&mut self) -> Option<&mut dyn training::Resident> {
        None
    }

    /// What the layers do to what goes through them, on some texts; none where the engine has no sensors.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    fn sense(&mut self, _theta: &[f32], _batch: &Batch, _how: Sensing) -> Result<Option<Reading>> {
        Ok(None)
    }

    /// Bytes of what the last pass holds beside the parameters, their gradient and what stays between passes: what the
    /// way back needs, and the buffers in which it works. None where nobody counts.
    fn activation_bytes(&self) -> Option<usize> {
        None
    }
}

/// A network whose two passes are written by hand.
pub(crate) trait ByHand {
    /// The parameters.
    fn layout(&self) -> &Layout;

    /// The logits of every row, [rows, V]; what the way back needs is kept beside them.
    fn forward(&mut self, theta: &[f32], batch: &Batch, noise: Option<Noise>) -> Result<&mut [f32]>;

    /// From the gradient of the logits, which stands in their place, to that of every parameter; `ready` as of
    /// [`Network::gradient_as_it_comes`].
    fn backward(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
        ready: Ready<'_>,
    );

    /// As of [`Network`].
    fn sense(&mut self, _theta: &[f32], _batch: &Batch, _how: Sensing) -> Result<Option<Reading>> {
        Ok(None)
    }

    /// As of [`Network`].
    fn activation_bytes(&self) -> Option<usize> {
        None
    }
}

impl<N: ByHand> Network for N {
    fn layout(&self) -> &Layout {
        ByHand::layout(self)
    }

    fn logits(&mut self, theta: &[f32], batch: &Batch) -> Result<&[f32]> {
        Ok(self.forward(theta, batch, None)?)
    }

    fn gradient(&mut self, theta: &[f32], batch: &Batch, noise: Noise, gradient: &mut [f32]) -> Result<Loss> {
        self.gradient_as_it_comes(theta, batch, noise, gradient, &mut |_, _| {})
    }

    fn gradient_as_it_comes(
        &mut self,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
        ready: Ready<'_>,
    ) -> Result<Loss> {
        let logits = self.forward(theta, batch, Some(noise))?;
        let ce = cross_entropy(logits, &batch.targets, noise.smoothing as f32, true);
        self.backward(theta, batch, noise, gradient, ready);
        Ok(Loss { sum: ce.loss, targets: ce.targets })
    }

    fn sense(&mut self, theta: &[f32], batch: &Batch, how: Sensing) -> Result<Option<Reading>> {
        ByHand::sense(self, theta, batch, how)
    }

    fn activation_bytes(&self) -> Option<usize> {
        ByHand::activation_bytes(self)
    }
}

/// Dropout sites: the embedding sum, then three for each layer.
#[derive(Debug, Clone, Copy)]
pub enum Site {
    /// The sum of symbol and position.
    Embedding,
    /// The weights of a layer's attention: a row is a row of the batch and a head, a column a position.
    AttentionWeights(usize),
    /// What a layer's attention adds.
    AttentionOutput(usize),
    /// What a layer's feed-forward block adds.
    FeedForward(usize),
}

impl Site {
    /// The number that enters the hash.
    pub fn number(self) -> u64 {
        match self {
            Self::Embedding => 0,
            Self::AttentionWeights(layer) => 1 + 3 * layer as u64,
            Self::AttentionOutput(layer) => 2 + 3 * layer as u64,
            Self::FeedForward(layer) => 3 + 3 * layer as u64,
        }
    }
}
