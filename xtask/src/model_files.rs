//! The files beside the weights: `config.json` and `tokenizer.json`, and reading a run's model back.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use symbolic_transformer::network::Network;

use crate::config::{Config, Model};
use crate::data::Data;
use crate::{run_folder, train};

/// The keys of a model's shape that an LSTM has.
const LSTM_KEYS: [&str; 5] = ["vocab_size", "d_model", "scale_embedding", "init", "dropout"];

/// Writes `config.json` and `tokenizer.json`.
pub(crate) fn write_about(folder: &Path, config: &Config, parameters: usize, data: &Data) -> Result<()> {
    let (class, kind) = match config.model {
        Model::Lstm => ("SymbolicLstm", "symbolic-lstm"),
        Model::Transformer | Model::Ngram => ("SymbolicTransformer", "symbolic-transformer"),
    };
    let mut about = json!({
        "architectures": [class],
        "model_type": kind,
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
    if let (Value::Object(about), Value::Object(mut shape)) =
        (&mut about, serde_json::to_value(config.shape()?)?)
    {
        if config.model == Model::Lstm {
            // Heads, norms and positions are not parts of it.
            shape.retain(|key, _| LSTM_KEYS.contains(&key.as_str()));
            shape.insert("n_layers".to_owned(), json!(symbolic_transformer::lstm::LAYERS));
        }
        about.extend(shape);
    }
    let text = serde_json::to_string_pretty(&about)? + "\n";
    training::files::write(&folder.join("config.json"), text.as_bytes())?;
    Ok(training::files::write(
        &folder.join("tokenizer.json"),
        symbolic_transformer::tokenizer::JSON.as_bytes(),
    )?)
}

/// The network and the weights of a checkpoint that is still there: their average where there is one.
pub(crate) fn load_checkpoint(
    folder: &Path,
    config: &Config,
    step: u64,
) -> Result<(Box<dyn Network>, Vec<f32>)> {
    let network = train::network(config)?;
    let last = folder.join("last");
    let there = training::checkpoint::list(&last)?;
    let Some((_, path)) = there.iter().find(|(s, _)| *s == step) else {
        let steps: Vec<String> = there.iter().map(|(s, _)| s.to_string()).collect();
        bail!("{}: no checkpoint of update {step}; there are: {}", last.display(), steps.join(", "));
    };
    let found = training::checkpoint::Checkpoint::load(path, network.layout())?;
    Ok((network, found.moments.ema.unwrap_or(found.theta)))
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
