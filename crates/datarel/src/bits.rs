//! Boolean matrices as rows of bits.

use rayon::prelude::*;

/// A Boolean matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitMatrix {
    /// Words a row.
    pub(super) words: usize,
    /// Row after row.
    pub(super) data: Vec<u64>,
}

impl BitMatrix {
    /// A square one, all zero.
    pub(super) fn new(size: usize) -> BitMatrix {
        BitMatrix::of(size, size.div_ceil(64))
    }

    /// All zero.
    pub(super) fn of(rows: usize, words: usize) -> BitMatrix {
        BitMatrix { words, data: vec![0; rows * words] }
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

    /// Clears a bit.
    pub(super) fn clear(&mut self, x: usize, y: usize) {
        self.data[x * self.words + y / 64] &= !(1 << (y % 64));
    }

    /// A square matrix with rows and columns exchanged.
    pub(super) fn transposed(&self) -> BitMatrix {
        let size = self.data.len() / self.words.max(1);
        let mut turned = BitMatrix::of(size, self.words);
        for x in 0..size {
            each_bit(self.row(x), |y| turned.set(y, x));
        }
        turned
    }

    /// The number of ones.
    pub(super) fn count(&self) -> usize {
        self.data
            .par_chunks(1 << 14)
            .map(|part| part.iter().map(|word| word.count_ones() as usize).sum::<usize>())
            .sum()
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

/// A binary relation as bits, over constants of the left and of the right place (ascending).
#[derive(Debug, Clone)]
pub(super) struct BitRows {
    left: Vec<u32>,
    right: Vec<u32>,
    /// Which row of the matrix belongs to a position on the left: equal rows may be shared.
    row_of: Vec<u32>,
    matrix: BitMatrix,
    len: usize,
}

impl BitRows {
    /// From a matrix over positions in one universe.
    pub(super) fn square(universe: Vec<u32>, matrix: BitMatrix) -> BitRows {
        let row_of = (0..universe.len() as u32).collect();
        BitRows::shared(universe.clone(), universe, row_of, matrix)
    }

    /// From rows that several positions may share.
    pub(super) fn shared(left: Vec<u32>, right: Vec<u32>, row_of: Vec<u32>, matrix: BitMatrix) -> BitRows {
        let mut bits = BitRows { left, right, row_of, matrix, len: 0 };
        bits.len = bits.counts().iter().sum();
        bits
    }

    fn row(&self, position: usize) -> &[u64] {
        self.matrix.row(self.row_of[position] as usize)
    }

    /// The number of tuples of each position on the left.
    fn counts(&self) -> Vec<usize> {
        let words = self.matrix.words.max(1);
        let ones = |row: &[u64]| row.iter().map(|word| word.count_ones() as usize).sum();
        let of_row: Vec<usize> = self.matrix.data.par_chunks(words).with_min_len(64).map(ones).collect();
        self.row_of.iter().map(|row| of_row.get(*row as usize).copied().unwrap_or(0)).collect()
    }

    /// How many tuples each constant of a place has, where there are any.
    pub(super) fn tally(&self, place: usize) -> Vec<(u32, usize)> {
        let (constants, counts) = if place == 0 {
            (&self.left, self.counts())
        } else {
            let mut shared = vec![0; self.matrix.data.len() / self.matrix.words.max(1)];
            self.row_of.iter().for_each(|row| shared[*row as usize] += 1);
            let mut counts = vec![0; self.right.len()];
            for (row, shared) in shared.iter().enumerate().filter(|(_, shared)| **shared > 0) {
                each_bit(self.matrix.row(row), |at| counts[at] += shared);
            }
            (&self.right, counts)
        };
        constants.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect()
    }

    /// Whether it fills more than 1/64 of all pairs: then bits take less space than numbers.
    pub(super) fn dense(&self) -> bool {
        self.matrix.data.len() < self.len
    }

    /// The number of tuples.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a tuple is there.
    pub(super) fn contains(&self, x: u32, y: u32) -> bool {
        match (self.left.binary_search(&x), self.right.binary_search(&y)) {
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
            let constant = self.left[x];
            let mut pairs = part.chunks_exact_mut(2);
            each_bit(self.row(x), |y| {
                if let (Some([left, right]), Some(y)) = (pairs.next(), self.right.get(y)) {
                    (*left, *right) = (constant, *y);
                }
            });
        });
        rows
    }

    /// All tuples in ascending order, by place.
    pub(super) fn columns(&self) -> [Vec<u32>; 2] {
        let (mut left, mut right) = (Vec::with_capacity(self.len), Vec::with_capacity(self.len));
        for (x, constant) in self.left.iter().enumerate() {
            each_bit(self.row(x), |y| right.push(self.right[y]));
            left.resize(right.len(), *constant);
        }
        [left, right]
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        4 * (self.left.capacity() + self.right.capacity() + self.row_of.capacity())
            + 8 * self.matrix.data.capacity()
    }
}
