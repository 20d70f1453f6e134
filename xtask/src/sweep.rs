//! Many runs from one file, and one table with intervals over seeds.
//!
//! [`plan`] turns the file into points, and points into configurations; all are checked before the first run
//! begins, and so is what the runs are to decide ([`claim`]). [`jobs`] runs what is not finished, alone or with other machines
//! that share the folder ([`lease`]). What the runs showed is
//! said by the learner ([`Tables`]) and written by [`Summary`].

pub(crate) mod claim;
pub(crate) mod finished;
pub(crate) mod forecast;
pub(crate) mod jobs;
pub(crate) mod lease;
pub(crate) mod plan;
pub(crate) mod share;
pub(crate) mod statistics;
mod summary;
pub(crate) mod values;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

pub(crate) use plan::{Plan, Point};
pub(crate) use summary::Summary;

use crate::learner::Learner;

/// A learner whose sweeps can be tabulated.
pub(crate) trait Tables: Learner {
    /// What the runs of a sweep showed.
    fn summary(plan: &Plan<Self>, points: &[Point<Self>]) -> Result<Summary>;
}

/// How a sweep ended.
#[derive(Debug)]
pub(crate) enum Swept {
    /// A signal stopped it.
    Interrupted(usize),
    /// The table as JSON, and the page.
    Done { document: Value, page: PathBuf },
}

/// Runs a plan in a folder: first what selects, then the points.
pub(crate) fn sweep<L: Tables>(plan: &Plan<L>, folder: &Path, how: &jobs::How<'_>) -> Result<Swept> {
    let mut signal = None;
    let chosen = plan.choose(folder, &mut |round| {
        signal = jobs::all(round.iter().flat_map(|c| &c.runs), how)?;
        Ok(signal.is_none())
    })?;
    if let Some(signal) = signal {
        return Ok(Swept::Interrupted(signal));
    }
    let points = plan.points(folder, chosen.as_deref())?;
    if let Some(signal) = jobs::all(points.iter().flat_map(|p| &p.runs), how)? {
        return Ok(Swept::Interrupted(signal));
    }
    let summary = L::summary(plan, &points)?;
    if how.claims.is_none() {
        // What a kill left behind; where others work too, what they are writing would look the same.
        training::files::remove_leftovers(folder)?;
    }
    let page = summary.write(&plan.name, folder)?;
    Ok(Swept::Done { document: summary.document, page })
}
