//! The most probable proofs of every atom.
//!
//! A proof is a set of events that happen or do not, so that the atom follows whatever else is the case. Of every atom the k
//! most probable ones are kept (Kimmig et al. 2011; Huang et al. 2021), without those that contain another and without
//! those that cannot be; ties go to the one whose events come first. With as many as there are, nothing is lost.

use std::cmp::Ordering;

use crate::circuit::Circuits;
use crate::proofs::{Atom, Event, Literal, Proofs, Search};
use crate::{Failure, Limits};

/// The literals of a proof, each [`Literal::Is`] or [`Literal::IsNot`], sorted by event.
type Proof = Vec<Literal>;

/// A proof and its probability.
type Weighted = (f64, Proof);

impl Proofs {
    /// The circuits of these goals, where of every atom only the most probable proofs by these weights are kept: as many as
    /// `keep` says.
    ///
    /// # Errors
    /// As [`Proofs::compile`], and where the weights are none.
    pub fn top(
        &self,
        goals: &[Atom],
        keep: &dyn Fn(Atom) -> usize,
        weights: &[f64],
        limits: &Limits<'_>,
    ) -> Result<Circuits, Failure> {
        // Refuses what is no probability.
        Circuits::new(self, 0).probabilities(weights)?;
        let made: Vec<Atom> = goals.iter().copied().filter(|goal| (goal.0 as usize) < self.atoms()).collect();
        let below = Search::new(self).below(&made);
        let mut keeper = Keeper { proofs: self, k: 0, weights };
        let mut kept: Vec<Vec<Weighted>> = vec![Vec::new(); self.atoms()];
        let mut strata: Vec<u32> = below.atoms.iter().map(|atom| self.strata[atom.0 as usize]).collect();
        strata.sort_unstable();
        strata.dedup();
        for stratum in strata {
            let members: Vec<Atom> =
                below.atoms.iter().copied().filter(|atom| self.strata[atom.0 as usize] == stratum).collect();
            // Where proofs drive out others that only something else could have used, rounds may go on for ever.
            for _ in 0..=members.len().saturating_mul(2) {
                let mut rests = true;
                for atom in &members {
                    if (limits.stop)() {
                        return Err(Failure::Stopped);
                    }
                    keeper.k = keep(*atom);
                    let found = keeper.of(*atom, &kept);
                    rests &= found == kept[atom.0 as usize];
                    kept[atom.0 as usize] = found;
                }
                if rests {
                    break;
                }
            }
        }
        let mut flat = Proofs {
            choices: self.choices.clone(),
            alternatives: self.alternatives.clone(),
            sure: self.sure.clone(),
            ..Proofs::default()
        };
        let mut atoms = Vec::with_capacity(goals.len());
        for goal in goals {
            let atom = flat.atom(0);
            for (_, proof) in kept.get(goal.0 as usize).into_iter().flatten() {
                flat.rule(atom, proof);
            }
            atoms.push(atom);
        }
        flat.compile(&atoms, limits)
    }
}

/// What is kept of an atom's proofs.
struct Keeper<'p> {
    proofs: &'p Proofs,
    k: usize,
    weights: &'p [f64],
}

impl Keeper<'_> {
    /// The proofs of an atom from those of the atoms in its rules.
    fn of(&self, atom: Atom, kept: &[Vec<Weighted>]) -> Vec<Weighted> {
        let mut found = Vec::new();
        for rule in &self.proofs.rules_of[atom.0 as usize] {
            let mut ways: Vec<Weighted> = vec![(1.0, Proof::new())];
            for literal in self.proofs.body(*rule) {
                ways = match literal {
                    Literal::Is(_) | Literal::IsNot(_) => self.both(&ways, &[vec![*literal]]),
                    Literal::Follows(of) => {
                        let others: Vec<Proof> =
                            kept[of.0 as usize].iter().map(|(_, proof)| proof.clone()).collect();
                        self.both(&ways, &others)
                    }
                    Literal::FollowsNot(of) => {
                        // Of each proof something is not the case.
                        let mut ways = ways;
                        for (_, proof) in &kept[of.0 as usize] {
                            let failing: Vec<Proof> =
                                proof.iter().map(|literal| vec![turned(*literal)]).collect();
                            ways = self.both(&ways, &failing);
                        }
                        ways
                    }
                };
            }
            found.append(&mut ways);
        }
        self.best(found)
    }

    /// One of these and one of those.
    fn both(&self, ways: &[Weighted], others: &[Proof]) -> Vec<Weighted> {
        let pairs = ways.iter().flat_map(|(_, way)| others.iter().map(move |other| (way, other)));
        self.best(pairs.filter_map(|(way, other)| self.joined(way, other)).collect())
    }

    /// The most probable ones, without those that contain another.
    fn best(&self, mut found: Vec<Weighted>) -> Vec<Weighted> {
        let order = |a: &Weighted, b: &Weighted| match b.0.total_cmp(&a.0) {
            Ordering::Equal => a.1.len().cmp(&b.1.len()).then_with(|| a.1.cmp(&b.1)),
            order => order,
        };
        found.sort_by(order);
        let mut best: Vec<Weighted> = Vec::new();
        for (weight, proof) in found {
            if best.len() == self.k {
                break;
            }
            let contains = |(_, other): &Weighted| other.iter().all(|literal| proof.contains(literal));
            if !best.iter().any(contains) {
                best.push((weight, proof));
            }
        }
        best
    }

    /// What both say, if that can be.
    fn joined(&self, a: &Proof, b: &Proof) -> Option<Weighted> {
        let mut joined: Proof = a.iter().chain(b).copied().collect();
        joined.sort_unstable_by_key(|literal| (event(*literal), *literal));
        joined.dedup();
        let happens = |choice: u32, joined: &Proof| {
            let of = |literal: &&Literal| matches!(literal, Literal::Is(event) if self.proofs.choice_of(*event) == choice);
            joined.iter().filter(of).count()
        };
        let mut weight = 1.0;
        let mut kept = Proof::new();
        let mut at = 0;
        while let Some(literal) = joined.get(at).copied() {
            let choice = self.proofs.choice_of(event(literal));
            let end = at + joined[at..].partition_point(|l| self.proofs.choice_of(event(*l)) == choice);
            let of_choice = &joined[at..end];
            match happens(choice, &joined) {
                // None of some alternatives.
                0 => {
                    let without: f64 = of_choice.iter().map(|l| self.weights[event(*l).0 as usize]).sum();
                    weight *= (1.0 - without).max(0.0);
                    kept.extend_from_slice(of_choice);
                }
                1 => {
                    let is = |l: &&Literal| matches!(l, Literal::Is(_));
                    let one = of_choice.iter().find(is).copied().unwrap_or(literal);
                    if of_choice.contains(&turned(one)) {
                        return None;
                    }
                    // That it is this one says that it is no other.
                    weight *= self.weights[event(one).0 as usize];
                    kept.push(one);
                }
                _ => return None,
            }
            at = end;
        }
        Some((weight, kept))
    }
}

fn event(literal: Literal) -> Event {
    match literal {
        Literal::Is(event) | Literal::IsNot(event) => event,
        // Proofs are made of events.
        Literal::Follows(_) | Literal::FollowsNot(_) => Event(u32::MAX),
    }
}

fn turned(literal: Literal) -> Literal {
    match literal {
        Literal::Is(event) => Literal::IsNot(event),
        Literal::IsNot(event) => Literal::Is(event),
        Literal::Follows(atom) => Literal::FollowsNot(atom),
        Literal::FollowsNot(atom) => Literal::Follows(atom),
    }
}
