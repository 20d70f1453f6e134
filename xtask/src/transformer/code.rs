//! The code of a run: how texts are given to its model.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use fol::law::Law;
use fol::notation::{Code, Entities, Notation, Tokenization};
use fol::symbol::SymbolId;
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::tokenizer;

use super::config::{Config, NamesOf};
use crate::data;

/// The code of a run that is there: its list of entities is that of its `tokenizer.json`, its arities are those of its
/// law.
pub(crate) fn of_run(folder: &Path, config: &Config) -> Result<Code> {
    if config.is_plain() {
        return Ok(Code::PLAIN);
    }
    let entities = match config.tokenization {
        Tokenization::Compositional => None,
        Tokenization::Atomic => Some(stored(folder)?),
    };
    new(config, &data::law_of_run(&config.data)?, entities)
}

/// The code that a run is trained with: that of its folder if it is there already, or else that of its law or data, which
/// is read for its names then, whole.
pub(crate) fn to_train(
    config: &Config,
    folder: Option<&Path>,
    law: &Law,
    train: impl FnOnce() -> Result<Corpus>,
) -> Result<Code> {
    if config.is_plain() {
        return Ok(Code::PLAIN);
    }
    let kept = folder.filter(|folder| folder.join("tokenizer.json").is_file());
    let entities = match (config.tokenization, kept, config.entities) {
        (Tokenization::Compositional, ..) | (_, None, None | Some(NamesOf::Law)) => None,
        (_, Some(folder), _) => Some(stored(folder)?),
        (_, None, Some(NamesOf::Data)) => {
            let train = train()?;
            let texts: Vec<&[SymbolId]> = train.iter().map(Corpus::inner).collect();
            Some(Entities::of_texts(texts).map_err(|r| anyhow!("entities = \"data\": {r}"))?)
        }
    };
    new(config, law, entities)
}

/// The code of a configuration whose list of entities is that of its law.
pub(crate) fn of_law(config: &Config, law: &Law) -> Result<Code> {
    if config.is_plain() { Ok(Code::PLAIN) } else { new(config, law, None) }
}

fn stored(folder: &Path) -> Result<Entities> {
    let path = folder.join("tokenizer.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    tokenizer::entities(&text).with_context(|| folder.display().to_string())
}

fn new(config: &Config, law: &Law, entities: Option<Entities>) -> Result<Code> {
    let Config { tokenization, notation, double_parentheses, .. } = *config;
    let refused = |r: fol::error::Refusal| {
        let key =
            if notation == Notation::Prefix { "notation = \"prefix\"" } else { "tokenization = \"atomic\"" };
        let help = r.help.as_ref().map_or_else(String::new, |help| format!("\n  {help}"));
        anyhow!("{key}: {r}{help}")
    };
    let code = Code::new(tokenization, notation, &law.signature(), entities).map_err(refused)?;
    let doubled = code.with_doubled(double_parentheses.unwrap_or(0));
    doubled.map_err(|r| anyhow!("double_parentheses: {r}"))
}

/// The optimum per token of a corpus in a code, from that per canonical symbol: a text costs the same in every code,
/// beside what the code leaves to draws, and has other numbers of tokens.
pub(crate) fn optimum(per_symbol: f64, corpus: &Corpus) -> f64 {
    let symbols: usize = corpus.iter().map(|s| s.len().saturating_sub(1)).sum();
    (per_symbol * symbols as f64 + corpus.draws()) / corpus.targets().max(1) as f64
}
