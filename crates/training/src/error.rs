//! What can go wrong in training, as values.

use std::path::PathBuf;

/// A refusal or a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// What training by several processes cannot do, or a process that failed the others.
    #[error("{0}")]
    Others(String),
    /// A device that is not there, or not in this build.
    #[error("{0}")]
    Device(String),
    /// A checkpoint without one of the model's tensors.
    #[error("tensor `{name}` is missing")]
    MissingTensor {
        /// Its name.
        name: String,
    },
    /// A checkpoint with a tensor that the model does not have.
    #[error("tensor `{name}` is not one of this model's")]
    UnknownTensor {
        /// Its name.
        name: String,
    },
    /// A tensor of another shape.
    #[error("tensor `{name}` has shape {found:?}, the model needs {expected:?}")]
    TensorShape {
        /// Its name.
        name: String,
        /// The shape in the file.
        found: Vec<usize>,
        /// The shape of the model.
        expected: Vec<usize>,
    },
    /// A tensor with an entry that is no number, or infinite.
    #[error("tensor `{name}` holds {found} at entry {entry}: these weights left the numbers in training")]
    NotFinite {
        /// Its name.
        name: String,
        /// What stands there.
        found: f32,
        /// Where, counted row by row from 0.
        entry: usize,
    },
    /// A folder that another process is writing to.
    #[error("{path}: another process is at work in this folder; wait for it, or stop it", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what mends it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
    /// Too many updates in a row had a loss or a gradient that is not finite.
    #[error(
        "{skipped} updates in a row had a loss or gradient that is not finite (update {step}); first parameter with a \
         gradient that is not finite: {parameter}. The last checkpoint is kept; a smaller `lr` usually helps"
    )]
    Diverged {
        /// How many.
        skipped: u64,
        /// The update.
        step: u64,
        /// The first parameter, in name order, whose gradient is not finite; `none` if only the loss is.
        parameter: String,
    },
    /// A parameter that received no gradient.
    #[error("parameter `{name}` received no gradient; declare it frozen, or mend the model")]
    MissingGradient {
        /// Its name.
        name: String,
    },
    /// A setting out of its range.
    #[error("{0}")]
    Setting(String),
    /// Anything that the learner refuses.
    #[error("{0}")]
    Learner(String),
    /// The tensor library.
    #[cfg(feature = "candle")]
    #[error("{}", first_line(.0))]
    Tensor(#[from] candle_core::Error),
}

/// candle prints a backtrace behind its message; people want the message.
#[cfg(feature = "candle")]
fn first_line(e: &candle_core::Error) -> String {
    e.to_string().lines().next().unwrap_or_default().to_owned()
}

impl Refusal {
    /// An operating-system error at a path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// A file that is not what it should be.
    pub fn bad_file(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::BadFile { path: path.into(), reason: reason.into() }
    }
}

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Refusal>;
