//! The suite `completion`: formulas of the test set are cut in half, and the model completes them, many side by side.

use anyhow::{Result, anyhow};
use fol::law::Law;
use fol::notation::{Code, Token};
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
    let code = corpus.code();
    let halves: Vec<Vec<Token>> = (0..corpus.len().min(FORMULAS)).map(|i| first_half(corpus, i)).collect();
    let share = |masked: bool, beam: Option<(usize, f64)>| -> Result<f64> {
        let requests: Vec<Request> =
            halves.iter().map(|half| request(code, law, half, masked)).collect::<Result<_>>()?;
        let samples = sampling::continuations(config, code, theta, &requests, beam)?;
        let whole = samples.iter().filter(|s| is_whole(code, s)).count();
        Ok(whole as f64 / halves.len().max(1) as f64)
    };
    let beam = Some((BEAM, 1.0));
    let mut answer = json!({
        "formulas": halves.len(),
        "greedy": {"free": share(false, None)?, "valid": null},
        "beam5": {"free": share(false, beam)?, "valid": null},
    });
    if sampling::has_mask(code, law) {
        answer["greedy"]["valid"] = json!(share(true, None)?);
        answer["beam5"]["valid"] = json!(share(true, beam)?);
    }
    Ok(answer)
}

/// The first half of the tokens between the boundaries.
fn first_half(corpus: &Corpus, i: usize) -> Vec<Token> {
    let sequence = corpus.tokens(i);
    let text = sequence.len().saturating_sub(2);
    sequence.into_iter().skip(1).take(text / 2).collect()
}

fn request(code: &Code, law: &Law, half: &[Token], masked: bool) -> Result<Request> {
    let mask = masked.then(|| {
        // What stands first is not limited: of some codes it is more symbols than tokens.
        let mut mask = sampling::valid_mask(code, law, usize::MAX)?;
        for &token in half {
            mask.push(token).map_err(|r| anyhow!("a formula of the test set is not of the law: {r}"))?;
        }
        mask.set_budget(Some(LONGEST as u32));
        anyhow::Ok(mask)
    });
    Ok(Request { prompt: half.to_vec(), mask: mask.transpose()?, ..Request::free(code, LONGEST) })
}

fn is_whole(code: &Code, sample: &Sample) -> bool {
    sample.finished && code.decode(&sample.tokens).is_ok()
}
