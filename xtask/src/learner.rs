//! What `train`, `eval` and `sweep` need of a learner's configuration. There are two learners: the symbolic transformer
//! (with its baselines), and the recurrent one (`kind = "rnn"`).

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use training::{Settings, Task};

use crate::contrast::Contrast;
use crate::keys::{self, Wrong, merge, parse_set, parse_table, place};
use crate::signals::Stop;

/// A configuration of some learner: one flat TOML file, every key known, every value checked. Defaults, then the file,
/// then `--set`, then named flags.
pub(crate) trait Learner:
    Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + Sized
{
    /// What it opens.
    type Subject: Subject;

    /// Which learner it is of.
    const KIND: Kind;
    /// The keys that a resumed run may change.
    const CHANGEABLE: &'static [&'static str];
    /// Further keys that decide nothing about the weights.
    const SILENT: &'static [&'static str];
    /// Whether a run whose loss left the numbers is judged by its best weights, or only refused.
    const JUDGES_DIVERGED: bool;

    /// What it measures of a table `[expect]`.
    const EXPECTS: &'static [&'static str];

    /// What a claim of a sweep may be about: columns of its table; of those that end in `/` every one that begins so.
    const MEASURES: &'static [&'static str];

    /// The column that has the optimum of a measure, where there is one.
    fn optimum_of(measure: &str) -> Option<&'static str>;

    /// The number of parameters; none where it depends on data that need not be there.
    fn parameters(&self) -> Result<Option<usize>>;

    /// Refuses what no claim can be about: data whose optimum nobody knows, and measures that mean something else for
    /// the other side.
    fn can_be_judged(&self, measure: &str, beside: &Self) -> Result<()>;

    /// Refuses contrasts that could not be decided; `arms` are the points of the sweep.
    fn check_contrasts(_contrasts: &[Contrast], _arms: &[Self]) -> Result<()> {
        bail!("[[contrast]] is of sweeps of cells; a sweep of {} has [[claim]]", Self::KIND)
    }

    /// Keys of a file beside the fields of its type.
    fn further_keys() -> Vec<&'static str> {
        Vec::new()
    }

    /// Ranges, required keys and what must fit together; every fault is said.
    fn check(&self, name: &str) -> Result<()>;

    /// Whether another value of the key would be another run; a key that is of no use here is not varied.
    fn varies(&self, _key: &str) -> bool {
        true
    }

    /// Whether there is such a key.
    fn knows(key: &str) -> bool {
        judge::<Self>(&toml::Table::from_iter([(key.to_owned(), true.into())]), false).is_ok()
    }

    /// Reads a text, applies the options, checks everything. A refusal names the file, the line and the column, or the
    /// option, and for an unknown key the nearest known one.
    fn from_text(name: &str, text: &str, sets: &[String]) -> Result<Self> {
        let mut table = parse_table(name, text)?;
        let kind = Kind::of(name, text)?;
        if kind != Self::KIND {
            bail!("{name}: a configuration of {kind}, where one of {} is wanted", Self::KIND);
        }
        // The file alone first, so that its own faults are located in it.
        judge::<Self>(&table, true)
            .map_err(|wrong| anyhow!("{name}{}: {}", place(text, &wrong.key), wrong.message))?;
        for set in sets {
            let entry = parse_set(set)?;
            judge::<Self>(&entry, true).map_err(|wrong| anyhow!("--set {set}: {}", wrong.message))?;
            merge(&mut table, entry);
        }
        let config: Self =
            table.try_into().map_err(|e: toml::de::Error| anyhow!("{name}: {}", e.message()))?;
        config.check(name)?;
        Ok(config)
    }

    /// Every key with its value, defaults included, of a table that need not fit together yet.
    fn filled(table: &toml::Table) -> toml::Table {
        let full = table.clone().try_into::<Self>().ok();
        full.and_then(|config| toml::Table::try_from(config).ok()).unwrap_or_else(|| table.clone())
    }

    /// Every key with its value.
    fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(self)?)
    }

    /// BLAKE3 of the keys that a resumed run may not change.
    fn digest(&self) -> Result<String> {
        let mut table = toml::Table::try_from(self)?;
        for key in Self::CHANGEABLE.iter().chain(Self::SILENT) {
            table.remove(*key);
        }
        Ok(blake3::hash(table.to_string().as_bytes()).to_hex().to_string())
    }

    /// The name of a run, if the configuration says one.
    fn name(&self) -> Option<&str>;

    /// Where it runs.
    fn device(&self) -> &str;

    /// Whether it is a program of the equation language, which this build has not.
    #[cfg(not(feature = "programs"))]
    fn is_program(&self) -> bool {
        false
    }

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

    /// What a run would be, with a step of it made in memory; nothing is written. Where they are known: `params`,
    /// `total_updates`, `seconds_estimated`, `flop_estimated`, and `step.seconds` for `step.items` of `step.unit`.
    fn forecast(&self) -> Result<Value>;

    /// A forecast for people.
    fn forecast_in_words(&self, forecast: &Value) -> Result<String>;

    /// Writes the page of a finished run and returns its path.
    fn report(folder: &Path) -> Result<PathBuf>;

    /// The few lines for people about what an evaluation found.
    fn in_short(evaluation: &Value) -> String;

    /// Whether a run is trained to its end and judged as its configuration asks.
    fn is_judged(&self, folder: &Path) -> Result<bool>;

    /// The least validation loss of a run.
    fn best_loss(&self, folder: &Path) -> Result<f64>;

    /// What its model is, whatever its keys are called: two points of a sweep with one text are one arm. None where nothing
    /// but equal keys makes equal models.
    fn identity(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// What a sweep demands of a configuration beyond what a run does.
    fn check_in_sweep(&self) -> Result<()>;
}

/// Refuses the first key that no configuration has, and, where values are judged too, the first with one of a wrong
/// type.
fn judge<L: Learner>(table: &toml::Table, values: bool) -> std::result::Result<(), Wrong> {
    // A key without a value is null there, so that all are.
    let fields = json!(L::default());
    let fields = fields.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    keys::check(table, &fields.chain(L::further_keys()).collect::<Vec<&str>>())?;
    for (key, value) in table.iter().filter(|_| values) {
        let mut alone = vec![(key, value.clone())];
        if let (toml::Value::Table(inner), "expect") = (value, key.as_str()) {
            keys::check(inner, L::EXPECTS)?;
            let one = |(key, value): (&String, &toml::Value)| {
                toml::Table::from_iter([(key.clone(), value.clone())])
            };
            alone = inner.iter().map(|entry| (entry.0, one(entry).into())).collect();
        }
        for (inner, value) in alone {
            let whole = toml::Table::from_iter([(key.clone(), value)]);
            let wrong = |e: toml::de::Error| Wrong {
                key: inner.clone(),
                message: format!("{inner}: {}", e.message()),
            };
            whole.try_into::<L>().map_err(wrong)?;
        }
    }
    Ok(())
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transformer => "the symbolic transformer",
            Self::Recurrent => "a recurrent cell (kind = \"rnn\")",
        })
    }
}

impl Kind {
    /// By the key `kind` of a text. An unknown kind is refused.
    pub(crate) fn of(name: &str, text: &str) -> Result<Self> {
        let table = parse_table(name, text)?;
        if table.contains_key("base") {
            return Err(anyhow!("{name}{}: a sweep, which `sweep` runs", place(text, "base")));
        }
        match table.get("kind") {
            None => Ok(Self::Transformer),
            Some(toml::Value::String(kind)) if kind == "rnn" => Ok(Self::Recurrent),
            Some(kind) => {
                let place = place(text, "kind");
                Err(anyhow!("{name}{place}: kind = {kind}; say \"rnn\", or leave it out for the transformer"))
            }
        }
    }
}
