//! The suite `inference`: what a model answers to inference tasks, judged by the prover, beside what others answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use fol::ast::{Formula, Term};
use fol::notation::{Code, Token};
use fol::symbol::SymbolId;
use fol::task::{Answer, Task, encode, given};
use fol_inference::asked::{conclusion, follows_within};
use fol_inference::data::Line;
use fol_inference::judge::{Judged, judge};
use fol_prover::Limit;
use fol_prover::rules::Name;
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::ngram::Ngram;
use symbolic_transformer::predictor::Predictor;
use symbolic_transformer::sample::{Request, Sample};

use super::config::Config;
use super::{eval, network, sampling};
use crate::answer::say;
use crate::data;
use crate::inference::{self, Tasks};
use crate::signals::Stop;

/// Instances of each split that are judged.
const INSTANCES: usize = 500;
/// The splits.
const SPLITS: [&str; 2] = ["test", "deep"];
/// The most tokens of an answer.
const LONGEST: usize = 192;
/// The width of the beam whose hypotheses are verified.
const BEAM: usize = 10;
/// The order of the n-gram model, and the instances that it counts.
const ORDER: usize = 7;
const COUNTED: usize = 100_000;
/// Steps of the prover for each question about an answer: deterministic, unlike the baseline's time.
const STEPS: u64 = 20_000;
/// The prover's time for an instance where no model's time is known.
const MILLISECONDS: f64 = 10.0;

/// Refuses a suite that cannot judge data of their kind, before anybody trains on them.
pub(super) fn check_suites(data: &str, suites: &[String]) -> Result<()> {
    let has_tasks = data::is_inference(data);
    let wrong = |suite: &&String| match suite.as_str() {
        "transfer" => false,
        "texts" => true,
        "inference" => !has_tasks,
        _ => has_tasks,
    };
    match suites.iter().find(wrong) {
        None => Ok(()),
        Some(other) if other == "texts" => bail!("suite texts: it judges data = \"FILE.txt\" only"),
        Some(other) if has_tasks => {
            bail!("suite {other}: data = \"{data}\" has inference tasks, which the suite inference judges")
        }
        Some(other) => {
            bail!("suite {other}: data = \"{data}\" has no inference tasks; `gen-inference` makes such data")
        }
    }
}

/// Judges a run on the tasks of its data set and writes `eval.json`.
pub(super) fn evaluate(
    folder: &Path,
    config: &Config,
    data: &Tasks,
    suites: &[String],
    quiet: bool,
    file: &str,
) -> Result<Value> {
    eval::write_with(folder, config, file, &eval::About::best("inference", data.digest()), |found| {
        for name in suites {
            if !quiet {
                say!("suite {name}");
            }
            let judged = if name == "transfer" {
                elsewhere(folder, config, quiet)?
            } else {
                suite(folder, config, data, Beside::Others)?
            };
            found.insert(name.clone(), judged);
        }
        Ok(())
    })
}

/// An instance and what is asked of it.
struct Ask {
    line: Line,
    task: Task,
    symbols: Vec<SymbolId>,
    /// The symbols up to the sign behind which the answer stands, that one too.
    prompt: usize,
}

fn asks(data: &Tasks, split: &str) -> Result<Vec<Ask>> {
    let refused = |r: fol::error::Refusal| anyhow!("{split}: {r}");
    let ask = |line: Line| {
        let symbols = line.symbols().map_err(refused)?;
        let task = line.task().map_err(refused)?;
        let prompt = given(&symbols).map_or(0, |at| at + 1);
        Ok(Ask { line, task, symbols, prompt })
    };
    data.lines(split, INSTANCES)?.into_iter().map(ask).collect()
}

/// What stands beside a model.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// The commonest answer and an n-gram model of the training set, and the prover.
    Others,
}

/// A model on tasks that it was not trained for.
fn elsewhere(folder: &Path, config: &Config, quiet: bool) -> Result<Value> {
    if config.transfer.is_empty() {
        bail!(
            "suite transfer: the configuration of the run names no data sets in transfer; --data judges on one"
        );
    }
    let mut answers = Map::new();
    for name in &config.transfer {
        if !data::is_inference(name) {
            bail!("transfer: \"{name}\" has no inference tasks, and data = \"{}\" has", config.data);
        }
        let tasks = inference::load(name, quiet, &Stop::watch()?)?;
        answers.insert(name.clone(), suite(folder, config, &tasks, Beside::Nothing)?);
    }
    Ok(Value::Object(answers))
}

fn suite(folder: &Path, config: &Config, data: &Tasks, beside: Beside) -> Result<Value> {
    let counted = if beside == Beside::Others { COUNTED } else { 0 };
    let train = if counted > 0 { data.corpus("train", counted)? } else { Corpus::new() };
    let majority = Majority::of(&data.lines("train", counted)?)?;
    let mut ngram = Ngram::train(&train, ORDER);
    let weights = if config.model.has_weights() {
        let (_, theta) = network::load(folder, config, &Code::PLAIN)?;
        Some(theta)
    } else {
        None
    };
    let mut splits = Map::new();
    for split in SPLITS {
        let asks = asks(data, split)?;
        if asks.is_empty() {
            continue;
        }
        let mut rows = Vec::new();
        let mut milliseconds = MILLISECONDS;
        if let Some(theta) = &weights {
            let requests: Vec<Request> = asks.iter().map(request).collect();
            let clock = Instant::now();
            let greedy = sampling::continuations(config, &Code::PLAIN, theta, &requests, None)?;
            milliseconds = clock.elapsed().as_secs_f64() * 1e3 / asks.len() as f64;
            let answers: Vec<Vec<SymbolId>> = greedy.iter().map(symbols).collect();
            rows.push(row(config.model.name(), &asks, &judged(&asks, &answers)));
            let hypotheses = sampling::hypotheses(config, &Code::PLAIN, theta, &requests, BEAM)?;
            rows.push(row(&format!("{} beam {BEAM}", config.model.name()), &asks, &best(&asks, &hypotheses)));
        }
        if beside == Beside::Nothing {
            splits.insert(split.to_owned(), json!({"instances": asks.len(), "rows": rows}));
            continue;
        }
        rows.push(row("majority", &asks, &judged(&asks, &majority.answers(&asks))));
        rows.push(row("n-gram", &asks, &judged(&asks, &continued(&mut ngram, &asks)?)));
        let limit = Limit::Milliseconds((milliseconds.ceil() as u64).max(1));
        let proved: Vec<Vec<SymbolId>> = asks.iter().map(|ask| encode(&proved(&ask.task, limit))).collect();
        rows.push(row("prover", &asks, &judged(&asks, &proved)));
        splits.insert(
            split.to_owned(),
            json!({"instances": asks.len(), "milliseconds": milliseconds, "rows": rows}),
        );
    }
    Ok(json!({"beam": BEAM, "steps": STEPS, "splits": splits}))
}

fn request(ask: &Ask) -> Request {
    let prompt = ask.symbols.iter().take(ask.prompt).map(|symbol| Token::new(symbol.get())).collect();
    Request { prompt, ..Request::free(&Code::PLAIN, LONGEST) }
}

/// The whole sequence of a sample; what was not finished is no answer.
fn symbols(sample: &Sample) -> Vec<SymbolId> {
    if !sample.finished {
        return Vec::new();
    }
    sample.tokens.iter().filter_map(|token| SymbolId::new(token.get())).collect()
}

fn judge_one(ask: &Ask, answer: &[SymbolId]) -> Judged {
    let last =
        ask.line.rules.last().and_then(|name| Name::ALL.iter().copied().find(|rule| rule.name() == name));
    judge(&ask.task, last, answer, Limit::Steps(STEPS))
}

fn judged(asks: &[Ask], answers: &[Vec<SymbolId>]) -> Vec<Judged> {
    asks.par_iter().zip(answers).map(|(ask, answer)| judge_one(ask, answer)).collect()
}

/// Of each beam the first hypothesis that is valid and relevant, or else the first one. Without a right `<unknown>` to verify, the
/// first one counts there: nothing is looked up in the label.
fn best(asks: &[Ask], hypotheses: &[Vec<Sample>]) -> Vec<Judged> {
    let of = |(ask, samples): (&Ask, &Vec<Sample>)| {
        let all: Vec<Judged> = samples.iter().map(|sample| judge_one(ask, &symbols(sample))).collect();
        // Only a conclusion can be verified; another answer is right or wrong by its label, which a beam may not see.
        let verified = |judged: &&Judged| judged.steps > 0 && judged.relevant;
        all.iter().find(verified).or(all.first()).copied().unwrap_or_default()
    };
    asks.par_iter().zip(hypotheses).map(of).collect()
}

/// The commonest answers of the training set.
struct Majority {
    question: Answer,
}

impl Majority {
    fn of(lines: &[Line]) -> Result<Self> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        lines.iter().filter(|line| line.format == "question").for_each(|line| {
            *counts.entry(&line.label).or_default() += 1;
        });
        let commonest =
            counts.into_iter().max_by_key(|(_, count)| *count).map_or("unknown", |(label, _)| label);
        let question = match commonest {
            "follows" => Answer::True,
            "denied" => Answer::False,
            _ => Answer::Unknown,
        };
        Ok(Self { question })
    }

    /// `<unknown>` is the commonest answer where a formula is wanted: no formula is common. Of equations the last one's right side.
    fn answers(&self, asks: &[Ask]) -> Vec<Vec<SymbolId>> {
        let answer = |ask: &Ask| {
            encode(&match ask.task.clone() {
                Task::Deduction { premises, .. } => Task::Deduction { premises, steps: Vec::new() },
                Task::Question { premises, asked, .. } => {
                    Task::Question { premises, asked, answer: self.question }
                }
                Task::Term { equations, asked, .. } => {
                    let answer = equations.last().map_or(asked, |(_, right)| *right);
                    Task::Term { equations, asked, answer }
                }
            })
        };
        asks.iter().map(answer).collect()
    }
}

/// What the prover answers within a limit for each question that it is asked.
fn proved(task: &Task, limit: Limit) -> Task {
    match task.clone() {
        Task::Deduction { premises, .. } => {
            let steps = conclusion(&premises, limit).into_iter().collect();
            Task::Deduction { premises, steps }
        }
        Task::Question { premises, asked, .. } => {
            let denied = Formula::Not(Box::new(asked.clone()));
            let follows = |goal: &Formula| follows_within(&premises, goal, limit) == Some(true);
            let answer = if follows(&asked) {
                Answer::True
            } else if follows(&denied) {
                Answer::False
            } else {
                Answer::Unknown
            };
            Task::Question { premises, asked, answer }
        }
        // The last variable that is equal to the first one: equality is symmetric, so that a prover cannot say which one is meant.
        Task::Term { equations, asked, .. } => {
            let premises: Vec<Formula> = equations
                .iter()
                .map(|(l, r)| {
                    Formula::Relation(fol::ast::Relation::Equals, Term::Variable(*l), Term::Variable(*r))
                })
                .collect();
            let equal = |x: &fol::ast::Variable| {
                let goal =
                    Formula::Relation(fol::ast::Relation::Equals, Term::Variable(asked), Term::Variable(*x));
                *x != asked && follows_within(&premises, &goal, limit) == Some(true)
            };
            let answer = equations.iter().rev().map(|(_, right)| *right).find(equal).unwrap_or(asked);
            Task::Term { equations, asked, answer }
        }
    }
}

/// What a predictor continues greedily, all side by side.
fn continued(model: &mut dyn Predictor, asks: &[Ask]) -> Result<Vec<Vec<SymbolId>>> {
    const TOGETHER: usize = 64;
    /// An n-gram model that has not ended by then does not.
    const MOST: usize = 48;
    let mut answers = Vec::new();
    for chunk in asks.chunks(TOGETHER) {
        let mut texts: Vec<Vec<SymbolId>> = chunk
            .iter()
            .map(|ask| {
                [SymbolId::BOS].into_iter().chain(ask.symbols.iter().take(ask.prompt).copied()).collect()
            })
            .collect();
        let mut open: Vec<usize> = (0..texts.len()).collect();
        for _ in 0..MOST {
            if open.is_empty() {
                break;
            }
            // Only the last symbols matter, and a row for each of them is enough.
            let windows: Vec<Vec<SymbolId>> = open
                .iter()
                .filter_map(|at| texts.get(*at))
                .map(|text| {
                    let from = text.len().saturating_sub(ORDER);
                    text.iter().skip(from).copied().chain([SymbolId::PAD]).collect()
                })
                .collect();
            let batch = Batch::new(windows.iter().map(Vec::as_slice));
            let q = model.distributions(&batch)?;
            let width = (q.len() / batch.rows().max(1)).max(1);
            let rows: Vec<&[f64]> = q.chunks_exact(width).collect();
            let ends: Vec<usize> = batch.ranges().map(|range| range.end.saturating_sub(1)).collect();
            let mut left = Vec::new();
            for (at, end) in open.iter().zip(ends) {
                let row = rows.get(end).copied().unwrap_or_default();
                let largest = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
                let next = largest.and_then(|(id, _)| SymbolId::new(id as u16)).unwrap_or(SymbolId::EOS);
                if let Some(text) = texts.get_mut(*at) {
                    text.push(next);
                }
                if next != SymbolId::EOS {
                    left.push(*at);
                }
            }
            open = left;
        }
        answers.extend(texts.into_iter().map(|text| {
            if text.last() == Some(&SymbolId::EOS) { Corpus::inner(&text).to_vec() } else { Vec::new() }
        }));
    }
    Ok(answers)
}

/// Shares of some answers.
fn shares(all: &[&Judged]) -> Value {
    let n = all.len().max(1) as f64;
    let share = |is: fn(&Judged) -> bool| all.iter().filter(|judged| is(judged)).count() as f64 / n;
    let count = |is: fn(&Judged) -> bool| all.iter().filter(|judged| is(judged)).count();
    let ratio = |a: usize, b: usize| if b == 0 { Value::Null } else { json!(a as f64 / b as f64) };
    let right = count(|j| j.says_unknown && j.is_unknown);
    let (steps, right_steps) =
        all.iter().fold((0, 0), |(steps, right), j| (steps + j.steps, right + j.right_steps));
    json!({
        "instances": all.len(),
        "read": share(|j| j.read),
        "exact": share(|j| j.exact),
        "alpha": share(|j| j.alpha),
        "valid": share(|j| j.valid),
        "relevant": share(|j| j.relevant),
        "right_steps": ratio(right_steps, steps),
        "proofs": ratio(count(|j| j.proof), count(|j| j.steps > 0)),
        "unknown": {
            "precision": ratio(right, count(|j| j.says_unknown)),
            "recall": ratio(right, count(|j| j.is_unknown)),
        },
    })
}

/// A row of the table: all instances, and those of each format, label, depth, last rule, and rule of the chain.
fn row(name: &str, asks: &[Ask], judged: &[Judged]) -> Value {
    let by = |keys: &dyn Fn(&Ask) -> Vec<String>| {
        let mut groups: BTreeMap<String, Vec<&Judged>> = BTreeMap::new();
        for (ask, judged) in asks.iter().zip(judged) {
            for key in keys(ask) {
                groups.entry(key).or_default().push(judged);
            }
        }
        groups.iter().map(|(key, all)| (key.clone(), shares(all))).collect::<Map<String, Value>>()
    };
    let distinct = |ask: &Ask| {
        let mut rules = ask.line.rules.clone();
        rules.sort_unstable();
        rules.dedup();
        rules
    };
    json!({
        "name": name,
        "all": shares(&judged.iter().collect::<Vec<_>>()),
        "formats": by(&|ask| vec![ask.line.format.clone()]),
        "labels": by(&|ask| vec![format!("{}/{}", ask.line.format, ask.line.label)]),
        "depths": by(&|ask| vec![ask.line.depth.to_string()]),
        "last_rules": by(&|ask| ask.line.rules.last().cloned().into_iter().collect()),
        "rules": by(&distinct),
    })
}

/// The table, in a few lines.
pub(super) fn in_short(evaluation: &Value) -> String {
    let mut text = String::new();
    let own = evaluation.get("inference").map(|found| ("inference".to_owned(), found));
    let others = evaluation.get("transfer").and_then(Value::as_object).into_iter().flatten();
    let all = own.into_iter().chain(others.map(|(name, found)| (name.clone(), found)));
    let splits = all.flat_map(|(name, found)| {
        let splits = found.get("splits").and_then(Value::as_object).into_iter().flatten();
        splits.map(move |(split, found)| (format!("{name}, {split}"), found))
    });
    for (split, found) in splits {
        let instances = found.get("instances").and_then(Value::as_u64).unwrap_or(0);
        text.push_str(&format!("{split}: {instances} instances\n"));
        for row in found.get("rows").and_then(Value::as_array).into_iter().flatten() {
            let at = |path: &str| {
                let found = row.pointer(path).and_then(Value::as_f64);
                found.map_or_else(|| "–".to_owned(), |share| format!("{share:.3}"))
            };
            text.push_str(&format!(
                "  {}: exact {}, valid {}, relevant {}, right steps {}, <unknown> precision {} recall {}\n",
                row.get("name").and_then(Value::as_str).unwrap_or_default(),
                at("/all/exact"),
                at("/all/valid"),
                at("/all/relevant"),
                at("/all/right_steps"),
                at("/all/unknown/precision"),
                at("/all/unknown/recall"),
            ));
        }
    }
    text
}
