//! What a device refuses.

/// A refusal: what could not be done on which device, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device is not in this build, is not there, or cannot be used.
    #[error("device `{name}`: {reason}")]
    Device {
        /// The device as it was named.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A device that was at work stopped: lost, out of memory, or a kernel that does not compile there.
    #[error(
        "device `{name}` failed: {reason}. A run goes on from its last checkpoint, here or with `--device cpu`"
    )]
    Failed {
        /// The device as it was named.
        name: String,
        /// What its driver said.
        reason: String,
    },
    /// What was asked goes beyond a limit of the device.
    #[error("device `{name}`: {what}")]
    Limit {
        /// The device as it was named.
        name: String,
        /// The limit, and what was asked.
        what: String,
    },
}

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Refusal>;
