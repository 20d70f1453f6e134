//! `split = "enumerate"`: all strings of one length, shuffled and divided.

use std::ops::Range;

use seeded::Stream;

use crate::error::{Refusal, Result};

/// Bits of the longest strings that are enumerated.
const MOST_BITS: usize = 22;

/// All strings of n bits in a shuffled order: the first ones train, as many test, the rest validates.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    bits: usize,
    order: Vec<u32>,
    train: usize,
}

impl Pool {
    /// Refused unless `fraction` leaves at least one string for training and as many for the test.
    pub(super) fn new(bits: usize, fraction: f64, stream: &mut Stream) -> Result<Self> {
        if bits > MOST_BITS {
            let message =
                format!("split = \"enumerate\" lists strings of at most {MOST_BITS} symbols, not {bits}");
            return Err(Refusal::config(message));
        }
        let all = 1_u32 << bits;
        let train = (fraction * f64::from(all)).floor();
        if !(train >= 1.0 && 2.0 * train <= f64::from(all)) {
            let message = format!(
                "train_fraction = {fraction} of {all} strings leaves none to train or too few to test; it is at most 0.5"
            );
            return Err(Refusal::config(message));
        }
        Ok(Self { bits, order: stream.permutation(all), train: train as usize })
    }

    pub(super) fn bits(&self) -> usize {
        self.bits
    }

    pub(super) fn train(&self) -> Range<usize> {
        0..self.train
    }

    pub(super) fn test(&self) -> Range<usize> {
        self.train..2 * self.train
    }

    /// What is neither trained nor tested on; the training strings if nothing is left.
    pub(super) fn valid(&self) -> Range<usize> {
        let rest = 2 * self.train..self.order.len();
        if rest.is_empty() { self.train() } else { rest }
    }

    /// The string at a place of the shuffled order, first symbol first.
    pub(super) fn string(&self, place: usize) -> Vec<u32> {
        let number = self.order.get(place).copied().unwrap_or_default();
        (0..self.bits).rev().map(|bit| number >> bit & 1).collect()
    }
}
