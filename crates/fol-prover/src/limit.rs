//! How long may be searched. A step is a piece of work of a few microseconds: a clause that was derived, an instance that
//! was looked at, a conflict of the propositional solver.

use std::time::{Duration, Instant};

/// The steps of a search that was given no limit.
pub const DEFAULT_STEPS: u64 = 100_000;

/// When a search ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After so many steps: the same answer on every machine.
    Steps(u64),
    /// After so many milliseconds.
    Milliseconds(u64),
}

impl Default for Limit {
    fn default() -> Self {
        Self::Steps(DEFAULT_STEPS)
    }
}

/// The budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent;

/// What is left of a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    used: u64,
    most: u64,
    end: Option<Instant>,
}

/// The clock is looked at once in so many steps.
const GLANCE: u64 = 64;

impl Budget {
    pub(crate) fn new(limit: Limit) -> Self {
        match limit {
            Limit::Steps(most) => Self { used: 0, most, end: None },
            Limit::Milliseconds(ms) => {
                // A time that no clock reaches is no limit.
                let end = Instant::now().checked_add(Duration::from_millis(ms));
                Self { used: 0, most: u64::MAX, end }
            }
        }
    }

    /// The steps that were taken.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Takes steps.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Spent> {
        let before = self.used / GLANCE;
        self.used = self.used.saturating_add(steps);
        if self.used > self.most {
            self.used = self.most;
            return Err(Spent);
        }
        match self.end {
            Some(end) if self.used / GLANCE != before && Instant::now() >= end => Err(Spent),
            _ => Ok(()),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.used >= self.most || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// A budget for a part of the search: at most so many steps, and at most the share `percent` of what is left.
    pub(crate) fn part(&self, steps: u64, percent: u64) -> Self {
        let left = self.most - self.used;
        let share = if self.end.is_some() { left } else { left / 100 * percent + left % 100 * percent / 100 };
        let end = self.end.map(|end| {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            now + left.mul_f64(percent as f64 / 100.0)
        });
        Self { used: 0, most: steps.min(share), end }
    }

    /// Counts the steps of a part.
    pub(crate) fn add(&mut self, part: &Self) {
        self.used = self.used.saturating_add(part.used).min(self.most);
    }
}
