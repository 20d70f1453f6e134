//! A ragged batch: the rows of all its sequences laid end to end.
//!
//! A sequence of n + 1 tokens `<bos>` … `<eos>` gives n rows: row t holds token t and has token t + 1 as its target.
//! Under a causal mask one pass over the rows costs what n passes over prefixes would, and gives the same loss.
//! There is no padding: batches made by length, by packing or plainly differ only in which sequences they hold.

/// Sequences for one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Input tokens, \[rows\].
    pub tokens: Vec<u32>,
    /// The next token at each row, \[rows\]; `u32::MAX` where none is wanted.
    pub targets: Vec<u32>,
    /// `starts[i]..starts[i + 1]` are the rows of sequence i; one entry more than there are sequences.
    pub starts: Vec<usize>,
    /// The number of the first row in the whole batch that this is a piece of.
    pub first_row: usize,
}

impl Batch {
    /// A batch of whole sequences, `<bos>` and `<eos>` included. A sequence of fewer than two tokens has no row. Here
    /// symbols become numbers, which a model judges itself: one outside its vocabulary is refused there.
    pub fn new<'a, T: Copy + Into<u32> + 'a>(sequences: impl IntoIterator<Item = &'a [T]>) -> Self {
        let mut batch = Self { starts: vec![0], ..Self::default() };
        for s in sequences {
            if let ([inputs @ .., _], [_, targets @ ..]) = (s, s)
                && !inputs.is_empty()
            {
                batch.tokens.extend(inputs.iter().map(|&t| t.into()));
                batch.targets.extend(targets.iter().map(|&t| t.into()));
                batch.starts.push(batch.tokens.len());
            }
        }
        batch
    }

    /// The same rows, of which only those that have read one of the signs have a target; the others have `u32::MAX`, which no
    /// loss counts.
    #[must_use]
    pub fn behind<T: Copy + Into<u32>>(mut self, signs: &[T]) -> Self {
        let ranges: Vec<_> = self.ranges().zip(self.signs(signs)).collect();
        for (range, at) in ranges {
            let before = at.unwrap_or(range.len());
            if let Some(given) = self.targets.get_mut(range.start..range.start + before) {
                given.fill(u32::MAX);
            }
        }
        self
    }

    /// For each sequence the place of the first of these signs among its rows, if there is one.
    pub fn signs<T: Copy + Into<u32>>(&self, signs: &[T]) -> Vec<Option<usize>> {
        let signs: Vec<u32> = signs.iter().map(|&sign| sign.into()).collect();
        let place = |range| {
            let read: &[u32] = self.tokens.get(range).unwrap_or_default();
            read.iter().position(|token| signs.contains(token))
        };
        self.ranges().map(place).collect()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.tokens.len()
    }

    /// The number of sequences.
    pub fn sequences(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The rows of each sequence.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|w| w[0]..w[1])
    }

    /// The position of each row in its sequence, from 0.
    pub fn positions(&self) -> Vec<usize> {
        self.ranges().flat_map(|r| 0..r.len()).collect()
    }

    /// The longest sequence, in rows.
    pub fn longest(&self) -> usize {
        self.ranges().map(|r| r.len()).max().unwrap_or(0)
    }

    /// The sequences `range` as a batch of their own, which remembers its place in this one.
    #[must_use]
    pub fn piece(&self, range: std::ops::Range<usize>) -> Self {
        let starts = self.starts.get(range.start..=range.end).unwrap_or_default();
        let (from, to) = (starts.first().copied().unwrap_or(0), starts.last().copied().unwrap_or(0));
        Self {
            tokens: self.tokens.get(from..to).unwrap_or_default().to_vec(),
            targets: self.targets.get(from..to).unwrap_or_default().to_vec(),
            starts: starts.iter().map(|s| s - from).collect(),
            first_row: self.first_row + from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_pieces() {
        let b = Batch::new([&[656_u16, 1, 2, 657][..], &[656], &[656, 3, 657]]);
        assert_eq!(b.tokens, [656, 1, 2, 656, 3]);
        assert_eq!(b.targets, [1, 2, 657, 3, 657]);
        assert_eq!(b.starts, [0, 3, 5]);
        assert_eq!(b.positions(), [0, 1, 2, 0, 1]);
        let p = b.piece(1..2);
        assert_eq!((p.tokens.as_slice(), p.starts.as_slice(), p.first_row), (&[656, 3][..], &[0, 2][..], 3));
        assert_eq!(b.piece(0..0).rows(), 0);
    }

    #[test]
    fn only_rows_behind_a_sign_have_targets() {
        const NONE: u32 = u32::MAX;
        // A sign is in the first sequence in the middle, in the second one twice, nowhere in the third, and last in the fourth.
        let sequences =
            [&[656_u16, 1, 651, 2, 657][..], &[656, 661, 651, 657], &[656, 1, 657], &[656, 1, 651], &[656]];
        let b = Batch::new(sequences).behind(&[651_u16, 661]);
        assert_eq!(b.tokens, Batch::new(sequences).tokens);
        assert_eq!(b.targets, [NONE, NONE, 2, 657, NONE, 651, 657, NONE, NONE, NONE, NONE]);
        assert_eq!(b.piece(1..2).targets, [NONE, 651, 657]);
    }
}
