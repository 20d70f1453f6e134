//! A run in its folder, whatever learns: the lock, the configuration, training, judgement.
//!
//! A configuration ([`Learner`]) opens what it learns with, on its data: a [`Subject`]. [`train_in`] does the rest, and
//! in one order: whatever may refuse comes before the first change of a file.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use training::collective::Intent;
use training::files::Lock;
use training::{Collective, Layout, Outcome, Progress, Settings, Task, Trainer};

use crate::answer::say;
use crate::learner::{Learner, State, Subject};
use crate::run_folder;
use crate::signals::Stop;

/// How a run came back.
pub(crate) enum Ended {
    /// A signal stopped it after the checkpoint of a step.
    Interrupted { signal: usize, step: u64 },
    /// It is trained (in so many updates, where there are any) and judged.
    Finished { updates: Option<u64>, evaluation: Value },
    /// Its loss left the numbers at a step; its best model is judged.
    Diverged { step: u64, evaluation: Value },
}

/// Trains with other ranks: rank 0 does as [`train_in`] says, the others compute their pieces and write nothing.
pub(crate) fn train_together<L: Learner>(
    config: &L,
    folder: &Path,
    quiet: bool,
    stop: &Stop,
    others: &mut dyn Collective,
) -> Result<Ended> {
    if others.rank() == 0 {
        return train_with(config, folder, quiet, stop, Some(others));
    }
    // Rank 0 makes the data if they are missing; it says so, or why it cannot.
    refuse(&others.gather(b"")?)?;
    let mut opened = config.open(folder, true, stop).and_then(|mut subject| {
        let of_task = subject.task().map(|task| (task.layout().clone(), device(task)));
        let (layout, device) =
            of_task.ok_or_else(|| anyhow!("a model without weights is made by one process"))?;
        let settings = subject.settings()?;
        Ok((subject, layout, settings, device))
    });
    let ready = opened.as_ref().map(|(_, layout, settings, device)| (layout, settings, device.as_str()));
    agree(others, ready.map_err(crate::answer::reasons))?;
    let Ok((subject, _, settings, _)) = &mut opened else {
        return Err(opened.err().unwrap_or_else(|| anyhow!("this rank cannot begin")));
    };
    let Some(task) = subject.task() else { bail!("nothing to train") };
    let mut trainer = Trainer::follow(task, settings.clone(), others)?;
    match trainer.run(stop.number(), &Progress::Quiet)? {
        Outcome::Interrupted(signal) => Ok(Ended::Interrupted { signal, step: trainer.state().step }),
        Outcome::Finished(_) => {
            Ok(Ended::Finished { updates: Some(trainer.state().step), evaluation: Value::Null })
        }
    }
}

/// What another rank said that it cannot do.
fn refuse(said: &[Vec<u8>]) -> Result<()> {
    match said.iter().position(|said| !said.is_empty()) {
        Some(rank) => {
            let fault = said.get(rank).map(|said| String::from_utf8_lossy(said).into_owned());
            bail!("rank {rank} cannot begin: {}", fault.unwrap_or_default())
        }
        None => Ok(()),
    }
}

/// What computes for a task: `cpu`, or the kind of its device, of which each rank may have another.
fn device(task: &mut impl Task) -> String {
    let name = task.resident().map_or("cpu", |there| there.name());
    name.split(':').next().unwrap_or(name).to_owned()
}

fn agree(others: &mut dyn Collective, ready: Result<(&Layout, &Settings, &str), String>) -> Result<()> {
    let build = format!("{} {}", env!("CARGO_PKG_VERSION"), run_folder::commit());
    let intent = ready.map(|(layout, settings, device)| Intent {
        configuration: &settings.config_digest,
        data_set: &settings.data_digest,
        layout,
        build: &build,
        device,
    });
    Ok(training::collective::agree(others, intent)?)
}

/// Trains in a folder, from the start or from its newest checkpoint, and judges the best model. Work runs on the
/// thread pool of the caller.
pub(crate) fn train_in<L: Learner>(config: &L, folder: &Path, quiet: bool, stop: &Stop) -> Result<Ended> {
    train_with(config, folder, quiet, stop, None)
}

fn train_with<L: Learner>(
    config: &L,
    folder: &Path,
    quiet: bool,
    stop: &Stop,
    mut others: Option<&mut dyn Collective>,
) -> Result<Ended> {
    let tell = |message: String| {
        if !quiet {
            say!("{message}");
        }
    };
    let threads = rayon::current_num_threads();
    tell(format!("{} on {}, {threads} threads: {}", folder.display(), config.device(), config.headline()?));
    let begun = folder.is_dir().then(|| run_folder::lock(folder)).transpose();
    let begun = begun.and_then(|before| Ok((before, config.open(folder, quiet, stop)?)));
    if let Some(others) = &mut others {
        let fault = begun.as_ref().err().map(crate::answer::reasons).unwrap_or_default();
        let said = others.gather(fault.as_bytes())?;
        if begun.is_ok() {
            refuse(&said)?;
        }
    }
    let (before, mut subject) = begun?;
    let Some((layout, device)) = subject.task().map(|task| (task.layout().clone(), device(task))) else {
        if let Some(others) = others {
            agree(others, Err("a model without weights is made by one process".to_owned()))?;
        }
        let _alone = alone(folder, before)?;
        run_folder::write_config(folder, config, &subject.made_from())?;
        let evaluation = subject.judge(folder, State::Done, quiet)?;
        return Ok(Ended::Finished { updates: None, evaluation });
    };
    let mut settings = subject.settings()?;
    let found = Trainer::<<L::Subject as Subject>::Task>::find(&layout, &settings, folder)?;
    if found.is_none() {
        let judged = folder.join("eval.json");
        if judged.is_file() {
            return Err(training::Refusal::bad_file(
                folder.join("last"),
                format!(
                    "{} judges what this run has learned, and there is no checkpoint to go on from: put one back, or train under another \
                     name",
                    judged.display()
                ),
            )
            .into());
        }
        settings.initial = subject.initial()?;
    }
    if let Some(others) = &mut others {
        let divided = training::collective::check_pieces(settings.pieces, others.world());
        agree(*others, divided.map(|()| (&layout, &settings, device.as_str())).map_err(|e| e.to_string()))?;
    }
    let _alone = alone(folder, before)?;
    let changed = run_folder::write_config(folder, config, &subject.made_from())?;
    subject.describe(folder, changed)?;
    let start = start_line(config, folder, layout.len(), &settings, subject.start())?;
    let (total, from) = (settings.schedule.total, found.as_ref().map_or(0, |f| f.state.step));
    let progress = Progress::new(total, quiet);
    if from > 0 && from < total {
        progress.say(&format!("going on from update {from}"));
    }
    progress.say(&format!("{total} updates"));
    let Some(task) = subject.task() else { return Err(anyhow::anyhow!("nothing to train")) };
    let mut trainer = Trainer::begin(task, settings, folder, found, start)?;
    if let Some(others) = others {
        progress.say(&format!("{} ranks", others.world()));
        trainer = trainer.lead(others)?;
    }
    let outcome = trainer.run(stop.number(), &progress);
    progress.finish();
    let step = trainer.state().step;
    let state = match outcome {
        Ok(Outcome::Interrupted(signal)) => return Ok(Ended::Interrupted { signal, step }),
        Ok(Outcome::Finished(reason)) => {
            tell(format!("trained for {step} updates (ended by {reason})"));
            State::Done
        }
        Err(error @ training::Refusal::Diverged { .. }) if L::JUDGES_DIVERGED => {
            say!("{error}");
            State::Diverged
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(signal) = stop.signal() {
        return Ok(Ended::Interrupted { signal, step });
    }
    let evaluation = match subject.judged_before(folder)?.filter(|_| step == from) {
        Some(evaluation) => {
            tell("the run was finished and judged before".to_owned());
            evaluation
        }
        None => {
            stop.nothing_to_lose();
            subject.judge(folder, state, quiet)?
        }
    };
    Ok(match state {
        State::Done => Ended::Finished { updates: Some(step), evaluation },
        State::Diverged => Ended::Diverged { step, evaluation },
    })
}

/// Makes the folder if it is not there, and has it alone.
fn alone(folder: &Path, before: Option<Lock>) -> Result<Lock> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    before.map_or_else(|| run_folder::lock(folder), Ok)
}

/// The first line of the metrics.
fn start_line<L: Learner>(
    config: &L,
    folder: &Path,
    parameters: usize,
    settings: &Settings,
    further: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let run = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let line = json!({
        "step": 0, "schema": 2, "run": run, "parameters": parameters, "config": config.digest()?,
    });
    let mut fields = match line {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.extend(further);
    fields.insert("device".to_owned(), json!(config.device()));
    if let Some(initial) = &settings.initial {
        let mut hasher = blake3::Hasher::new();
        for x in initial {
            hasher.update(&x.to_le_bytes());
        }
        fields.insert("init".to_owned(), json!(hasher.finalize().to_hex().to_string()));
    }
    Ok(fields)
}
