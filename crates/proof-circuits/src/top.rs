//! The most probable proofs of every atom.
//!
//! A proof is a set of events that happen or do not, so that the atom follows whatever else is the case. Of every atom the k
//! most probable ones are kept (Kimmig et al. 2011; Huang et al. 2021), without those that contain another and without
//! those that cannot be; ties go to the one whose events come first. With as many as there are, nothing is lost.

use std::cmp::Ordering;

use crate::circuit::Circuits;
use crate::proofs::{Atom, Event, Literal, Proofs, Search};
use crate::{Failure, Limits};

/// Joining two proofs takes as long as comparing about so many.
const JOIN: usize = 10;

/// Of so many more literals in a proof, it takes as long again.
const LONG: usize = 16;

/// How far products of the same numbers may differ by their order.
pub(crate) const ROUNDING: f64 = 1e-9;

/// The literals of a proof, each [`Literal::Is`] or [`Literal::IsNot`], sorted by event.
pub(crate) type Literals = Vec<Literal>;

/// A proof and its probability.
pub(crate) type Weighted = (f64, Literals);

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
        let table = Keeper::new(self, weights, limits)?.table(goals, keep)?;
        let mut flat = Proofs {
            choices: self.choices.clone(),
            alternatives: self.alternatives.clone(),
            sure: self.sure.clone(),
            ranks: self.ranks.clone(),
            ..Proofs::default()
        };
        let mut atoms = Vec::with_capacity(goals.len());
        for goal in goals {
            let atom = flat.atom(0);
            for (_, proof) in table.of(*goal) {
                flat.rule(atom, proof);
            }
            atoms.push(atom);
        }
        flat.compile(&atoms, limits)
    }
}

/// What was kept of the atoms below some goals.
pub(crate) struct Table {
    kept: Vec<Vec<Weighted>>,
    /// Of each atom the probability of the best proof that was found and not kept.
    cuts: Vec<Option<f64>>,
    /// Whether proofs of the atom, or of what it follows from, were left out.
    partial: Vec<bool>,
    /// Whether proofs leave out what is certain in any case.
    pub(crate) strict: bool,
    /// Whether one more round would change nothing.
    pub(crate) rests: bool,
}

impl Table {
    /// The proofs of an atom, the most probable first.
    pub(crate) fn of(&self, atom: Atom) -> &[Weighted] {
        self.kept.get(atom.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// What bounds the probability of every proof that was left out; `None` where none was.
    pub(crate) fn cut(&self) -> Option<f64> {
        self.cuts.iter().copied().flatten().reduce(f64::max)
    }

    /// Whether proofs of an atom may have been left out.
    pub(crate) fn is_partial(&self, atom: Atom) -> bool {
        self.partial.get(atom.0 as usize).copied().unwrap_or(false)
    }
}

/// Finds what is kept of the atoms' proofs.
pub(crate) struct Keeper<'p> {
    proofs: &'p Proofs,
    weights: &'p [f64],
    limits: &'p Limits<'p>,
    /// Whether only proofs count of which all is known: what denies an atom of which proofs were left out is none, and what
    /// is impossible beside what is certain is none. The weights of such proofs would count in derivatives.
    strict: bool,
    /// How many proofs may still be joined with or compared with another.
    effort: u64,
    k: usize,
    /// The most probable of what this atom lost.
    cut: Option<f64>,
}

impl<'p> Keeper<'p> {
    /// # Errors
    /// Where the weights are no probabilities.
    pub(crate) fn new(
        proofs: &'p Proofs,
        weights: &'p [f64],
        limits: &'p Limits<'p>,
    ) -> Result<Keeper<'p>, Failure> {
        proofs.check()?;
        Circuits::new(proofs, 0).probabilities(weights)?;
        Ok(Keeper::keeping(proofs, weights, limits, 0))
    }

    /// One that keeps so many proofs; the weights are probabilities.
    pub(crate) fn keeping(
        proofs: &'p Proofs,
        weights: &'p [f64],
        limits: &'p Limits<'p>,
        k: usize,
    ) -> Keeper<'p> {
        Keeper { proofs, weights, limits, strict: false, effort: u64::MAX, k, cut: None }
    }

    /// The same where only proofs count of which all is known.
    pub(crate) fn strict(self) -> Keeper<'p> {
        Keeper { strict: true, ..self }
    }

    /// Lets so many pairs of proofs be joined or compared from now on.
    pub(crate) fn allow(&mut self, effort: u64) {
        self.effort = effort;
    }

    /// Whether more pairs were asked for than allowed: then what was found is none.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.effort == 0
    }

    /// What is kept of everything below goals.
    pub(crate) fn table(&mut self, goals: &[Atom], keep: &dyn Fn(Atom) -> usize) -> Result<Table, Failure> {
        let atoms = self.proofs.atoms();
        let made: Vec<Atom> = goals.iter().copied().filter(|goal| (goal.0 as usize) < atoms).collect();
        let below = Search::new(self.proofs).below(&made);
        let (kept, cuts, partial) = (vec![Vec::new(); atoms], vec![None; atoms], vec![false; atoms]);
        let mut table = Table { kept, cuts, partial, strict: self.strict, rests: true };
        let strata = self.proofs.strata.as_slice();
        let mut order = below.atoms;
        // Stable: within a stratum, atoms stay behind what they follow from.
        order.sort_by_key(|atom| strata[atom.0 as usize]);
        // When the proofs of an atom were found, and when they last were others than before.
        let (mut found_at, mut changed_at) = (vec![0u64; atoms], vec![0u64; atoms]);
        let mut now = 0;
        for members in order.chunk_by(|a, b| strata[a.0 as usize] == strata[b.0 as usize]) {
            let mut rests = false;
            // Where proofs drive out others that only something else could have used, rounds may go on for ever.
            for _ in 0..=members.len().saturating_mul(2) {
                rests = true;
                for atom in members {
                    if (self.limits.stop)() {
                        return Err(Failure::Stopped);
                    }
                    let at = atom.0 as usize;
                    if found_at[at] > 0
                        && self.parts(*atom).all(|part| changed_at[part.0 as usize] < found_at[at])
                    {
                        continue;
                    }
                    now += 1;
                    found_at[at] = now;
                    (self.k, self.cut) = (keep(*atom), None);
                    let found = self.of(*atom, &table);
                    if self.is_exhausted() {
                        return Ok(table);
                    }
                    let partial = self.cut.is_some() || self.parts(*atom).any(|part| table.is_partial(part));
                    if found != table.kept[at] || partial != table.partial[at] {
                        rests = false;
                        now += 1;
                        changed_at[at] = now;
                    }
                    (table.kept[at], table.cuts[at], table.partial[at]) = (found, self.cut, partial);
                }
                if rests {
                    break;
                }
            }
            table.rests &= rests;
        }
        Ok(table)
    }

    /// The atoms in the rules of an atom.
    fn parts(&self, atom: Atom) -> impl Iterator<Item = Atom> {
        let proofs = self.proofs;
        let literals = proofs.rules_of[atom.0 as usize].iter().flat_map(move |rule| proofs.body(*rule));
        literals.filter_map(|literal| match literal {
            Literal::Follows(part) | Literal::FollowsNot(part) => Some(*part),
            Literal::Is(_) | Literal::IsNot(_) => None,
        })
    }

    /// The proofs of an atom from those of the atoms in its rules.
    fn of(&mut self, atom: Atom, table: &Table) -> Vec<Weighted> {
        let proofs = self.proofs;
        let mut found = Vec::new();
        for rule in &proofs.rules_of[atom.0 as usize] {
            let mut ways: Vec<Weighted> = vec![(1.0, Literals::new())];
            for literal in proofs.body(*rule) {
                ways = match literal {
                    Literal::Is(_) | Literal::IsNot(_) => self.both(&ways, &[&[*literal]]),
                    Literal::Follows(of) => {
                        let others: Vec<&[Literal]> =
                            table.of(*of).iter().map(|(_, proof)| proof.as_slice()).collect();
                        self.both(&ways, &others)
                    }
                    Literal::FollowsNot(of) if self.strict && table.is_partial(*of) => {
                        let best = ways.iter().map(|(weight, _)| *weight).reduce(f64::max);
                        self.lose(best);
                        Vec::new()
                    }
                    Literal::FollowsNot(of) => self.denied(ways, table.of(*of)),
                };
            }
            found.append(&mut ways);
        }
        self.best(found)
    }

    /// These, where of each proof something is not the case.
    pub(crate) fn denied(&mut self, mut ways: Vec<Weighted>, proofs: &[Weighted]) -> Vec<Weighted> {
        for (_, proof) in proofs {
            let failing: Vec<[Literal; 1]> = proof.iter().map(|literal| [turned(*literal)]).collect();
            let failing: Vec<&[Literal]> = failing.iter().map(|one| one.as_slice()).collect();
            ways = self.both(&ways, &failing);
        }
        ways
    }

    /// One of these and one of those.
    pub(crate) fn both(&mut self, ways: &[Weighted], others: &[&[Literal]]) -> Vec<Weighted> {
        let longest = |lengths: &mut dyn Iterator<Item = usize>| 1 + lengths.max().unwrap_or(0) / LONG;
        let long =
            longest(&mut ways.iter().map(|(_, way)| way.len()).chain(others.iter().map(|other| other.len())));
        if !self.spend(ways.len().saturating_mul(others.len()).saturating_mul(JOIN * long)) {
            return Vec::new();
        }
        let pairs = ways.iter().flat_map(|(_, way)| others.iter().map(move |other| (way, other)));
        let joined = pairs.filter_map(|(way, other)| self.joined(way, other)).collect();
        self.best(joined)
    }

    /// The most probable ones, without those that contain another.
    pub(crate) fn best(&mut self, mut found: Vec<Weighted>) -> Vec<Weighted> {
        let order = |a: &Weighted, b: &Weighted| match b.0.total_cmp(&a.0) {
            Ordering::Equal => a.1.len().cmp(&b.1.len()).then_with(|| match self.proofs.ranks.is_empty() {
                true => a.1.cmp(&b.1),
                false => self.ranked(&a.1).cmp(&self.ranked(&b.1)),
            }),
            order => order,
        };
        found.sort_by(order);
        let mut best: Vec<Weighted> = Vec::new();
        for (weight, proof) in found {
            if !self.spend(best.len() * (1 + proof.len() / LONG)) {
                break;
            }
            if best.iter().any(|(_, other)| self.contains(&proof, other)) {
                continue;
            }
            // By rounding, or where what an alternative excludes is impossible, what says less is no more probable.
            let near = weight * (1.0 + ROUNDING);
            best.retain(|(other, more)| *other > near || !self.contains(more, &proof));
            if best.len() == self.k {
                self.lose(Some(weight));
                break;
            }
            best.push((weight, proof));
        }
        best
    }

    /// The places of the events of a proof, in order.
    fn ranked(&self, proof: &[Literal]) -> Vec<(u32, Literal)> {
        let mut ranked: Vec<_> =
            proof.iter().map(|literal| (self.proofs.rank_of(event(*literal)), *literal)).collect();
        ranked.sort_unstable();
        ranked
    }

    /// Takes from what may still be done; false where nothing is left.
    fn spend(&mut self, effort: usize) -> bool {
        self.effort = self.effort.saturating_sub(effort as u64);
        !self.is_exhausted()
    }

    /// A proof of this probability is not kept.
    fn lose(&mut self, weight: Option<f64>) {
        self.cut = self.cut.into_iter().chain(weight).reduce(f64::max);
    }

    /// Whether a proof says all that another one says. Both are sorted, so that one is gone through beside the other.
    fn contains(&self, proof: &[Literal], other: &[Literal]) -> bool {
        let mut rest = proof;
        other.iter().all(|literal| {
            while let Some((first, behind)) = rest.split_first()
                && event(*first) < event(*literal)
            {
                rest = behind;
            }
            rest.first() == Some(literal) || because(self.proofs, proof, *literal).is_some()
        })
    }

    /// What both say, if that can be.
    fn joined(&self, a: &[Literal], b: &[Literal]) -> Option<Weighted> {
        let mut joined: Literals = a.iter().chain(b).copied().collect();
        joined.sort_unstable_by_key(|literal| (event(*literal), *literal));
        joined.dedup();
        let is = |l: &&Literal| matches!(l, Literal::Is(_));
        let mut weight = 1.0;
        let mut kept = Literals::new();
        for of_choice in joined.chunk_by(|a, b| self.choice(*a) == self.choice(*b)) {
            let mut happening = of_choice.iter().filter(is);
            match (happening.next(), happening.next()) {
                // None of some alternatives.
                (None, _) => {
                    match self.sure(of_choice) {
                        Some(sure) if of_choice.contains(&Literal::IsNot(sure)) => return None,
                        // It says nothing that is not certain.
                        Some(_) => continue,
                        None => {}
                    }
                    let without: f64 = of_choice.iter().map(|l| self.weights[event(*l).0 as usize]).sum();
                    weight *= (1.0 - without).max(0.0);
                    kept.extend_from_slice(of_choice);
                }
                (Some(one), None) => {
                    let other = |sure: Event| Literal::Is(sure) != *one;
                    if of_choice.contains(&turned(*one)) || self.sure(of_choice).is_some_and(other) {
                        return None;
                    }
                    // That it is this one says that it is no other.
                    weight *= self.weights[event(*one).0 as usize];
                    kept.push(*one);
                }
                _ => return None,
            }
        }
        Some((weight, kept))
    }

    fn choice(&self, literal: Literal) -> u32 {
        self.proofs.choice_of(event(literal))
    }

    /// The alternative that is the case for certain, where that counts.
    fn sure(&self, of_choice: &[Literal]) -> Option<Event> {
        let choice = of_choice.first().filter(|_| self.strict).map(|literal| self.choice(*literal))?;
        self.proofs.sure[choice as usize]
    }
}

/// Whether a proof says that a literal of an event holds: it is one of its own, or another alternative is the case.
pub(crate) fn says(proofs: &Proofs, proof: &[Literal], literal: Literal) -> bool {
    proof.contains(&literal) || because(proofs, proof, literal).is_some()
}

/// The alternative of a proof that is the case, so that this one is not.
pub(crate) fn because(proofs: &Proofs, proof: &[Literal], literal: Literal) -> Option<Literal> {
    let Literal::IsNot(event) = literal else { return None };
    let choice = proofs.choice_of(event);
    let alternatives = proofs.events_of(choice);
    if alternatives.len() < 2 {
        return None;
    }
    let other = |own: &&Literal| matches!(own, Literal::Is(other) if *other != event && alternatives.contains(&other.0));
    proof.iter().find(other).copied()
}

pub(crate) fn event(literal: Literal) -> Event {
    match literal {
        Literal::Is(event) | Literal::IsNot(event) => event,
        // Proofs are made of events.
        Literal::Follows(_) | Literal::FollowsNot(_) => Event(u32::MAX),
    }
}

pub(crate) fn turned(literal: Literal) -> Literal {
    match literal {
        Literal::Is(event) => Literal::IsNot(event),
        Literal::IsNot(event) => Literal::Is(event),
        Literal::Follows(atom) => Literal::FollowsNot(atom),
        Literal::FollowsNot(atom) => Literal::Follows(atom),
    }
}
