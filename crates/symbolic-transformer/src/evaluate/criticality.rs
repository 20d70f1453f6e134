//! The suite `criticality`: what the layers of a model do to what goes through them, and how large its avalanches are.
//!
//! An avalanche is a run of positions at which more components of the normalised state are active than at the median
//! position of its layer; its size is by how many more, summed over the run (Beggs and Plenz 2003, on the positions of a text).

use seeded::Family;
use serde::Serialize;
use training::Result;

use super::power_law::{Fit, fit};
use crate::learner::Corpus;
use crate::moderator::branching;
use crate::network::{Network, Noise, Sensing};

/// Texts that are looked at in one pass.
const TOGETHER: usize = 32;

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Criticality {
    /// Texts that were looked at.
    pub texts: usize,
    /// The loss in nats per target, and the norm of its gradient, without dropout's noise in the sensors.
    pub nats_per_token: f64,
    /// The norm of the gradient of the mean loss over all targets.
    pub gradient_norm: f64,
    /// σ of each layer.
    pub branching: Vec<f64>,
    /// χ of each layer, the mean over passes.
    pub chi: Vec<f64>,
    /// ρ of each layer, the mean over passes.
    pub rho: Vec<f64>,
    /// The sizes of avalanches; none where there are too few.
    pub avalanches: Option<Fit>,
}

/// Looks at some texts; none where the engine has no sensors.
///
/// # Errors
/// Those of the network.
pub fn criticality(
    network: &mut dyn Network,
    theta: &[f32],
    corpus: &Corpus,
    threshold: f64,
    seed: u64,
) -> Result<Option<Criticality>> {
    let mut gradient = vec![0.0; theta.len()];
    let (mut sum, mut targets, mut passes) = (0.0, 0, 0.0);
    let (mut chi, mut rho): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut active: Vec<Vec<Vec<u32>>> = Vec::new(); // [layers + 1][text][position]
    for from in (0..corpus.len()).step_by(TOGETHER) {
        let batch = corpus.batch(from..corpus.len().min(from + TOGETHER));
        let update = 1 + passes as u64;
        let Some(reading) = network.sense(theta, &batch, Sensing { seed, update, threshold })? else {
            return Ok(None);
        };
        let loss = network.gradient(theta, &batch, Noise { seed, update, smoothing: 0.0 }, &mut gradient)?;
        (sum, targets, passes) = (sum + loss.sum, targets + loss.targets, passes + 1.0);
        add(&mut chi, &reading.chi);
        add(&mut rho, &reading.rho);
        active.resize_with(reading.active.len(), Vec::new);
        for (texts, rows) in active.iter_mut().zip(&reading.active) {
            texts.extend(batch.ranges().map(|range| rows.get(range).unwrap_or_default().to_vec()));
        }
    }
    let n = targets.max(1) as f64;
    let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    let sizes: Vec<u64> = active.iter().skip(1).flat_map(|texts| avalanches(texts)).collect();
    let flat = active.into_iter().map(|texts| texts.into_iter().flatten().collect()).collect();
    let mut stream = Family::new("criticality", "samples", seed).stream(0);
    Ok(Some(Criticality {
        texts: corpus.len(),
        nats_per_token: sum / n,
        gradient_norm: norm / n,
        branching: branching(&crate::network::Reading { active: flat, ..Default::default() }),
        chi: chi.iter().map(|x| x / passes).collect(),
        rho: rho.iter().map(|x| x / passes).collect(),
        avalanches: fit(&sizes, &mut stream),
    }))
}

fn add(sums: &mut Vec<f64>, more: &[f64]) {
    sums.resize(more.len(), 0.0);
    sums.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
}

/// The sizes of the avalanches of one layer; none goes from one text into the next.
fn avalanches(texts: &[Vec<u32>]) -> Vec<u64> {
    let mut all: Vec<u32> = texts.iter().flatten().copied().collect();
    all.sort_unstable();
    let median = all.get(all.len() / 2).copied().unwrap_or(0);
    let mut sizes = Vec::new();
    for text in texts {
        let mut size = 0;
        for &n in text {
            match n.checked_sub(median).filter(|&more| more > 0) {
                Some(more) => size += u64::from(more),
                None if size > 0 => sizes.push(std::mem::take(&mut size)),
                None => {}
            }
        }
        sizes.extend((size > 0).then_some(size));
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avalanches_end_at_the_median_and_with_the_text() {
        // The median is 2.
        let texts = [vec![3, 4, 2, 5, 1], vec![0, 2, 3], vec![4, 1, 2, 0, 1, 2]];
        assert_eq!(avalanches(&texts), [3, 3, 1, 2]);
        assert!(avalanches(&[]).is_empty() && avalanches(&[vec![7, 7]]).is_empty());
    }
}
