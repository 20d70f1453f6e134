//! `cargo xtask report`: stub until merged.
use anyhow::Result;
use std::path::PathBuf;
/// Writes the page of one run, or the comparison of several, and returns its path.
pub(crate) fn write(runs: &[PathBuf], _out: Option<&std::path::Path>) -> Result<PathBuf> {
    Ok(runs.first().cloned().unwrap_or_default().join("report.html"))
}
