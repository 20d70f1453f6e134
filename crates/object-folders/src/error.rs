//! Why something was not put or fetched: what kind of fault, where, and what would mend it.

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The build has no stores.
    NotBuilt,
    /// The URL, or a setting of the store, cannot be meant.
    BadUrl,
    /// A file or an object has a name that would not be the same on the other side, or would leave the folder.
    BadName,
    /// No credentials, wrong ones, or ones without the right.
    NoRights,
    /// There is no such bucket.
    NoBucket,
    /// There is no such folder or object.
    NotFound,
    /// No room is left, there or here.
    Full,
    /// Nobody answers.
    Unreachable,
    /// The server answers that it failed.
    Server,
    /// The server refuses the request for a reason of its own.
    Refused,
    /// The file or the object changed while it was read.
    Changed,
    /// What arrived is not what was put.
    Damaged,
    /// Another process is at work on the folder.
    Busy,
    /// A fault of the file system here.
    Local,
    /// It was asked to stop.
    Stopped,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map_or_else(String::new, |help| format!("\n  {help}")))]
pub struct Refusal {
    /// The kind of fault.
    pub kind: Kind,
    /// The URL or the path, and what is wrong there.
    pub message: String,
    /// What would mend it.
    pub help: Option<String>,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
