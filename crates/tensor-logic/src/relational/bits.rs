//! Boolean matrices as rows of bits.

use rayon::prelude::*;

/// A square Boolean matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitMatrix {
    /// Rows and columns.
    pub(super) size: usize,
    /// Words a row.
    pub(super) words: usize,
    /// Row after row.
    pub(super) data: Vec<u64>,
}

impl BitMatrix {
    /// All zero.
    pub(super) fn new(size: usize) -> BitMatrix {
        let words = size.div_ceil(64);
        BitMatrix { size, words, data: vec![0; size * words] }
    }

    /// A row.
    #[inline]
    pub(super) fn row(&self, x: usize) -> &[u64] {
        &self.data[x * self.words..(x + 1) * self.words]
    }

    /// A row.
    #[inline]
    pub(super) fn row_mut(&mut self, x: usize) -> &mut [u64] {
        &mut self.data[x * self.words..(x + 1) * self.words]
    }

    /// Sets a bit.
    #[inline]
    pub(super) fn set(&mut self, x: usize, y: usize) {
        self.data[x * self.words + y / 64] |= 1 << (y % 64);
    }

    /// A bit.
    #[inline]
    pub(super) fn get(&self, x: usize, y: usize) -> bool {
        self.data[x * self.words + y / 64] >> (y % 64) & 1 != 0
    }

    /// The number of ones.
    pub(super) fn count(&self) -> usize {
        self.data.par_chunks(1 << 14).map(|part| part.iter().map(|word| word.count_ones() as usize).sum::<usize>()).sum()
    }

    /// Two rows, the first to be written.
    pub(super) fn two_rows(&mut self, to: usize, from: usize) -> (&mut [u64], &[u64]) {
        let words = self.words;
        if to < from {
            let (low, high) = self.data.split_at_mut(from * words);
            (&mut low[to * words..(to + 1) * words], &high[..words])
        } else {
            let (low, high) = self.data.split_at_mut(to * words);
            (&mut high[..words], &low[from * words..(from + 1) * words])
        }
    }
}

/// to |= from
#[inline]
pub(super) fn or_into(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to |= *from;
    }
}

/// Calls `visit` for every one of a row, in ascending order.
#[inline]
pub(super) fn each_bit(row: &[u64], mut visit: impl FnMut(usize)) {
    for (at, word) in row.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            visit(at * 64 + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}

/// A binary relation as bits, over the constants `universe` (ascending).
#[derive(Debug, Clone)]
pub(super) struct BitRows {
    universe: Vec<u32>,
    /// Which row of the matrix belongs to a position: rows that are equal may be shared.
    row_of: Vec<u32>,
    matrix: Vec<u64>,
    words: usize,
    len: usize,
}

impl BitRows {
    /// From a matrix over positions in the universe.
    pub(super) fn new(universe: Vec<u32>, matrix: BitMatrix) -> BitRows {
        let row_of = (0..universe.len() as u32).collect();
        let len = matrix.count();
        BitRows { universe, row_of, words: matrix.words, matrix: matrix.data, len }
    }

    /// From rows that several positions share.
    pub(super) fn shared(universe: Vec<u32>, row_of: Vec<u32>, matrix: Vec<u64>, words: usize) -> BitRows {
        let mut bits = BitRows { universe, row_of, matrix, words, len: 0 };
        bits.len = bits.counts().iter().sum();
        bits
    }

    fn row(&self, position: usize) -> &[u64] {
        let at = self.row_of[position] as usize * self.words;
        &self.matrix[at..at + self.words]
    }

    /// The number of tuples of each position.
    fn counts(&self) -> Vec<usize> {
        let of_row: Vec<usize> = (0..self.matrix.len() / self.words.max(1))
            .into_par_iter()
            .with_min_len(64)
            .map(|at| self.matrix[at * self.words..(at + 1) * self.words].iter().map(|w| w.count_ones() as usize).sum())
            .collect();
        self.row_of.iter().map(|row| of_row.get(*row as usize).copied().unwrap_or(0)).collect()
    }

    /// The number of tuples.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a tuple is there.
    pub(super) fn contains(&self, x: u32, y: u32) -> bool {
        match (self.universe.binary_search(&x), self.universe.binary_search(&y)) {
            (Ok(x), Ok(y)) => self.row(x)[y / 64] >> (y % 64) & 1 != 0,
            _ => false,
        }
    }

    /// All tuples in ascending order, one behind the other.
    pub(super) fn rows(&self) -> Vec<u32> {
        let counts = self.counts();
        let mut rows = vec![0; 2 * self.len];
        let mut parts = Vec::with_capacity(counts.len());
        let mut open = rows.as_mut_slice();
        for count in &counts {
            let (part, further) = std::mem::take(&mut open).split_at_mut(2 * count);
            parts.push(part);
            open = further;
        }
        parts.into_par_iter().enumerate().with_min_len(16).for_each(|(x, part)| {
            let constant = self.universe[x];
            let mut pairs = part.chunks_exact_mut(2);
            each_bit(self.row(x), |y| {
                if let (Some([left, right]), Some(y)) = (pairs.next(), self.universe.get(y)) {
                    (*left, *right) = (constant, *y);
                }
            });
        });
        rows
    }

    /// All tuples in ascending order, by place.
    pub(super) fn columns(&self) -> Vec<Vec<u32>> {
        let (mut left, mut right) = (Vec::with_capacity(self.len), Vec::with_capacity(self.len));
        for (x, constant) in self.universe.iter().enumerate() {
            each_bit(self.row(x), |y| right.push(self.universe[y]));
            left.resize(right.len(), *constant);
        }
        vec![left, right]
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        4 * (self.universe.capacity() + self.row_of.capacity()) + 8 * self.matrix.capacity()
    }
}
