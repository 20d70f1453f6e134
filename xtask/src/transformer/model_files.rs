//! The files beside the weights: `config.json` and `tokenizer.json`.

use std::path::Path;

use anyhow::Result;
use fol::notation::{Code, Token};
use fol::symbol::SymbolId;
use serde_json::{Value, json};

use super::config::{Config, Model};
use crate::record::write_document;
use crate::run_folder;

/// The keys of a model's shape that an LSTM has.
const LSTM_KEYS: [&str; 5] = ["vocab_size", "d_model", "scale_embedding", "init", "dropout"];

/// Writes `config.json` and `tokenizer.json`.
pub(crate) fn write_about(
    folder: &Path,
    config: &Config,
    code: &Code,
    parameters: usize,
    (law, digest): (&str, &str),
) -> Result<()> {
    let (class, kind) = match config.model {
        Model::Lstm => ("SymbolicLstm", "symbolic-lstm"),
        _ => ("SymbolicTransformer", "symbolic-transformer"),
    };
    let id = |symbol: SymbolId| code.token(symbol).map(Token::get);
    let mut about = json!({
        "architectures": [class],
        "model_type": kind,
        "num_parameters": parameters,
        "pad_token_id": id(SymbolId::PAD),
        "bos_token_id": id(SymbolId::BOS),
        "eos_token_id": id(SymbolId::EOS),
        "unk_token_id": id(SymbolId::UNK),
        "law": law,
        "data_digest": digest,
        "commit": run_folder::commit(),
        "tokenization": config.tokenization,
        "notation": config.notation,
        "double_parentheses": config.double_parentheses.unwrap_or(0),
    });
    if let (Value::Object(about), Value::Object(mut shape)) =
        (&mut about, serde_json::to_value(config.shape(code.size())?)?)
    {
        if config.model == Model::Lstm {
            // Heads, norms and positions are not parts of it.
            shape.retain(|key, _| LSTM_KEYS.contains(&key.as_str()));
            shape.insert("n_layers".to_owned(), json!(symbolic_transformer::lstm::LAYERS));
        }
        about.extend(shape);
    }
    write_document(&folder.join("config.json"), &about)?;
    let tokenizer = symbolic_transformer::tokenizer::json(code);
    Ok(training::files::write(&folder.join("tokenizer.json"), tokenizer.as_bytes())?)
}
