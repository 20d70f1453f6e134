//! Anything that gives a distribution over the next symbol: a network, a baseline, or the law itself.

use fol::notation::{CodeMask, Token};
use fol::score::CodeScorer;
use rayon::prelude::*;
use training::{Refusal, Result};

use crate::batch::Batch;
use crate::network::Network;

/// A predictor of the next symbol.
pub trait Predictor {
    /// q of every row, [rows, V] in row order; each row sums to 1.
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>>;
}

/// A network with its weights.
pub struct Weighted<'a> {
    /// The model.
    pub network: &'a mut dyn Network,
    /// Its parameters.
    pub theta: &'a [f32],
}

impl Predictor for Weighted<'_> {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let logits = self.network.logits(self.theta, batch)?;
        if logits.iter().any(|z| z.is_nan() || *z == f32::INFINITY) {
            return Err(Refusal::Learner("the logits are no numbers: the weights overflow".to_owned()));
        }
        let width = (logits.len() / batch.rows().max(1)).max(1);
        let mut q = vec![0.0; logits.len()];
        q.par_chunks_exact_mut(width).zip(logits.par_chunks_exact(width)).for_each(|(q, z)| softmax(z, q));
        Ok(q)
    }
}

/// Softmax in f64.
pub(crate) fn softmax(logits: &[f32], q: &mut [f64]) {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (q, &z) in q.iter_mut().zip(logits) {
        *q = (f64::from(z) - f64::from(max)).exp();
        sum += *q;
    }
    for q in q {
        *q /= sum;
    }
}

/// 1/V for every token.
pub struct Uniform {
    /// The number of tokens, V.
    pub size: usize,
}

impl Predictor for Uniform {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        Ok(vec![1.0 / self.size as f64; batch.rows() * self.size])
    }
}

/// Uniform over the tokens that the grammar allows.
pub struct GrammarUniform {
    /// The grammar before any symbol.
    pub mask: CodeMask,
}

impl Predictor for GrammarUniform {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let (v, [_, eos]) = (self.mask.code().size(), self.mask.code().boundaries());
        each_prefix(batch, v, |tokens, q| {
            let mut mask = self.mask.clone();
            for (row, &target) in q.chunks_exact_mut(v).zip(tokens) {
                let legal = mask.legal();
                let share = 1.0 / legal.len().max(1) as f64;
                for token in legal {
                    if let Some(q) = row.get_mut(token.index()) {
                        *q = share;
                    }
                }
                if let Some(token) = token(target).filter(|t| *t != eos) {
                    mask.push(token).map_err(|r| Refusal::Learner(r.to_string()))?;
                }
            }
            Ok(())
        })
    }
}

/// The exact law as a predictor: what no model can beat.
pub struct ExactLaw {
    /// Its scorer.
    pub scorer: CodeScorer,
}

impl Predictor for ExactLaw {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let v = self.scorer.code().size();
        each_prefix(batch, v, |tokens, q| {
            let mut scorer = self.scorer.clone();
            scorer.reset();
            for (row, &target) in q.chunks_exact_mut(v).zip(tokens) {
                row.copy_from_slice(scorer.next_dist());
                if let Some(token) = token(target) {
                    scorer.push(token).map_err(|r| Refusal::Learner(r.to_string()))?;
                }
            }
            Ok(())
        })
    }
}

fn token(target: u32) -> Option<Token> {
    u16::try_from(target).ok().map(Token::new)
}

/// Calls `fill` with the targets of each sequence and its rows of zeros, in parallel.
fn each_prefix(
    batch: &Batch,
    v: usize,
    fill: impl Fn(&[u32], &mut [f64]) -> Result<()> + Sync,
) -> Result<Vec<f64>> {
    let mut q = vec![0.0; batch.rows() * v];
    let mut rest = q.as_mut_slice();
    let mut tasks = Vec::new();
    for rows in batch.ranges() {
        let (own, after) = rest.split_at_mut(rows.len() * v);
        tasks.push((batch.targets.get(rows).unwrap_or_default(), own));
        rest = after;
    }
    tasks.into_par_iter().try_for_each(|(targets, own)| fill(targets, own))?;
    Ok(q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;
    use crate::evaluate::iid::iid;
    use fol::law::Law;
    use fol::mask::{Grammar, Options};
    use fol::notation::Code;

    fn corpus(law: &Law, n: u64) -> Corpus {
        let mut sampler = fol::sample::Sampler::new(law).unwrap();
        let family = fol::sample::family("test", 0);
        let mut corpus = Corpus::new();
        for i in 0..n {
            let mut text = Vec::new();
            sampler.sample(&mut family.stream(i), &mut text);
            corpus.push(text, 0.0);
        }
        corpus
    }

    #[test]
    fn the_law_has_no_excess_and_the_grammar_has() {
        for name in ["public", "seed", "pr"] {
            let law = Law::named(name, &[]).unwrap();
            let corpus = corpus(&law, 200);
            let exact = iid(
                &mut ExactLaw { scorer: CodeScorer::new(&law, &Code::PLAIN).unwrap() },
                &corpus,
                &law,
                None,
            )
            .unwrap();
            assert!(exact.excess.value.abs() < 1e-9 && exact.kl.value.abs() < 1e-9, "{name}");
            assert!((exact.top1.ratio - 1.0).abs() < 1e-9 && exact.calibration.brier < 1e-12);
            let mut options = Options::new(Grammar::Formula);
            options.within = Some(law.signature());
            let grammar = iid(
                &mut GrammarUniform { mask: CodeMask::new(&Code::PLAIN, &options).unwrap() },
                &corpus,
                &law,
                None,
            )
            .unwrap();
            assert!(grammar.excess.value > 0.1 && grammar.kl.value > 0.1, "{name}: {}", grammar.excess.value);
            let uniform = iid(&mut Uniform { size: 663 }, &corpus, &law, None).unwrap();
            assert!((uniform.nats_per_token - 6.496775).abs() < 1e-6);
            assert!(uniform.nats_per_token > grammar.nats_per_token);
        }
    }
}
