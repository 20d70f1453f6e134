//! `cargo xtask train`: from a configuration to a trained and judged model with a report, in one command.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

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
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::order::Order;
use training::trainer::MAX_SKIPPED;
use training::{DeviceSpec, Outcome, Progress, Settings, Task, Trainer};

use crate::answer::{print_json, usage};
use crate::config::{Config, Model};
use crate::data::{self, Data};
use crate::learner::{Learner, is_recurrent};
use crate::{eval, keys, model_files, rnn, run_folder, signals};

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
    let path = keys::find(file, Path::new("configs"))?;
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
    let folder = Path::new(run_folder::RUNS).join(&name);
    if folder.exists() {
        bail!("{} exists: go on with --resume {name}, or choose another --name", folder.display());
    }
    run(args, config, &folder)
}

/// Everything from data to report.
fn run<L: Learner>(args: &Train, config: &L, folder: &Path) -> Result<u8> {
    training::threads::set(config.threads())?;
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a build without optimisation; use `cargo xtask train`");
    }
    let stop = signals::watch()?;
    let (updates, evaluation, status) = match config.run_in(folder, args.quiet, &stop)? {
        Ended::Interrupted { signal, step } => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            eprintln!("stopped at update {step}; go on with: cargo xtask train --resume {name}");
            return Ok(128 + signal as u8);
        }
        Ended::Finished { updates, evaluation } => (updates, evaluation, 0),
        Ended::Diverged { step, evaluation } => {
            eprintln!("error: the loss left the numbers; the run ended as diverged at update {step}");
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
/// thread pool of the caller.
pub(crate) fn run_in(folder: &Path, config: &Config, quiet: bool, stop: &AtomicUsize) -> Result<Ended> {
    let say = |message: String| {
        if !quiet {
            eprintln!("{message}");
        }
    };
    say(format!(
        "{} on {}, {} threads, precision {}",
        folder.display(),
        config.device,
        config.threads,
        config.precision
    ));
    let data = data::load(&config.data, quiet)?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write_config(config, folder, &data)?;
    let judged = || eval::evaluate(folder, config, &data, &config.suites, quiet);
    if config.model == Model::Ngram {
        return Ok(Ended::Finished { updates: None, evaluation: judged()? });
    }
    let mut learner = learner(config, &data)?;
    let settings = settings(config, &data, &learner)?;
    model_files::write_about(folder, config, learner.layout().len(), &data)?;
    let progress = Progress::new(settings.schedule.total, quiet);
    let start = start_line(folder, config, &learner, &data)?;
    let total = settings.schedule.total;
    let mut trainer = Trainer::open(&mut learner, settings, folder, start)?;
    if trainer.state().step > 0 {
        progress.say(&format!("going on from update {}", trainer.state().step));
    }
    progress.say(&format!("{total} updates"));
    let outcome = trainer.run(stop, &progress);
    progress.finish();
    let step = trainer.state().step;
    match outcome? {
        Outcome::Interrupted(signal) => Ok(Ended::Interrupted { signal, step }),
        Outcome::Finished(reason) => {
            say(format!("trained for {step} updates (ended by {reason})"));
            Ok(Ended::Finished { updates: Some(step), evaluation: judged()? })
        }
    }
}

/// The learner of a configuration over its data.
pub(crate) fn learner<'a>(config: &Config, data: &Data) -> Result<Transformer<'a>> {
    let train = data.train()?.first(config.train_limit);
    let network = network(config)?;
    check_lengths(config, &train)?;
    let order = Order::new(train.lengths(), config.batching, config.batch_unit, config.batch, config.seed);
    Ok(Transformer {
        network,
        train,
        validation: data.val()?,
        order,
        seed: config.seed,
        smoothing: config.label_smoothing,
    })
}

fn check_lengths(config: &Config, corpus: &Corpus) -> Result<()> {
    let longest = corpus.lengths().into_iter().max().unwrap_or(0) as usize;
    if config.model == Model::Transformer && longest > config.max_len {
        bail!("the longest text of the data has {longest} tokens, max_len = {}", config.max_len);
    }
    if corpus.is_empty() {
        bail!("the training set is empty");
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
        optimum: data.optimum(),
    })
}

fn start_line(
    folder: &Path,
    config: &Config,
    learner: &Transformer<'_>,
    data: &Data,
) -> Result<Map<String, Value>> {
    let run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let line = json!({
        "step": 0, "schema": 1, "run": run, "parameters": learner.layout().len(), "config": config.digest()?,
        "data": data.digest(), "device": config.device,
    });
    match line {
        Value::Object(fields) => Ok(fields),
        _ => Err(anyhow!("no fields")),
    }
}

/// The resolved configuration, and below it what the run was made with.
fn write_config(config: &Config, folder: &Path, data: &Data) -> Result<()> {
    let text = format!(
        "{}\n{}# data {} {}\n",
        config.to_toml()?,
        run_folder::made_with(&config.device, config.threads),
        config.data,
        data.digest(),
    );
    Ok(training::files::write(&folder.join("config.toml"), text.as_bytes())?)
}

/// The places of the schedule that a reader checks: 0, w/2, w, (w+T)/2, T.
fn lr_probe(config: &Config, total: u64) -> Result<Vec<(u64, f64)>> {
    let schedule = config.schedule(total)?;
    let (w, t) = (schedule.warmup, total);
    Ok([0, w / 2, w, (w + t) / 2, t].map(|u| (u, schedule.rate(u))).to_vec())
}

/// What a run would be, and one step of it in memory.
pub(crate) fn dry_run(config: &Config, json: bool) -> Result<u8> {
    training::threads::set(config.threads)?;
    let present = data::open_if_present(&config.data)?;
    let mut document = json!({
        "schema": "xtask/1", "command": "train", "params": null, "targets_per_epoch": null,
        "updates_per_epoch": null, "total_updates": null, "warmup_steps": null, "lr_probe": null, "config": config,
    });
    let Value::Object(fields) = &mut document else { bail!("no document") };
    if config.model == Model::Ngram {
        fields.insert("params".to_owned(), json!(0));
    } else {
        let mut network = network(config)?;
        fields.insert("params".to_owned(), json!(network.layout().len()));
        fields.insert("parameters".to_owned(), parameters(network.as_ref()));
        let sample = data::in_memory(&config.data, 64)?;
        fields.insert("step".to_owned(), one_step(network.as_mut(), config, &sample)?);
        if let Some(data) = &present {
            let train = data.train()?.first(config.train_limit);
            let order =
                Order::new(train.lengths(), config.batching, config.batch_unit, config.batch, config.seed);
            let per_epoch = order.batches() as u64;
            let total = config.total_updates(per_epoch);
            fields.insert("targets_per_epoch".to_owned(), json!(train.targets()));
            fields.insert("updates_per_epoch".to_owned(), json!(per_epoch));
            fields.insert("total_updates".to_owned(), json!(total));
            fields.insert("warmup_steps".to_owned(), json!(config.schedule(total)?.warmup));
            fields.insert("lr_probe".to_owned(), json!(lr_probe(config, total)?));
            let step = fields.get("step").and_then(|s| s.get("seconds_per_target")).and_then(Value::as_f64);
            let share = total as f64 / per_epoch as f64 * train.targets() as f64;
            fields.insert("seconds_estimated".to_owned(), json!(step.map(|s| s * share)));
        }
    }
    if let Some(data) = &present {
        fields.insert("optimum_nats_per_token".to_owned(), json!(data.optimum()));
    }
    let missing = present.is_none();
    fields.insert("data_present".to_owned(), json!(!missing));
    if json {
        print_json(&document)?;
    } else {
        crate::answer::print_text(&format!("{}\n", serde_json::to_string_pretty(&document)?));
        if missing {
            eprintln!("the data set {} is not there; `train` would generate it", config.data);
        }
    }
    Ok(0)
}

/// Parameters by module, and with and without decay.
fn parameters(network: &dyn Network) -> Value {
    let mut modules: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut decayed = 0;
    for p in network.layout().iter() {
        let module: Vec<&str> =
            p.name.split('.').take(if p.name.starts_with("layers.") { 2 } else { 1 }).collect();
        *modules.entry(module.join(".")).or_default() += p.range.len();
        if p.decay == training::Decay::Yes {
            decayed += p.range.len();
        }
    }
    let all = network.layout().len();
    // Weights, gradient and two moments.
    json!({"all": all, "with_decay": decayed, "without_decay": all - decayed, "modules": modules, "state_bytes": 16 * all})
}

/// One forward and backward pass without an update.
fn one_step(network: &mut dyn Network, config: &Config, sample: &Corpus) -> Result<Value> {
    let theta = network.layout().initialise(config.seed);
    let batch = symbolic_transformer::batch::Batch::new(sample.iter());
    let mut gradient = vec![0.0; theta.len()];
    let noise = Noise { seed: config.seed, update: 1, smoothing: 0.0 };
    let clock = std::time::Instant::now();
    let loss = network.gradient(&theta, &batch, noise, &mut gradient)?;
    let seconds = clock.elapsed().as_secs_f64();
    let targets = loss.targets.max(1) as f64;
    Ok(json!({
        "targets": loss.targets, "loss": loss.sum / targets, "ln_vocabulary": (fol::symbol::VOCABULARY as f64).ln(),
        "flop_per_token": 6 * theta.len(), "padding": 0.0, "seconds": seconds, "seconds_per_target": seconds / targets,
    }))
}

/// Where the model of a run is.
pub(crate) fn weights_path(folder: &Path) -> PathBuf {
    folder.join("model.safetensors")
}
