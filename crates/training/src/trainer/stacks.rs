//! Sums of the gradients of pieces, in this process's memory and where the parameters lie.

use std::time::Instant;

use super::task::{Loss, Piece, Ready, Task};
use crate::collective::{self, Cost, OnSum, Stack};
use crate::error::{Refusal, Result};
use crate::resident::Resident;

/// The gradients of pieces of a batch.
pub(super) struct Work<'a, T: Task> {
    pub(super) task: &'a mut T,
    pub(super) batch: &'a T::Batch,
    pub(super) parts: usize,
    pub(super) update: u64,
    pub(super) theta: &'a [f32],
    /// That they took.
    pub(super) seconds: f64,
}

impl<T: Task> Work<'_, T> {
    fn gradient(&mut self, part: usize, gradient: &mut [f32]) -> Result<Loss> {
        let (begun, piece) = (Instant::now(), Piece { part, parts: self.parts });
        let loss = self.task.gradient(self.theta, self.batch, piece, self.update, gradient)?;
        self.seconds += begun.elapsed().as_secs_f64();
        Ok(loss)
    }

    fn gradient_as_it_comes(&mut self, part: usize, gradient: &mut [f32], ready: Ready<'_>) -> Result<Loss> {
        let (begun, piece) = (Instant::now(), Piece { part, parts: self.parts });
        let loss =
            self.task.gradient_as_it_comes(self.theta, self.batch, piece, self.update, gradient, ready)?;
        self.seconds += begun.elapsed().as_secs_f64();
        Ok(loss)
    }
}

fn nothing_to_add() -> Refusal {
    Refusal::Others("a sum of gradients was asked for before they were there".to_owned())
}

/// Gradients that are added in this process's memory.
pub(super) struct Here<'a, T: Task> {
    pub(super) work: Work<'a, T>,
    pub(super) sums: Vec<Vec<f32>>,
    pub(super) losses: Vec<Cost>,
}

impl<T: Task> Stack for Here<'_, T> {
    fn piece(&mut self, piece: usize) -> Result<()> {
        let mut gradient = vec![0.0; self.work.theta.len()];
        let loss = self.work.gradient(piece, &mut gradient)?;
        self.losses.push((loss.sum, loss.targets));
        self.put(gradient)
    }

    fn add(&mut self) -> Result<()> {
        let top = self.take()?;
        collective::add(self.sums.last_mut().ok_or_else(nothing_to_add)?, &top);
        Ok(())
    }

    fn losses(&mut self) -> Result<Vec<Cost>> {
        Ok(std::mem::take(&mut self.losses))
    }

    fn take(&mut self) -> Result<Vec<f32>> {
        self.sums.pop().ok_or_else(nothing_to_add)
    }

    fn put(&mut self, gradient: Vec<f32>) -> Result<()> {
        self.sums.push(gradient);
        Ok(())
    }

    fn last(&mut self, piece: usize, sums: usize, ready: OnSum<'_>) -> Result<()> {
        let mut gradient = vec![0.0; self.work.theta.len()];
        let first = self.sums.len().checked_sub(sums).ok_or_else(nothing_to_add)?;
        let mut below = self.sums.split_off(first);
        // What stands is added to the sums below, from the top down; the lowest one is the sum.
        let (mut standing, mut result) = (gradient.len(), Ok(()));
        let mut tell = |gradient: &[f32], from: usize| {
            if result.is_err() {
                return;
            }
            for at in (1..=below.len()).rev() {
                let (lower, upper) = below.split_at_mut(at);
                let above = upper.first().map_or(gradient, Vec::as_slice).get(from..standing);
                let sum = lower.last_mut().and_then(|sum| sum.get_mut(from..standing));
                if let (Some(sum), Some(above)) = (sum, above) {
                    collective::add(sum, above);
                }
            }
            standing = standing.min(from);
            result = ready(below.first().map_or(gradient, Vec::as_slice), standing);
        };
        let loss = self.work.gradient_as_it_comes(piece, &mut gradient, &mut tell)?;
        tell(&gradient, 0);
        self.losses.push((loss.sum, loss.targets));
        result
    }
}

/// Gradients that are added where the parameters lie; what comes here is what other ranks want.
pub(super) struct There<'a, T: Task> {
    pub(super) work: Work<'a, T>,
    /// Of the pieces whose losses are not asked for yet.
    pub(super) targets: Vec<u64>,
}

impl<T: Task> There<'_, T> {
    pub(super) fn resident(&mut self) -> Result<&mut dyn Resident> {
        self.work.task.resident().ok_or_else(nothing_to_add)
    }
}

impl<T: Task> Stack for There<'_, T> {
    fn piece(&mut self, piece: usize) -> Result<()> {
        let loss = self.work.gradient(piece, &mut [])?;
        self.targets.push(loss.targets);
        self.resident()?.push()
    }

    fn add(&mut self) -> Result<()> {
        self.resident()?.add()
    }

    fn losses(&mut self) -> Result<Vec<Cost>> {
        // The device works until here.
        let begun = Instant::now();
        let (sums, _) = self.resident()?.measure()?;
        self.work.seconds += begun.elapsed().as_secs_f64();
        let targets = std::mem::take(&mut self.targets);
        if sums.len() != targets.len() {
            return Err(nothing_to_add());
        }
        Ok(sums.into_iter().zip(targets).collect())
    }

    fn take(&mut self) -> Result<Vec<f32>> {
        let begun = Instant::now();
        let there = self.resident()?;
        there.pop()?;
        let taken = there.gradient()?;
        there.clear();
        self.work.seconds += begun.elapsed().as_secs_f64();
        Ok(taken)
    }

    fn put(&mut self, gradient: Vec<f32>) -> Result<()> {
        let there = self.resident()?;
        there.put(&gradient)?;
        there.push()
    }
}
