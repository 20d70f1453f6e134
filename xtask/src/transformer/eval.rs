//! Judging a run's model beside the exact optimum and the baselines: `eval.json`.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use fol::law::Law;
use fol::notation::Code;
use fol::score::CodeScorer;
use serde_json::{Map, Value, json};
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::evaluate::Known;
use symbolic_transformer::evaluate::criticality::criticality;
use symbolic_transformer::evaluate::generation::{Reference, judge};
use symbolic_transformer::evaluate::h3::h3;
use symbolic_transformer::evaluate::iid::{FormulaScore, Iid, iid};
use symbolic_transformer::evaluate::structure::structure;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, validate};
use symbolic_transformer::ngram::Ngram;
use symbolic_transformer::predictor::{ExactLaw, GrammarUniform, Predictor, Uniform, Weighted};
use symbolic_transformer::sample::{Choice, Request};

use super::config::{Config, Model, SUITES};
use super::sampling::{self, Ask};
use super::{code, completion, network, scores, semantics};
use crate::answer::say;
use crate::data::Data;
use crate::expect::Row;
use crate::record::{document, write_document};
use crate::run_folder;

/// The suite of a file of texts.
pub(super) const FILE: &str = "file";

/// Samples of the suite `generation`.
const SAMPLES: usize = 10_000;
/// The largest number of tokens of such a sample.
const LONGEST: usize = 256;
/// Exact samples for the law's shares.
const REFERENCE: u64 = 100_000;
/// Texts that the suite `criticality` looks at.
const LOOKED_AT: usize = 500;
/// The order of the n-gram baseline.
pub(super) const ORDER: usize = 7;

/// The digest of the weights that a run is judged by; none for a run that has no weights.
pub(super) fn model_digest(folder: &Path) -> Result<Option<String>> {
    let path = run_folder::weights(folder);
    if path.exists() { digest(&path).map(Some) } else { Ok(None) }
}

fn digest(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// Whether an evaluation has every suite of a configuration, and is about the weights that the run has now.
pub(crate) fn is_whole(evaluation: &Value, folder: &Path, config: &Config) -> Result<bool> {
    let trained = config.model.has_weights();
    let whole = config.suites.iter().all(|s| evaluation.get(s).is_some_and(|v| !v.is_null() || !trained));
    let judged = evaluation.get("model_digest").and_then(Value::as_str);
    Ok(evaluation.is_object() && whole && judged == model_digest(folder)?.as_deref())
}

/// The evaluation of a run, if it was judged as its configuration asks.
pub(crate) fn judged_before(folder: &Path, config: &Config) -> Result<Option<Value>> {
    // A damaged one is made again.
    let evaluation = document(&folder.join("eval.json")).unwrap_or_default();
    Ok(is_whole(&evaluation, folder, config)?.then_some(evaluation))
}

/// Judges a run on the suites and writes `eval.json`, where suites judged earlier stay if they are about the same
/// weights.
pub(crate) fn evaluate(
    folder: &Path,
    config: &Config,
    data: &Data,
    suites: &[String],
    quiet: bool,
) -> Result<Value> {
    let what = What { texts: None, checkpoint: None, file: "eval.json".to_owned() };
    evaluate_as(folder, config, data, suites, quiet, &what)
}

/// What is judged beside a run's best weights on its own data, and the file of the answer.
pub(super) struct What {
    pub(super) texts: Option<Corpus>,
    pub(super) checkpoint: Option<u64>,
    pub(super) file: String,
}

pub(super) fn evaluate_as(
    folder: &Path,
    config: &Config,
    data: &Data,
    suites: &[String],
    quiet: bool,
    what: &What,
) -> Result<Value> {
    let about = About { law: &data.law_name(), digest: data.digest(), checkpoint: what.checkpoint };
    write_with(folder, config, &what.file, &about, |found| {
        judge_suites(folder, config, data, suites, quiet, what, found)
    })
}

/// What an evaluation is about.
pub(super) struct About<'a> {
    pub(super) law: &'a str,
    /// Of the data.
    pub(super) digest: &'a str,
    /// Not the best weights, but those of this checkpoint.
    pub(super) checkpoint: Option<u64>,
}

impl<'a> About<'a> {
    /// The best weights.
    pub(super) fn best(law: &'a str, digest: &'a str) -> Self {
        Self { law, digest, checkpoint: None }
    }
}

/// Writes an evaluation, in which suites judged earlier stay if they are about the same weights and the same data.
pub(super) fn write_with(
    folder: &Path,
    config: &Config,
    file: &str,
    about: &About<'_>,
    judge: impl FnOnce(&mut Map<String, Value>) -> Result<()>,
) -> Result<Value> {
    let path = folder.join(file);
    let mut found: Map<String, Value> = match document(&path) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let model = match about.checkpoint {
        None => model_digest(folder)?,
        Some(step) => Some(digest(&network::checkpoint(folder, step)?)?),
    };
    let was = |key: &str| found.get(key).and_then(Value::as_str);
    if was("model_digest") != model.as_deref() || was("data_digest") != Some(about.digest) {
        found.clear();
    }
    found.remove("failed");
    for (key, value) in [
        ("run", json!(folder.file_name().map(|n| n.to_string_lossy().into_owned()))),
        ("model", json!(config.model)),
        ("law", json!(about.law)),
        ("data_digest", json!(about.digest)),
        ("model_digest", json!(model)),
        ("commit", json!(run_folder::commit())),
        ("expect", json!([])),
    ] {
        found.insert(key.to_owned(), value);
    }
    judge(&mut found)?;
    let evaluation = Value::Object(found);
    write_document(&path, &evaluation)?;
    Ok(evaluation)
}

fn judge_suites(
    folder: &Path,
    config: &Config,
    data: &Data,
    suites: &[String],
    quiet: bool,
    what: &What,
    found: &mut Map<String, Value>,
) -> Result<()> {
    if let Some(step) = what.checkpoint {
        found.insert("checkpoint".to_owned(), json!(step));
    }
    let mut judge = Judge::new(folder, config, data, what)?;
    for suite in suites {
        if !quiet {
            say!("suite {suite}");
        }
        let answer = match suite.as_str() {
            "iid" => {
                found.insert("baselines".to_owned(), json!(judge.baselines()?));
                judge.full(&data.iid()?, &data.law, ["iid"; 2], found)?
            }
            FILE => match &what.texts {
                Some(texts) => judge.full(texts, &data.law, [FILE; 2], found)?,
                None => Value::Null,
            },
            "test" if data.is_filtered() => judge.whole_formulas(&data.test()?, "test", "test")?,
            "test" => judge.full(&data.test()?, &data.law, ["test"; 2], found)?,
            "generation" | "semantics" | "completion" if !config.model.has_weights() => Value::Null,
            "generation" => judge.generation()?,
            "semantics" => judge.semantics()?,
            "completion" => judge.completion(&data.test()?)?,
            "transfer" => judge.transfer(found)?,
            "structure" => judge.structure()?,
            "h3" => judge.h3()?,
            "criticality" => judge.criticality()?,
            other => bail!("suite {other} is none of {}", SUITES.join(", ")),
        };
        found.insert(suite.clone(), answer);
    }
    if let Some(limit) = config.expect.as_ref().and_then(|e| e.train_nats_max) {
        let train = data.train()?.first(config.train_limit);
        found.insert("train".to_owned(), json!({"nats_per_token": judge.nats(&train)?, "limit": limit}));
    }
    let expected = expectations(config, found);
    found.insert("expect".to_owned(), json!(expected));
    Ok(())
}

/// A model ready to be judged.
struct Judge<'a> {
    /// Where what each formula cost is written.
    folder: &'a Path,
    what: &'a What,
    config: &'a Config,
    data: &'a Data,
    /// How texts are given to the model.
    code: Code,
    network: Option<(Box<dyn symbolic_transformer::network::Network>, Vec<f32>)>,
    /// A model without weights.
    counted: Option<Box<dyn Predictor>>,
    /// What the model was trained on; made when it is first asked for.
    known: Option<Known>,
}

impl<'a> Judge<'a> {
    fn new(folder: &'a Path, config: &'a Config, data: &'a Data, what: &'a What) -> Result<Self> {
        let train = || Ok::<Corpus, anyhow::Error>(data.train()?.first(config.train_limit));
        let code = if config.model.has_weights() {
            code::of_run(folder, config)?
        } else {
            code::to_train(config, None, &data.law, train)?
        };
        let counted: Option<Box<dyn Predictor>> = match config.model {
            Model::Transformer | Model::Lstm => None,
            Model::Ngram => {
                let train = train()?.in_code(&code, "train")?;
                Some(Box::new(Ngram::train(&train, config.order.unwrap_or(ORDER))))
            }
            Model::Uniform => Some(Box::new(Uniform { size: code.size() })),
            Model::GrammarUniform if !sampling::has_mask(&code, &data.law) => {
                bail!("model = \"grammar-uniform\": there are no masks of this law in this code")
            }
            Model::GrammarUniform => {
                Some(Box::new(GrammarUniform { mask: sampling::valid_mask(&code, &data.law, usize::MAX)? }))
            }
        };
        let network = match (&counted, what.checkpoint) {
            (Some(_), _) => None,
            (None, Some(step)) => Some(network::load_checkpoint(folder, config, &code, step)?),
            (None, None) => Some(network::load(folder, config, &code)?),
        };
        Ok(Self { folder, what, config, data, code, network, counted, known: None })
    }

    /// Takes the keys of the training set; whoever takes them puts them back.
    fn known(&mut self) -> Result<Known> {
        match self.known.take() {
            Some(known) => Ok(known),
            None => Ok(Known::of(&self.data.train()?.first(self.config.train_limit))),
        }
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut dyn Predictor) -> Result<T>) -> Result<T> {
        match (&mut self.network, &mut self.counted) {
            (Some((network, theta)), _) => f(&mut Weighted { network: network.as_mut(), theta }),
            (None, Some(counted)) => f(counted.as_mut()),
            (None, None) => bail!("no model"),
        }
    }

    /// Every number, target by target. An excess below −3 standard errors is a bug, and is said. The split names what a
    /// code leaves to draws, the suite the file of scores.
    fn full(
        &mut self,
        corpus: &Corpus,
        law: &Law,
        [split, suite]: [&str; 2],
        found: &mut Map<String, Value>,
    ) -> Result<Value> {
        let known = self.known()?;
        let corpus = corpus.clone().in_code(&self.code, split)?;
        let judged = self.with(|model| Ok(iid(model, &corpus, law, Some(&known))?));
        self.known = Some(known);
        let judged = judged?;
        if judged.excess.value < -3.0 * judged.excess.se {
            let excess = judged.excess;
            let text = format!(
                "the model beats the optimum by {:.5} ± {:.5}: the law or the data is wrong",
                -excess.value, excess.se
            );
            found.insert("failed".to_owned(), json!(text));
        }
        let mut answer = serde_json::to_value(&judged)?;
        answer["scores"] = json!(self.write_scores(suite, &judged.scores)?);
        Ok(answer)
    }

    /// Writes what each formula cost, beside the evaluation, and returns the digest of the file.
    fn write_scores(&self, suite: &str, scores: &[FormulaScore]) -> Result<String> {
        let text = scores::text(scores);
        training::files::write(&self.folder.join(scores::file(&self.what.file, suite)), text.as_bytes())?;
        Ok(blake3::hash(text.as_bytes()).to_hex().to_string())
    }

    /// What the model loses on other data: target by target against the law of those data, or, where they are filtered,
    /// on their test set by whole formulas. What has no code in the run's vocabulary is said, and is no number.
    fn transfer(&mut self, found: &mut Map<String, Value>) -> Result<Value> {
        if self.config.transfer.is_empty() {
            bail!(
                "suite transfer: the configuration of the run names no data sets in transfer; --data judges on one"
            );
        }
        let mut answers = Map::new();
        for name in &self.config.transfer {
            let data = crate::data::load_to_judge(name, true)?;
            let suite = scores::transfer(name);
            let corpus = if data.is_filtered() { data.test()? } else { data.iid()? };
            let answer = match corpus.clone().in_code(&self.code, "iid") {
                Err(reason) => json!({"refused": reason.to_string()}),
                Ok(_) if data.is_filtered() => self.whole_formulas(&corpus, "test", &suite)?,
                Ok(_) => self.full(&corpus, &data.law, ["iid", &suite], found)?,
            };
            let mut answer = answer;
            answer["data_digest"] = json!(data.digest());
            answers.insert(name.clone(), answer);
        }
        Ok(Value::Object(answers))
    }

    /// For filtered data: the law's −ln p of each whole formula is the reference.
    fn whole_formulas(&mut self, corpus: &Corpus, split: &str, suite: &str) -> Result<Value> {
        let corpus = corpus.clone().in_code(&self.code, split)?;
        let per_formula = self.nats_by_formula(&corpus)?;
        let lengths = corpus.lengths().into_iter().enumerate();
        let scores: Vec<FormulaScore> = per_formula
            .iter()
            .zip(lengths)
            .map(|(&nats, (i, targets))| FormulaScore { targets, nats, optimal: corpus.nll(i) })
            .collect();
        let total: f64 = per_formula.iter().sum();
        let sums = scores.iter().map(|score| (score.nats - score.optimal, f64::from(score.targets)));
        let excess = symbolic_transformer::evaluate::mean_interval(sums);
        Ok(json!({
            "formulas": corpus.len(), "targets": corpus.targets(),
            "nats_per_token": total / corpus.targets().max(1) as f64,
            "bits_per_formula": total / (corpus.len().max(1) as f64 * std::f64::consts::LN_2),
            "excess": excess,
            "scores": self.write_scores(suite, &scores)?,
        }))
    }

    fn nats_by_formula(&mut self, corpus: &Corpus) -> Result<Vec<f64>> {
        self.with(|model| {
            let mut all = Vec::with_capacity(corpus.len());
            for i in 0..corpus.len() {
                let batch = corpus.batch([i]);
                let q = model.distributions(&batch)?;
                let v = corpus.code().size();
                let nats = batch
                    .targets
                    .iter()
                    .enumerate()
                    .map(|(r, &t)| -q.get(r * v + t as usize).copied().unwrap_or(0.0).ln());
                all.push(nats.sum());
            }
            Ok(all)
        })
    }

    fn nats(&mut self, corpus: &Corpus) -> Result<f64> {
        let corpus = &corpus.clone().in_code(&self.code, "train")?;
        match &mut self.network {
            Some((network, theta)) => {
                let scores = validate(network.as_mut(), theta, corpus)?;
                Ok(scores.nll / scores.targets.max(1) as f64)
            }
            None => Ok(self.nats_by_formula(corpus)?.iter().sum::<f64>() / corpus.targets().max(1) as f64),
        }
    }

    /// Uniform, grammar-uniform, Kneser–Ney and the law itself, on the same formulas.
    fn baselines(&self) -> Result<Vec<Value>> {
        let (law, code) = (&self.data.law, &self.code);
        let corpus = self.data.iid()?.in_code(code, "iid")?;
        let train = self.data.train()?.first(self.config.train_limit).in_code(code, "train")?;
        let scorer = CodeScorer::new(law, code).map_err(|r| anyhow!("{r}"))?;
        let mut uniform = Uniform { size: code.size() };
        let mut rows = vec![row("uniform", &iid(&mut uniform, &corpus, law, None)?)];
        if sampling::has_mask(code, law) {
            let mask = sampling::valid_mask(code, law, usize::MAX)?;
            rows.push(row("grammar-uniform", &iid(&mut GrammarUniform { mask }, &corpus, law, None)?));
        }
        for order in 1..=ORDER {
            let name = format!("Kneser–Ney, order {order}");
            rows.push(row(&name, &iid(&mut Ngram::train(&train, order), &corpus, law, None)?));
        }
        rows.push(row("optimum", &iid(&mut ExactLaw { scorer }, &corpus, law, None)?));
        Ok(rows)
    }

    fn completion(&self, corpus: &Corpus) -> Result<Value> {
        let Some((_, theta)) = &self.network else { bail!("no model") };
        let corpus = corpus.clone().in_code(&self.code, "test")?;
        completion::completion(self.config, theta, &self.data.law, &corpus)
    }

    fn structure(&mut self) -> Result<Value> {
        let (law, code) = (&self.data.law, self.code.clone());
        Ok(serde_json::to_value(self.with(|model| Ok(structure(model, law, &code)?))?)?)
    }

    /// Attention and activations are those of the explicit engine, whichever one trained.
    fn h3(&self) -> Result<Value> {
        self.config.check_h3()?;
        let Some((_, theta)) = &self.network else { bail!("no model") };
        let mut model = Explicit::in_code(self.config.shape(self.code.size())?, &self.code)?;
        let corpus = self.data.iid()?.in_code(&self.code, "iid")?;
        let train = self.data.train()?.first(self.config.train_limit);
        let signature = self.data.law.signature();
        Ok(serde_json::to_value(h3(&mut model, theta, &corpus, &train, &signature, self.config.seed)?)?)
    }

    /// What the layers of the explicit engine do, without dropout.
    fn criticality(&self) -> Result<Value> {
        self.config.check_criticality()?;
        let Some((_, theta)) = &self.network else { bail!("no model") };
        let shape = ModelConfig { dropout: 0.0, ..self.config.shape(self.code.size())? };
        let mut model = Explicit::in_code(shape, &self.code)?;
        let corpus = self.data.iid()?.first(LOOKED_AT).in_code(&self.code, "iid")?;
        let threshold = self.config.moderator_threshold.unwrap_or(1.0);
        let found = criticality(&mut model, theta, &corpus, threshold, self.config.seed)?;
        Ok(serde_json::to_value(found)?)
    }

    /// What free samples say, beside what texts of the law say.
    fn semantics(&mut self) -> Result<Value> {
        let Some((_, theta)) = &self.network else { bail!("no model") };
        let (seed, request) =
            (self.config.seed, Request { mask: None, ..Request::free(&self.code, LONGEST) });
        let ask = Ask { choice: Choice::PLAIN, n: semantics::SAMPLES, seed, beam: None };
        let samples = sampling::draw_from(self.config, &self.code, theta, &request, &ask)?;
        semantics::semantics(self.folder, &self.code, &self.data.law, &samples, seed)
    }

    /// Free samples and valid ones.
    fn generation(&mut self) -> Result<Value> {
        let (law, known) = (&self.data.law, self.known()?);
        let Some((_, theta)) = &self.network else { bail!("no model") };
        let reference = Reference::of(law, REFERENCE)?;
        let code = &self.code;
        let draw = |mask| {
            let request = Request { mask, ..Request::free(code, LONGEST) };
            let ask = Ask { choice: Choice::PLAIN, n: SAMPLES, seed: self.config.seed, beam: None };
            sampling::draw_from(self.config, code, theta, &request, &ask)
        };
        let free = judge(&draw(None)?, code, law, &known, &reference);
        let mut answer = json!({"samples": SAMPLES, "free": free, "valid": null});
        if sampling::has_mask(code, law)
            && let Value::Object(fields) = &mut answer
        {
            let valid = draw(Some(sampling::valid_mask(code, law, LONGEST)?))?;
            fields.insert("valid".to_owned(), json!(judge(&valid, code, law, &known, &reference)));
        }
        self.known = Some(known);
        Ok(answer)
    }
}

fn row(name: &str, judged: &Iid) -> Value {
    json!({
        "name": name, "nats_per_token": judged.nats_per_token, "perplexity": judged.perplexity,
        "bits_per_formula": judged.bits_per_formula, "excess": judged.excess, "kl": judged.kl,
        "top1": judged.top1.observed, "top5": judged.top5.observed, "top10": judged.top10.observed,
    })
}

/// What the configuration expects beside what was measured here.
fn expectations(config: &Config, found: &Map<String, Value>) -> Vec<Value> {
    let Some(expect) = &config.expect else { return Vec::new() };
    let evaluation = Value::Object(found.clone());
    let path = |key: &str| match key {
        "excess_max" => "/iid/excess/value",
        "top1_min" => "/iid/top1/observed",
        "parsed_min" => "/generation/free/parsed",
        "levels_p_min" => "/generation/free/levels/p",
        "train_nats_max" => "/train/nats_per_token",
        // Known to the report, from the record of the run.
        _ => "/-",
    };
    let rows = expect.rows(|key| evaluation.pointer(path(key))?.as_f64());
    rows.iter().filter_map(Row::json).collect()
}

/// The excess on what the model has seen and on what it has not.
fn novelty_lines(evaluation: &Value, suite: &str) -> String {
    let rows = evaluation.pointer(&format!("/{suite}/by_novelty")).and_then(Value::as_array);
    let line = |row: &Value| {
        let at = |path: &str| row.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let key = row.get("key").and_then(Value::as_str).unwrap_or_default();
        format!(
            "  {key}: excess {:.4} ± {:.4} on {} formulas\n",
            at("/excess/value"),
            1.96 * at("/excess/se"),
            at("/formulas")
        )
    };
    let of_level =
        |row: &&Value| row.get("key").and_then(Value::as_str).is_some_and(|k| k.contains(", level"));
    rows.map_or_else(String::new, |rows| rows.iter().filter(|row| !of_level(row)).map(line).collect())
}

/// The few lines that people want first.
pub(crate) fn in_short(evaluation: &Value) -> String {
    let at = |path: &str| evaluation.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let mut text = String::new();
    for suite in ["iid", "test", FILE] {
        if evaluation.get(suite).is_some_and(Value::is_object) {
            let p = |path: &str| at(&format!("/{suite}/{path}"));
            let (optimum, nats, excess) =
                (p("optimum/nats_per_token"), p("nats_per_token"), p("excess/value"));
            // Where texts were removed only whole formulas have an optimum: none for single symbols.
            let whole = optimum.is_nan();
            let optimum = if whole { nats - excess } else { optimum };
            text.push_str(&format!(
                "{suite}: {nats:.4} nats/token, optimum {optimum:.4}, excess {excess:.4} ± {:.4}",
                1.96 * p("excess/se"),
            ));
            if whole {
                text.push_str("; whole formulas, as texts were removed\n");
            } else {
                let (top, best) = (p("top1/observed"), p("optimum/top1"));
                text.push_str(&format!("; top-1 {top:.4} (best possible {best:.4})\n"));
            }
            text.push_str(&novelty_lines(evaluation, suite));
        }
    }
    if let Some(rows) = evaluation.get("baselines").and_then(Value::as_array) {
        for row in rows {
            let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
            let nats = row.get("nats_per_token").and_then(Value::as_f64).unwrap_or(f64::NAN);
            text.push_str(&format!("  {name}: {nats:.4}\n"));
        }
    }
    if evaluation.get("generation").is_some_and(Value::is_object) {
        text.push_str(&format!(
            "generation: {:.4} parsed, {:.4} within the law, {:.4} novel (K2)\n",
            at("/generation/free/parsed"),
            at("/generation/free/arity_ok"),
            at("/generation/free/novel/K2"),
        ));
    }
    text + &super::report::suites::in_short(evaluation)
}
