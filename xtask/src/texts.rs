//! A file of texts as the data of a run: `data = "formulas.txt"`, one formula or definition a line.
//!
//! Of no such text a law says anything. Of the formulas the ninth of every ten is for validation and the tenth for the test;
//! a formula that was there before goes where it went. Definitions are learned, all of them.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fol::read::{Mode, Together};
use fol::symbol::SymbolId;
use symbolic_transformer::learner::Corpus;

use crate::data::refused;
use crate::keys;

/// The texts of a file, in their order.
pub(crate) struct Texts {
    digest: String,
    train: Corpus,
    val: Corpus,
    test: Corpus,
}

impl Texts {
    /// Reads a file; what cannot be read is refused with its line.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let mut texts =
            Self { digest: String::new(), train: Corpus::new(), val: Corpus::new(), test: Corpus::new() };
        let mut places: HashMap<Vec<SymbolId>, usize> = HashMap::new();
        let mut hasher = blake3::Hasher::new();
        for (tokens, is_definition) in lines(name)? {
            tokens.iter().for_each(|symbol| _ = hasher.update(&symbol.get().to_le_bytes()));
            hasher.update(b"\n\n");
            let new = places.len();
            let place = if is_definition { 0 } else { *places.entry(tokens.clone()).or_insert(new) };
            let split = match place % 10 {
                8 => &mut texts.val,
                9 => &mut texts.test,
                _ => &mut texts.train,
            };
            split.push(tokens, f64::NAN);
        }
        if texts.test.is_empty() {
            bail!(
                "{name}: fewer than ten different formulas; of every ten eight are learned, one validates and one tests"
            );
        }
        texts.digest = hasher.finalize().to_hex().to_string();
        Ok(texts)
    }

    /// The digest of all texts.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// What is learned.
    pub(crate) fn train(&self) -> &Corpus {
        &self.train
    }

    /// What says which weights are the best.
    pub(crate) fn val(&self) -> &Corpus {
        &self.val
    }

    /// What judges them.
    pub(crate) fn test(&self) -> &Corpus {
        &self.test
    }
}

/// All texts of a file as one corpus.
pub(crate) fn whole(name: &str) -> Result<Corpus> {
    let mut corpus = Corpus::new();
    for (tokens, _) in lines(name)? {
        corpus.push(tokens, f64::NAN);
    }
    Ok(corpus)
}

/// The texts, and which of them are definitions; a name is the same in every line. Empty lines are left out.
fn lines(name: &str) -> Result<Vec<(Vec<SymbolId>, bool)>> {
    let (name, text) = keys::read(Path::new(name))?;
    let mut found = Vec::new();
    let mut together = Together::of(text.lines());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{name}:{}", number + 1);
        let tokens = together.parse(line, Mode::Strict).map_err(refused).with_context(place)?.tokens;
        let is_formula = fol::decode(&tokens).is_ok_and(|text| text.as_formula().is_some());
        found.push((tokens, !is_formula));
    }
    if found.is_empty() {
        bail!("{name}: no text");
    }
    Ok(found)
}
