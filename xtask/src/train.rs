//! `cargo xtask train`: from a configuration to a trained and judged model with a report, in one command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
#[cfg(feature = "candle")]
use candle_core::DType;
use clap::Args;
use serde_json::{Map, Value, json};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, Learner as Transformer};
use symbolic_transformer::lstm::Lstm;
#[cfg(feature = "candle")]
use symbolic_transformer::model::Composed;
use symbolic_transformer::network::Network;
use symbolic_transformer::order::Order;
use training::trainer::MAX_SKIPPED;
use training::{DeviceSpec, Outcome, Progress, Settings, Task, Trainer};

use crate::answer::{print_json, say, usage};
use crate::config::{Config, Model};
use crate::data::{self, Data};
use crate::learner::{Learner, is_recurrent};
use crate::signals::{self, Stop};
use crate::{eval, keys, model_files, place, rnn, run_folder};

/// Options of `train`.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The configuration: a path, or a name in configs/.
    #[arg(long, value_name = "NAME.toml")]
    config: Option<String>,
    /// Changes a key; the value is TOML, or else a string.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// cpu, cuda, cuda:N or metal.
    #[arg(long)]
    device: Option<String>,
    /// Goes on with a run: a folder, or a name in runs/.
    #[arg(long, value_name = "RUN", conflicts_with = "name")]
    resume: Option<String>,
    /// The name of the run.
    #[arg(long)]
    name: Option<String>,
    /// Shows what would be done, does one step in memory, writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints the resolved configuration and ends.
    #[arg(long)]
    print_config: bool,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

impl Train {
    /// The text of a file with `--set` and `--device` over it.
    fn config<L: Learner>(&self, name: &str, text: &str) -> Result<L> {
        let mut sets = self.set.clone();
        sets.extend(self.device.as_ref().map(|device| format!("device={device}")));
        L::from_text(name, text, &sets)
    }

    /// The run's own configuration with the changes that a resumed run may make.
    fn resumed_config<L: Learner>(&self, folder: &Path) -> Result<L> {
        let old: L = run_folder::config(folder)?;
        let base = match &self.config {
            Some(file) => {
                let (name, text) = read_config(file)?;
                L::from_text(&name, &text, &[])?.to_toml()?
            }
            None => old.to_toml()?,
        };
        let new: L = self.config(&folder.join("config.toml").display().to_string(), &base)?;
        let (old, now) = (toml::Table::try_from(&old)?, toml::Table::try_from(&new)?);
        for key in old.keys().chain(now.keys()) {
            let (before, after) = (old.get(key), now.get(key));
            if before != after && ![L::CHANGEABLE, L::SILENT, &["device"]].concat().contains(&key.as_str()) {
                let show =
                    |v: Option<&toml::Value>| v.map_or_else(|| "not set".to_owned(), ToString::to_string);
                bail!(
                    "--resume: `{key}` is {} in the run and {} now; only {} may change",
                    show(before),
                    show(after),
                    L::CHANGEABLE.join(", ")
                );
            }
        }
        Ok(new)
    }
}

/// Name and text of a configuration: a path, or a name in configs/.
fn read_config(file: &str) -> Result<(String, String)> {
    let path = keys::find(file, &place::configs())?;
    let text = std::fs::read_to_string(&path).map_err(|e| anyhow!("{}: {e}", path.display()))?;
    Ok((path.display().to_string(), text))
}

/// The network that a configuration names, on its device.
pub(crate) fn network(config: &Config) -> Result<Box<dyn Network>> {
    let device: DeviceSpec = config.device.parse()?;
    let shape = config.shape()?;
    if config.model == Model::Lstm {
        if device != DeviceSpec::Cpu {
            bail!("model = \"lstm\" runs on the cpu only");
        }
        return Ok(Box::new(Lstm::new(&shape)?));
    }
    match device {
        DeviceSpec::Cpu => Ok(Box::new(Explicit::new(shape)?)),
        #[cfg(feature = "candle")]
        _ => Ok(Box::new(Composed::new(shape, DType::F32, device.open()?)?)),
        #[cfg(not(feature = "candle"))]
        _ => {
            device.check_built()?;
            bail!("device {device} needs a build with --features candle")
        }
    }
}

/// Trains; returns the exit status.
pub(crate) fn train(args: &Train) -> Result<u8> {
    if let Some(name) = &args.resume {
        let folder = run_folder::find(name)?;
        return if run_folder::is_recurrent(&folder)? {
            resume::<rnn::config::Config>(args, &folder)
        } else {
            resume::<Config>(args, &folder)
        };
    }
    let Some(file) = &args.config else { return Err(usage("say --config NAME.toml, or --resume RUN")) };
    let (name, text) = read_config(file)?;
    if is_recurrent(&name, &text)? {
        begin::<rnn::config::Config>(args, file, &args.config(&name, &text)?)
    } else {
        begin::<Config>(args, file, &args.config(&name, &text)?)
    }
}

fn resume<L: Learner>(args: &Train, folder: &Path) -> Result<u8> {
    let config: L = args.resumed_config(folder)?;
    if args.print_config {
        crate::answer::print_text(&config.to_toml()?);
        return Ok(0);
    }
    run(args, &config, folder)
}

fn begin<L: Learner>(args: &Train, file: &str, config: &L) -> Result<u8> {
    if args.print_config {
        crate::answer::print_text(&config.to_toml()?);
        return Ok(0);
    }
    let device: Result<DeviceSpec, _> = config.device().parse();
    device.and_then(DeviceSpec::check_built).map_err(|e| usage(e.to_string()))?;
    if args.dry_run {
        return config.dry_run(args.json);
    }
    let name = run_folder::name(args.name.as_deref().or(config.name()), file, config)?;
    let folder = place::runs().join(&name);
    if !run_folder::is_empty(&folder)? {
        bail!("{} exists: go on with --resume {name}, or choose another --name", folder.display());
    }
    run(args, config, &folder)
}

/// Everything from data to report.
fn run<L: Learner>(args: &Train, config: &L, folder: &Path) -> Result<u8> {
    training::threads::set(config.threads())?;
    if cfg!(debug_assertions) {
        say!("warning: this is a build without optimisation; use `cargo xtask train`");
    }
    if !args.quiet {
        say!("{}", config.to_toml()?.trim_end());
    }
    let stop = Stop::watch()?;
    let (updates, evaluation, status) = match config.run_in(folder, args.quiet, &stop)? {
        Ended::Interrupted { signal, step } => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            say!("stopped at update {step}; go on with: cargo xtask train --resume {name}");
            return Ok(signals::status(signal));
        }
        Ended::Finished { updates, evaluation } => (updates, evaluation, 0),
        Ended::Diverged { step, evaluation } => {
            say!("error: the loss left the numbers; the run ended as diverged at update {step}");
            (Some(step), evaluation, 1)
        }
    };
    let page = L::report(folder)?;
    if args.json {
        let document = json!({
            "schema": "xtask/1", "command": "train", "run": folder, "updates": updates, "report": page,
            "eval": evaluation,
        });
        print_json(&document)?;
    } else {
        L::print_summary(&evaluation);
        crate::answer::print_text(&format!("report: {}\n", page.display()));
    }
    Ok(status)
}

/// How a run came back.
pub(crate) enum Ended {
    /// A signal stopped it after the checkpoint of a step.
    Interrupted { signal: usize, step: u64 },
    /// It is trained (in so many updates, where there are any) and judged.
    Finished { updates: Option<u64>, evaluation: Value },
    /// Its loss left the numbers at a step; its best model is judged.
    Diverged { step: u64, evaluation: Value },
}

/// Trains in a folder, from the start or from its newest checkpoint, and judges the best model. Work runs on the
/// thread pool of the caller. Whatever may refuse comes before the first change of a file.
pub(crate) fn run_in(folder: &Path, config: &Config, quiet: bool, stop: &Stop) -> Result<Ended> {
    let say = |message: String| {
        if !quiet {
            say!("{message}");
        }
    };
    say(format!(
        "{} on {}, {} threads, precision {}",
        folder.display(),
        config.device,
        rayon::current_num_threads(),
        config.precision
    ));
    let before = folder.is_dir().then(|| run_folder::lock(folder)).transpose()?;
    let data = data::load(&config.data, quiet, stop)?;
    run_folder::check_data(folder, &config.data, data.digest())?;
    let further = format!("# data {} {}\n", config.data, data.digest());
    let alone = || {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        before.map_or_else(|| run_folder::lock(folder), Ok)
    };
    if config.model == Model::Ngram {
        let _alone = alone()?;
        run_folder::write_config(folder, config, &further)?;
        let evaluation = eval::evaluate(folder, config, &data, &config.suites, quiet)?;
        return Ok(Ended::Finished { updates: None, evaluation });
    }
    let mut learner = learner(config, &data)?;
    let mut settings = settings(config, &data, &learner)?;
    let found = Trainer::<Transformer<'_>>::find(learner.layout(), &settings, folder)?;
    if let (Some(from), None) = (&config.init_from, &found) {
        settings.initial = Some(initial(from, config, &learner)?);
    }
    let _alone = alone()?;
    let changed = run_folder::write_config(folder, config, &further)?;
    if changed || !folder.join("config.json").is_file() || !folder.join("tokenizer.json").is_file() {
        model_files::write_about(folder, config, learner.layout().len(), &data)?;
    }
    let progress = Progress::new(settings.schedule.total, quiet);
    let start = start_line(folder, config, &settings, &learner, &data)?;
    let total = settings.schedule.total;
    let from = found.as_ref().map_or(0, |f| f.state.step);
    let mut trainer = Trainer::begin(&mut learner, settings, folder, found, start)?;
    if from > 0 && from < total {
        progress.say(&format!("going on from update {from}"));
    }
    progress.say(&format!("{total} updates"));
    let outcome = trainer.run(stop.number(), &progress);
    progress.finish();
    let step = trainer.state().step;
    match outcome? {
        Outcome::Interrupted(signal) => Ok(Ended::Interrupted { signal, step }),
        Outcome::Finished(reason) => {
            if let Some(signal) = stop.signal() {
                return Ok(Ended::Interrupted { signal, step });
            }
            say(format!("trained for {step} updates (ended by {reason})"));
            let judged = eval::judged_before(folder, config)?.filter(|_| step == from);
            let evaluation = match judged {
                Some(evaluation) => {
                    say("the run was finished and judged before".to_owned());
                    evaluation
                }
                None => {
                    stop.nothing_to_lose();
                    eval::evaluate(folder, config, &data, &config.suites, quiet)?
                }
            };
            Ok(Ended::Finished { updates: Some(step), evaluation })
        }
    }
}

/// The weights that a run begins with, where its configuration names others than drawn ones: those of a run, or of a
/// file.
fn initial(from: &str, config: &Config, learner: &Transformer<'_>) -> Result<Vec<f32>> {
    let file = Path::new(from);
    let path = if file.is_file() { file.to_owned() } else { weights_path(&run_folder::find(from)?) };
    let weights = training::checkpoint::load_weights(&path, learner.layout());
    weights.with_context(|| {
        format!("init_from = \"{from}\": weights of another shape than {:?} has", config.model)
    })
}

/// The learner of a configuration over its data.
pub(crate) fn learner<'a>(config: &Config, data: &Data) -> Result<Transformer<'a>> {
    let train = data.train()?.first(config.train_limit);
    let validation = data.val()?;
    let network = network(config)?;
    check_lengths(config, &train, &validation)?;
    let order = Order::new(train.lengths(), config.batching, config.batch_unit, config.batch, config.seed);
    Ok(Transformer {
        network,
        train,
        validation,
        order,
        seed: config.seed,
        smoothing: config.label_smoothing,
    })
}

fn check_lengths(config: &Config, corpus: &Corpus, validation: &Corpus) -> Result<()> {
    let lengths = [corpus.lengths(), validation.lengths()].concat();
    let longest = lengths.into_iter().max().unwrap_or(0) as usize;
    if config.model == Model::Transformer && longest > config.max_len {
        bail!("the longest text of the data has {longest} tokens, max_len = {}", config.max_len);
    }
    if corpus.is_empty() {
        bail!("the training set is empty");
    }
    if validation.is_empty() {
        bail!("the validation set is empty: nothing would say which weights are the best");
    }
    Ok(())
}

fn settings(config: &Config, data: &Data, learner: &Transformer<'_>) -> Result<Settings> {
    let per_epoch = learner.updates_per_epoch();
    let total = config.total_updates(per_epoch);
    Ok(Settings {
        optimiser: config.adamw().into(),
        schedule: config.schedule(total)?,
        clip: config.clip,
        max_skipped: MAX_SKIPPED,
        accumulate: config.accumulate,
        patience: config.patience,
        min_delta: config.min_delta,
        eval_every: if config.eval_every > 0 { config.eval_every } else { per_epoch },
        log_every: config.log_every,
        save_every: config.save_every,
        seed: config.seed,
        config_digest: config.digest()?,
        data_digest: data.digest().to_owned(),
        // Of texts that were removed nothing says what the next symbol costs at best.
        optimum: data.optimum().filter(|_| !data.is_filtered()),
        initial: None,
    })
}

fn start_line(
    folder: &Path,
    config: &Config,
    settings: &Settings,
    learner: &Transformer<'_>,
    data: &Data,
) -> Result<Map<String, Value>> {
    let run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut line = json!({
        "step": 0, "schema": 2, "run": run, "parameters": learner.layout().len(), "config": config.digest()?,
        "data": data.digest(), "device": config.device,
    });
    if let (Some(initial), Value::Object(fields)) = (&settings.initial, &mut line) {
        let mut hasher = blake3::Hasher::new();
        for x in initial {
            hasher.update(&x.to_le_bytes());
        }
        fields.insert("init".to_owned(), json!(hasher.finalize().to_hex().to_string()));
    }
    match line {
        Value::Object(fields) => Ok(fields),
        _ => Err(anyhow!("no fields")),
    }
}

/// Where the model of a run is.
pub(crate) fn weights_path(folder: &Path) -> PathBuf {
    folder.join("model.safetensors")
}
