//! Attention that knows what two rows are to each other.
//!
//! For every pair of a row i and an earlier row j there is a number r(i, j). With it come, each by itself or together: a
//! bias for each head and number, added to the score (as of Raffel et al. 2020, there for distances); a vector for each
//! number, added to the key, and one, added to the value (Shaw et al. 2018); heads that look at related rows alone.
//!
//! Nothing of the size [rows, rows, size] is made: q·(k + a) is q·k + q·a, where q·a are as many numbers for a row as there are
//! relations, and Σ w (v + a) is Σ w·v and the weights summed by number, times a.

use super::{Mat, MatMut, product};

/// What the rows of a batch are to each other, and what that does.
#[derive(Debug, Clone, Copy)]
pub struct Relations<'a> {
    /// r(i, j), [Σ n²], sequence by sequence, row by row. Entries with j > i are not read; all others are below `count`.
    pub numbers: &'a [u8],
    /// How many numbers there are.
    pub count: usize,
    /// What is learned of them.
    pub tables: Tables<&'a [f32]>,
    /// In heads from this one on, rows of the number are not looked at, but for the first row of the sequence and the row
    /// itself.
    pub hidden: Option<(usize, u8)>,
}

/// Tables of relations; each may be missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tables<T> {
    /// [heads, count], added to the scores.
    pub bias: Option<T>,
    /// [count, size], added to the keys of every head.
    pub keys: Option<T>,
    /// [count, size], added to the values of every head.
    pub values: Option<T>,
}

impl<T> Tables<T> {
    /// Whether nothing is learned.
    pub fn is_empty(&self) -> bool {
        self.bias.is_none() && self.keys.is_none() && self.values.is_none()
    }

    /// With something done to each that is there.
    pub fn map<S>(self, mut each: impl FnMut(T) -> S) -> Tables<S> {
        Tables {
            bias: self.bias.map(&mut each),
            keys: self.keys.map(&mut each),
            values: self.values.map(&mut each),
        }
    }
}

/// One head of one sequence.
pub(super) struct Head<'a> {
    pub(super) numbers: &'a [u8],
    pub(super) n: usize,
    pub(super) size: usize,
    pub(super) head: usize,
    pub(super) of: Relations<'a>,
}

impl<'a> Head<'a> {
    fn table(&self, table: &'a [f32]) -> Mat<'a> {
        Mat::new(table, self.of.count, self.size)
    }

    fn rows(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.numbers.chunks_exact(self.n.max(1)).enumerate().map(|(i, row)| (i, row.get(..=i).unwrap_or(row)))
    }

    /// x·tableᵀ, [n, count]
    fn along(&self, scale: f32, x: Mat<'_>, table: &'a [f32]) -> Vec<f32> {
        let mut out = vec![0.0; self.n * self.of.count];
        product(MatMut::new(&mut out, self.n, self.of.count), false, scale, x, self.table(table).t(), false);
        out
    }

    /// Entries of each row, [n, n], summed by number: [n, count].
    fn by_number(&self, entries: &[f32]) -> Vec<f32> {
        let count = self.of.count;
        let mut sums = vec![0.0; self.n * count];
        for ((i, numbers), sums) in self.rows().zip(sums.chunks_exact_mut(count.max(1))) {
            for (&number, entry) in numbers.iter().zip(&entries[i * self.n..]) {
                sums[usize::from(number)] += entry;
            }
        }
        sums
    }

    /// Adds to each entry of [n, n] what its row has for its number, [n, count].
    fn add_by_number(&self, entries: &mut [f32], of_rows: &[f32]) {
        for ((i, numbers), of_row) in self.rows().zip(of_rows.chunks_exact(self.of.count.max(1))) {
            for (&number, entry) in numbers.iter().zip(&mut entries[i * self.n..]) {
                *entry += of_row[usize::from(number)];
            }
        }
    }

    /// The scores, [n, n], with what relations add to them and without what is hidden.
    pub(super) fn score(&self, q: Mat<'_>, scale: f32, scores: &mut [f32]) {
        let Tables { bias, keys, .. } = self.of.tables;
        let count = self.of.count;
        let mut of_rows = match keys {
            Some(keys) => self.along(scale, q, keys),
            None if bias.is_some() => vec![0.0; self.n * count],
            None => Vec::new(),
        };
        if let Some(bias) = bias.and_then(|bias| bias.get(self.head * count..(self.head + 1) * count)) {
            for row in of_rows.chunks_exact_mut(count.max(1)) {
                row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
            }
        }
        if !of_rows.is_empty() {
            self.add_by_number(scores, &of_rows);
        }
        if let Some((_, hidden)) = self.of.hidden.filter(|(from, _)| self.head >= *from) {
            for (i, numbers) in self.rows() {
                let between = numbers.iter().zip(&mut scores[i * self.n..]).take(i).skip(1);
                between.filter(|(number, _)| **number == hidden).for_each(|(_, s)| *s = f32::NEG_INFINITY);
            }
        }
    }

    /// context += what the relations' values give with these weights.
    pub(super) fn add_values(&self, weights: &[f32], context: MatMut<'_>) {
        if let Some(values) = self.of.tables.values {
            let by_number = self.by_number(weights);
            let by_number = Mat::new(&by_number, self.n, self.of.count);
            product(context, true, 1.0, by_number, self.table(values), false);
        }
    }

    /// The gradient of the values' table from that of the context; what the weights' gradient has of it is added to `da`.
    pub(super) fn values_backward(
        &self,
        weights: &[f32],
        dcontext: Mat<'_>,
        da: &mut [f32],
        gradient: &mut Tables<Vec<f32>>,
    ) {
        let (Some(values), Some(gradient)) = (self.of.tables.values, gradient.values.as_mut()) else {
            return;
        };
        let of_rows = self.along(1.0, dcontext, values);
        self.add_by_number(da, &of_rows);
        let by_number = self.by_number(weights);
        let by_number = Mat::new(&by_number, self.n, self.of.count);
        product(MatMut::new(gradient, self.of.count, self.size), true, 1.0, by_number.t(), dcontext, false);
    }

    /// The gradients of biases and of the keys' table from that of the scores, [n, n]; dq has what the latter give added.
    pub(super) fn scores_backward(
        &self,
        ds: &[f32],
        q: Mat<'_>,
        scale: f32,
        dq: MatMut<'_>,
        gradient: &mut Tables<Vec<f32>>,
    ) {
        let Tables { bias, keys, .. } = self.of.tables;
        if bias.is_none() && keys.is_none() {
            return;
        }
        let count = self.of.count;
        let by_number = self.by_number(ds);
        if let Some(bias) =
            gradient.bias.as_mut().and_then(|b| b.get_mut(self.head * count..(self.head + 1) * count))
        {
            for row in by_number.chunks_exact(count.max(1)) {
                bias.iter_mut().zip(row).for_each(|(b, x)| *b += x);
            }
        }
        if let (Some(keys), Some(gradient)) = (keys, gradient.keys.as_mut()) {
            let by_number = Mat::new(&by_number, self.n, count);
            product(MatMut::new(gradient, count, self.size), true, scale, by_number.t(), q, false);
            product(dq, true, scale, by_number, self.table(keys), false);
        }
    }
}
