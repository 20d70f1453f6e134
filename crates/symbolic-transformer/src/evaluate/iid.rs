//! The suite `iid`: a model beside the exact law on the same prefixes.

use fol::canon::Canonicalizer;
use fol::law::Law;
use fol::measure;
use fol::notation::Token;
use fol::score::CodeScorer;
use fol::symbol::SymbolId;
use rayon::prelude::*;
use serde::Serialize;
use training::{Refusal, Result};

use super::classes::{Class, by_token, classes};
use super::novelty::{ByNovelty, Known, Novelty};
use super::statistics::{Interval, mean_interval};
use crate::corpus::{Corpus, evaluation_batches};
use crate::predictor::Predictor;

/// What one target cost.
#[derive(Debug, Clone, Copy)]
struct Target {
    formula: u32,
    position: u32,
    class: Class,
    level: u8,
    depth: u32,
    novelty: Option<Novelty>,
    nll: f64,
    optimal: f64,
    entropy: f64,
    kl: f64,
    /// Tokens that the model prefers to the target.
    rank: u32,
    /// Σ p* over the model's 1, 5, 10 best.
    expected: [f64; 3],
    /// Σ of the 1, 5, 10 largest p*.
    best: [f64; 3],
    confidence: f64,
    brier: f64,
}

const TOP: [usize; 3] = [1, 5, 10];

/// Numbers of a predictor on all targets.
#[derive(Debug, Clone, Serialize)]
pub struct Optimum {
    /// Mean −ln p*(target).
    pub nats_per_token: f64,
    /// Mean conditional entropy of p*.
    pub entropy: f64,
    /// exp of `nats_per_token`.
    pub perplexity: f64,
    /// Mean of the largest p*.
    pub top1: f64,
    /// Mean of the sum of the 5 largest.
    pub top5: f64,
    /// Mean of the sum of the 10 largest.
    pub top10: f64,
    /// Σ −ln p* / (formulas · ln 2).
    pub bits_per_formula: f64,
}

/// A share of targets among the k best.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TopK {
    /// The share of targets that are.
    pub observed: f64,
    /// Mean of Σ p* over the model's k best.
    pub expected: f64,
    /// expected / optimum.
    pub ratio: f64,
}

/// How far confidence and probability are from the truth.
#[derive(Debug, Clone, Serialize)]
pub struct Calibration {
    /// 15 bins of equal count by the largest q: Σ share · |mean largest q − share of hits|.
    pub ece: f64,
    /// Mean Σ (q − p*)².
    pub brier: f64,
    /// Mean largest q and share of hits of each bin, for the picture.
    pub bins: Vec<[f64; 2]>,
}

/// A mean with a standard error.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub se: f64,
}

/// One row of a table by level, class, position or depth.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// The level, class, position or depth.
    pub key: serde_json::Value,
    /// The number of targets.
    pub targets: usize,
    /// Mean −ln q.
    pub nats_per_token: f64,
    /// Mean −ln p*.
    pub optimum: f64,
    /// The difference.
    pub excess: f64,
    /// Mean Σ p* ln(p*/q).
    pub kl: f64,
    /// The share of targets that are the model's best.
    pub top1: f64,
}

/// The suite's answer.
#[derive(Debug, Clone, Serialize)]
pub struct Iid {
    /// The number of formulas.
    pub formulas: usize,
    /// The number of targets.
    pub targets: usize,
    /// Mean −ln q(target).
    pub nats_per_token: f64,
    /// Its exponential.
    pub perplexity: f64,
    /// Σ −ln q / (formulas · ln 2).
    pub bits_per_formula: f64,
    /// The exact law on the same targets.
    pub optimum: Optimum,
    /// What the model loses against the law, paired.
    pub excess: Interval,
    /// The same expectation with less noise: mean over prefixes of Σ p*·ln(p*/q).
    pub kl: Mean,
    /// Accuracy.
    pub top1: TopK,
    /// The target is among the 5 best.
    pub top5: TopK,
    /// The target is among the 10 best.
    pub top10: TopK,
    /// Confidence against truth.
    pub calibration: Calibration,
    /// By structural level.
    pub by_level: Vec<Group>,
    /// By class of target.
    pub by_class: Vec<Group>,
    /// By position, from 1.
    pub by_position: Vec<Group>,
    /// By quantifier depth of the formula.
    pub by_depth: Vec<Group>,
    /// By whether the formula stands in the training set; empty where that is not known.
    pub by_novelty: Vec<ByNovelty>,
    /// For each class (row) the share of q on symbols of each class (column), where the target is of the row's class.
    pub confusion: Vec<Vec<f64>>,
    /// Formula by formula, in the order of the corpus, for paired comparisons.
    #[serde(skip)]
    pub scores: Vec<FormulaScore>,
}

/// What one formula cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormulaScore {
    /// The number of targets.
    pub targets: u32,
    /// Σ −ln q over them, in nats.
    pub nats: f64,
    /// Σ −ln p* over them, in nats.
    pub optimal: f64,
}

/// Judges a predictor on sequences of the law, in the code of the corpus; with what it was trained on, also by novelty.
pub fn iid(predictor: &mut dyn Predictor, corpus: &Corpus, law: &Law, known: Option<&Known>) -> Result<Iid> {
    let code = corpus.code();
    let scorer = CodeScorer::new(law, code).map_err(|r| Refusal::Learner(r.to_string()))?;
    let (size, kinds) = (code.size(), by_token(code));
    let mut targets = Vec::with_capacity(corpus.targets() as usize);
    let mut confusion = [[0.0; 6]; 6];
    for range in evaluation_batches(corpus) {
        let batch = corpus.batch(range.clone());
        let q = predictor.distributions(&batch)?;
        let formulas: Vec<(usize, std::ops::Range<usize>)> = range.zip(batch.ranges()).collect();
        let judged: Vec<Result<Judged>> = formulas
            .into_par_iter()
            .map_init(
                || (scorer.clone(), Canonicalizer::default()),
                |(scorer, canonicalizer), (i, rows)| {
                    let q = q.get(rows.start * size..rows.end * size).unwrap_or_default();
                    let keys = known.map(|known| (known, canonicalizer.keys(Corpus::inner(corpus.get(i)))));
                    let novelty = keys.and_then(|(known, keys)| Some(known.novelty(&keys.ok()?)));
                    let formula = Formula {
                        symbols: corpus.get(i),
                        tokens: &corpus.tokens(i),
                        number: i as u32,
                        novelty,
                    };
                    judge(scorer, &kinds, &formula, q)
                },
            )
            .collect();
        for formula in judged {
            let formula = formula?;
            targets.extend(formula.targets);
            for (to, from) in confusion.iter_mut().flatten().zip(formula.confusion.iter().flatten()) {
                *to += from;
            }
        }
    }
    Ok(summarise(&targets, corpus.len(), confusion))
}

struct Judged {
    targets: Vec<Target>,
    confusion: [[f64; 6]; 6],
}

/// A formula to be judged.
struct Formula<'a> {
    /// Canonical, from `<bos>` to `<eos>`.
    symbols: &'a [SymbolId],
    /// As the model reads it.
    tokens: &'a [Token],
    number: u32,
    novelty: Option<Novelty>,
}

/// One formula: `q` [targets, V] beside the scorer's distributions. `kinds` \[V\] are the classes of all tokens.
fn judge(
    scorer: &mut CodeScorer,
    kinds: &[Option<Class>],
    formula: &Formula<'_>,
    q: &[f64],
) -> Result<Judged> {
    let Formula { tokens, number, novelty, .. } = *formula;
    let targets = tokens.get(1..).unwrap_or_default();
    let text = fol::decode(Corpus::inner(formula.symbols)).ok();
    let single = text.as_ref().and_then(|t| t.as_formula());
    let level = single.map_or(0, |f| measure::level(f) as u8);
    let depth = single.map_or(0, |f| measure::quantifier_depth(f) as u32);
    let of_targets = classes(scorer.code(), targets);
    let mut judged = Judged { targets: Vec::with_capacity(targets.len()), confusion: [[0.0; 6]; 6] };
    scorer.reset();
    let rows = targets.iter().zip(q.chunks_exact(kinds.len().max(1))).zip(&of_targets).enumerate();
    for (position, ((&token, q), &class)) in rows {
        // Where the law may write a name that has no token, no model of the vocabulary is near it.
        let uncovered = scorer.rest() > 1e-12;
        let p = scorer.next_dist();
        let compared = compare(p, q, token.index());
        judged.targets.push(Target {
            formula: number,
            position: position as u32 + 1,
            class,
            level,
            depth,
            novelty,
            kl: if uncovered { f64::INFINITY } else { compared.kl },
            ..compared
        });
        add_confusion(&mut judged.confusion, class, kinds, q);
        scorer
            .push(token)
            .map_err(|r| Refusal::Learner(format!("formula {number} of the data is not of the law: {r}")))?;
    }
    Ok(judged)
}

/// The probability on tokens of each class; a name counts for the name class of the row if that is one.
fn add_confusion(confusion: &mut [[f64; 6]; 6], class: Class, kinds: &[Option<Class>], q: &[f64]) {
    let Some(row) = confusion.get_mut(class as usize) else { return };
    let name = if class == Class::OldName { Class::OldName } else { Class::NewName };
    for (kind, q) in kinds.iter().zip(q) {
        let Some(kind) = kind else { continue };
        let to = if *kind == Class::NewName { name } else { *kind };
        if let Some(cell) = row.get_mut(to as usize) {
            *cell += q;
        }
    }
}

/// One prefix: law p and model q, and the symbol that came.
fn compare(p: &[f64], q: &[f64], symbol: usize) -> Target {
    let at = |x: &[f64], i: usize| x.get(i).copied().unwrap_or(0.0);
    let (mut entropy, mut kl, mut brier) = (0.0, 0.0, 0.0);
    for (&p, &q) in p.iter().zip(q) {
        if p > 0.0 {
            entropy -= p * p.ln();
            kl += p * (p / q).ln();
        }
        brier += (q - p).powi(2);
    }
    let own = at(q, symbol);
    let better = |(i, &other): (usize, &f64)| other > own || (other == own && i < symbol);
    let rank = q.iter().enumerate().filter(|&(i, v)| better((i, v))).count() as u32;
    let mut by_model = largest(q);
    by_model.truncate(10);
    let sum_of = |ids: &[usize], k: usize| ids.iter().take(k).map(|&i| at(p, i)).sum::<f64>();
    let by_law = largest(p);
    Target {
        formula: 0,
        position: 0,
        class: Class::Eos,
        level: 0,
        depth: 0,
        novelty: None,
        nll: -own.ln(),
        optimal: -at(p, symbol).ln(),
        entropy,
        kl,
        rank,
        expected: TOP.map(|k| sum_of(&by_model, k)),
        best: TOP.map(|k| sum_of(&by_law, k)),
        confidence: by_model.first().map_or(0.0, |&i| at(q, i)),
        brier,
    }
}

/// The ids of the 10 largest entries, largest first, ties to smaller ids.
fn largest(x: &[f64]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(11);
    for (i, &v) in x.iter().enumerate() {
        let place = best.iter().position(|&b| x.get(b).is_some_and(|&w| v > w)).unwrap_or(best.len());
        if place < 10 {
            best.insert(place, i);
            best.truncate(10);
        }
    }
    best
}

fn mean(targets: &[Target], f: impl Fn(&Target) -> f64) -> f64 {
    targets.iter().map(f).sum::<f64>() / targets.len().max(1) as f64
}

/// The sums of `f` over the targets of each formula, with their number.
fn by_formula(targets: &[Target], f: impl Fn(&Target) -> f64) -> Vec<(f64, f64)> {
    targets
        .chunk_by(|a, b| a.formula == b.formula)
        .map(|t| (t.iter().map(&f).sum(), t.len() as f64))
        .collect()
}

fn summarise(targets: &[Target], formulas: usize, confusion: [[f64; 6]; 6]) -> Iid {
    let nats = mean(targets, |t| t.nll);
    let bits = |total: f64| total / (formulas.max(1) as f64 * std::f64::consts::LN_2);
    let n = targets.len() as f64;
    let optimal = mean(targets, |t| t.optimal);
    let best = |k: usize| mean(targets, |t| t.best[k]);
    let top = |k: usize| {
        let observed = mean(targets, |t| if (t.rank as usize) < TOP[k] { 1.0 } else { 0.0 });
        let expected = mean(targets, |t| t.expected[k]);
        TopK { observed, expected, ratio: expected / best(k) }
    };
    let excess = mean_interval(by_formula(targets, |t| t.nll - t.optimal).into_iter());
    let kl = mean_interval(by_formula(targets, |t| t.kl).into_iter());
    let group =
        |key: &dyn Fn(&Target) -> u64, name: &dyn Fn(u64) -> serde_json::Value| groups(targets, key, name);
    let number = |k: u64| serde_json::json!(k);
    let class_name = |k: u64| serde_json::json!(Class::ALL.get(k as usize).map_or("", |c| c.name()));
    Iid {
        formulas,
        targets: targets.len(),
        nats_per_token: nats,
        perplexity: nats.exp(),
        bits_per_formula: bits(nats * n),
        optimum: Optimum {
            nats_per_token: optimal,
            entropy: mean(targets, |t| t.entropy),
            perplexity: optimal.exp(),
            top1: best(0),
            top5: best(1),
            top10: best(2),
            bits_per_formula: bits(optimal * n),
        },
        excess,
        kl: Mean { value: kl.value, se: kl.se },
        top1: top(0),
        top5: top(1),
        top10: top(2),
        calibration: calibration(targets),
        by_level: group(&|t| u64::from(t.level), &number),
        by_class: group(&|t| t.class as u64, &class_name),
        by_position: group(&|t| u64::from(t.position), &number),
        by_depth: group(&|t| u64::from(t.depth), &number),
        by_novelty: by_novelty(targets),
        confusion: normalised(confusion),
        scores: scores(targets),
    }
}

fn scores(targets: &[Target]) -> Vec<FormulaScore> {
    let score = |t: &[Target]| FormulaScore {
        targets: t.len() as u32,
        nats: t.iter().map(|t| t.nll).sum(),
        optimal: t.iter().map(|t| t.optimal).sum(),
    };
    targets.chunk_by(|a, b| a.formula == b.formula).map(score).collect()
}

fn normalised(confusion: [[f64; 6]; 6]) -> Vec<Vec<f64>> {
    let row = |r: [f64; 6]| {
        let sum: f64 = r.iter().sum();
        r.iter().map(|v| if sum > 0.0 { v / sum } else { 0.0 }).collect()
    };
    confusion.into_iter().map(row).collect()
}

fn groups(
    targets: &[Target],
    key: &dyn Fn(&Target) -> u64,
    name: &dyn Fn(u64) -> serde_json::Value,
) -> Vec<Group> {
    let mut sorted: Vec<Target> = targets.to_vec();
    sorted.sort_by_key(|t| key(t));
    let make = |t: &[Target]| Group {
        key: t.first().map_or(serde_json::Value::Null, |t| name(key(t))),
        targets: t.len(),
        nats_per_token: mean(t, |t| t.nll),
        optimum: mean(t, |t| t.optimal),
        excess: mean(t, |t| t.nll - t.optimal),
        kl: mean(t, |t| t.kl),
        top1: mean(t, |t| if t.rank == 0 { 1.0 } else { 0.0 }),
    };
    sorted.chunk_by(|a, b| key(a) == key(b)).map(make).collect()
}

/// Seen, new, new up to renaming, and the last at each level; degrees without a formula are left out.
fn by_novelty(targets: &[Target]) -> Vec<ByNovelty> {
    let new = |t: &Target| t.novelty == Some(Novelty::New);
    let mut rows = vec![
        part(targets, "seen", &|t| t.novelty == Some(Novelty::Seen)),
        part(targets, "new", &|t| t.novelty.is_some_and(|n| n > Novelty::Seen)),
        part(targets, "new up to renaming", &new),
    ];
    let mut levels: Vec<u8> = targets.iter().filter(|t| new(t)).map(|t| t.level).collect();
    levels.sort_unstable();
    levels.dedup();
    for level in levels {
        let key = format!("new up to renaming, level {level}");
        rows.push(part(targets, &key, &|t| new(t) && t.level == level));
    }
    rows.retain(|row| row.formulas > 0);
    rows
}

/// The loss on some of the formulas.
fn part(targets: &[Target], key: &str, belongs: &dyn Fn(&Target) -> bool) -> ByNovelty {
    let those: Vec<Target> = targets.iter().filter(|t| belongs(t)).copied().collect();
    let excess = by_formula(&those, |t| t.nll - t.optimal);
    ByNovelty {
        key: key.to_owned(),
        formulas: excess.len(),
        targets: those.len(),
        nats_per_token: mean(&those, |t| t.nll),
        optimum: mean(&those, |t| t.optimal),
        excess: mean_interval(excess.into_iter()),
        kl: mean_interval(by_formula(&those, |t| t.kl).into_iter()),
    }
}

fn calibration(targets: &[Target]) -> Calibration {
    const BINS: usize = 15;
    let mut sorted: Vec<(f64, bool)> = targets.iter().map(|t| (t.confidence, t.rank == 0)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sorted.len();
    let (mut ece, mut bins) = (0.0, Vec::new());
    for b in 0..BINS {
        let bin = sorted.get(b * n / BINS..(b + 1) * n / BINS).unwrap_or_default();
        if bin.is_empty() {
            continue;
        }
        let size = bin.len() as f64;
        let confidence = bin.iter().map(|t| t.0).sum::<f64>() / size;
        let hits = bin.iter().filter(|t| t.1).count() as f64 / size;
        ece += size / n as f64 * (confidence - hits).abs();
        bins.push([confidence, hits]);
    }
    Calibration { ece, brier: mean(targets, |t| t.brier), bins }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictor::Uniform;

    /// The parts are disjoint, they sum to the whole, and each is the mean over its own formulas.
    #[test]
    fn seen_and_new_make_the_whole() {
        let law = Law::named("public", &[]).unwrap();
        let corpus = |seed: u64, n: u64| {
            let mut sampler = fol::sample::Sampler::new(&law).unwrap();
            let family = fol::sample::family("novelty-test", seed);
            let (mut corpus, mut tokens) = (Corpus::new(), Vec::new());
            for item in 0..n {
                tokens.clear();
                sampler.sample(&mut family.stream(item), &mut tokens);
                corpus.push(tokens.iter().copied(), f64::NAN);
            }
            corpus
        };
        let (train, test) = (corpus(0, 2000), corpus(1, 300));
        let known = Known::of(&train);
        let judged = iid(&mut Uniform { size: 663 }, &test, &law, Some(&known)).unwrap();
        let row = |key: &str| judged.by_novelty.iter().find(|r| r.key == key).unwrap();
        let (seen, new, fresh) = (row("seen"), row("new"), row("new up to renaming"));
        assert_eq!(seen.formulas + new.formulas, 300);
        assert!(seen.formulas > 50 && fresh.formulas > 10 && fresh.formulas < new.formulas);
        let sum = seen.excess.value * seen.targets as f64 + new.excess.value * new.targets as f64;
        assert!((sum / judged.targets as f64 - judged.excess.value).abs() < 1e-12);
        let levels = judged.by_novelty.iter().filter(|r| r.key.contains(", level"));
        assert_eq!(levels.map(|r| r.formulas).sum::<usize>(), fresh.formulas);
        // Token by token: which of the test's formulas stand in the training set.
        let stands = |s: &[SymbolId]| train.iter().any(|t| t == s);
        assert_eq!(test.iter().filter(|s| stands(s)).count(), seen.formulas);
        assert!(iid(&mut Uniform { size: 663 }, &test, &law, None).unwrap().by_novelty.is_empty());
    }
}
