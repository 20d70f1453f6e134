//! How something is put or fetched, who watches, and what came of it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Kind, Refusal};

/// Which names are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Names {
    /// Every one.
    #[default]
    All,
    /// Those that end so.
    Ending(String),
    /// These.
    Only(BTreeSet<String>),
}

impl Names {
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Ending(end) => name.ends_with(end.as_str()),
            Self::Only(names) => names.contains(name),
        }
    }
}

/// What is fetched where no manifest lies: a folder that is not whole yet has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlisted {
    /// All the same: not every folder has one.
    #[default]
    Fetched,
    /// Nothing.
    Refused,
}

/// How long is waited for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until a connection stands.
    pub connect: Duration,
    /// Until one request is answered; a part has to pass in this time.
    pub request: Duration,
    /// Until a request is given up with all that it is tried again. Whatever a host does, a refusal has come by then.
    pub in_all: Duration,
    /// How often a request is tried again.
    pub retries: usize,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), request: seconds(60), in_all: seconds(180), retries: 4 }
    }
}

impl Patience {
    /// With a time until a request is given up, and the others in proportion.
    pub fn of(in_all: Duration) -> Self {
        let usual = Self::default();
        Self { connect: usual.connect.min(in_all / 3), request: in_all / 3, in_all, ..usual }
    }
}

/// How a folder is put or fetched.
#[derive(Clone)]
pub struct Options {
    /// The file that says that all others are there: it is written last.
    pub manifest: String,
    /// The files that are meant.
    pub names: Names,
    /// What is fetched where there is no manifest.
    pub unlisted: Unlisted,
    /// Bytes of a part: what is sent or fetched by one request. Stores of S3 want at least 5 MiB.
    pub part: u64,
    /// Parts on their way at once; each is held in memory.
    pub at_once: usize,
    /// How long is waited.
    pub patience: Patience,
    /// The settings of the store, as the variables `AWS_…` say them. They are never printed.
    pub variables: Vec<(String, String)>,
}

impl Options {
    /// With the settings of the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`,
    /// `AWS_ALLOW_HTTP` and what else `object_store` reads.
    pub fn from_environment() -> Self {
        let read = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
            let key = key.into_string().ok().filter(|key| key.starts_with("AWS_"))?;
            Some((key, value.into_string().ok()?))
        };
        Self::with(std::env::vars_os().filter_map(read).collect())
    }

    /// With these settings and none of the environment.
    pub fn with(variables: Vec<(String, String)>) -> Self {
        Self {
            manifest: "manifest.json".to_owned(),
            names: Names::All,
            unlisted: Unlisted::Fetched,
            part: 8 << 20,
            at_once: 4,
            patience: Patience::default(),
            variables,
        }
    }
}

/// Without the values of the settings, which may be secrets.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.variables.iter().map(|(key, _)| key.as_str()).collect();
        f.debug_struct("Options")
            .field("manifest", &self.manifest)
            .field("names", &self.names)
            .field("unlisted", &self.unlisted)
            .field("part", &self.part)
            .field("at_once", &self.at_once)
            .field("patience", &self.patience)
            .field("variables", &keys)
            .finish()
    }
}

/// Who watches, and may stop it.
pub struct Watch<'a> {
    /// Called with the bytes done, those that were there already among them, and the bytes in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// It stops once this is set; the same call goes on.
    pub cancelled: &'a AtomicBool,
}

impl Watch<'_> {
    pub(crate) fn go_on(&self) -> Result<(), Refusal> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Refusal::new(Kind::Stopped, "it was stopped; the same command goes on"));
        }
        Ok(())
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// The files that are on both sides now.
    pub names: Vec<String>,
    /// Of these, those that were there already.
    pub there: u64,
    /// Parts that were sent or fetched; a small file is one.
    pub parts: u64,
    /// Bytes that were sent or fetched.
    pub bytes: u64,
}
