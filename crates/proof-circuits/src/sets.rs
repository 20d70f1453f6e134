//! Sets of proofs as values: what the operations of a semiring make of facts.
//!
//! Enter at [`ProofSets`]. With all proofs kept a set says exactly when something follows; with the k most probable ones kept, it
//! is what [`Proofs::top`] keeps of an atom.

use crate::proofs::{Atom, Event, Literal, Proofs};
use crate::top::{Keeper, Literals, Weighted};
use crate::{Failure, Limits};

/// Proofs of which one must be the case: the most probable first, none of which says all that another one says.
#[derive(Debug, Clone, PartialEq)]
pub struct ProofSet(Vec<Weighted>);

impl ProofSet {
    /// The proofs with their probabilities.
    pub fn proofs(&self) -> impl Iterator<Item = (f64, &[Literal])> {
        self.0.iter().map(|(probability, literals)| (*probability, literals.as_slice()))
    }
}

/// Operations on sets of proofs over some events.
#[derive(Debug, Clone)]
pub struct ProofSets {
    events: Proofs,
    weights: Vec<f64>,
    keep: usize,
}

impl ProofSets {
    /// Operations over the events of `events`, whose rules play no part, that keep so many proofs of everything.
    ///
    /// # Errors
    /// Where the weights are no probabilities.
    pub fn new(events: &Proofs, weights: &[f64], keep: usize) -> Result<ProofSets, Failure> {
        let limits = Limits::default();
        Keeper::new(events, weights, &limits)?;
        let events = Proofs {
            choices: events.choices.clone(),
            alternatives: events.alternatives.clone(),
            sure: events.sure.clone(),
            ..Proofs::default()
        };
        Ok(ProofSets { events, weights: weights.to_vec(), keep })
    }

    /// What is never the case: no proof.
    pub fn never(&self) -> ProofSet {
        ProofSet(Vec::new())
    }

    /// What is always the case: a proof of nothing.
    pub fn always(&self) -> ProofSet {
        ProofSet(vec![(1.0, Literals::new())])
    }

    /// An event; never, if it was not made.
    pub fn event(&self, event: Event) -> ProofSet {
        match self.weights.get(event.0 as usize).filter(|_| (event.0 as usize) < self.events.events()) {
            Some(weight) => ProofSet(vec![(*weight, vec![Literal::Is(event)])]),
            None => self.never(),
        }
    }

    /// One or the other.
    pub fn either(&self, a: &ProofSet, b: &ProofSet) -> ProofSet {
        self.kept(|keeper| keeper.best(a.0.iter().chain(&b.0).cloned().collect()))
    }

    /// One and the other.
    pub fn both(&self, a: &ProofSet, b: &ProofSet) -> ProofSet {
        let others: Vec<&[Literal]> = b.0.iter().map(|(_, proof)| proof.as_slice()).collect();
        self.kept(|keeper| keeper.both(&a.0, &others))
    }

    /// Not this: of each proof something is not the case.
    pub fn not(&self, a: &ProofSet) -> ProofSet {
        self.kept(|keeper| keeper.denied(self.always().0, &a.0))
    }

    /// How probable it is that one of the proofs is the case.
    ///
    /// # Errors
    /// As [`Proofs::compile`].
    pub fn probability(&self, set: &ProofSet, limits: &Limits<'_>) -> Result<f64, Failure> {
        let mut flat = self.events.clone();
        let atom: Atom = flat.atom(0);
        set.0.iter().for_each(|(_, proof)| flat.rule(atom, proof));
        let found = flat.compile(&[atom], limits)?.probabilities(&self.weights)?;
        Ok(found.first().copied().unwrap_or(0.0))
    }

    fn kept(&self, with: impl FnOnce(&mut Keeper<'_>) -> Vec<Weighted>) -> ProofSet {
        let limits = Limits::default();
        ProofSet(with(&mut Keeper::keeping(&self.events, &self.weights, &limits, self.keep)))
    }
}
