//! What the best possible predictor of a law reaches, measured on texts drawn from it (F47).
//!
//! At each prefix the exact scorer gives the conditional entropy and the largest probabilities; their means over
//! the prefixes of drawn texts estimate the law's entropy rate and the best accuracies. Conditional entropies
//! vary less than −ln p, so a few thousand texts are enough.

use std::f64::consts::LN_2;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::law::Law;
use crate::sample::{Sampler, family};
use crate::score::{Distribution, ExactScorer, Scorer};
use crate::symbol::SymbolId;

/// Sums over the targets of one text, or of many.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TextOptimum {
    /// Symbols and `<eos>`.
    pub targets: u64,
    /// Sum of the conditional entropies, in nats.
    pub entropy: f64,
    /// Sums of the largest, of the 5 largest, of the 10 largest probabilities.
    pub top: [f64; 3],
}

/// The optimum; the names are the keys of manifests and of the command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the manifest's keys")]
pub struct Optimum<T = f64> {
    pub nats_per_token: T,
    pub perplexity: T,
    pub top1: T,
    pub top5: T,
    pub top10: T,
    pub bits_per_formula: T,
}

/// An estimated number and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "value and standard error")]
pub struct Measured {
    pub value: f64,
    pub se: f64,
}

/// The optimum with standard errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the command's keys")]
pub struct Estimate {
    pub formulas: u64,
    pub targets_per_formula: Measured,
    #[serde(flatten)]
    pub optimum: Optimum<Measured>,
}

impl TextOptimum {
    /// The optimum along one text of the scorer's law.
    ///
    /// # Errors
    /// `OffLaw` if the text has probability 0.
    pub fn of(scorer: &mut Scorer, tokens: &[SymbolId]) -> Result<Self, Refusal> {
        let mut sums = Self::default();
        scorer.reset();
        for &token in tokens.iter().chain([&SymbolId::EOS]) {
            sums.targets += 1;
            sums.entropy += scorer.entropy();
            let largest = largest(scorer.next_dist());
            for (sum, k) in sums.top.iter_mut().zip([1, 5, 10]) {
                *sum += largest.iter().take(k).sum::<f64>();
            }
            scorer.push(token)?;
        }
        Ok(sums)
    }

    /// The optimum of all these texts together; `None` if there are none.
    pub fn mean(texts: &[Self]) -> Option<Optimum> {
        let all = Estimate::of(texts).optimum;
        (!texts.is_empty()).then_some(Optimum {
            nats_per_token: all.nats_per_token.value,
            perplexity: all.perplexity.value,
            top1: all.top1.value,
            top5: all.top5.value,
            top10: all.top10.value,
            bits_per_formula: all.bits_per_formula.value,
        })
    }
}

/// The ten largest probabilities, descending.
fn largest(dist: &Distribution) -> [f64; 10] {
    let mut largest = [0.0; 10];
    for &p in dist {
        if p > largest[9] {
            let at = largest.partition_point(|&q| q >= p);
            if let Some(tail) = largest.get_mut(at..) {
                tail.rotate_right(1);
                if let Some(first) = tail.first_mut() {
                    *first = p;
                }
            }
        }
    }
    largest
}

/// Measures the optimum on the first `formulas` items of purpose `iid`, as the law writes them.
///
/// # Errors
/// Those of [`Sampler::new`].
pub fn estimate(law: &Law, formulas: u64, seed: u64) -> Result<Estimate, Refusal> {
    let (sampler, scorer) = (Sampler::of_written(law)?, Scorer::of_written(law)?);
    let family = family("iid", seed);
    let texts: Vec<TextOptimum> = (0..formulas)
        .into_par_iter()
        .map_init(
            || (sampler.clone(), scorer.clone(), Vec::new()),
            |(sampler, scorer, tokens), item| {
                sampler.sample(&mut family.stream(item), tokens);
                TextOptimum::of(scorer, tokens)
            },
        )
        .collect::<Result<_, _>>()?;
    Ok(Estimate::of(&texts))
}

impl Estimate {
    fn of(texts: &[TextOptimum]) -> Self {
        let bits = |nats: Measured| Measured { value: nats.value / LN_2, se: nats.se / LN_2 };
        let per_target = |x: &dyn Fn(&TextOptimum) -> f64| ratio(texts, x, &|t| t.targets as f64);
        let nats = per_target(&|t| t.entropy);
        Self {
            formulas: texts.len() as u64,
            targets_per_formula: ratio(texts, &|t| t.targets as f64, &|_| 1.0),
            optimum: Optimum {
                nats_per_token: nats,
                perplexity: Measured { value: nats.value.exp(), se: nats.value.exp() * nats.se },
                top1: per_target(&|t| t.top[0]),
                top5: per_target(&|t| t.top[1]),
                top10: per_target(&|t| t.top[2]),
                bits_per_formula: bits(ratio(texts, &|t| t.entropy, &|_| 1.0)),
            },
        }
    }
}

/// Σx / Σy, its standard error by linearisation.
fn ratio(
    texts: &[TextOptimum],
    x: &dyn Fn(&TextOptimum) -> f64,
    y: &dyn Fn(&TextOptimum) -> f64,
) -> Measured {
    let n = texts.len() as f64;
    let sum = |f: &dyn Fn(&TextOptimum) -> f64| texts.iter().map(f).sum::<f64>();
    let value = sum(x) / sum(y).max(1.0);
    let squares = sum(&|t| (x(t) - value * y(t)).powi(2));
    let se = (squares / (n * (n - 1.0)).max(1.0)).sqrt() / (sum(y) / n.max(1.0)).max(1.0);
    Measured { value, se }
}
