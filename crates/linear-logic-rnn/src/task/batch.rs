//! Sequences of one length, side by side.
//!
//! Time runs slowest: entry t·B + b of `tokens` and `targets` is step t of sequence b, so that one step of all
//! sequences lies together. Tapes of one n have outputs of different lengths; the shorter ones are filled with the end
//! symbol, and a position counts if it counts for some sequence of the batch (section 7.3). So one mask serves all.

use serde::{Deserialize, Serialize};

use super::Example;
use super::tape::END;

/// By what a summed loss is divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossMean {
    /// Counted positions times sequences.
    #[default]
    Mean,
    /// Counted positions, as the authors had it.
    Authors,
}

/// B sequences of T steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// B
    pub sequences: usize,
    /// T
    pub steps: usize,
    /// Input symbols, `[time][sequence]`.
    pub tokens: Vec<u32>,
    /// Classes, `[time][sequence]`.
    pub targets: Vec<u32>,
    /// Whether a step counts, for all sequences alike, `[time]`.
    pub mask: Vec<bool>,
}

impl Batch {
    /// Lays examples side by side.
    pub fn new(examples: &[Example]) -> Self {
        let steps = examples.iter().map(|e| e.input.len()).max().unwrap_or(0);
        let mut batch = Self { sequences: examples.len(), steps, ..Self::default() };
        batch.tokens.reserve(steps * examples.len());
        batch.targets.reserve(steps * examples.len());
        for t in 0..steps {
            let at = |row: &[u32]| row.get(t).copied().unwrap_or(END);
            batch.tokens.extend(examples.iter().map(|e| at(&e.input)));
            batch.targets.extend(examples.iter().map(|e| at(&e.target)));
            batch.mask.push(examples.iter().any(|e| e.mask.get(t) == Some(&true)));
        }
        batch
    }

    /// The number of positions that count, in one sequence.
    pub fn counted(&self) -> usize {
        self.mask.iter().filter(|&&counts| counts).count()
    }

    /// By what the loss summed over counted positions and sequences is divided.
    pub fn divisor(&self, mean: LossMean) -> u64 {
        let sequences = if mean == LossMean::Mean { self.sequences } else { 1 };
        self.counted() as u64 * sequences as u64
    }

    /// Steps of all sequences: the unit of speed.
    pub fn sequence_steps(&self) -> u64 {
        self.steps as u64 * self.sequences as u64
    }

    /// Some of the sequences, under the same mask.
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        let range = range.start.min(self.sequences)..range.end.min(self.sequences);
        let rows = |flat: &[u32]| {
            let rows = flat.chunks(self.sequences.max(1)).filter_map(|row| row.get(range.clone()));
            rows.flatten().copied().collect()
        };
        Self {
            sequences: range.len(),
            steps: self.steps,
            tokens: rows(&self.tokens),
            targets: rows(&self.targets),
            mask: self.mask.clone(),
        }
    }
}
