//! The configuration of a recurrent run: `kind = "rnn"`. Keys of the run stand in [`Config`]; those of the cell are
//! [`Options`].

use anyhow::{Result, anyhow, bail};
use linear_logic_rnn::cell::{Cell, largest_hidden};
use linear_logic_rnn::learner::{Learner, Precision};
use linear_logic_rnn::optimiser::Optimiser;
use linear_logic_rnn::options::{CellKind, Options, Sizes};
use linear_logic_rnn::task::batch::LossMean;
use linear_logic_rnn::task::batches::{Batches, Curriculum, Plan, Split};
use linear_logic_rnn::task::{LONGEST, Settings, Task};
use serde::{Deserialize, Serialize};

use crate::expect::Expect;
use crate::keys::Faults;

/// So many lengths of training are tried before a run begins.
const LENGTHS: usize = 1000;

/// The word that names this learner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Rnn,
}

/// A number, or a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number that is not negative, or a word, is wanted")]
pub(crate) enum Size {
    Number(usize),
    Word(String),
}

/// The word `enumerate`, or `none`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SplitName {
    #[default]
    None,
    Enumerate,
}

/// All keys but those of the cell. Options are keys without a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) kind: Kind,
    pub(crate) name: Option<String>,
    pub(crate) seed: u64,
    pub(crate) device: String,
    pub(crate) dtype: Precision,
    pub(crate) threads: usize,

    pub(crate) task: String,
    pub(crate) min_length: usize,
    pub(crate) max_length: usize,
    pub(crate) modulus: Option<toml::Value>,
    pub(crate) pattern: Option<toml::Value>,
    pub(crate) patterns: Option<toml::Value>,
    pub(crate) split: SplitName,
    pub(crate) train_fraction: f64,

    pub(crate) cell: String,
    pub(crate) hidden: Option<Size>,
    pub(crate) budget: Option<usize>,
    /// Like `budget`, but of the cell alone, without its readout; only judged.
    pub(crate) cell_budget: Option<usize>,
    pub(crate) allow_gap: bool,
    /// Another model in what it computes with, as good as another arm of a sweep by what it can compute.
    pub(crate) placebo: bool,
    pub(crate) aux: Option<Size>,
    pub(crate) aux2: Option<Size>,
    pub(crate) readout: Option<usize>,
    pub(crate) addresses: Option<usize>,
    pub(crate) content: Option<usize>,
    pub(crate) pattern_addresses: Option<usize>,

    pub(crate) updates: u64,
    pub(crate) batch: usize,
    pub(crate) optimizer: String,
    pub(crate) lr: Option<f64>,
    pub(crate) decay: f64,
    pub(crate) momentum: f64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: Option<f64>,
    pub(crate) weight_decay: f64,
    pub(crate) clip: f64,
    pub(crate) loss: LossMean,
    pub(crate) curriculum: Curriculum,
    pub(crate) max_skipped: u64,
    pub(crate) eval_every: u64,
    pub(crate) save_every: u64,
    /// The share of sequences of the longest training length whose being right ends a run, at `stop_after` evaluations
    /// in a row.
    pub(crate) stop_at: Option<f64>,
    pub(crate) stop_after: u64,

    pub(crate) eval_lengths: Option<Vec<usize>>,
    pub(crate) eval_sequences: usize,

    #[serde(flatten)]
    pub(crate) options: Options,

    pub(crate) expect: Option<Expect>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kind: Kind::Rnn,
            name: None,
            seed: 0,
            device: "cpu".to_owned(),
            dtype: Precision::F32,
            threads: 0,
            task: String::new(),
            min_length: 0,
            max_length: 0,
            modulus: None,
            pattern: None,
            patterns: None,
            split: SplitName::None,
            train_fraction: 0.1,
            cell: String::new(),
            hidden: None,
            budget: None,
            cell_budget: None,
            allow_gap: false,
            placebo: false,
            aux: None,
            aux2: None,
            readout: None,
            addresses: None,
            content: None,
            pattern_addresses: None,
            updates: 0,
            batch: 128,
            optimizer: "adamw".to_owned(),
            lr: None,
            decay: 0.9,
            momentum: 0.9,
            beta1: 0.9,
            beta2: 0.999,
            eps: None,
            weight_decay: 0.01,
            clip: 1.0,
            loss: LossMean::Mean,
            curriculum: Curriculum::None,
            max_skipped: 10,
            eval_every: 500,
            save_every: 1000,
            stop_at: None,
            stop_after: 3,
            eval_lengths: None,
            eval_sequences: 1000,
            options: Options::default(),
            expect: None,
        }
    }
}

impl Config {
    /// Ranges, required keys, and whether cell, task and optimiser can be made.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let mut faults = Faults::default();
        for (key, missing) in [
            ("task", self.task.is_empty()),
            ("cell", self.cell.is_empty()),
            ("hidden", self.hidden.is_none()),
            ("min_length", self.min_length == 0),
            ("max_length", self.max_length == 0),
            ("updates", self.updates == 0),
        ] {
            faults.demand(!missing, format!("missing key \"{key}\""));
        }
        faults.demand(self.threads <= 1024, format!("threads = {}: 0 (all cores) to 1024", self.threads));
        for (key, value) in [
            ("eval_every", self.eval_every),
            ("save_every", self.save_every),
            ("max_skipped", self.max_skipped),
            ("stop_after", self.stop_after),
            ("eval_sequences", self.eval_sequences as u64),
        ] {
            faults.demand(value >= 1, format!("{key} = {value}: at least 1"));
        }
        if let Some(share) = self.stop_at {
            faults.demand(share > 0.0 && share <= 1.0, format!("stop_at = {share}: above 0, at most 1"));
        }
        faults.demand(
            self.eval_lengths.as_ref().is_none_or(|lengths| !lengths.is_empty()),
            "eval_lengths = []: at least one length, or no such key".to_owned(),
        );
        self.belongs(&mut faults);
        faults.refuse(name)?;
        let whole = || -> Result<()> {
            let batches = self.batches()?;
            self.optimiser()?;
            // A walk that leaves its string is known before anything is learned.
            for length in (self.min_length..=self.max_length).take(LENGTHS) {
                batches.examples(length, 1)?;
            }
            for length in self.lengths() {
                let shortest = batches.task().shortest().max(1);
                if !(shortest..=LONGEST).contains(&length) {
                    bail!("eval_lengths: {length}; `{}` has lengths from {shortest} to {LONGEST}", self.task);
                }
                batches.examples(length, 1).map_err(|error| anyhow!("eval_lengths: {length}: {error}"))?;
            }
            self.cell()?;
            Ok(())
        };
        whole().map_err(|error| anyhow!("{name}: {error}"))
    }

    /// Keys of another task, rule, split or goal than this run has.
    fn belongs(&self, faults: &mut Faults) {
        for (key, value, owner) in [
            ("modulus", &self.modulus, "mod-sum"),
            ("pattern", &self.pattern, "pattern"),
            ("patterns", &self.patterns, "multi-pattern"),
        ] {
            let own = value.is_none() || self.task == owner || self.task.is_empty();
            faults.demand(own, format!("`{key}` is a key of the task `{owner}`, not of `{}`", self.task));
        }
        let usual = Config::default();
        for (key, value, usual, owner) in [
            ("beta1", self.beta1, usual.beta1, "adamw"),
            ("beta2", self.beta2, usual.beta2, "adamw"),
            ("weight_decay", self.weight_decay, usual.weight_decay, "adamw"),
            ("decay", self.decay, usual.decay, "rmsprop"),
            ("momentum", self.momentum, usual.momentum, "rmsprop"),
        ] {
            let own = value == usual || self.optimizer == owner;
            faults.demand(own, format!("`{key}` is a key of `{owner}`, not of `{}`", self.optimizer));
        }
        let splits = self.split == SplitName::Enumerate || self.train_fraction == usual.train_fraction;
        faults.demand(splits, "`train_fraction` is a key of split = \"enumerate\"".to_owned());
        let stops = self.stop_at.is_some() || self.stop_after == usual.stop_after;
        faults.demand(
            stops,
            "`stop_after` counts evaluations that reach `stop_at`, which is not given".to_owned(),
        );
    }

    /// The settings of the task.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for (key, value) in
            [("modulus", &self.modulus), ("pattern", &self.pattern), ("patterns", &self.patterns)]
        {
            if let Some(value) = value {
                settings.set(key, &serde_json::to_value(value)?)?;
            }
        }
        Ok(settings)
    }

    /// The task.
    pub(crate) fn task(&self) -> Result<Task> {
        Ok(Task::new(&self.task, &self.settings()?)?)
    }

    /// Where batches come from.
    pub(crate) fn batches(&self) -> Result<Batches> {
        let split = match self.split {
            SplitName::None => Split::None,
            SplitName::Enumerate => Split::Enumerate { train_fraction: self.train_fraction },
        };
        let plan = Plan {
            seed: self.seed,
            batch: self.batch,
            min_length: self.min_length,
            max_length: self.max_length,
            updates: self.updates,
            curriculum: self.curriculum,
            split,
        };
        Ok(Batches::new(self.task()?, plan)?)
    }

    /// The rule, its rate and the clipping.
    pub(crate) fn optimiser(&self) -> Result<Optimiser> {
        // As TOML, which leaves out what is not given.
        let all = serde_json::to_value(toml::Table::try_from(self)?)?;
        let Some(keys) = all.as_object() else { bail!("no keys") };
        Ok(Optimiser::from_keys(keys, self.clip)?)
    }

    /// Cell and task as what is trained, on the device.
    pub(crate) fn learner(&self, cell: &Cell) -> Result<Learner> {
        let mut learner = Learner::new(cell, self.batches()?, self.dtype, self.loss)?;
        if let Some(share) = self.stop_at {
            learner = learner.with_goal(share)?;
        }
        Ok(learner.on(self.device.parse()?)?)
    }

    /// Lengths of the test; without the key the longest of training.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.eval_lengths.clone().unwrap_or_else(|| vec![self.max_length])
    }

    fn sizes(&self, hidden: usize, task: &Task) -> Result<Sizes> {
        let size = |key: &str, size: &Option<Size>| match size {
            None => Ok(None),
            Some(Size::Number(n)) => Ok(Some(*n)),
            Some(Size::Word(word)) if word == "hidden" => Ok(Some(hidden)),
            Some(Size::Word(word)) => Err(anyhow!("{key} = \"{word}\": a number, or \"hidden\"")),
        };
        Ok(Sizes {
            input: Some(task.symbols() as usize),
            hidden: Some(hidden),
            aux: size("aux", &self.aux)?,
            aux2: size("aux2", &self.aux2)?,
            output: Some(task.classes() as usize),
            readout: self.readout,
            addresses: self.addresses,
            content: self.content,
            pattern_addresses: self.pattern_addresses,
        })
    }

    /// The sizes, with `hidden = "auto"` found out.
    pub(crate) fn resolved_sizes(&self) -> Result<Sizes> {
        let (kind, task): (CellKind, Task) = (self.cell.parse()?, self.task()?);
        match &self.hidden {
            None => bail!("missing key \"hidden\""),
            Some(Size::Number(n)) => self.sizes(*n, &task),
            Some(Size::Word(word)) if word == "auto" => {
                let Some(budget) = self.budget else { bail!("hidden = \"auto\" needs `budget`") };
                // The words of `aux` are judged here, so that the search meets none that is wrong.
                self.sizes(1, &task)?;
                let sizes_of = |hidden| self.sizes(hidden, &task).unwrap_or_default();
                self.sizes(largest_hidden(kind, budget, sizes_of, &self.options)?, &task)
            }
            Some(Size::Word(word)) => bail!("hidden = \"{word}\": a number, or \"auto\""),
        }
    }

    /// The cell with its readout.
    pub(crate) fn cell(&self) -> Result<Cell> {
        Ok(Cell::new(self.cell.parse()?, &self.resolved_sizes()?, &self.options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Learner as _;

    const RUN: &str = "kind = \"rnn\"\ntask = \"parity\"\nmin_length = 1\nmax_length = 9\nupdates = 3\n";
    const LL: &str = "cell = \"ll\"\npreset = \"stable\"\nlambda = [1, \"mult [2] 1\"]\npi = [\"10\"]\nhidden = 5\n\
        aux = \"hidden\"\n";
    const MASTER: &str = "cell = \"master\"\nhidden = 4\nmasters = [{ proof = \"\\\\v. derelict v : !(h -o h) -o h -o h\", \
        state = \"h\", dims = { h = 4 }, slots = [{ kind = \"input\", from = \"h\", to = \"h\" }] }]\n";

    #[test]
    fn the_resolved_text_reads_back() {
        let patterns = &["task=multi-pattern", "patterns=[[1], [0, 1]]", "min_length=20", "max_length=30"];
        for (cell, sets) in [
            (LL, &["lr=1e-3"][..]),
            (LL, &["expect.params=7"]),
            (LL, &["curriculum=\"linear\""]),
            (LL, patterns),
            (MASTER, &[]),
        ] {
            let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
            let config = Config::from_text("a", &format!("{RUN}{cell}"), &sets).unwrap();
            let again = Config::from_text("b", &config.to_toml().unwrap(), &[]).unwrap();
            assert_eq!((&again, again.digest().unwrap()), (&config, config.digest().unwrap()), "{sets:?}");
        }
    }

    const ELMAN: &str = "cell = \"elman\"\nhidden = 3\n";

    fn checked(cell: &str, sets: &[&str]) -> Result<Config> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let config = Config::from_text("a", &format!("{RUN}{cell}"), &sets)?;
        config.check("a")?;
        Ok(config)
    }

    /// A key of something that the run does not have would be passed over.
    #[test]
    fn keys_of_something_else_are_refused() {
        for (sets, says) in [
            (&["modulus=3"][..], "`modulus` is a key of the task `mod-sum`, not of `parity`"),
            (&["pattern=1"], "`pattern` is a key"),
            (&["patterns=\"1;2\""], "`patterns` is a key"),
            (&["momentum=0.5"], "`momentum` is a key of `rmsprop`, not of `adamw`"),
            (&["optimizer=rmsprop", "beta1=0.5"], "`beta1` is a key of `adamw`"),
            (&["train_fraction=0.5"], "`train_fraction`"),
            (&["stop_after=7"], "`stop_after`"),
            (&["eval_lengths=[]"], "eval_lengths = []"),
        ] {
            let error = checked(ELMAN, sets).unwrap_err().to_string();
            assert!(error.contains(says), "{sets:?}: {error}");
        }
        for sets in [
            &["task=mod-sum", "modulus=3"][..],
            &["optimizer=rmsprop", "momentum=0.5"],
            &["stop_at=0.5", "stop_after=7"],
            &["split=enumerate", "train_fraction=0.5", "min_length=9"],
        ] {
            checked(ELMAN, sets).unwrap();
        }
    }

    /// A walk that leaves its string does so at each draw of a length.
    #[test]
    fn lengths_that_cannot_be_drawn_are_refused_before_the_run() {
        let pattern = ["task=pattern", "pattern=[6, -7, 5]", "min_length=2", "max_length=8"];
        let with = |eval: &'static str| [&pattern[..], &[eval]].concat();
        checked(ELMAN, &with("eval_lengths=[8]")).unwrap();
        let error = checked(ELMAN, &with("eval_lengths=[8, 9]")).unwrap_err().to_string();
        assert!(error.contains("eval_lengths: 9: walk-out-of-range"), "{error}");
        let longer = ["task=pattern", "pattern=[6, -7, 5]", "min_length=2", "max_length=9"];
        let error = checked(ELMAN, &longer).unwrap_err().to_string();
        assert!(error.contains("walk-out-of-range"), "{error}");
    }

    /// A cell that is too large to be computed with has more weights than any budget.
    #[test]
    fn a_budget_of_millions_is_filled() {
        let auto = ["hidden=auto", "budget=8000000", "readout=0"];
        let cell = checked("cell = \"elman\"\n", &auto).unwrap().cell().unwrap();
        assert!((7_990_000..=8_000_000).contains(&cell.count()), "{}", cell.count());
    }
}
