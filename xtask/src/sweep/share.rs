//! Runs of a sweep under a URL, where its workers share no folder: each puts there what it has done, and fetches what others have.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::finished::is_finished;
use super::plan::Job;
use crate::learner::Learner;
use crate::signals::Stop;
use crate::store;

/// Where the runs of a sweep lie.
#[derive(Debug)]
pub(crate) struct Share {
    /// Of the sweep.
    url: String,
    /// The folder of the sweep on this machine.
    sweep: PathBuf,
}

impl Share {
    /// The runs of the sweep in this folder, under a URL that has those of others too.
    pub(crate) fn new(url: &str, name: &str, sweep: &Path) -> Self {
        Self { url: format!("{}/{}", url.trim_end_matches('/'), escaped(name)), sweep: sweep.to_owned() }
    }

    /// Where claims on the points lie.
    pub(crate) fn claims(&self) -> String {
        format!("{}/claims", self.url)
    }

    fn of(&self, point: &str) -> String {
        format!("{}/runs/{}", self.url, escaped(point))
    }

    /// Fetches what others have of a point that this worker has claimed: a finished run, or one that was stopped, where this machine
    /// has none to go on with. Whatever is fetched becomes the folder in one step.
    pub(crate) fn fetch<L: Learner>(&self, point: &str, job: &Job<L>, stop: &Stop) -> Result<()> {
        let fetched = self.sweep.join(".fetched").join(blake3::hash(point.as_bytes()).to_hex().as_str());
        if !store::get_run(&self.of(point), &fetched, stop)? {
            return Ok(());
        }
        let there = Job { folder: fetched.clone(), config: job.config.clone() };
        let begun = job.folder.join("config.toml").is_file();
        if !is_finished(&there)? && begun {
            return remove(&fetched);
        }
        let failed = || job.folder.display().to_string();
        if job.folder.exists() {
            // Unfinished, and this worker's alone by its claim.
            std::fs::remove_dir_all(&job.folder).with_context(failed)?;
        }
        if let Some(parent) = job.folder.parent() {
            std::fs::create_dir_all(parent).with_context(failed)?;
        }
        std::fs::rename(&fetched, &job.folder).with_context(failed)
    }

    /// Puts what this worker has of a point.
    pub(crate) fn put<L: Learner>(&self, point: &str, job: &Job<L>, stop: &Stop) -> Result<()> {
        store::put_run(&job.folder, &self.of(point), stop)
    }
}

fn remove(folder: &Path) -> Result<()> {
    std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())
}

/// A name as it stands in a URL.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.,=/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_urls() {
        let share = Share::new("s3://lab/runs/", "h1", Path::new("runs/h1"));
        assert_eq!(share.claims(), "s3://lab/runs/h1/claims");
        assert_eq!(share.of("name=Λ 1%,x/seed-3"), "s3://lab/runs/h1/runs/name=%CE%9B%201%25,x/seed-3");
    }
}
