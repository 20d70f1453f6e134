//! The most probable proofs of one atom, each with a derivation that uses its events and no others.
//!
//! Enter at [`Proofs::kept`], for what [`Proofs::top`] keeps, and at [`Proofs::best`], which searches until it knows that
//! nothing better was left out: whatever was not kept on the way has a probability, and no proof that needs it has a larger one.

use std::collections::HashMap;

use crate::proofs::{Atom, Literal, Proofs, Search};
use crate::top::{Keeper, Literals, ROUNDING, Table, because, event, says, turned};
use crate::{Failure, Limits};

/// The proofs of an atom that is denied are all needed: at least so many are kept.
const DENIED: usize = 64;

/// So many pairs of short proofs are compared in each search after the first one: a ladder of 320 steps is given up after 2.5
/// seconds.
const EFFORT: u64 = 40_000_000;

/// Proofs of an atom, the most probable first; ties go to the shorter one, then to the one whose events come first.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The proofs.
    pub proofs: Vec<Proof>,
    /// Whether it is known that none was left out that is as probable as one of these. Of what is kept by a number, always.
    pub exact: bool,
}

/// A proof: events that happen or do not, so that the atom follows whatever else is the case.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// How probable it is that all of it is the case.
    pub probability: f64,
    /// Its events, each [`Literal::Is`] or [`Literal::IsNot`]. Of a choice either the alternative that is the case, or
    /// some that are not.
    pub literals: Vec<Literal>,
    /// A derivation from them of least height, ties going to earlier rules. The first step is the atom; what several steps
    /// follow from stands once. It uses all of the events, unless proofs of a part were dropped that need fewer.
    pub steps: Vec<Step>,
}

/// A step of a derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is the case.
    pub literal: Literal,
    /// The number of the rule, where it is an atom that follows.
    pub rule: Option<usize>,
    /// The steps that it rests on: the literals of the rule in their order; the events that deny an atom; the alternative
    /// that excludes an event. An event of the proof rests on nothing.
    pub from: Vec<usize>,
}

impl Proofs {
    /// The proofs of an atom that [`Proofs::top`] keeps, the first of them, so many at most, but for those that are impossible
    /// beside what is certain. An atom is denied there as soon as each of its proofs that were kept fails.
    ///
    /// # Errors
    /// As [`Proofs::top`].
    pub fn kept(
        &self,
        goal: Atom,
        keep: &dyn Fn(Atom) -> usize,
        most: usize,
        weights: &[f64],
        limits: &Limits<'_>,
    ) -> Result<Explained, Failure> {
        let table = Keeper::new(self, weights, limits)?.table(&[goal], keep)?;
        Ok(Explained { proofs: self.derived(goal, &table, most, true), exact: true })
    }

    /// The most probable proofs of an atom, so many at most.
    ///
    /// # Errors
    /// As [`Proofs::top`].
    pub fn best(
        &self,
        goal: Atom,
        most: usize,
        weights: &[f64],
        limits: &Limits<'_>,
    ) -> Result<Explained, Failure> {
        let mut keeper = Keeper::new(self, weights, limits)?.strict();
        let denied = self.denied(goal);
        let mut k = most.max(1);
        let mut found: Option<Table> = None;
        loop {
            let keep = |atom: Atom| if denied[atom.0 as usize] { k.max(DENIED) } else { k };
            let table = keeper.table(&[goal], &keep)?;
            if keeper.is_exhausted() {
                break;
            }
            let of = table.of(goal);
            let exact = match (table.cut(), of.get(most.saturating_sub(1))) {
                (None, _) => true,
                (Some(cut), Some((last, _))) => *last > cut * (1.0 + ROUNDING),
                (Some(_), None) => false,
            };
            if exact && table.rests {
                return Ok(Explained { proofs: self.derived(goal, &table, most, false), exact });
            }
            found = Some(table);
            if k == usize::MAX {
                break;
            }
            keeper.allow(EFFORT);
            k = k.saturating_mul(4);
        }
        let proofs = found.map_or_else(Vec::new, |table| self.derived(goal, &table, most, false));
        Ok(Explained { proofs, exact: false })
    }

    /// What is denied below a goal, and all that this follows from.
    fn denied(&self, goal: Atom) -> Vec<bool> {
        let mut denied = vec![false; self.atoms()];
        if denied.len() <= goal.0 as usize {
            return denied;
        }
        let mut search = Search::new(self);
        let below = search.below(&[goal]);
        let mut open: Vec<Atom> = Vec::new();
        let bodies = |atom: &Atom| self.rules_of[atom.0 as usize].iter().flat_map(|rule| self.body(*rule));
        for literal in below.atoms.iter().flat_map(bodies) {
            if let Literal::FollowsNot(atom) = literal {
                open.push(*atom);
            }
        }
        for atom in search.below(&open).atoms {
            denied[atom.0 as usize] = true;
        }
        denied
    }

    fn derived(&self, goal: Atom, table: &Table, most: usize, is_kept: bool) -> Vec<Proof> {
        if self.atoms() <= goal.0 as usize {
            return Vec::new();
        }
        let below = Search::new(self).below(&[goal]).atoms;
        let possible = table.of(goal).iter().filter(|(_, proof)| !self.is_impossible(proof));
        let proof = |(probability, literals): &(f64, Literals)| {
            let read = |is_kept: bool| Reading::new(self, table, literals, &below, is_kept).steps(goal);
            // In a recursion that was given up, what was kept of a part may have changed since.
            let steps = if is_kept { read(true).or_else(|| read(false)) } else { read(false) }?;
            Some(Proof { probability: *probability, literals: literals.clone(), steps })
        };
        possible.take(most).filter_map(proof).collect()
    }

    /// Whether a proof contradicts what is certain.
    fn is_impossible(&self, proof: &[Literal]) -> bool {
        let contradicts = |literal: &Literal| {
            let sure = self.sure[self.choice_of(event(*literal)) as usize];
            sure.is_some_and(|sure| match literal {
                Literal::Is(event) => *event != sure,
                _ => event(*literal) == sure,
            })
        };
        proof.iter().any(contradicts)
    }
}

/// Reads a derivation off the rules, where these events are all that is known.
struct Reading<'a> {
    proofs: &'a Proofs,
    table: &'a Table,
    events: &'a [Literal],
    /// What every literal of an atom that is denied rests on, if it is denied by these events.
    denials: HashMap<Atom, Option<Literals>>,
    /// The rule of each atom that follows from them.
    rules: HashMap<Atom, u32>,
    /// Whether an atom rests on what was kept of it only, and not on what follows from the same events in another way.
    is_kept: bool,
}

impl<'a> Reading<'a> {
    fn new(
        proofs: &'a Proofs,
        table: &'a Table,
        events: &'a [Literal],
        below: &[Atom],
        is_kept: bool,
    ) -> Reading<'a> {
        let (denials, rules) = (HashMap::new(), HashMap::new());
        let mut reading = Reading { proofs, table, events, denials, rules, is_kept };
        reading.follow(below);
        reading
    }

    /// Finds what follows, level by level.
    fn follow(&mut self, below: &[Atom]) {
        let proofs = self.proofs;
        // How many atoms each rule still waits for, and the rules that wait for each atom.
        let mut waiting: HashMap<u32, usize> = HashMap::new();
        let mut readers: HashMap<Atom, Vec<u32>> = HashMap::new();
        let mut level: Vec<u32> = Vec::new();
        for rule in below.iter().flat_map(|atom| &proofs.rules_of[atom.0 as usize]) {
            let body = proofs.body(*rule);
            if !body.iter().all(|literal| self.holds(*literal)) || !self.keeps(*rule) {
                continue;
            }
            let mut parts = 0;
            for literal in body {
                if let Literal::Follows(atom) = literal {
                    readers.entry(*atom).or_default().push(*rule);
                    parts += 1;
                }
            }
            match parts {
                0 => level.push(*rule),
                _ => drop(waiting.insert(*rule, parts)),
            }
        }
        while !level.is_empty() {
            level.sort_unstable();
            let mut proved = Vec::new();
            for rule in level.drain(..) {
                let head = proofs.heads[rule as usize];
                if let std::collections::hash_map::Entry::Vacant(slot) = self.rules.entry(head) {
                    slot.insert(rule);
                    proved.push(head);
                }
            }
            for rule in proved.iter().flat_map(|atom| readers.get(atom).into_iter().flatten()) {
                if let Some(parts) = waiting.get_mut(rule) {
                    *parts -= 1;
                    if *parts == 0 {
                        level.push(*rule);
                    }
                }
            }
        }
    }

    /// Whether a proof that was kept of the head of a rule says what its body says, and what was kept of the atoms there.
    fn keeps(&self, rule: u32) -> bool {
        let says = |proof: &[Literal], literal: &Literal| {
            says(self.proofs, proof, *literal)
                || matches!(literal, Literal::IsNot(_)) && self.is_excluded(*literal)
        };
        let within = |proof: &[Literal], literal: &Literal| match literal {
            Literal::Follows(atom) => {
                self.table.of(*atom).iter().any(|(_, part)| part.iter().all(|literal| says(proof, literal)))
            }
            Literal::FollowsNot(_) => true,
            Literal::Is(_) | Literal::IsNot(_) => says(proof, literal),
        };
        let body = self.proofs.body(rule);
        let head = self.table.of(self.proofs.heads[rule as usize]).iter();
        let mut known = head.filter(|(_, proof)| proof.iter().all(|literal| says(self.events, literal)));
        !self.is_kept || known.any(|(_, proof)| body.iter().all(|literal| within(proof, literal)))
    }

    /// Whether a literal holds, if the atoms that are to follow do.
    fn holds(&mut self, literal: Literal) -> bool {
        match literal {
            Literal::Follows(_) => true,
            Literal::Is(_) => self.events.contains(&literal),
            Literal::IsNot(_) => says(self.proofs, self.events, literal) || self.is_excluded(literal),
            Literal::FollowsNot(atom) => self.denial(atom).is_some(),
        }
    }

    /// Whether something certain excludes an event, and proofs need not say so.
    fn is_excluded(&self, literal: Literal) -> bool {
        if !self.table.strict {
            return false;
        }
        let sure = self.proofs.sure[self.proofs.choice_of(event(literal)) as usize];
        sure.is_some_and(|sure| sure != event(literal))
    }

    /// The events that deny an atom, if they do: as few as going through them finds.
    fn denial(&mut self, atom: Atom) -> Option<&Literals> {
        let (proofs, table, events) = (self.proofs, self.table, self.events);
        self.denials.entry(atom).or_insert_with(|| {
            let fails = |proof: &Literals, events: &[Literal]| {
                proof.iter().any(|literal| says(proofs, events, turned(*literal)))
            };
            let all: Vec<&Literals> = table.of(atom).iter().map(|(_, proof)| proof).collect();
            if !all.iter().all(|proof| fails(proof, events)) {
                return None;
            }
            let mut needed = events.to_vec();
            for at in (0..needed.len()).rev() {
                let mut fewer = needed.clone();
                fewer.remove(at);
                if all.iter().all(|proof| fails(proof, &fewer)) {
                    needed = fewer;
                }
            }
            Some(needed)
        });
        self.denials.get(&atom).and_then(Option::as_ref)
    }

    /// The steps below a goal, if it follows.
    fn steps(mut self, goal: Atom) -> Option<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        let mut at: HashMap<Literal, usize> = HashMap::new();
        let mut open = vec![Literal::Follows(goal)];
        let mut next = 0;
        at.insert(Literal::Follows(goal), 0);
        while let Some(literal) = open.get(next).copied() {
            next += 1;
            let mut rule = None;
            let parts: Literals = match literal {
                Literal::Follows(atom) => {
                    rule = Some(self.rules.get(&atom).copied()?);
                    rule.map_or(Vec::new(), |rule| self.proofs.body(rule).to_vec())
                }
                Literal::FollowsNot(atom) => self.denial(atom)?.clone(),
                // Where it is an event of the proof itself, it rests on nothing.
                _ if self.events.contains(&literal) => Literals::new(),
                _ => because(self.proofs, self.events, literal).into_iter().collect(),
            };
            let mut from = Vec::with_capacity(parts.len());
            for part in parts {
                from.push(*at.entry(part).or_insert_with(|| {
                    open.push(part);
                    open.len() - 1
                }));
            }
            steps.push(Step { literal, rule: rule.map(|rule| rule as usize), from });
        }
        Some(steps)
    }
}
