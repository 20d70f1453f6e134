//! The files beside the weights: `config.json` and `tokenizer.json`, and reading a run's model back.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use symbolic_transformer::network::Network;

use crate::config::{Config, Model};
use crate::data::Data;
use crate::{run_folder, train};

/// Writes `config.json` and `tokenizer.json`.
pub(crate) fn write_about(folder: &Path, config: &Config, parameters: usize, data: &Data) -> Result<()> {
    let mut about = json!({
        "architectures": ["SymbolicTransformer"],
        "model_type": "symbolic-transformer",
        "num_parameters": parameters,
        "pad_token_id": 655,
        "bos_token_id": 656,
        "eos_token_id": 657,
        "unk_token_id": 658,
        "law": data.law_name(),
        "data_digest": data.digest(),
        "commit": run_folder::commit(),
        "tokenization": config.tokenization,
        "notation": config.notation,
    });
    if let (Value::Object(about), Value::Object(shape)) = (&mut about, serde_json::to_value(config.shape()?)?)
    {
        about.extend(shape);
    }
    let text = serde_json::to_string_pretty(&about)? + "\n";
    training::files::write(&folder.join("config.json"), text.as_bytes())?;
    Ok(training::files::write(
        &folder.join("tokenizer.json"),
        symbolic_transformer::tokenizer::JSON.as_bytes(),
    )?)
}

/// The network and the best weights of a run.
pub(crate) fn load(folder: &Path, config: &Config) -> Result<(Box<dyn Network>, Vec<f32>)> {
    if config.model == Model::Ngram {
        bail!("{}: an n-gram run has no weights", folder.display());
    }
    let network = train::network(config)?;
    let path = train::weights_path(folder);
    let theta =
        training::checkpoint::load_weights(&path, network.layout()).context("the model of the run")?;
    Ok((network, theta))
}
