//! The learning rate as a pure function of the update.

use crate::error::{Refusal, Result};

/// The form of the decay after warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decline {
    /// lr·½(1 + cos(π(u−w)/(T−w)))
    Cosine,
    /// lr·(T−u)/(T−w)
    Linear,
    /// lr
    Constant,
}

impl std::str::FromStr for Decline {
    type Err = Refusal;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "cosine" => Ok(Self::Cosine),
            "linear" => Ok(Self::Linear),
            "constant" => Ok(Self::Constant),
            _ => {
                Err(Refusal::Setting(format!("schedule `{s}` is not known; say cosine, linear or constant")))
            }
        }
    }
}

/// Warm-up, decline, floor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The highest rate.
    pub lr: f64,
    /// Updates of linear warm-up, w.
    pub warmup: u64,
    /// All updates, T.
    pub total: u64,
    /// The rate never falls below this after warm-up.
    pub min_lr: f64,
    /// How it falls.
    pub decline: Decline,
}

impl Schedule {
    /// The default warm-up: min(2000, ⌈T/20⌉).
    pub fn auto_warmup(total: u64) -> u64 {
        total.div_ceil(20).min(2000)
    }

    /// The rate of update u = 1 … T; `u = 0` gives the formula's value, and after T the rate stays.
    pub fn rate(&self, update: u64) -> f64 {
        let (u, w, t) = (update.min(self.total) as f64, self.warmup as f64, self.total as f64);
        if update < self.warmup {
            return self.lr * u / w;
        }
        let left = if self.total > self.warmup { (t - u) / (t - w) } else { 1.0 };
        let factor = match self.decline {
            Decline::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * (1.0 - left)).cos()),
            Decline::Linear => left,
            Decline::Constant => 1.0,
        };
        (self.lr * factor).max(self.min_lr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let s = Schedule { lr: 1e-4, warmup: 2000, total: 10_000, min_lr: 0.0, decline: Decline::Cosine };
        for (u, want) in [(0, 0.0), (1000, 5e-5), (2000, 1e-4), (6000, 5e-5), (10_000, 0.0), (20_000, 0.0)] {
            assert!((s.rate(u) - want).abs() < 1e-18, "{u}: {}", s.rate(u));
        }
        let linear = Schedule { decline: Decline::Linear, min_lr: 2e-5, ..s };
        assert!((linear.rate(6000) - 5e-5).abs() < 1e-18);
        assert_eq!(linear.rate(10_000), 2e-5);
        let constant = Schedule { decline: Decline::Constant, warmup: 0, ..s };
        assert_eq!(constant.rate(0), 1e-4);
        assert_eq!(constant.rate(9_999), 1e-4);
        assert_eq!(Schedule::auto_warmup(10), 1);
        assert_eq!(Schedule::auto_warmup(1_000_000), 2000);
        // All warm-up and no decline: no division by 0.
        assert!(Schedule { warmup: 10, total: 10, ..s }.rate(10).is_finite());
    }
}
