//! What `train`, `eval` and `sweep` need of a learner's configuration. There are two: the symbolic transformer's
//! ([`crate::config::Config`]), and the recurrent one's ([`crate::rnn::config::Config`], `kind = "rnn"`).

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde::Serialize;
use serde_json::Value;

use crate::keys::parse_table;
use crate::signals::Stop;
use crate::sweep::plan::{Plan, Point};
use crate::train::Ended;

/// A configuration of some learner.
pub(crate) trait Learner: Clone + PartialEq + Serialize + Send + Sync + Sized {
    /// The keys that a resumed run may change.
    const CHANGEABLE: &'static [&'static str];
    /// Further keys that decide nothing about the weights.
    const SILENT: &'static [&'static str];

    /// Reads and checks a text, with `--set key=value` over it.
    fn from_text(name: &str, text: &str, sets: &[String]) -> Result<Self>;

    /// Whether there is such a key.
    fn knows(key: &str) -> bool;

    /// Every key with its value, defaults included, of a table that need not fit together yet.
    fn filled(table: &toml::Table) -> toml::Table;

    /// Every key with its value.
    fn to_toml(&self) -> Result<String>;

    /// BLAKE3 of the keys that a resumed run may not change.
    fn digest(&self) -> Result<String>;

    /// The name of a run, if the configuration says one.
    fn name(&self) -> Option<&str>;

    /// Where it runs.
    fn device(&self) -> &str;

    /// Threads of a run; 0 for all cores.
    fn threads(&self) -> usize;

    /// What runs share (a data set), by name.
    fn shared(&self) -> Option<&str>;

    /// Makes what runs share, if it is missing.
    fn prepare(shared: &str, quiet: bool, stop: &Stop) -> Result<()>;

    /// Shows what would be done; returns the exit status.
    fn dry_run(&self, json: bool) -> Result<u8>;

    /// Trains in a folder, from the start or from its newest checkpoint, and judges the best model.
    fn run_in(&self, folder: &Path, quiet: bool, stop: &Stop) -> Result<Ended>;

    /// Writes the page of a finished run and returns its path.
    fn report(folder: &Path) -> Result<PathBuf>;

    /// The few lines for people about what an evaluation found.
    fn print_summary(evaluation: &Value);

    /// Whether a run is trained to its end and judged as its configuration asks.
    fn is_judged(&self, folder: &Path) -> Result<bool>;

    /// The least validation loss of a run.
    fn best_loss(&self, folder: &Path) -> Result<f64>;

    /// What a sweep demands of a configuration beyond what a run does.
    fn check_in_sweep(&self) -> Result<()>;

    /// Writes the tables, pictures and the page of a sweep; answers with the table as JSON, and the page.
    fn tables(plan: &Plan<Self>, folder: &Path, points: &[Point<Self>]) -> Result<(Value, PathBuf)>;
}

/// Whether a text is the configuration of a recurrent run, by its key `kind`. An unknown kind is refused.
pub(crate) fn is_recurrent(name: &str, text: &str) -> Result<bool> {
    match parse_table(name, text)?.get("kind") {
        None => Ok(false),
        Some(toml::Value::String(kind)) if kind == "rnn" => Ok(true),
        Some(kind) => {
            Err(anyhow!("{name}{}: kind = {kind}; say \"rnn\", or leave it out for the transformer", {
                crate::keys::place(text, "kind")
            }))
        }
    }
}
