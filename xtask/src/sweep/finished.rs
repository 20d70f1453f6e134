//! Whether a run of a sweep is done.

use anyhow::{Result, anyhow, bail};

use super::plan::Job;
use crate::learner::Learner;
use crate::run_folder;

/// Whether a run is there, trained to its end and judged with every suite. One of another configuration is refused.
pub(crate) fn is_finished<L: Learner>(job: &Job<L>) -> Result<bool> {
    if !job.folder.join("config.toml").is_file() {
        return Ok(false);
    }
    let old: L = run_folder::config(&job.folder)?;
    if old.digest()? != job.config.digest()? {
        bail!(
            "{} was made with another configuration ({} differs): move it away, or change the name of the sweep",
            job.folder.display(),
            first_difference(&old, &job.config)?
        );
    }
    job.config.is_judged(&job.folder)
}

fn first_difference<L: Learner>(old: &L, new: &L) -> Result<String> {
    let (old, new) = (toml::Table::try_from(old)?, toml::Table::try_from(new)?);
    let mut keys = old.keys().chain(new.keys());
    let silent = [L::CHANGEABLE, L::SILENT].concat();
    let key = keys.find(|k| old.get(*k) != new.get(*k) && !silent.contains(&k.as_str()));
    key.cloned().ok_or_else(|| anyhow!("nothing differs"))
}
