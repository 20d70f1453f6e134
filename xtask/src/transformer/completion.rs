//! The suite `completion`: formulas of the test set are cut in half, and the model completes them, many side by side.

use anyhow::{Result, anyhow};
use fol::law::Law;
use fol::symbol::SymbolId;
use serde_json::{Value, json};
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::sample::{Request, Sample};

use super::config::Config;
use super::sampling;

/// Formulas that are cut.
const FORMULAS: usize = 1000;
/// The largest number of tokens of a completion.
const LONGEST: usize = 256;
/// The width of the beam.
const BEAM: usize = 5;

/// The share that the model completes to a formula that the strict reader accepts, greedily and with a beam of 5, free
/// and with the mask.
pub(crate) fn completion(config: &Config, theta: &[f32], law: &Law, corpus: &Corpus) -> Result<Value> {
    let halves: Vec<Vec<SymbolId>> = corpus.iter().take(FORMULAS).map(first_half).collect();
    let share = |masked: bool, beam: Option<(usize, f64)>| -> Result<f64> {
        let requests: Vec<Request> =
            halves.iter().map(|half| request(law, half, masked)).collect::<Result<_>>()?;
        let samples = sampling::continuations(config, theta, &requests, beam)?;
        let whole = samples.iter().filter(|s| is_whole(s)).count();
        Ok(whole as f64 / halves.len().max(1) as f64)
    };
    let beam = Some((BEAM, 1.0));
    let mut answer = json!({
        "formulas": halves.len(),
        "greedy": {"free": share(false, None)?, "valid": null},
        "beam5": {"free": share(false, beam)?, "valid": null},
    });
    if !law.has_statements() {
        answer["greedy"]["valid"] = json!(share(true, None)?);
        answer["beam5"]["valid"] = json!(share(true, beam)?);
    }
    Ok(answer)
}

/// The first half of the tokens between the boundaries.
fn first_half(sequence: &[SymbolId]) -> Vec<SymbolId> {
    let text = Corpus::inner(sequence);
    text.iter().take(text.len() / 2).copied().collect()
}

fn request(law: &Law, half: &[SymbolId], masked: bool) -> Result<Request> {
    let mask = masked.then(|| {
        let mut mask = sampling::valid_mask(law, LONGEST + half.len());
        for &symbol in half {
            mask.push(symbol).map_err(|r| anyhow!("a formula of the test set is not of the law: {r}"))?;
        }
        mask.set_budget(Some(LONGEST as u32));
        anyhow::Ok(mask)
    });
    Ok(Request { prompt: half.to_vec(), max_tokens: LONGEST, mask: mask.transpose()? })
}

fn is_whole(sample: &Sample) -> bool {
    sample.finished && fol::decode(&sample.tokens).is_ok()
}
