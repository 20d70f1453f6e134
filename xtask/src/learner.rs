//! What `train`, `eval` and `sweep` need of a learner's configuration. There are two learners: the symbolic transformer
//! (with its baselines), and the recurrent one (`kind = "rnn"`).

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde::Serialize;
use serde_json::{Map, Value};
use training::{Settings, Task};

use crate::keys::{self, parse_table};
use crate::signals::Stop;

/// A configuration of some learner.
pub(crate) trait Learner: Clone + PartialEq + Serialize + Send + Sync + Sized {
    /// What it opens.
    type Subject: Subject;

    /// The keys that a resumed run may change.
    const CHANGEABLE: &'static [&'static str];
    /// Further keys that decide nothing about the weights.
    const SILENT: &'static [&'static str];
    /// Whether a run whose loss left the numbers is judged by its best weights, or only refused.
    const JUDGES_DIVERGED: bool;

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

    /// What is said of a run when it begins.
    fn headline(&self) -> Result<String>;

    /// The learner on its data; data that are not those of the run in the folder are refused.
    fn open(&self, folder: &Path, quiet: bool, stop: &Stop) -> Result<Self::Subject>;

    /// Shows what would be done; returns the exit status.
    fn dry_run(&self, json: bool) -> Result<u8>;

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
}

/// What is trained and judged: a learner on its data.
pub(crate) trait Subject {
    /// What the trainer is given.
    type Task: Task;

    /// The task; none where nothing is trained, as in counting.
    fn task(&mut self) -> Option<&mut Self::Task>;

    /// How it is trained.
    fn settings(&self) -> Result<Settings>;

    /// The weights that a run begins with where they are not drawn.
    fn initial(&self) -> Result<Option<Vec<f32>>> {
        Ok(None)
    }

    /// Comments below the configuration: what the run is made from.
    fn made_from(&self) -> String {
        String::new()
    }

    /// Further fields of the first line of the metrics.
    fn start(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Writes the files that stand beside the weights; without `anew` only those that are missing.
    fn describe(&self, folder: &Path, anew: bool) -> Result<()>;

    /// The evaluation, if the run's best weights were judged before as the configuration asks.
    fn judged_before(&self, _folder: &Path) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Judges the best weights and writes `eval.json`.
    fn judge(&mut self, folder: &Path, state: State, quiet: bool) -> Result<Value>;
}

/// How training came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// With all its updates, or by patience.
    Done,
    /// Its loss left the numbers.
    Diverged,
}

/// Which learner a configuration is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The symbolic transformer, and what it is compared with.
    Transformer,
    /// A recurrent cell.
    Recurrent,
}

impl Kind {
    /// By the key `kind` of a text. An unknown kind is refused.
    pub(crate) fn of(name: &str, text: &str) -> Result<Self> {
        match parse_table(name, text)?.get("kind") {
            None => Ok(Self::Transformer),
            Some(toml::Value::String(kind)) if kind == "rnn" => Ok(Self::Recurrent),
            Some(kind) => {
                let place = keys::place(text, "kind");
                Err(anyhow!("{name}{place}: kind = {kind}; say \"rnn\", or leave it out for the transformer"))
            }
        }
    }
}
