//! The order of an epoch: which sequences stand in which batch, computed from (seed, epoch) and never stored.
//!
//! Every sequence stands in exactly one batch of each epoch.

use std::ops::Range;

use seeded::Family;

/// How sequences are put into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// Sequences of similar length together, within windows of 64 batches.
    Bucket,
    /// In the order of the epoch. Rows of several sequences need no packing here: a batch is ragged (see
    /// [`crate::batch::Batch`]), so this is `plain` under the name that padded engines need.
    Pack,
    /// In the order of the epoch.
    Plain,
}

/// What the size of a batch counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchUnit {
    /// Sequences.
    Formulas,
    /// Targets; a batch holds about that many.
    Tokens,
}

/// Batches in a window that is sorted by length.
const WINDOW: usize = 64;

/// Makes the batches of any epoch.
#[derive(Debug, Clone)]
pub struct Order {
    /// Targets of each sequence.
    lengths: Vec<u32>,
    batching: Batching,
    unit: BatchUnit,
    size: usize,
    family: Family,
    /// The epoch that was asked for last: its order, and the batches in it.
    cached: Option<(u64, Vec<u32>, Vec<Range<usize>>)>,
}

impl Order {
    /// The order of sequences with these numbers of targets, `size` of `unit` to a batch.
    pub fn new(lengths: Vec<u32>, batching: Batching, unit: BatchUnit, size: usize, seed: u64) -> Self {
        let family = Family::new("training-v1", "order", seed);
        Self { lengths, batching, unit, size: size.max(1), family, cached: None }
    }

    /// The number of batches, the same in every epoch: no more than there are sequences.
    pub fn batches(&self) -> usize {
        let all = match self.unit {
            BatchUnit::Formulas => self.lengths.len(),
            BatchUnit::Tokens => self.lengths.iter().map(|&l| l as usize).sum(),
        };
        all.div_ceil(self.size).min(self.lengths.len()).max(1)
    }

    /// The sequences of batch `index` of an epoch.
    pub fn batch(&mut self, epoch: u64, index: usize) -> &[u32] {
        let (order, cuts) = self.of_epoch(epoch);
        cuts.get(index).and_then(|cut| order.get(cut.clone())).unwrap_or_default()
    }

    /// The sequences of batch `index` of an epoch and of those that follow it, `batches` at most, and no more than have so many
    /// targets, unless the first one has; those of a batch stand together.
    pub fn ahead(&mut self, epoch: u64, index: usize, batches: usize, targets: u64) -> Vec<u32> {
        self.of_epoch(epoch);
        let (order, cuts) = self.held();
        let mut found = Vec::new();
        let mut sum = 0;
        for cut in cuts.iter().skip(index).take(batches) {
            let batch = order.get(cut.clone()).unwrap_or_default();
            sum += batch.iter().map(|&i| u64::from(self.length(i))).sum::<u64>();
            if sum > targets && !found.is_empty() {
                break;
            }
            found.extend_from_slice(batch);
        }
        found
    }

    /// The order of an epoch, and where its batches lie in it.
    fn of_epoch(&mut self, epoch: u64) -> (&[u32], &[Range<usize>]) {
        if self.cached.as_ref().is_none_or(|(e, ..)| *e != epoch) {
            // The one before makes room first.
            self.cached = None;
            let (order, cuts) = self.epoch(epoch);
            self.cached = Some((epoch, order, cuts));
        }
        self.held()
    }

    fn held(&self) -> (&[u32], &[Range<usize>]) {
        match &self.cached {
            Some((_, order, cuts)) => (order, cuts),
            None => (&[], &[]),
        }
    }

    fn epoch(&self, epoch: u64) -> (Vec<u32>, Vec<Range<usize>>) {
        let mut stream = self.family.stream(epoch);
        let mut order = stream.permutation(self.lengths.len() as u32);
        if self.batching != Batching::Bucket {
            let cuts = self.cut(&order);
            return (order, cuts);
        }
        let window = match self.unit {
            BatchUnit::Formulas => self.size * WINDOW,
            BatchUnit::Tokens => (self.lengths.len() * WINDOW).div_ceil(self.batches()),
        };
        for part in order.chunks_mut(window.max(1)) {
            part.sort_by_key(|&i| self.length(i)); // stable: ties keep the epoch's order
        }
        let batches = self.cut(&order);
        let mut shuffled = Vec::with_capacity(batches.len());
        for part in batches.chunks(WINDOW) {
            for i in stream.permutation(part.len() as u32) {
                shuffled.extend(part.get(i as usize).cloned());
            }
        }
        (order, shuffled)
    }

    fn length(&self, i: u32) -> u32 {
        self.lengths.get(i as usize).copied().unwrap_or(0)
    }

    /// Cuts an order into [`batches`](Self::batches) pieces, by number or by the targets that stand before; none of them
    /// is empty, also where one sequence is longer than a batch.
    fn cut(&self, order: &[u32]) -> Vec<Range<usize>> {
        let mut batches = vec![0..0; self.batches()];
        let (mut before, mut at) = (0, 0);
        for (i, &sequence) in order.iter().enumerate() {
            let wanted = match self.unit {
                BatchUnit::Formulas => i,
                BatchUnit::Tokens => before,
            } / self.size;
            let later = batches.len() - 1 - at;
            // One step at most, so that no batch is passed over; and in time, so that each later one has a sequence.
            if i > 0 && later > 0 && (wanted > at || order.len() - i <= later) {
                at += 1;
            }
            before += self.length(sequence) as usize;
            if let Some(batch) = batches.get_mut(at) {
                let from = if batch.end == 0 { i } else { batch.start };
                *batch = from..i + 1;
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_once_in_each_epoch_whatever_the_batching() {
        let lengths: Vec<u32> = (0..10_001).map(|i| 5 + (i * 7919) % 40).collect();
        for batching in [Batching::Bucket, Batching::Pack, Batching::Plain] {
            for (unit, size) in [(BatchUnit::Formulas, 32), (BatchUnit::Tokens, 500)] {
                let mut order = Order::new(lengths.clone(), batching, unit, size, 0);
                let n = order.batches();
                let first: Vec<u32> = (0..n).flat_map(|b| order.batch(0, b).to_vec()).collect();
                let second: Vec<u32> = (0..n).flat_map(|b| order.batch(1, b).to_vec()).collect();
                assert_ne!(first, second);
                for mut all in [first, second] {
                    all.sort_unstable();
                    assert!(all.iter().copied().eq(0..10_001));
                }
            }
        }
    }

    #[test]
    fn no_batch_is_empty_however_long_a_sequence_is() {
        let mut stream = Family::named("order").stream(0);
        for _ in 0..300 {
            let n = 1 + stream.below(40);
            let long = stream.below(3) == 0;
            let lengths: Vec<u32> =
                (0..n).map(|_| 1 + stream.below(if long { 400 } else { 20 }) as u32).collect();
            let size = 1 + stream.below(60) as usize;
            for batching in [Batching::Bucket, Batching::Plain] {
                for unit in [BatchUnit::Formulas, BatchUnit::Tokens] {
                    let mut order = Order::new(lengths.clone(), batching, unit, size, 1);
                    let batches: Vec<Vec<u32>> =
                        (0..order.batches()).map(|b| order.batch(2, b).to_vec()).collect();
                    assert!(batches.iter().all(|b| !b.is_empty()), "{lengths:?}, {size} {unit:?}");
                    let mut all = batches.concat();
                    all.sort_unstable();
                    assert!(all.iter().copied().eq(0..n as u32));
                }
            }
        }
    }

    #[test]
    fn buckets_hold_similar_lengths() {
        let lengths: Vec<u32> = (0..6400).map(|i| 5 + (i * 7919) % 40).collect();
        let spread = |batching| {
            let mut order = Order::new(lengths.clone(), batching, BatchUnit::Formulas, 32, 0);
            let b: Vec<u32> = order.batch(3, 17).iter().map(|&i| lengths[i as usize]).collect();
            b.iter().max().unwrap() - b.iter().min().unwrap()
        };
        assert!(spread(Batching::Bucket) <= 3 && spread(Batching::Plain) > 20);
    }
}
