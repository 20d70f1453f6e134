//! The symbolic transformer, or one of its baselines, on its data: what a run trains and judges.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use symbolic_transformer::learner::{Corpus, Learner as Transformer};
use symbolic_transformer::moderator::Moderator;
use symbolic_transformer::order::Order;
use symbolic_transformer::texts::{self as learned, OnDisk};
use training::trainer::MAX_SKIPPED;
use training::{Settings, Task};

use super::config::{Config, Model};
use super::{code, eval, model_files, network, plain_texts, tasks};
use crate::data::{self, Data};
use crate::inference::{self, Tasks};
use crate::learner::{Learner as _, State, Subject};
use crate::run_folder;
use crate::signals::Stop;
use crate::texts::Texts;

/// A configuration, its data, and the learner; none for a model without weights, which is made when it is judged.
pub(crate) struct OnData {
    config: Config,
    data: Source,
    learner: Option<Transformer<'static>>,
}

/// What is learned: texts of a law, inference tasks, or a file of texts.
enum Source {
    Law(Box<Data>),
    Tasks(Box<Tasks>),
    Texts(Box<Texts>),
}

impl Source {
    fn digest(&self) -> &str {
        match self {
            Self::Law(data) => data.digest(),
            Self::Tasks(tasks) => tasks.digest(),
            Self::Texts(texts) => texts.digest(),
        }
    }

    fn law_name(&self) -> String {
        match self {
            Self::Law(data) => data.law_name(),
            Self::Tasks(_) => "inference".to_owned(),
            Self::Texts(_) => "texts".to_owned(),
        }
    }
}

impl OnData {
    /// Loads the data, or makes them; those of another digest than the run's are refused.
    pub(crate) fn open(config: &Config, folder: &Path, quiet: bool, stop: &Stop) -> Result<Self> {
        if !data::is_texts(&config.data) {
            tasks::check_suites(&config.data, &config.suites)?;
        }
        let data = if data::is_texts(&config.data) {
            Source::Texts(Box::new(Texts::open(&config.data)?))
        } else if data::is_inference(&config.data) {
            Source::Tasks(Box::new(inference::load(&config.data, quiet, stop)?))
        } else {
            Source::Law(Box::new(data::load(&config.data, quiet, stop)?))
        };
        run_folder::check_data(folder, &config.data, data.digest())?;
        let learn = || match &data {
            Source::Law(data) => learner(config, folder, data),
            Source::Tasks(tasks) => {
                let train = tasks.corpus("train", config.train_limit)?;
                learner_of_held(config, folder, train, tasks.corpus("val", 0)?)
            }
            Source::Texts(texts) => {
                let train = texts.train().clone().first(config.train_limit);
                learner_of_held(config, folder, train, texts.val().clone())
            }
        };
        let learner = config.model.has_weights().then(learn).transpose()?;
        Ok(Self { config: config.clone(), data, learner })
    }
}

impl Subject for OnData {
    type Task = Transformer<'static>;

    fn task(&mut self) -> Option<&mut Self::Task> {
        self.learner.as_mut()
    }

    fn settings(&self) -> Result<Settings> {
        let learner =
            self.learner.as_ref().ok_or_else(|| anyhow!("a model without weights is not trained"))?;
        settings(&self.config, &self.data, learner)
    }

    fn initial(&self) -> Result<Option<Vec<f32>>> {
        match (&self.config.init_from, &self.learner) {
            (Some(from), Some(learner)) => initial(from, &self.config, learner).map(Some),
            _ => Ok(None),
        }
    }

    fn made_from(&self) -> String {
        format!("# data {} {}\n", self.config.data, self.data.digest())
    }

    fn start(&self) -> Map<String, Value> {
        Map::from_iter([("data".to_owned(), json!(self.data.digest()))])
    }

    fn describe(&self, folder: &Path, anew: bool) -> Result<()> {
        let there = |name: &str| folder.join(name).is_file();
        if let Some(name) = self.config.program.as_ref().filter(|_| !there(network::PROGRAM)) {
            // A resumed run goes on with the equations that it began with.
            let (_, text) = network::program(name, None)?;
            training::files::write(&folder.join(network::PROGRAM), text.as_bytes())?;
        }
        match &self.learner {
            Some(learner) if anew || !there("config.json") || !there("tokenizer.json") => {
                model_files::write_about(
                    folder,
                    &self.config,
                    learner.train.code(),
                    learner.layout().len(),
                    (&self.data.law_name(), self.data.digest()),
                )
            }
            _ => Ok(()),
        }
    }

    fn judged_before(&self, folder: &Path) -> Result<Option<Value>> {
        eval::judged_before(folder, &self.config)
    }

    fn judge(&mut self, folder: &Path, _state: State, quiet: bool) -> Result<Value> {
        match &self.data {
            Source::Law(data) => eval::evaluate(folder, &self.config, data, &self.config.suites, quiet),
            Source::Tasks(tasks) => {
                tasks::evaluate(folder, &self.config, tasks, &self.config.suites, quiet, "eval.json")
            }
            Source::Texts(texts) => {
                let suites = &self.config.suites;
                plain_texts::evaluate(folder, &self.config, texts, None, suites, quiet, "eval.json")
            }
        }
    }
}

/// The weights that a run begins with, where its configuration names others than drawn ones: those of a run, or of a
/// file.
fn initial(from: &str, config: &Config, learner: &Transformer<'_>) -> Result<Vec<f32>> {
    let file = Path::new(from);
    let path = if file.is_file() { file.to_owned() } else { run_folder::weights(&run_folder::find(from)?) };
    let weights = training::checkpoint::load_weights(&path, learner.layout());
    weights.with_context(|| {
        format!("init_from = \"{from}\": weights of another shape than {:?} has", config.model)
    })
}

/// The learner of a configuration over its data.
fn learner(config: &Config, folder: &Path, data: &Data) -> Result<Transformer<'static>> {
    let all = || Ok(data.train()?.first(config.train_limit));
    let code = code::to_train(config, Some(folder), &data.law, all)?;
    let reader = data.reader("train")?.first(config.train_limit as u64);
    let (train, lengths) = OnDisk::new(reader, &code, "train").context("the training set")?;
    let validation = data.val()?.in_code(&code, "val").context("the validation set")?;
    check_lengths(config, &lengths, &validation)?;
    let few = data.few(3)?.in_code(&code, "train").context("the training set")?;
    let network = network::to_train(config, Some(folder), &few)?;
    let shape = config.shape(code.size())?;
    let moderator = config.moderator().map(|settings| Moderator::new(settings, &shape)).transpose()?;
    let order = Order::new(lengths, config.batching, config.batch_unit, config.batch, config.seed);
    Ok(Transformer {
        network,
        train: learned::Texts::OnDisk(train),
        validation,
        order,
        seed: config.seed,
        smoothing: config.label_smoothing,
        moderator,
    })
}

/// The learner of a configuration over texts that no law says anything of, in memory.
fn learner_of_held(
    config: &Config,
    folder: &Path,
    train: Corpus,
    validation: Corpus,
) -> Result<Transformer<'static>> {
    if !config.is_plain() {
        let data = &config.data;
        bail!("tokenization, notation: data = \"{data}\" has no law, and is learned in canonical symbols");
    }
    let lengths = train.lengths();
    check_lengths(config, &lengths, &validation)?;
    let network = network::to_train(config, Some(folder), &train.clone().first(3))?;
    let shape = config.shape(train.code().size())?;
    let moderator = config.moderator().map(|settings| Moderator::new(settings, &shape)).transpose()?;
    let order = Order::new(lengths, config.batching, config.batch_unit, config.batch, config.seed);
    Ok(Transformer {
        network,
        train: learned::Texts::Held(train),
        validation,
        order,
        seed: config.seed,
        smoothing: config.label_smoothing,
        moderator,
    })
}

fn check_lengths(config: &Config, lengths: &[u32], validation: &Corpus) -> Result<()> {
    let longest = lengths.iter().chain(&validation.lengths()).max().copied().unwrap_or(0) as usize;
    if config.model == Model::Transformer && longest > config.max_len {
        bail!("the longest text of the data has {longest} tokens, max_len = {}", config.max_len);
    }
    if lengths.is_empty() {
        bail!("the training set is empty");
    }
    if validation.is_empty() {
        bail!("the validation set is empty: nothing would say which weights are the best");
    }
    Ok(())
}

fn settings(config: &Config, data: &Source, learner: &Transformer<'_>) -> Result<Settings> {
    let per_epoch = learner.updates_per_epoch();
    let optimum = match data {
        Source::Tasks(_) | Source::Texts(_) => None,
        // Of texts that were removed nothing says what the next symbol costs at best.
        Source::Law(data) if data.is_filtered() => None,
        Source::Law(data) => match data.optimum() {
            Some(nats) if !config.is_plain() => {
                let iid = data.iid()?.in_code(learner.train.code(), "iid").context("the unfiltered set")?;
                Some(code::optimum(nats, &iid))
            }
            optimum => optimum,
        },
    };
    let total = config.total_updates(per_epoch);
    Ok(Settings {
        optimiser: config.adamw().into(),
        schedule: config.schedule(total)?,
        clip: config.clip,
        max_skipped: MAX_SKIPPED,
        accumulate: config.accumulate,
        pieces: config.pieces.unwrap_or(0),
        patience: config.patience,
        min_delta: config.min_delta,
        goal: 0,
        eval_every: if config.eval_every > 0 { config.eval_every } else { per_epoch },
        log_every: config.log_every,
        save_every: config.save_every,
        seed: config.seed,
        config_digest: config.digest()?,
        data_digest: data.digest().to_owned(),
        optimum,
        initial: None,
    })
}
