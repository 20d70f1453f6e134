//! How well predicted classes meet their targets (section 11).

use serde_json::{Map, Value, json};

use crate::task::batch::Batch;

/// Counts over any number of batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// Positions that count.
    pub positions: u64,
    /// Wrong ones among them.
    pub wrong: u64,
    /// Sequences.
    pub sequences: u64,
    /// Sequences without an error.
    pub exact: u64,
    /// Sequences whose last counted position is right.
    pub last: u64,
}

impl Score {
    /// Adds a batch; `predicted` lies as its targets do, `[time][sequence]`, and a missing prediction is wrong. A
    /// sequence in which nothing counts has no error and no wrong last position.
    pub fn add(&mut self, batch: &Batch, predicted: &[u32]) {
        // Whether the sequence has no error, and whether its last counted position was right.
        let mut right = vec![(true, true); batch.sequences];
        for t in (0..batch.steps).filter(|&t| batch.mask.get(t) == Some(&true)) {
            for (b, (exact, last)) in right.iter_mut().enumerate() {
                let at = t * batch.sequences + b;
                *last = predicted.get(at).is_some_and(|p| batch.targets.get(at) == Some(p));
                *exact &= *last;
                self.positions += 1;
                self.wrong += u64::from(!*last);
            }
        }
        self.sequences += right.len() as u64;
        self.exact += right.iter().filter(|r| r.0).count() as u64;
        self.last += right.iter().filter(|r| r.1).count() as u64;
    }

    /// Wrong positions among counted ones; 0 if none counts.
    pub fn symbol_error(&self) -> f64 {
        share(self.wrong, self.positions)
    }

    /// The share of sequences without an error.
    pub fn sequence_exact(&self) -> f64 {
        share(self.exact, self.sequences)
    }

    /// The share of sequences whose last counted position is right.
    pub fn last_symbol(&self) -> f64 {
        share(self.last, self.sequences)
    }

    /// The three measures, as an `eval` line and `eval.json` have them.
    pub fn fields(&self) -> Map<String, Value> {
        let fields = [
            ("symbol_error", self.symbol_error()),
            ("sequence_exact", self.sequence_exact()),
            ("last_symbol", self.last_symbol()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::tape::Size;
    use crate::task::{Settings, Task};

    #[test]
    fn by_hand() {
        let task = Task::new("pair-swap", &Settings::default()).unwrap();
        let examples =
            ["0110", "1000"].map(|s| task.example(&task.parse(s).unwrap(), Size::default()).unwrap());
        let batch = Batch::new(&examples);
        let mut score = Score::default();
        score.add(&batch, &batch.targets);
        assert_eq!((score.symbol_error(), score.sequence_exact(), score.last_symbol()), (0.0, 1.0, 1.0));
        // Step 0 is masked; an error at step 1 of sequence 0, and at the last step of sequence 1.
        let mut predicted = batch.targets.clone();
        for at in [0, 2, 7] {
            predicted[at] = 1 - predicted[at];
        }
        let mut score = Score::default();
        score.add(&batch, &predicted);
        assert_eq!(score, Score { positions: 6, wrong: 2, sequences: 2, exact: 0, last: 1 });
        score.add(&batch, &[]);
        assert_eq!(score, Score { positions: 12, wrong: 8, sequences: 4, exact: 0, last: 1 });
        assert_eq!(Score::default().fields().len(), 3);
    }
}
