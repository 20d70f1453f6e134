//! Forward sampling: the variables of a Bayesian network are drawn parents first, and what is observed is a weight.
//!
//! Enter at [`Model::sample_forward`]. Likelihood weighting: Fung and Chang (1990); Koller and Friedman, section 12.2. Blocks
//! of samples have a random stream each and are summed in their order: the answer is the same for any number of threads.

use crate::drawing::{BLOCK, Network, Scratch};
use crate::inference::within;
use crate::sums::Sums;
use crate::{Failure, Limits, Model, VariableId};

/// How much is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// How many samples.
    pub samples: u64,
    /// The same seed gives the same answer.
    pub seed: u64,
    /// How many threads draw.
    pub threads: usize,
    /// What tables, and what each thread holds, may take; there are no cliques.
    pub limits: Limits,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { samples: 100_000, seed: 0, threads: 1, limits: Limits::default() }
    }
}

/// A probability that was estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub probability: f64,
    /// Its standard error. It is 0 of a state that was never drawn: of n samples that is likely up to a probability of 3/n. It
    /// is NaN of one sample, which does not say how far samples scatter.
    pub standard_error: f64,
}

/// The distribution of every variable, as samples have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The logarithm of the probability of the evidence: of the mean of all weights.
    pub log_evidence: f64,
    /// Its standard error; NaN of one sample.
    pub log_evidence_error: f64,
    /// How many samples of equal weight would say as much (Kish).
    pub effective: f64,
    /// For each variable the probabilities of its states.
    pub of: Vec<Vec<Estimate>>,
}

/// Blocks that one thread draws before sums are joined.
const PART: u64 = 64;

impl Model {
    /// Estimates of the distribution of every variable, where some are in a given state. Probabilities below 2⁻³² are not
    /// drawn. Rows of a table that do not sum to one are scaled, and their sum goes into the weight where it is off by more
    /// than 1e-6, so that what is estimated is what [`Model::marginals`] computes.
    ///
    /// # Errors
    ///
    /// [`Failure::Model`] if some variable was not [defined](Model::define) given others, there are factors beside those, or
    /// they go in a circle; [`Failure::Question`] for no samples; [`Failure::Memory`]; [`Failure::Evidence`] as
    /// [`Model::marginals`], and if no sample agrees with the evidence.
    pub fn sample_forward(
        &self,
        evidence: &[(VariableId, usize)],
        sampling: &Sampling,
    ) -> Result<Sampled, Failure> {
        if sampling.samples == 0 {
            return Err(Failure::Question("no sample is asked for".to_owned()));
        }
        let blocks = sampling.samples.div_ceil(BLOCK as u64);
        let parts = blocks.div_ceil(PART);
        let threads = (sampling.threads as u64).clamp(1, parts);
        within(Network::bytes(self, threads as usize), &sampling.limits)?;
        let network = Network::new(self, evidence)?;
        let family = seeded::Family::new("graphical-models", "samples", sampling.seed);
        let part = |part: u64| -> Sums {
            let mut scratch = Scratch::new(&network);
            let mut sums = Sums::new(network.cells());
            for block in part * PART..blocks.min((part + 1) * PART) {
                let len = (sampling.samples - block * BLOCK as u64).min(BLOCK as u64) as usize;
                network.draw(&mut family.stream(block), len, &mut scratch);
                scratch.add_to(&network, &mut sums);
            }
            sums
        };
        let mut total = Sums::new(network.cells());
        for first in (0..parts).step_by(threads as usize) {
            let round: Vec<u64> = (first..parts.min(first + threads)).collect();
            for sums in side_by_side(&round, &part) {
                total.join(&sums);
            }
        }
        total.estimates(self, sampling.samples)
    }
}

/// What the function makes of each number, in their order.
fn side_by_side<R: Send>(numbers: &[u64], work: &(dyn Fn(u64) -> R + Sync)) -> Vec<R> {
    let Some((first, others)) = numbers.split_first() else { return Vec::new() };
    std::thread::scope(|scope| {
        let start = |number: &u64| {
            let number = *number;
            (number, std::thread::Builder::new().spawn_scoped(scope, move || work(number)))
        };
        let started: Vec<_> = others.iter().map(start).collect();
        let mut found = vec![work(*first)];
        for (number, thread) in started {
            // Where the system gives no thread, this one does its work.
            found.push(match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => work(number),
            });
        }
        found
    })
}

impl Sums {
    fn estimates(&self, model: &Model, samples: u64) -> Result<Sampled, Failure> {
        if self.weight <= 0.0 {
            let message = format!("none of {samples} samples agrees with the evidence");
            return Err(Failure::Evidence(message));
        }
        let count = samples as f64;
        let known = |error: f64| if samples > 1 { error } else { f64::NAN };
        let estimate = |weight: &f64, square: &f64| {
            let probability = weight / self.weight;
            // Of a ratio of sums, to first order.
            let spread = square * (1.0 - 2.0 * probability) + probability * probability * self.square;
            Estimate { probability, standard_error: known(spread.max(0.0).sqrt() / self.weight) }
        };
        let mut each =
            self.weights.iter().zip(&self.squares).map(|(weight, square)| estimate(weight, square));
        let of = model.variables().iter().map(|variable| each.by_ref().take(variable.states.len()).collect());
        let relative = self.square / (self.weight * self.weight);
        Ok(Sampled {
            of: of.collect(),
            log_evidence: self.scale + (self.weight / count).ln(),
            log_evidence_error: known((relative - 1.0 / count).max(0.0).sqrt()),
            effective: 1.0 / relative,
        })
    }
}
