//! Many runs from one file, and one table with intervals over seeds.
//!
//! [`plan`] turns the file into points, and points into configurations; all are checked before the first run
//! begins. [`jobs`] runs what is not finished. What the runs showed is tabulated by the learner: [`Tables`].

pub(crate) mod jobs;
pub(crate) mod plan;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

pub(crate) use plan::{Plan, Point};

use crate::learner::Learner;

/// A learner whose sweeps can be tabulated.
pub(crate) trait Tables: Learner {
    /// Writes the tables, pictures and the page of a sweep; answers with the table as JSON, and the page.
    fn tables(plan: &Plan<Self>, folder: &Path, points: &[Point<Self>]) -> Result<(Value, PathBuf)>;
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
    let candidates = plan.candidates(folder)?;
    if let Some(signal) = jobs::all(candidates.iter().flat_map(|c| &c.runs), how)? {
        return Ok(Swept::Interrupted(signal));
    }
    let points = plan.points(folder, &candidates)?;
    if let Some(signal) = jobs::all(points.iter().flat_map(|p| &p.runs), how)? {
        return Ok(Swept::Interrupted(signal));
    }
    let (document, page) = L::tables(plan, folder, &points)?;
    Ok(Swept::Done { document, page })
}

#[cfg(test)]
mod tests;
