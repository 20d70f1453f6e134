//! The order of rows in which a recurrence is fast.

use std::ops::Range;

use crate::batch::Batch;

/// The order of rows in which a recurrence is computed: step by step, the longest sequence first.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// For each packed row its row in the batch.
    pub(super) rows: Vec<usize>,
    /// `steps[t]..steps[t + 1]` are the packed rows of time step t.
    steps: Vec<usize>,
}

impl Packing {
    pub(super) fn new(batch: &Batch) -> Self {
        let mut ranges: Vec<Range<usize>> = batch.ranges().collect();
        ranges.sort_by_key(|r| std::cmp::Reverse(r.len())); // stable
        let mut packing = Self { rows: Vec::with_capacity(batch.rows()), steps: vec![0] };
        for t in 0..batch.longest() {
            packing.rows.extend(ranges.iter().take_while(|r| t < r.len()).map(|r| r.start + t));
            packing.steps.push(packing.rows.len());
        }
        packing
    }

    /// The packed rows of each step, in time order.
    pub(super) fn steps(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + '_ {
        self.steps.windows(2).map(|w| w[0]..w[1])
    }

    /// The number of sequences.
    pub(super) fn sequences(&self) -> usize {
        self.steps.get(1).copied().unwrap_or(0)
    }

    /// Rows of the batch in packed order.
    pub(super) fn pack(&self, x: &[f32], width: usize, packed: &mut Vec<f32>) {
        packed.clear();
        for &row in &self.rows {
            packed.extend_from_slice(&x[row * width..(row + 1) * width]);
        }
    }

    /// Packed rows in the order of the batch.
    pub(super) fn unpack(&self, packed: &[f32], width: usize, x: &mut Vec<f32>) {
        x.resize(packed.len(), 0.0);
        for (from, &row) in packed.chunks_exact(width).zip(&self.rows) {
            x[row * width..(row + 1) * width].copy_from_slice(from);
        }
    }

    /// For each packed row after the first step, the row of `x` one step earlier: the state that its gates saw.
    pub(super) fn earlier(&self, x: &[f32], width: usize) -> Vec<f32> {
        let mut rows = Vec::with_capacity(x.len());
        for w in self.steps.windows(3) {
            rows.extend_from_slice(&x[w[0] * width..(w[0] + w[2] - w[1]) * width]);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_by_step_with_the_longest_first() {
        let b = Batch::new([&[1_u16, 2][..], &[1, 2, 3, 4], &[1, 2, 3]]);
        let p = Packing::new(&b); // lengths 1, 3, 2: rows 0, 1..4, 4..6
        assert_eq!(p.rows, [1, 4, 0, 2, 5, 3]);
        assert_eq!(p.steps, [0, 3, 5, 6]);
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        p.pack(&x, 1, &mut packed);
        p.unpack(&packed, 1, &mut back);
        assert_eq!(back, x);
        // Rows 2, 5, 3 of the batch saw the outputs of rows 1, 4, 2.
        assert_eq!(p.earlier(&packed, 1), [1.0, 4.0, 2.0]);
        assert_eq!(Packing::new(&Batch::default()).sequences(), 0);
    }
}
