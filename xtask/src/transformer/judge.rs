//! `cargo xtask eval` of a run of the transformer: its own suites or others, its own data or others, its best weights or
//! those of a checkpoint.

use std::borrow::Cow;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::config::Config;
use super::eval::{FILE, What, evaluate_as, in_short};
use super::{plain_texts, tasks};
use crate::answer::{give, say, usage};
use crate::signals::Stop;
use crate::texts::Texts;
use crate::{data, elsewhere, inference, run_folder};

/// What is asked.
pub(crate) struct Ask<'a> {
    /// The suites; without any those of the configuration.
    pub(crate) suites: &'a [String],
    /// A data set, or a file of texts.
    pub(crate) data: Option<&'a str>,
    /// The update of a checkpoint.
    pub(crate) checkpoint: Option<u64>,
    /// Another device than the run's.
    pub(crate) device: Option<&'a str>,
}

/// Judges; returns the exit status.
pub(crate) fn run(folder: &Path, ask: &Ask<'_>, json: bool, quiet: bool) -> Result<u8> {
    let mut config: Config = run_folder::config(folder)?;
    if let Some(device) = ask.device {
        if let Some(status) = elsewhere::with_device(device)? {
            return Ok(status);
        }
        config.device = device.to_owned();
    }
    if ask.suites.iter().any(|suite| suite == "h3") {
        config.check_h3().map_err(|e| usage(format!("--suite h3: {e}")))?;
    }
    if ask.suites.iter().any(|suite| suite == "criticality") {
        config.check_criticality().map_err(|e| usage(format!("--suite criticality: {e}")))?;
    }
    training::threads::set(config.threads)?;
    let file = ask.data.map(Path::new).filter(|path| path.is_file());
    let other = ask.data.filter(|_| file.is_none());
    let name = other.unwrap_or(&config.data);
    if data::is_texts(&config.data) && other.is_none() {
        return of_texts(folder, &config, ask, json, quiet);
    }
    if file.is_none() {
        tasks::check_suites(name, ask.suites)?;
    }
    if file.is_none() && data::is_inference(name) {
        return of_tasks(folder, &config, ask, name, json, quiet);
    }
    let data = data::load_to_judge(name, quiet)?;
    if other.is_none() {
        run_folder::check_data(folder, &config.data, data.digest())?;
    }
    let _alone = run_folder::lock(folder)?;
    let mut suites = if ask.suites.is_empty() { config.suites.clone() } else { ask.suites.to_vec() };
    let texts = file.map(|path| data::texts(path, &data.law)).transpose()?;
    if texts.is_some() {
        if let Some(suite) = ask.suites.first() {
            return Err(usage(format!("--suite {suite}: a file of texts is judged as it is")));
        }
        suites = vec![FILE.to_owned()];
    }
    let stem = ask.data.and_then(stem);
    let step = ask.checkpoint.map(|step| format!("step-{step}"));
    let parts: Vec<String> =
        ["eval".to_owned()].into_iter().chain(stem.map(Into::into)).chain(step).collect();
    let what = What { texts, checkpoint: ask.checkpoint, file: format!("{}.json", parts.join("-")) };
    let evaluation = evaluate_as(folder, &config, &data, &suites, quiet, &what)?;
    answer(json, &evaluation, || in_short(&evaluation))?;
    match evaluation.get("failed").and_then(Value::as_str) {
        Some(reason) => {
            say!("error: {reason}");
            Ok(1)
        }
        None => Ok(0),
    }
}

/// Judges a run of a file of texts on those, or on all of another file.
fn of_texts(folder: &Path, config: &Config, ask: &Ask<'_>, json: bool, quiet: bool) -> Result<u8> {
    if ask.checkpoint.is_some() {
        return Err(usage("--checkpoint: texts of a file are judged by the best weights"));
    }
    let data = Texts::open(&config.data)?;
    run_folder::check_data(folder, &config.data, data.digest())?;
    let _alone = run_folder::lock(folder)?;
    let suites =
        if ask.suites.is_empty() { vec![plain_texts::SUITE.to_owned()] } else { ask.suites.to_vec() };
    let stem = ask.data.and_then(stem);
    let file = stem.map_or_else(|| "eval.json".to_owned(), |stem| format!("eval-{stem}.json"));
    let found = plain_texts::evaluate(folder, config, &data, ask.data, &suites, quiet, &file)?;
    answer(json, &found, || plain_texts::in_short(&found))
}

/// What the evaluation on other data is named after: a file without its ending, a data set.
fn stem(data: &str) -> Option<Cow<'_, str>> {
    let path = Path::new(data);
    let name = if path.is_file() { path.file_stem() } else { path.file_name() };
    name.map(|name| name.to_string_lossy())
}

fn answer(json: bool, evaluation: &Value, in_words: impl FnOnce() -> String) -> Result<u8> {
    let mut document = serde_json::json!({"schema": "xtask/1", "command": "eval"});
    if let (Value::Object(document), Value::Object(found)) = (&mut document, evaluation) {
        document.extend(found.clone());
    }
    give(json, &document, in_words)?;
    Ok(0)
}

/// Judges on inference tasks: those of the run, or others.
fn of_tasks(
    folder: &Path,
    config: &Config,
    ask: &Ask<'_>,
    name: &str,
    json: bool,
    quiet: bool,
) -> Result<u8> {
    if ask.checkpoint.is_some() {
        return Err(usage("--checkpoint: inference tasks are answered by the best weights"));
    }
    let tasks = match inference::open_if_present(name)? {
        Some(tasks) => tasks,
        None => inference::load(name, quiet, &Stop::watch()?)?,
    };
    if ask.data.is_none() {
        run_folder::check_data(folder, &config.data, tasks.digest())?;
    }
    let _alone = run_folder::lock(folder)?;
    let suites = if ask.suites.is_empty() { vec!["inference".to_owned()] } else { ask.suites.to_vec() };
    let stem = ask.data.and_then(stem);
    let file = stem.map_or_else(|| "eval.json".to_owned(), |stem| format!("eval-{stem}.json"));
    let evaluation = tasks::evaluate(folder, config, &tasks, &suites, quiet, &file)?;
    answer(json, &evaluation, || tasks::in_short(&evaluation))
}
