//! The types `prob` and `topk(k)` as semirings: instances of [`Semiring`].
//!
//! A tag is a set of proofs. The engine runs on ground rules and circuits ([`crate::Weighted`]); evaluated as tags, rules come to
//! the same, slowly.

use datarel::{Fact, Semiring, Value};
use proof_circuits::{Event, Failure, Limits, ProofSet, ProofSets, Proofs};

/// Proofs from facts that hold with a probability: of everything all that are minimal (`prob`), or the most probable ones
/// (`topk`).
#[derive(Debug, Clone)]
pub struct Provenance {
    sets: ProofSets,
    /// The event of each fact, by its number; others hold for certain.
    events: Vec<Option<Event>>,
    certain: ProofSet,
}

impl Provenance {
    /// `prob`: each fact holds with its weight, by its number, whatever else holds.
    ///
    /// # Errors
    /// Where a weight is no probability.
    pub fn prob(weights: &[f64]) -> Result<Provenance, Failure> {
        Provenance::topk(usize::MAX, weights)
    }

    /// `topk(k)`: the k most probable proofs of everything are kept.
    ///
    /// # Errors
    /// Where a weight is no probability.
    pub fn topk(k: usize, weights: &[f64]) -> Result<Provenance, Failure> {
        let mut proofs = Proofs::default();
        let events = weights.iter().map(|_| Some(proofs.fact())).collect();
        Ok(Provenance::new(ProofSets::new(&proofs, weights, k)?, events))
    }

    /// The same over events that may exclude each other: the event of each fact, or none where it holds for certain.
    pub fn new(sets: ProofSets, events: Vec<Option<Event>>) -> Provenance {
        let certain = sets.always();
        Provenance { sets, events, certain }
    }
}

impl Semiring for Provenance {
    type Tag = ProofSet;

    fn zero(&self) -> ProofSet {
        self.sets.never()
    }

    fn one(&self) -> ProofSet {
        self.certain.clone()
    }

    fn plus(&self, a: &ProofSet, b: &ProofSet) -> Option<ProofSet> {
        Some(self.sets.either(a, b))
    }

    fn times(&self, a: &ProofSet, b: &ProofSet) -> Option<ProofSet> {
        Some(self.sets.both(a, b))
    }

    fn negate(&self, tag: &ProofSet) -> Option<ProofSet> {
        Some(self.sets.not(tag))
    }

    fn idempotent(&self) -> bool {
        true
    }

    /// A number is no event: it weighs a rule only if it is certain.
    fn number(&self, value: Value) -> Option<ProofSet> {
        (value.as_real() == 1.0).then(|| self.one())
    }

    fn fact(&self, fact: &Fact<'_>) -> Option<ProofSet> {
        let event = self.events.get(fact.number).copied().flatten();
        Some(event.map_or_else(|| self.one(), |event| self.sets.event(event)))
    }

    /// How probable it is that one of the proofs is the case, where the diagram of them takes 64 MiB at most.
    fn answer(&self, tag: &ProofSet) -> Option<f64> {
        self.sets.probability(tag, &Limits { bytes: 1 << 26, ..Limits::default() }).ok()
    }
}

#[cfg(test)]
mod tests;
