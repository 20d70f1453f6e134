//! Sets of symbols: what could stand somewhere.
//!
//! One bit for each of the 663 symbols, so that a set is eleven words, is copied without a thought, and can
//! mask a model's output. [`expected_labels`] writes a set as refusals do.

use crate::symbol::{BASE, SymbolId, VOCABULARY};

const WORDS: usize = VOCABULARY.div_ceil(64);

/// A set of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SymbolSet {
    words: [u64; WORDS],
}

impl SymbolSet {
    /// The set without elements.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// Puts a symbol in.
    pub fn insert(&mut self, symbol: SymbolId) {
        if let Some(word) = self.words.get_mut(symbol.index() / 64) {
            *word |= 1 << (symbol.index() % 64);
        }
    }

    /// Puts the numerals 0, …, `count` − 1 in.
    pub fn insert_numerals_below(&mut self, count: u64) {
        let count = count.min(u64::from(BASE)) as usize;
        let (whole, part) = (count / 64, count % 64);
        for word in self.words.iter_mut().take(whole) {
            *word = u64::MAX;
        }
        if let Some(word) = self.words.get_mut(whole) {
            *word |= (1 << part) - 1;
        }
    }

    /// Whether a symbol is in.
    pub fn contains(&self, symbol: SymbolId) -> bool {
        self.words.get(symbol.index() / 64).is_some_and(|word| word >> (symbol.index() % 64) & 1 == 1)
    }

    /// Whether nothing is in.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// The number of symbols.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The symbols, in id order.
    pub fn iter(&self) -> impl Iterator<Item = SymbolId> + '_ {
        SymbolId::all().filter(|symbol| self.contains(*symbol))
    }

    /// The bits, symbol 0 the lowest bit of the first word.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }
}

impl FromIterator<SymbolId> for SymbolSet {
    fn from_iter<I: IntoIterator<Item = SymbolId>>(symbols: I) -> Self {
        let mut set = Self::EMPTY;
        symbols.into_iter().for_each(|symbol| set.insert(symbol));
        set
    }
}

/// The labels of a set in id order, the numerals from 0 on without a gap as one entry `0..k` (only 0: `0`).
pub fn expected_labels(set: &SymbolSet) -> Vec<String> {
    let run = set.iter().zip(0..BASE).take_while(|(symbol, n)| symbol.get() == *n).count();
    let mut labels = match run {
        0 => Vec::new(),
        1 => vec!["0".to_owned()],
        _ => vec![format!("0..{}", run - 1)],
    };
    labels.extend(set.iter().skip(run).map(|symbol| symbol.label().to_owned()));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numerals_are_one_entry() {
        let labels = |ids: &[u16]| expected_labels(&ids.iter().filter_map(|&id| SymbolId::new(id)).collect());
        assert_eq!(labels(&[0]), ["0"]);
        assert_eq!(labels(&[0, 1]), ["0..1"]);
        assert_eq!(labels(&[0, 1, 3, 625]), ["0..1", "3", "NOT"]);
        assert_eq!(labels(&[2, 657]), ["2", "<eos>"]);
        let mut all = SymbolSet::EMPTY;
        all.insert_numerals_below(u64::MAX);
        assert_eq!((expected_labels(&all), all.len()), (vec!["0..624".to_owned()], 625));
    }

    #[test]
    fn numerals_below_are_those_and_no_others() {
        for count in [0, 1, 63, 64, 65, 624, 625] {
            let mut set = SymbolSet::EMPTY;
            set.insert_numerals_below(count);
            assert!(set.iter().map(SymbolId::get).eq(0..count as u16));
        }
    }
}
