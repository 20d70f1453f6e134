//! `fol count`, `rank`, `unrank`, `score`, `next --law`, `sample`, `law`: all that needs a law.

use std::cell::RefCell;

use clap::Args;
use fol::Style;
use fol::count::Counter;
use fol::error::{Kind, Refusal};
use fol::estimate::estimate;
use fol::law::Law;
use fol::measure;
use fol::read::Symbols;
use fol::sample::{Facts, Sampler, family};
use fol::score::{ExactScorer, Scorer};
use fol::signature::Signature;
use fol::symbol::SymbolId;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::answer::Item;
use crate::formula_commands::{ids, one_formula};
use crate::input::{Inputs, Reading};

/// A law and changes of its keys.
#[derive(Debug, Args)]
pub(crate) struct LawChoice {
    /// A built-in law (public, public-advanced, atomic, seed, uniform, pr, full, boltzmann) or a TOML file.
    #[arg(long, value_name = "LAW")]
    law: String,
    #[command(flatten)]
    set: Settings,
}

/// Changes of keys.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// Change a key of the law; dotted keys reach into tables.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

/// Splits `KEY=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is needed")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

impl LawChoice {
    fn law(&self) -> Result<Law, Refusal> {
        Law::named(&self.law, &self.set.set)
    }
}

/// The signature of a built-in law or of a law in a file, for `check --law` and `next --within`.
pub(crate) fn law_signature(name: &str) -> Result<Signature, Refusal> {
    Law::named(name, &[]).map(|law| law.signature())
}

/// Where formulas are counted.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Free variables in scope.
    #[arg(long, default_value_t = 0)]
    free: u64,
    /// The largest quantifier depth.
    #[arg(long, value_name = "R")]
    max_quantifier_depth: Option<usize>,
}

impl Start {
    fn counter(&self, law: &Law, nodes: usize) -> Result<Counter, Refusal> {
        Counter::new(law, nodes, self.free, self.max_quantifier_depth)
    }
}

/// `fol count`
#[derive(Debug, Args)]
pub(crate) struct Count {
    #[command(flatten)]
    law: LawChoice,
    /// Numbers of nodes, both ends included.
    #[arg(long, value_name = "A-B", value_parser = range)]
    nodes: (usize, usize),
    #[command(flatten)]
    start: Start,
}

fn range(text: &str) -> Result<(usize, usize), String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let number = |s: &str| s.trim().parse::<usize>().map_err(|_| "A-B or A is needed".to_owned());
    match (number(from)?, number(to)?) {
        (from, to) if from <= to => Ok((from, to)),
        _ => Err("the range is empty".to_owned()),
    }
}

/// `fol rank`
#[derive(Debug, Args)]
pub(crate) struct Rank {
    #[command(flatten)]
    law: LawChoice,
    #[command(flatten)]
    start: Start,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    inputs: Inputs,
}

/// `fol unrank`
#[derive(Debug, Args)]
pub(crate) struct Unrank {
    #[command(flatten)]
    law: LawChoice,
    /// The number of nodes.
    #[arg(long)]
    nodes: usize,
    /// The rank, from 0.
    #[arg(long)]
    rank: num_bigint::BigUint,
    #[command(flatten)]
    start: Start,
}

/// `fol score`
#[derive(Debug, Args)]
pub(crate) struct Score {
    #[command(flatten)]
    law: LawChoice,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    inputs: Inputs,
}

/// `fol sample`
#[derive(Debug, Args)]
pub(crate) struct Sample {
    #[command(flatten)]
    law: LawChoice,
    /// The seed of the streams.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The purpose of the streams, a lower-case word.
    #[arg(long, default_value = "sample", value_parser = purpose)]
    purpose: String,
    /// The number of the first item.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many items.
    #[arg(long, default_value_t = 10)]
    n: u64,
    /// Only formulas of this size, all equally likely.
    #[arg(long)]
    nodes: Option<usize>,
    /// Threads; 0 for all cores. The answer does not depend on it.
    #[arg(long, default_value_t = 0, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: usize,
}

fn purpose(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase()) {
        true => Ok(text.to_owned()),
        false => Err("a lower-case word is needed".to_owned()),
    }
}

/// `fol law`
#[derive(Debug, Args)]
pub(crate) struct ShowLaw {
    /// A built-in law or a TOML file.
    name: String,
    #[command(flatten)]
    set: Settings,
    /// Estimate the optimum on so many texts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    estimate: Option<u64>,
    /// The seed of the estimate.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn count(args: &Count) -> Vec<Item> {
    let (from, to) = args.nodes;
    match args.law.law().and_then(|law| args.start.counter(&law, to)) {
        Err(refusal) => vec![refused(json!({}), refusal)],
        Ok(counter) => (from..=to)
            .map(|nodes| {
                let count = counter.count(nodes).to_string();
                Item::new(json!({"nodes": nodes, "count": count}), format!("{nodes:>4}  {count}"))
            })
            .collect(),
    }
}

pub(crate) fn rank(args: &Rank) -> anyhow::Result<Vec<Item>> {
    let law = args.law.law();
    // One table serves all inputs that are not larger.
    let table: RefCell<Option<(usize, Counter)>> = RefCell::new(None);
    args.inputs.each_read(&args.reading, |input, parsed| {
        let law = law.as_ref().map_err(Clone::clone)?;
        let formula = one_formula(&parsed.text)?;
        let nodes = usize::try_from(measure::nodes(formula)).unwrap_or(usize::MAX);
        let mut table = table.borrow_mut();
        if table.as_ref().is_none_or(|(size, _)| *size < nodes) {
            *table = Some((nodes, args.start.counter(law, nodes)?));
        }
        let Some((_, counter)) = table.as_ref() else {
            return Err(Refusal::new(Kind::BadValue, "nodes: no table"));
        };
        let (nodes, rank) = counter.rank(formula).map_err(|refusal| parsed.locate(refusal))?;
        let count = counter.count(nodes);
        let fields = json!({"nodes": nodes, "rank": rank.to_string(), "count": count.to_string()});
        Ok(Item::answered(input, fields, format!("{rank} of {count} with {nodes} nodes")))
    })
}

pub(crate) fn unrank(args: &Unrank) -> Vec<Item> {
    let place = json!({"nodes": args.nodes, "rank": args.rank.to_string()});
    let tokens = args
        .law
        .law()
        .and_then(|law| args.start.counter(&law, args.nodes))
        .and_then(|counter| counter.unrank(args.nodes, &args.rank));
    vec![match tokens.and_then(|tokens| Ok((printed(&tokens)?, tokens))) {
        Err(refusal) => refused(place, refusal),
        Ok((text, tokens)) => {
            let mut item = Item::new(place, text.clone());
            item.fields.insert("text".to_owned(), json!(text));
            item.fields.insert("tokens".to_owned(), json!(ids(&tokens)));
            item
        }
    }]
}

pub(crate) fn score(args: &Score) -> anyhow::Result<Vec<Item>> {
    let law = args.law.law();
    let scorer = law.as_ref().map_err(Clone::clone).and_then(Scorer::of_written);
    if law.is_ok_and(|law| law.parentheses() > 0) {
        // Reading would take the second pairs out.
        return args.inputs.each_marked(&args.reading, |input| {
            let given = args.reading.symbols(input)?;
            let inner = given.symbols.strip_prefix(&[SymbolId::BOS]).unwrap_or(&given.symbols);
            let begin = given.symbols.len() - inner.len();
            let inner = if begin > 0 { inner.strip_suffix(&[SymbolId::EOS]).unwrap_or(inner) } else { inner };
            scored(&mut scorer.clone()?, input, inner, |at, refusal| given.locate(refusal, begin + at))
        });
    }
    args.inputs.each_read(&args.reading, |input, parsed| {
        scored(&mut scorer.clone()?, input, &parsed.tokens, |_, refusal| parsed.locate(refusal))
    })
}

/// The answer of `fol score` for one text; a refusal is located from the number of symbols before it.
fn scored(
    scorer: &mut Scorer,
    input: &str,
    symbols: &[SymbolId],
    locate: impl Fn(usize, Refusal) -> Refusal,
) -> Result<Item, Refusal> {
    let mut steps = Vec::new();
    for (at, &token) in symbols.iter().chain([&SymbolId::EOS]).enumerate() {
        let max = scorer.next_dist().iter().copied().fold(0.0, f64::max);
        let p = scorer.advance(token).map_err(|refusal| locate(at, refusal))?;
        steps.push(json!({"id": token.get(), "label": token.label(), "p": p, "max": max}));
    }
    let (nll, targets) = (scorer.nll(), steps.len());
    let text = format!("{nll:.6} nats, {targets} targets, {:.6} nats per target", nll / targets as f64);
    Ok(Item::answered(input, json!({"nll": nll, "targets": targets, "steps": steps}), text))
}

/// The answer of `fol next --law`: the distribution after a prefix.
pub(crate) fn next_of_law(
    law: &str,
    set: &[(String, String)],
    reading: &Reading,
    inputs: &Inputs,
) -> anyhow::Result<Vec<Item>> {
    let scorer = Law::named(law, set).and_then(|law| Scorer::of_written(&law));
    inputs.each_marked(reading, |input| {
        let symbols = reading.symbols(input)?;
        next_item(&mut scorer.clone()?, input, &symbols)
    })
}

fn next_item(scorer: &mut Scorer, input: &str, prefix: &Symbols) -> Result<Item, Refusal> {
    let begin = usize::from(prefix.symbols.first() == Some(&SymbolId::BOS));
    for (at, &symbol) in prefix.symbols.iter().enumerate().skip(begin) {
        scorer.push(symbol).map_err(|refusal| prefix.locate(refusal, at))?;
    }
    let mut next: Vec<(SymbolId, f64)> =
        SymbolId::all().zip(scorer.next_dist().iter().copied()).filter(|(_, p)| *p > 0.0).collect();
    // The sort is stable, so equal probabilities stay in id order.
    next.sort_by(|a, b| b.1.total_cmp(&a.1));
    let entropy = scorer.entropy();
    let posterior: Map<String, Value> = scorer.posterior().into_iter().map(|(k, p)| (k, json!(p))).collect();
    let mut lines: Vec<String> = next.iter().take(20).map(|(s, p)| format!("{p:.6}  {s}")).collect();
    if next.len() > 20 {
        lines.push(format!("… and {} more", next.len() - 20));
    }
    lines.push(format!("entropy {entropy:.6} nats"));
    let next: Map<String, Value> = next.into_iter().map(|(s, p)| (s.label().to_owned(), json!(p))).collect();
    let fields = json!({"next": next, "entropy": entropy, "posterior": posterior});
    Ok(Item::answered(input, fields, lines.join("\n")))
}

pub(crate) fn sample(args: &Sample) -> anyhow::Result<Vec<Item>> {
    let prepared = args.law.law().and_then(|law| match args.nodes {
        Some(nodes) => Ok((Sampler::of_size(&law, nodes)?, None)),
        None => Ok((Sampler::of_written(&law)?, Some(Scorer::of_written(&law)?))),
    });
    let (sampler, scorer) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok(vec![refused(json!({}), refusal)]),
    };
    let family = family(&args.purpose, args.seed);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads).build()?;
    let Some(last) = args.n.checked_sub(1).map(|more| args.first.saturating_add(more)) else {
        return Ok(Vec::new());
    };
    let redundant = args.nodes.is_none() && args.law.law().is_ok_and(|law| law.parentheses() > 0);
    let draw = |(sampler, scorer): &mut (Sampler, Option<Scorer>), index| {
        let mut tokens = Vec::new();
        let facts = sampler.sample(&mut family.stream(index), &mut tokens);
        let nll = scorer.as_mut().map(|scorer| scorer.score(&tokens)).transpose();
        let text = if redundant { Ok(fol::written(&tokens)) } else { printed(&tokens) };
        nll.and_then(|nll| Ok(sampled(index, text?, &tokens, facts, nll)))
            .unwrap_or_else(|refusal| refused(json!({}), refusal))
    };
    Ok(pool.install(|| {
        (args.first..=last).into_par_iter().map_init(|| (sampler.clone(), scorer.clone()), draw).collect()
    }))
}

fn sampled(index: u64, text: String, tokens: &[SymbolId], facts: Facts, nll: Option<f64>) -> Item {
    let one = facts.level > 0;
    let fields = json!({
        "index": index,
        "text": text,
        "tokens": ids(tokens),
        "level": one.then_some(facts.level),
        "nodes": one.then_some(facts.nodes),
        "nll": nll,
    });
    Item::new(fields, text)
}

pub(crate) fn law(args: &ShowLaw) -> Vec<Item> {
    let answer = || {
        let law = Law::named(&args.name, &args.set.set)?;
        Sampler::new(&law)?;
        let shown = serde_json::to_string_pretty(&law.to_json()).unwrap_or_default();
        let bound = law.max_tokens_bound();
        let mut fields = json!({"law": law.to_json(), "digest": law.digest(), "max_tokens_bound": bound});
        let mut text = format!("{shown}\ndigest {}", law.digest());
        if let Some(bound) = bound {
            text.push_str(&format!("\nat most {bound} tokens"));
        }
        if let Some(formulas) = args.estimate {
            let estimate = json!(estimate(&law, formulas, args.seed)?);
            let pretty = serde_json::to_string_pretty(&estimate).unwrap_or_default();
            text.push_str(&format!("\nestimate {pretty}"));
            if let Some(fields) = fields.as_object_mut() {
                fields.insert("estimate".to_owned(), estimate);
            }
        }
        Ok(Item::answered(&args.name, fields, text))
    };
    vec![answer().unwrap_or_else(|refusal| Item::refused(&args.name, refusal))]
}

/// A refusal with keys of its own and without an input.
fn refused(fields: Value, refusal: Refusal) -> Item {
    Item { refused: Some((refusal, String::new())), ..Item::new(fields, "") }
}

/// Tokens as people read them.
fn printed(tokens: &[SymbolId]) -> Result<String, Refusal> {
    fol::decode(tokens).map(|text| fol::print(&text, Style::Unicode))
}
