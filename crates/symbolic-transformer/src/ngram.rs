//! Interpolated Kneser–Ney (Kneser & Ney 1995) with one discount of 0.75, orders 1 to 7.
//!
//! The highest order counts occurrences; every lower order counts *distinct left extensions*, so that a symbol that
//! follows one context only is not taken for a frequent one. Each level is a sorted list of (context, symbol, count).

use std::collections::HashMap;

use fol::notation::Token;
use rayon::prelude::*;
use training::Result;

use crate::batch::Batch;
use crate::corpus::Corpus;
use crate::predictor::Predictor;

const DISCOUNT: f64 = 0.75;

/// Up to 6 symbols of 16 bits, the latest in the lowest place.
type Context = u128;

/// The counts after one context.
#[derive(Debug, Clone)]
struct Following {
    from: usize,
    to: usize,
    /// c(h)
    sum: u64,
}

/// One order: the counts of every symbol after every context of `length` symbols.
#[derive(Debug, Clone)]
struct Level {
    contexts: HashMap<Context, Following>,
    /// (symbol, count), context by context.
    counts: Vec<(Token, u64)>,
    /// Distinct (context, symbol), sorted.
    types: Vec<(Context, Token)>,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Ngram {
    /// From order 1 on.
    levels: Vec<Level>,
    /// The number of tokens, V.
    size: usize,
    bos: Token,
}

fn shorten(context: Context, length: usize) -> Context {
    context & ((1 << (16 * length)) - 1)
}

impl Level {
    /// From pairs with repetition.
    fn new(mut pairs: Vec<(Context, Token)>) -> Self {
        pairs.par_sort_unstable();
        let mut level = Self { contexts: HashMap::new(), counts: Vec::new(), types: Vec::new() };
        for same_context in pairs.chunk_by(|a, b| a.0 == b.0) {
            let from = level.counts.len();
            for same in same_context.chunk_by(|a, b| a.1 == b.1) {
                if let Some(&pair) = same.first() {
                    level.counts.push((pair.1, same.len() as u64));
                    level.types.push(pair);
                }
            }
            if let Some(&(context, _)) = same_context.first() {
                let following = Following { from, to: level.counts.len(), sum: same_context.len() as u64 };
                level.contexts.insert(context, following);
            }
        }
        level
    }
}

impl Ngram {
    /// Counts a corpus. `order` is 1 to 7.
    pub fn train(corpus: &Corpus, order: usize) -> Self {
        let order = order.clamp(1, 7);
        let mut pairs = Vec::with_capacity(corpus.targets() as usize);
        let [bos, _] = corpus.code().boundaries();
        for i in 0..corpus.len() {
            let mut context = start(order, bos);
            for token in corpus.tokens(i).into_iter().skip(1) {
                pairs.push((shorten(context, order - 1), token));
                context = push(context, token.into());
            }
        }
        let mut levels = vec![Level::new(pairs)];
        for length in (0..order - 1).rev() {
            // Each distinct (v, h, w) is one left extension of (h, w).
            let types = levels.last().map(|l| l.types.as_slice()).unwrap_or_default();
            let pairs = types.iter().map(|&(context, w)| (shorten(context, length), w)).collect();
            levels.push(Level::new(pairs));
        }
        levels.reverse();
        Self { levels, size: corpus.code().size(), bos }
    }

    /// The order.
    pub fn order(&self) -> usize {
        self.levels.len()
    }

    /// p(w | context) for all w.
    fn distribution(&self, context: Context, q: &mut [f64]) {
        q.fill(1.0 / self.size as f64);
        for (length, level) in self.levels.iter().enumerate() {
            let Some(following) = level.contexts.get(&shorten(context, length)) else { continue };
            let counts = level.counts.get(following.from..following.to).unwrap_or_default();
            let sum = following.sum as f64;
            let backoff = DISCOUNT * counts.len() as f64 / sum;
            for q in q.iter_mut() {
                *q *= backoff;
            }
            for &(w, c) in counts {
                if let Some(q) = q.get_mut(w.index()) {
                    *q += (c as f64 - DISCOUNT).max(0.0) / sum;
                }
            }
        }
    }
}

/// order − 1 `<bos>`.
fn start(order: usize, bos: Token) -> Context {
    (1..order).fold(0, |context, _| push(context, bos.into()))
}

fn push(context: Context, token: u32) -> Context {
    shorten(context << 16 | Context::from(token), 6)
}

impl Predictor for Ngram {
    fn distributions(&mut self, batch: &Batch) -> Result<Vec<f64>> {
        let mut contexts = Vec::with_capacity(batch.rows());
        for rows in batch.ranges() {
            let mut context = start(self.order(), self.bos);
            for (i, &token) in batch.tokens.get(rows).unwrap_or_default().iter().enumerate() {
                if i > 0 {
                    context = push(context, token); // the first token is the `<bos>` that stands there already
                }
                contexts.push(context);
            }
        }
        let mut q = vec![0.0; batch.rows() * self.size];
        q.par_chunks_exact_mut(self.size).zip(contexts).for_each(|(q, c)| self.distribution(c, q));
        Ok(q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fol::symbol::SymbolId;

    fn corpus() -> Corpus {
        let mut c = Corpus::new();
        for text in [[1, 2], [1, 3], [1, 2]] {
            c.push(text.into_iter().filter_map(SymbolId::new), 0.0);
        }
        c
    }

    #[test]
    fn a_bigram_by_hand() {
        let batch = Batch::new([&[656_u16, 1, 2, 657][..]]);
        let q = Ngram::train(&corpus(), 2).distributions(&batch).unwrap();
        // Left extensions: 1 after <bos>; 2, 3 after 1; <eos> after 2 and 3. Sum 5, 4 types.
        let unigram = |c: f64| (c - 0.75) / 5.0 + 0.75 * 4.0 / 5.0 / 663.0;
        let want = (2.0 - 0.75) / 3.0 + 0.75 * 2.0 / 3.0 * unigram(1.0);
        assert!((q[663 + 2] - want).abs() < 1e-15);
        for row in q.chunks(663) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn an_unseen_context_passes_to_the_lower_order() {
        let mut m = Ngram::train(&corpus(), 3);
        let q = m.distributions(&Batch::new([&[656_u16, 3, 1, 657][..]])).unwrap();
        let lower = Ngram { levels: m.levels[..2].to_vec(), ..m.clone() };
        let mut want = vec![0.0; 663];
        lower.distribution(push(0, 1), &mut want);
        assert_eq!(q[2 * 663..], want);
    }

    #[test]
    fn order_one_counts_occurrences() {
        let q = Ngram::train(&corpus(), 1).distributions(&Batch::new([&[656_u16, 1][..]])).unwrap();
        assert!((q[657] - ((3.0 - 0.75) / 9.0 + 0.75 * 4.0 / 9.0 / 663.0)).abs() < 1e-15);
    }
}
