//! The suite `texts`: what a model of a file of texts says of those that it was not shown. Of no text a law is known, so there
//! is no optimum; what stands beside it is an n-gram model of the same texts.

use std::path::Path;

use anyhow::{Result, bail};
use fol::notation::Code;
use serde_json::{Value, json};
use symbolic_transformer::learner::{Corpus, validate};
use symbolic_transformer::ngram::Ngram;
use symbolic_transformer::predictor::{Predictor, Uniform};

use super::config::{Config, Model};
use super::eval::{self, ORDER};
use super::network;
use crate::answer::say;
use crate::texts::{self, Texts};

/// The suite.
pub(super) const SUITE: &str = "texts";

/// Judges a run on the test of its texts, or on all texts of another file, and writes the evaluation.
pub(super) fn evaluate(
    folder: &Path,
    config: &Config,
    data: &Texts,
    other: Option<&str>,
    suites: &[String],
    quiet: bool,
    file: &str,
) -> Result<Value> {
    if let Some(wrong) = suites.iter().find(|suite| *suite != SUITE) {
        bail!("suite {wrong}: data = \"{}\" is a file of texts, which the suite {SUITE} judges", config.data);
    }
    eval::write_with(folder, config, file, &eval::About::best("texts", data.digest()), |found| {
        if suites.is_empty() {
            return Ok(());
        }
        if !quiet {
            say!("suite {SUITE}");
        }
        let whole = other.map(texts::whole).transpose()?;
        let judged = suite(folder, config, data, whole.as_ref().unwrap_or_else(|| data.test()))?;
        found.insert(SUITE.to_owned(), judged);
        Ok(())
    })
}

fn suite(folder: &Path, config: &Config, data: &Texts, corpus: &Corpus) -> Result<Value> {
    let train = || data.train().clone().first(config.train_limit);
    let own = match config.model {
        Model::Transformer | Model::Lstm => {
            let (mut network, theta) = network::load(folder, config, &Code::PLAIN)?;
            let scores = validate(network.as_mut(), &theta, corpus)?;
            let n = scores.targets.max(1) as f64;
            let mut row = row(config.model.name(), scores.nll, corpus);
            row["top1"] = json!(scores.top[0] as f64 / n);
            row
        }
        Model::Ngram => {
            let order = config.order.unwrap_or(ORDER);
            row("n-gram", nats(&mut Ngram::train(&train(), order), corpus)?, corpus)
        }
        Model::Uniform => row("uniform", nats(&mut Uniform { size: Code::PLAIN.size() }, corpus)?, corpus),
        Model::GrammarUniform => {
            bail!("model = \"grammar-uniform\": a file of texts has no law and no masks")
        }
    };
    let ngram = row("n-gram", nats(&mut Ngram::train(&train(), ORDER), corpus)?, corpus);
    let mut answer = own;
    answer["texts"] = json!(corpus.len());
    answer["targets"] = json!(corpus.targets());
    answer["beside"] = json!([ngram]);
    Ok(answer)
}

fn row(name: &str, nats: f64, corpus: &Corpus) -> Value {
    json!({
        "name": name, "nats_per_token": nats / corpus.targets().max(1) as f64,
        "bits_per_text": nats / (corpus.len().max(1) as f64 * std::f64::consts::LN_2),
    })
}

/// Of all texts together.
fn nats(model: &mut dyn Predictor, corpus: &Corpus) -> Result<f64> {
    let mut nats = 0.0;
    for i in 0..corpus.len() {
        let batch = corpus.batch([i]);
        let q = model.distributions(&batch)?;
        let size = corpus.code().size();
        let of = |(r, &t): (usize, &u32)| -q.get(r * size + t as usize).copied().unwrap_or(0.0).ln();
        nats += batch.targets.iter().enumerate().map(of).sum::<f64>();
    }
    Ok(nats)
}

/// A line a model.
pub(super) fn in_short(evaluation: &Value) -> String {
    let Some(found) = evaluation.get(SUITE).filter(|found| found.is_object()) else { return String::new() };
    let beside = found.get("beside").and_then(Value::as_array);
    let line = |row: &Value| {
        let number = |key: &str| row.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        format!(
            "texts, {}: {:.4} nats/token, {:.3} bits/text\n",
            row.get("name").and_then(Value::as_str).unwrap_or_default(),
            number("nats_per_token"),
            number("bits_per_text"),
        )
    };
    std::iter::once(found).chain(beside.into_iter().flatten()).map(line).collect()
}
