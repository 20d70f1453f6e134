//! What a model has seen: the keys of its training set, and the loss on what is new beside the loss on what is not.
//!
//! A law repeats itself: most short formulas of a test set stand in the training set too. A headline over all of
//! them hides how a model fares where it cannot remember. So formulas are parted by the finest canonical form under
//! which they are known: token for token (K0), up to the names of bound variables (K1), up to all names (K2).

use std::collections::HashSet;

use fol::Key;
use fol::canon::{Canonicalizer, Keys};
use serde::Serialize;

use super::statistics::Interval;
use crate::corpus::Corpus;

/// The keys of a training set at K0, K1, K2.
#[derive(Debug, Default)]
pub struct Known([HashSet<Key>; 3]);

impl Known {
    /// The keys of a corpus.
    pub fn of(corpus: &Corpus) -> Self {
        let mut known = Self::default();
        let mut canonicalizer = Canonicalizer::default();
        for sequence in corpus.iter() {
            if let Ok(keys) = canonicalizer.keys(Corpus::inner(sequence)) {
                known.insert(&keys);
            }
        }
        known
    }

    fn insert(&mut self, keys: &Keys) {
        for (set, key) in self.0.iter_mut().zip(keys) {
            set.insert(*key);
        }
    }

    /// How new a text with these keys is.
    pub fn novelty(&self, keys: &Keys) -> Novelty {
        let known =
            |level: usize| self.0.get(level).zip(keys.get(level)).is_some_and(|(set, key)| set.contains(key));
        match (known(0), known(1), known(2)) {
            (true, _, _) => Novelty::Seen,
            (_, true, _) => Novelty::Renamed,
            (_, _, true) => Novelty::Analogous,
            _ => Novelty::New,
        }
    }

    /// The share of `classes` of the form K`level` that are not in the training set; 0 if there are none.
    pub(super) fn share_of_new(&self, level: usize, classes: &HashSet<Key>) -> f64 {
        match self.0.get(level) {
            Some(known) if !classes.is_empty() => {
                classes.difference(known).count() as f64 / classes.len() as f64
            }
            _ => 0.0,
        }
    }
}

/// How new a text is, by the finest form under which the training set has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Novelty {
    /// Token for token (K0).
    Seen,
    /// Only up to the names of bound variables (K1).
    Renamed,
    /// Only up to all names (K2).
    Analogous,
    /// Under none of these.
    New,
}

/// The loss on the formulas of one degree of novelty.
#[derive(Debug, Clone, Serialize)]
pub struct ByNovelty {
    /// `seen`: stands in the training set. `new`: does not (K0). `new up to renaming`: not under other names either
    /// (K2). `new up to renaming, level L`: the last, at one structural level.
    pub key: String,
    /// The number of formulas.
    pub formulas: usize,
    /// The number of targets.
    pub targets: usize,
    /// Mean −ln q.
    pub nats_per_token: f64,
    /// Mean −ln p*.
    pub optimum: f64,
    /// The difference, with its standard error over formulas.
    pub excess: Interval,
    /// Mean Σ p* ln(p*/q) with its standard error: the same expectation with less noise.
    pub kl: Interval,
}

#[cfg(test)]
mod tests {
    use fol::symbol::SymbolId;

    use super::*;

    fn tokens(text: &str) -> Vec<SymbolId> {
        fol::read::parse(text, fol::read::Source::Text, fol::read::Mode::Lenient).unwrap().tokens
    }

    #[test]
    fn each_degree_by_an_example() {
        let mut train = Corpus::new();
        train.push(tokens("∀x1 P5(x1)"), 0.0);
        let known = Known::of(&train);
        let novelty = |text: &str| {
            let keys = Canonicalizer::default().keys(&tokens(text)).unwrap();
            known.novelty(&keys)
        };
        assert_eq!(novelty("∀x1 P5(x1)"), Novelty::Seen);
        assert_eq!(novelty("∀x2 P5(x2)"), Novelty::Renamed);
        assert_eq!(novelty("∀x2 P6(x2)"), Novelty::Analogous);
        assert_eq!(novelty("∃x1 P5(x1)"), Novelty::New);
        assert_eq!(
            Known::default().novelty(&Canonicalizer::default().keys(&tokens("P0(x0)")).unwrap()),
            Novelty::New
        );
    }
}
