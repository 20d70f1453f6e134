//! A model as a folder that `transformers` loads without any code of ours.
//!
//! Enter at [`hf`]. Two classes of that library can be exact, and the norm decides which: OPT for post-norm
//! (`opt`), GPT-2 for pre-norm with a final norm (`gpt2`). Neither has our output bias, and OPT has no final
//! norm; `fold.rs` writes both into weights that the classes do have, in f64. A model that no class computes
//! exactly is refused with the reason.
//!
//! `probe.safetensors` holds eight token sequences and our logits for them, so that whoever loads the folder can
//! check it: `tests/hf_parity.py FOLDER` does.

mod card;
mod fold;
mod gpt2;
mod opt;
mod probe;

use std::path::Path;

use fol::notation::{Code, Notation, Tokenization};
use fol::symbol::SymbolId;
use serde_json::{Value, json};
use training::{Decay, Initial, Layout, checkpoint, files};

use crate::config::{Activation, AttentionMask, ModelConfig, NormPlace, Position, Structured};
use crate::tokenizer;

pub use card::About;
use fold::Source;

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No class of `transformers` computes this model.
    #[error("NotRepresentable: {reason}")]
    NotRepresentable {
        /// What stands in the way, and what does not.
        reason: String,
    },
    /// A shape, weights or a file that is refused.
    #[error(transparent)]
    Training(#[from] training::Refusal),
}

impl Refusal {
    /// The name of the kind, for a program.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotRepresentable { .. } => "NotRepresentable",
            Self::Training(_) => "Failed",
        }
    }
}

/// A result of an export.
pub type Result<T> = std::result::Result<T, Refusal>;

/// A folder's `config.json` and its tensors.
struct Exported {
    config: Value,
    tensors: Tensors,
}

/// Named tensors laid out behind each other.
#[derive(Default)]
struct Tensors {
    layout: Layout,
    flat: Vec<f32>,
}

impl Tensors {
    /// Adds a tensor, rounding to f32.
    fn add(&mut self, name: impl Into<String>, shape: &[usize], entries: &[f64]) {
        self.layout.add(name, shape, Decay::No, Initial::Constant(0.0));
        self.flat.extend(entries.iter().map(|&x| x as f32));
        self.flat.resize(self.layout.len(), 0.0);
    }
}

/// Writes the folder: configuration, weights, tokenizer, model card and probe, each file whole or not at all.
///
/// # Errors
/// `NotRepresentable` for rotary, ALiBi or tree positions, for pre-norm without a final norm, and for any code but that of
/// canonical text; parameters of another model; whatever the operating system refuses.
pub fn hf(config: &ModelConfig, code: &Code, theta: &[f32], about: &About, folder: &Path) -> Result<()> {
    config.check()?;
    representable(config, code)?;
    let source = Source::new(config, theta)?;
    let exported = match config.norm {
        NormPlace::Post => opt::export(&source),
        NormPlace::Pre => gpt2::export(&source)?,
    };
    std::fs::create_dir_all(folder).map_err(training::Refusal::io(folder))?;
    let Exported { config: class, tensors } = exported;
    checkpoint::save_weights(&folder.join("model.safetensors"), &tensors.layout, &tensors.flat)?;
    let text = |name: &str, content: &str| files::write(&folder.join(name), content.as_bytes());
    text("config.json", &pretty(&class))?;
    text("generation_config.json", &pretty(&generation_config()))?;
    text("tokenizer.json", tokenizer::JSON)?;
    text("tokenizer_config.json", &pretty(&tokenizer_config(config)))?;
    text("special_tokens_map.json", &pretty(&special_tokens()))?;
    text("README.md", &card::card(config, about))?;
    probe::write(config, theta, &folder.join("probe.safetensors"))?;
    Ok(())
}

/// Refuses what neither class computes.
fn representable(config: &ModelConfig, code: &Code) -> Result<()> {
    let reason = match (config.position, config.norm) {
        (Position::Rotary | Position::Alibi | Position::Tree, _) => {
            format!(
                "position = \"{}\": OPT and GPT-2 add a table of positions to the embedding, and nothing else; \
                 \"sinusoidal\", \"learned\" and \"none\" are possible",
                config.position
            )
        }
        _ if config.structure != Structured::None => {
            format!("structure = \"{}\": attention of OPT and GPT-2 knows no relations", config.structure)
        }
        _ if config.attention_mask != AttentionMask::Causal => {
            "attention_mask = \"prefix\": OPT and GPT-2 read every token by the ones before it alone".to_owned()
        }
        (_, NormPlace::Pre) if !config.final_norm => {
            "norm = \"pre\" without final_norm: GPT-2 always has a final \
             norm, and no weights make a norm the identity"
                .to_owned()
        }
        _ if code.tokenization() == Tokenization::Atomic => format!(
            "tokenization = \"atomic\": the tokenizer of the folder reads the 663 symbols of canonical text, and the model has \
             {} tokens of its law alone",
            code.size()
        ),
        _ if code.doubled() > 0 => "redundant parentheses: the tokenizer and the card of the folder speak of canonical text".to_owned(),
        _ if code.notation() == Notation::Prefix => "notation = \"prefix\": the tokenizer and the card of the folder speak of canonical text, and no file there \
             would say where arguments end"
            .to_owned(),
        _ if config.vocab_size != fol::symbol::VOCABULARY => format!(
            "a vocabulary of {}: the tokenizer of the folder has the 663 symbols of compositional tokenization",
            config.vocab_size
        ),
        _ => return Ok(()),
    };
    Err(Refusal::NotRepresentable { reason })
}

/// The keys that both classes share.
fn shared_config(config: &ModelConfig) -> Value {
    let ids = generation_config();
    let own = json!({
        "vocab_size": config.vocab_size, "dtype": "float32", "use_cache": true,
        // The head carries the folded norm and bias: it is never the embedding table.
        "tie_word_embeddings": false,
    });
    with(ids, own)
}

/// The name of an activation in `transformers`.
fn class_activation(activation: Activation) -> &'static str {
    match activation {
        Activation::Gelu => "gelu", // the erf form
        Activation::GeluTanh => "gelu_new",
        Activation::Relu => "relu",
    }
}

/// The fields of both objects.
fn with(mut value: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), more) {
        fields.extend(more);
    }
    value
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn generation_config() -> Value {
    json!({
        "bos_token_id": SymbolId::BOS.get(), "eos_token_id": SymbolId::EOS.get(), "pad_token_id": SymbolId::PAD.get(),
    })
}

fn special_tokens() -> Value {
    let label = SymbolId::label;
    let more = [SymbolId::QUERY, SymbolId::ANSWER, SymbolId::UNKNOWN].map(label);
    json!({
        "bos_token": label(SymbolId::BOS), "eos_token": label(SymbolId::EOS), "pad_token": label(SymbolId::PAD),
        "unk_token": label(SymbolId::UNK), "sep_token": label(SymbolId::SEP),
        "additional_special_tokens": more,
    })
}

fn tokenizer_config(config: &ModelConfig) -> Value {
    let own = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_len,
        "clean_up_tokenization_spaces": false,
        // GPT-2 would embed token types with the symbols' own vectors.
        "model_input_names": ["input_ids", "attention_mask"],
    });
    with(special_tokens(), own)
}
