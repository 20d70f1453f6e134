//! `cargo xtask train`: from a configuration to a trained and judged model with a report, in one command.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use training::{Collective, DeviceSpec};

use crate::answer::{give, print_text, say, usage};
use crate::learner::{Kind, Learner};
use crate::run::{Ended, train_in, train_together};
use crate::signals::{self, Stop};
use crate::{keys, place, rnn, run_folder, store, transformer};

/// Options of `train`.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The configuration: a path, or a name in configs/.
    #[arg(long, value_name = "NAME.toml")]
    config: Option<String>,
    /// Changes a key; the value is TOML, or else a string.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// cpu, vulkan, cuda, rocm or metal, with :N for one of several; `cargo xtask devices` lists them.
    #[arg(long)]
    device: Option<String>,
    /// Goes on with a run: a folder, or a name in runs/.
    #[arg(long, value_name = "RUN", conflicts_with = "name")]
    resume: Option<String>,
    /// The name of the run.
    #[arg(long)]
    name: Option<String>,
    /// Where `mpirun` started several processes: seconds after which a rank that says nothing is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
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
    keys::read(&keys::find(file, &place::configs())?)
}

/// Trains; returns the exit status.
pub(crate) fn train(args: &Train) -> Result<u8> {
    if let Some(name) = &args.resume {
        let folder = run_folder::find(name)?;
        return match run_folder::kind(&folder)? {
            Kind::Recurrent => resume::<rnn::config::Config>(args, &folder),
            Kind::Transformer => resume::<transformer::config::Config>(args, &folder),
        };
    }
    let Some(file) = &args.config else { return Err(usage("say --config NAME.toml, or --resume RUN")) };
    let (name, text) = read_config(file)?;
    match Kind::of(&name, &text)? {
        Kind::Recurrent => begin::<rnn::config::Config>(args, file, &args.config(&name, &text)?),
        Kind::Transformer => begin::<transformer::config::Config>(args, file, &args.config(&name, &text)?),
    }
}

/// What this build lacks for a configuration, and another one has.
fn elsewhere<L: Learner>(config: &L) -> Option<String> {
    let mut lacking: Vec<&str> = Vec::new();
    #[cfg(not(feature = "programs"))]
    if config.is_program() {
        lacking.push("programs");
    }
    if config.shared().is_some_and(store::is_wanted) && place::has_sources() {
        lacking.push("store");
    }
    // Recurrent cells run on the CPU, or by candle where that was built with a device.
    if let Ok(device) = config.device().parse::<DeviceSpec>()
        && L::KIND == Kind::Transformer
        && device.check_built().is_err()
        && place::has_sources()
    {
        lacking.extend(device.feature());
    }
    (!lacking.is_empty()).then(|| lacking.join(","))
}

fn resume<L: Learner>(args: &Train, folder: &Path) -> Result<u8> {
    let config: L = args.resumed_config(folder)?;
    if args.print_config {
        print_text(&config.to_toml()?);
        return Ok(0);
    }
    if let Some(features) = elsewhere(&config) {
        return crate::elsewhere::hand_over(&features);
    }
    together(ranks(args, &config)?, |others| run(args, &config, folder, others))
}

/// Does what is to be done with others, if there are any; after a fault nobody is left waiting.
fn together(
    mut others: Option<Box<dyn Collective>>,
    work: impl FnOnce(&mut Option<Box<dyn Collective>>) -> Result<u8>,
) -> Result<u8> {
    let done = work(&mut others);
    if let (Err(fault), Some(others)) = (&done, &mut others) {
        say!("error: {fault:#}");
        others.abort();
    }
    done
}

/// The other processes of the run, if it was started with any.
fn ranks<L: Learner>(args: &Train, config: &L) -> Result<Option<Box<dyn Collective>>> {
    let patience = Duration::from_secs(args.patience);
    let found = training_mpi::open(patience)?;
    by_nccl(found, config, patience)
}

/// Ranks that train on cards send their numbers by NCCL.
#[cfg(feature = "nccl")]
fn by_nccl<L: Learner>(
    found: Option<Box<dyn Collective>>,
    config: &L,
    patience: Duration,
) -> Result<Option<Box<dyn Collective>>> {
    let Some(mut ranks) = found else { return Ok(None) };
    let card = || match config.device().parse()? {
        device @ DeviceSpec::Cuda(_) if L::KIND == Kind::Transformer => {
            match transformer::network::of_rank(device, config.device())? {
                DeviceSpec::Cuda(card) => Ok(Some(card)),
                _ => Ok(None),
            }
        }
        _ => anyhow::Ok(None),
    };
    let card = card();
    // All of them, or none: one that comes alone would wait.
    let said = ranks.gather(&[u8::from(matches!(card, Ok(Some(_))))])?;
    match card?.filter(|_| said.iter().all(|said| said == &[1])) {
        Some(card) => Ok(Some(training_mpi::over_nccl(ranks, card, patience)?)),
        None => Ok(Some(ranks)),
    }
}

/// A build without NCCL: numbers go through MPI.
#[cfg(not(feature = "nccl"))]
fn by_nccl<L: Learner>(
    found: Option<Box<dyn Collective>>,
    _: &L,
    _: Duration,
) -> Result<Option<Box<dyn Collective>>> {
    Ok(found)
}

fn begin<L: Learner>(args: &Train, file: &str, config: &L) -> Result<u8> {
    if args.print_config {
        print_text(&config.to_toml()?);
        return Ok(0);
    }
    if let Some(features) = elsewhere(config) {
        return crate::elsewhere::hand_over(&features);
    }
    let device: Result<DeviceSpec, _> = config.device().parse();
    device.and_then(DeviceSpec::check_built).map_err(|e| usage(e.to_string()))?;
    let name = run_folder::name(args.name.as_deref().or(config.name()), file, config)?;
    if args.dry_run {
        training::threads::set(config.threads())?;
        let forecast = config.forecast()?;
        let words = config.forecast_in_words(&forecast)?;
        give(args.json, &forecast, || words)?;
        return Ok(0);
    }
    let folder = place::runs().join(&name);
    together(ranks(args, config)?, |others| {
        // Rank 0 looks, and makes it.
        if others.as_ref().is_none_or(|others| others.rank() == 0) && !run_folder::is_empty(&folder)? {
            bail!("{} exists: go on with --resume {name}, or choose another --name", folder.display());
        }
        run(args, config, &folder, others)
    })
}

/// Everything from data to report.
fn run<L: Learner>(
    args: &Train,
    config: &L,
    folder: &Path,
    others: &mut Option<Box<dyn Collective>>,
) -> Result<u8> {
    training::threads::set(config.threads())?;
    if cfg!(debug_assertions) {
        say!("warning: this is a build without optimisation; use `cargo xtask train`");
    }
    let leads = others.as_ref().is_none_or(|others| others.rank() == 0);
    if !args.quiet && leads {
        say!("{}", config.to_toml()?.trim_end());
    }
    let stop = Stop::watch()?;
    let ended = match others {
        Some(others) => train_together(config, folder, args.quiet, &stop, &mut **others)?,
        None => train_in(config, folder, args.quiet, &stop)?,
    };
    if !leads {
        return Ok(match ended {
            Ended::Interrupted { signal, .. } => signals::status(signal),
            Ended::Finished { .. } => 0,
            Ended::Diverged { .. } => 1,
        });
    }
    let (updates, evaluation, status) = match ended {
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
    let document = json!({
        "schema": "xtask/1", "command": "train", "run": folder, "updates": updates, "report": page,
        "eval": evaluation,
    });
    give(args.json, &document, || format!("{}report: {}\n", L::in_short(&evaluation), page.display()))?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;
    use crate::sweep::plan::Draft;
    use crate::transformer::{code, network};
    use symbolic_transformer::learner::Corpus;

    #[test]
    fn every_configuration_of_the_project_is_understood_and_has_the_parameters_that_it_expects() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        let mut checked = [0, 0];
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != "toml") {
                continue;
            }
            let (name, text) = read_config(&path.display().to_string()).unwrap();
            if keys::parse_table(&name, &text).unwrap().contains_key("base") {
                let draft = Draft::read(&path).unwrap();
                match draft.kind().unwrap() {
                    Kind::Recurrent => drop(draft.plan::<rnn::config::Config>().unwrap()),
                    Kind::Transformer => drop(draft.plan::<transformer::config::Config>().unwrap()),
                }
                continue;
            }
            let (at, expect, params) = match Kind::of(&name, &text).unwrap() {
                Kind::Recurrent => {
                    let config = rnn::config::Config::from_text(&name, &text, &[]).unwrap();
                    let params = config.cell().unwrap().count();
                    (0, config.expect, params)
                }
                Kind::Transformer => {
                    let config = transformer::config::Config::from_text(&name, &text, &[]).unwrap();
                    let place = if data::is_inference(&config.data) { "inference" } else { "data" };
                    let data = folder.join(place).join(format!("{}.toml", config.data));
                    let text = std::fs::read_to_string(data).unwrap();
                    match place {
                        "inference" => drop(fol_inference::config::Config::read(&text, &[]).unwrap()),
                        _ => drop(fol::data::Config::read(&text, &[]).unwrap()),
                    }
                    if !config.model.has_weights() {
                        continue;
                    }
                    let law = data::law_of_run(&config.data).unwrap();
                    let code = code::to_train(&config, None, &law, || Ok(Corpus::new())).unwrap();
                    let params = network::of(&config, &code).unwrap().layout().len();
                    (1, config.expect, params)
                }
            };
            let expected = expect.and_then(|expect| expect.params);
            assert!(expected == Some(params) || at == 0 && expected.is_none(), "{name}: {params}");
            checked[at] += 1;
        }
        assert!(checked[0] >= 1 && checked[1] >= 6, "{checked:?}");
    }
}
