//! When each atom follows: from below, those that follow from each other together.

use std::collections::HashMap;

use crate::diagram::{Diagrams, FALSE, Full, Node, TRUE};
use crate::elimination::{self, Sum};
use crate::proofs::{Atom, Event, Literal, Proofs};

/// The functions of all atoms that goals follow from, the choices in this order; those of others may be missing.
pub(crate) fn values(
    proofs: &Proofs,
    goals: &[Atom],
    order: &[u32],
    diagrams: &mut Diagrams<'_>,
) -> Result<Vec<Node>, Full> {
    let mut levels = vec![0; order.len()];
    (0..).zip(order).for_each(|(level, choice)| levels[*choice as usize] = level);
    let mut is_goal = vec![false; proofs.atoms()];
    goals.iter().for_each(|goal| is_goal[goal.0 as usize] = true);
    let values = vec![FALSE; proofs.atoms()];
    let mut functions = Functions { proofs, levels, readers: readers(proofs), is_goal, values };
    let mut by_stratum: Vec<Vec<Atom>> = Vec::new();
    for (atom, stratum) in (0..).map(Atom).zip(&proofs.strata) {
        by_stratum.resize(by_stratum.len().max(*stratum as usize + 1), Vec::new());
        by_stratum[*stratum as usize].push(atom);
    }
    for component in by_stratum.iter().flat_map(|stratum| components(proofs, stratum)) {
        match component[..] {
            [atom] => functions.values[atom.0 as usize] = functions.follows(atom, diagrams)?,
            _ if functions.eliminated(&component, diagrams)? => {}
            _ => functions.fixpoint(&component, diagrams)?,
        }
    }
    Ok(functions.values)
}

struct Functions<'p> {
    proofs: &'p Proofs,
    /// The place of each choice in the order.
    levels: Vec<u32>,
    /// The atoms that have a rule with an atom in it.
    readers: Vec<Vec<Atom>>,
    is_goal: Vec<bool>,
    /// What is known.
    values: Vec<Node>,
}

impl Functions<'_> {
    /// The values of atoms that follow from each other, by elimination; whether that was possible. The atoms whose first
    /// choice stands last go first, so that diagrams grow at their top.
    fn eliminated(&mut self, component: &[Atom], diagrams: &mut Diagrams<'_>) -> Result<bool, Full> {
        let inside: HashMap<Atom, u32> = component.iter().copied().zip(0..).collect();
        let of_cycle = |literal: &Literal| match literal {
            Literal::Follows(other) => inside.get(other).copied(),
            _ => None,
        };
        let rules = |atom: &Atom| &self.proofs.rules_of[atom.0 as usize];
        for rule in component.iter().flat_map(rules) {
            let mut atoms = self.proofs.body(*rule).iter().filter_map(of_cycle);
            if let Some(first) = atoms.next()
                && atoms.any(|other| other != first)
            {
                return Ok(false);
            }
        }
        let mut sums = vec![Sum::default(); component.len()];
        let mut highest = vec![u32::MAX; component.len()];
        let mut wanted = Vec::new();
        for (atom, head) in component.iter().zip(0..) {
            let mut readers = self.readers[atom.0 as usize].iter();
            if self.is_goal[atom.0 as usize] || readers.any(|reader| !inside.contains_key(reader)) {
                wanted.push(head);
            }
            for rule in rules(atom) {
                let body = self.proofs.body(*rule);
                let other = body.iter().find_map(of_cycle);
                let rest = body.iter().filter(|literal| of_cycle(literal).is_none());
                let holds = self.all(rest, diagrams)?;
                for at in other.iter().chain([&head]) {
                    highest[*at as usize] = highest[*at as usize].min(diagrams.level(holds));
                }
                sums[head as usize].add(other, holds, diagrams)?;
            }
        }
        let mut order: Vec<u32> = (0..component.len() as u32).collect();
        let only = if wanted.len() == 1 { wanted.first().copied() } else { None };
        order.sort_by_key(|at| (only == Some(*at), std::cmp::Reverse(highest[*at as usize]), *at));
        let Some(found) = elimination::least(sums, &order, &wanted, diagrams)? else { return Ok(false) };
        for (atom, value) in component.iter().zip(found) {
            self.values[atom.0 as usize] = value;
        }
        Ok(true)
    }

    /// The same by the least fixpoint, from below: equal functions are equal nodes, so that rest is seen.
    fn fixpoint(&mut self, component: &[Atom], diagrams: &mut Diagrams<'_>) -> Result<(), Full> {
        let mut is_stale = vec![false; self.proofs.atoms()];
        component.iter().for_each(|atom| is_stale[atom.0 as usize] = true);
        let mut rests = false;
        while !rests {
            rests = true;
            for atom in component {
                if !std::mem::replace(&mut is_stale[atom.0 as usize], false) {
                    continue;
                }
                let value = self.follows(*atom, diagrams)?;
                if std::mem::replace(&mut self.values[atom.0 as usize], value) != value {
                    let readers = &self.readers[atom.0 as usize];
                    readers.iter().for_each(|reader| is_stale[reader.0 as usize] = true);
                    rests = false;
                }
            }
        }
        Ok(())
    }

    /// When an atom follows, as far as is known when others do.
    fn follows(&self, atom: Atom, diagrams: &mut Diagrams<'_>) -> Result<Node, Full> {
        let mut ways: Vec<Node> = Vec::new();
        for rule in &self.proofs.rules_of[atom.0 as usize] {
            ways.push(self.all(self.proofs.body(*rule).iter(), diagrams)?);
        }
        // In pairs, so that no long chain is gone through again for every rule.
        while ways.len() > 1 {
            let pairs: Result<Vec<Node>, Full> =
                ways.chunks(2).map(|pair| diagrams.or(pair[0], *pair.last().unwrap_or(&FALSE))).collect();
            ways = pairs?;
        }
        Ok(ways.first().copied().unwrap_or(FALSE))
    }

    /// When all of some literals hold, as far as is known.
    fn all<'l>(
        &self,
        literals: impl Iterator<Item = &'l Literal>,
        diagrams: &mut Diagrams<'_>,
    ) -> Result<Node, Full> {
        let mut events: Vec<Node> = Vec::new();
        let mut atoms: Vec<Literal> = Vec::new();
        for literal in literals {
            match literal {
                Literal::Is(of) => events.push(self.event(*of, diagrams)?),
                Literal::IsNot(of) => {
                    let happens = self.event(*of, diagrams)?;
                    events.push(diagrams.not(happens)?);
                }
                Literal::Follows(_) | Literal::FollowsNot(_) => atoms.push(*literal),
            }
        }
        // In pairs, as ways are: what all of some events say is as long as they are many.
        while events.len() > 1 {
            let pairs: Result<Vec<Node>, Full> =
                events.chunks(2).map(|pair| diagrams.and(pair[0], *pair.last().unwrap_or(&TRUE))).collect();
            events = pairs?;
        }
        let mut way = events.first().copied().unwrap_or(TRUE);
        for literal in atoms {
            if way == FALSE {
                break;
            }
            let part = match literal {
                Literal::Follows(atom) => self.values[atom.0 as usize],
                Literal::FollowsNot(atom) => diagrams.not(self.values[atom.0 as usize])?,
                Literal::Is(_) | Literal::IsNot(_) => TRUE,
            };
            way = diagrams.and(way, part)?;
        }
        Ok(way)
    }

    fn event(&self, event: Event, diagrams: &mut Diagrams<'_>) -> Result<Node, Full> {
        let first = self.proofs.events_of(self.proofs.choice_of(event)).start;
        diagrams.event(self.level(event), event.0 - first)
    }

    fn level(&self, event: Event) -> u32 {
        self.levels[self.proofs.choice_of(event) as usize]
    }
}

/// The atoms that have a rule with an atom in it.
fn readers(proofs: &Proofs) -> Vec<Vec<Atom>> {
    let mut readers: Vec<Vec<Atom>> = vec![Vec::new(); proofs.atoms()];
    for (rule, head) in (0..).zip(&proofs.heads) {
        for literal in proofs.body(rule) {
            if let Literal::Follows(atom) | Literal::FollowsNot(atom) = literal
                && readers[atom.0 as usize].last() != Some(head)
            {
                readers[atom.0 as usize].push(*head);
            }
        }
    }
    readers
}

/// The atoms of a stratum that follow from each other, those behind what they follow from (Tarjan 1972).
fn components(proofs: &Proofs, stratum: &[Atom]) -> Vec<Vec<Atom>> {
    const NEW: u32 = u32::MAX;
    let mut number = vec![NEW; proofs.atoms()];
    let mut lowest = vec![0; proofs.atoms()];
    let mut is_open = vec![false; proofs.atoms()];
    let mut is_here = vec![false; proofs.atoms()];
    stratum.iter().for_each(|atom| is_here[atom.0 as usize] = true);
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    let below = |atom: Atom| -> Vec<Atom> {
        let literals = proofs.rules_of[atom.0 as usize].iter().flat_map(|rule| proofs.body(*rule));
        literals
            .filter_map(|literal| match literal {
                Literal::Follows(other) if is_here[other.0 as usize] => Some(*other),
                _ => None,
            })
            .collect()
    };
    for root in stratum {
        if number[root.0 as usize] != NEW {
            continue;
        }
        let mut path: Vec<(Atom, Vec<Atom>, usize)> = Vec::new();
        let mut enter = Some(*root);
        while enter.is_some() || !path.is_empty() {
            if let Some(atom) = enter.take() {
                (number[atom.0 as usize], lowest[atom.0 as usize]) = (next, next);
                next += 1;
                is_open[atom.0 as usize] = true;
                stack.push(atom);
                path.push((atom, below(atom), 0));
            }
            let Some((atom, others, at)) = path.last_mut() else { break };
            let atom = *atom;
            if let Some(other) = others.get(*at).copied() {
                *at += 1;
                if number[other.0 as usize] == NEW {
                    enter = Some(other);
                } else if is_open[other.0 as usize] {
                    lowest[atom.0 as usize] = lowest[atom.0 as usize].min(number[other.0 as usize]);
                }
                continue;
            }
            path.pop();
            if let Some((above, ..)) = path.last() {
                lowest[above.0 as usize] = lowest[above.0 as usize].min(lowest[atom.0 as usize]);
            }
            if lowest[atom.0 as usize] == number[atom.0 as usize] {
                let first = stack.iter().rposition(|other| *other == atom).unwrap_or(0);
                let mut component = stack.split_off(first);
                // As a search found them: what an atom follows from stands before it, where that can be.
                component.sort_unstable();
                component.iter().for_each(|other| is_open[other.0 as usize] = false);
                found.push(component);
            }
        }
    }
    found
}
