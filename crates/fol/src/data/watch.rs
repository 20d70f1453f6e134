//! How a run is asked for, watched, and ended.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::manifest::Manifest;

/// How a run goes about its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Make only part I of N.
    pub shard: Option<(u64, u64)>,
    /// Replace a data set of another configuration.
    pub force: bool,
}

/// Who watches a run and may stop it.
pub struct Watch<'a> {
    /// Called with the items drawn so far and the items to draw.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    /// The run stops once this is set, between blocks of items and in the merge; finished parts stay.
    pub cancelled: &'a AtomicBool,
}

impl Watch<'_> {
    pub(super) fn stopped(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The data set is there.
    Done(Box<Manifest>),
    /// The part of the shard is there.
    Part(PathBuf),
    /// It was stopped.
    Cancelled,
}
