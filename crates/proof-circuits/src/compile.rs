//! From ground rules to circuits: connected parts, parts of one shape once, diagrams by fixpoint, orders by trial.

use std::collections::HashMap;

use crate::circuit::{Circuit, Circuits, Part};
use crate::diagram::{Diagrams, Full, Node};
use crate::functions::values;
use crate::proofs::{Atom, Event, Literal, Proofs, Search};
use crate::{Failure, Limits, order};

/// So many nodes are allowed at first, and so many times as many in the next round.
const FEW: usize = 1 << 12;
const MORE: usize = 8;

impl Proofs {
    /// The circuits of these goals. An atom that was not made follows never.
    ///
    /// # Errors
    /// [`Failure::NotStratified`], [`Failure::TooLarge`] and [`Failure::Stopped`].
    pub fn compile(&self, goals: &[Atom], limits: &Limits<'_>) -> Result<Circuits, Failure> {
        self.check()?;
        let mut known: HashMap<Shape, u32> = HashMap::new();
        let mut circuits = Circuits::new(self, goals.len());
        let mut search = Search::new(self);
        for positions in connected(self, goals) {
            let of_part: Vec<Atom> = positions.iter().map(|at| goals[*at]).collect();
            let (shape, choices) = Shape::of(self, &of_part, &mut search);
            let circuit = match known.get(&shape) {
                Some(circuit) => *circuit,
                None => {
                    let circuit = circuits.add(shape.circuit(limits)?);
                    known.insert(shape, circuit);
                    circuit
                }
            };
            circuits.parts.push(Part { circuit, choices, goals: positions });
        }
        Ok(circuits)
    }
}

/// The positions of goals that share choices or atoms, those of the first goal first.
fn connected(proofs: &Proofs, goals: &[Atom]) -> Vec<Vec<usize>> {
    let atoms = proofs.atoms();
    let mut leaders: Vec<u32> = (0..(atoms + proofs.alternatives.len()) as u32).collect();
    let mut seen = vec![false; atoms];
    let mut open: Vec<Atom> = goals.iter().copied().filter(|goal| (goal.0 as usize) < atoms).collect();
    while let Some(atom) = open.pop() {
        if std::mem::replace(&mut seen[atom.0 as usize], true) {
            continue;
        }
        for literal in proofs.rules_of[atom.0 as usize].iter().flat_map(|rule| proofs.body(*rule)) {
            let other = match literal {
                Literal::Is(event) | Literal::IsNot(event) => atoms as u32 + proofs.choice_of(*event),
                Literal::Follows(other) | Literal::FollowsNot(other) => {
                    open.push(*other);
                    other.0
                }
            };
            let (a, b) = (leader(&mut leaders, atom.0), leader(&mut leaders, other));
            leaders[a.max(b) as usize] = a.min(b);
        }
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut part_of: HashMap<u32, usize> = HashMap::new();
    for (at, goal) in goals.iter().enumerate().filter(|(_, goal)| (goal.0 as usize) < atoms) {
        let part = *part_of.entry(leader(&mut leaders, goal.0)).or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        parts[part].push(at);
    }
    parts
}

/// The first member of a set, with shorter ways for whoever asks next.
fn leader(leaders: &mut [u32], of: u32) -> u32 {
    let mut at = of;
    while leaders[at as usize] != at {
        let next = leaders[at as usize];
        leaders[at as usize] = leaders[next as usize];
        at = next;
    }
    at
}

/// The event in place of an atom that is nothing else: a literal that says the same.
fn plain(proofs: &Proofs, literal: &Literal) -> Literal {
    let only = |atom: &Atom| match proofs.rules_of[atom.0 as usize][..] {
        [rule] => match proofs.body(rule) {
            [literal @ (Literal::Is(_) | Literal::IsNot(_))] => Some(*literal),
            _ => None,
        },
        _ => None,
    };
    let found = match literal {
        Literal::Follows(atom) => only(atom),
        Literal::FollowsNot(atom) => only(atom).map(|literal| match literal {
            Literal::Is(event) => Literal::IsNot(event),
            Literal::IsNot(event) => Literal::Is(event),
            other => other,
        }),
        Literal::Is(_) | Literal::IsNot(_) => None,
    };
    found.unwrap_or(*literal)
}

/// What lies below some goals, numbered in the order in which a search finds it: the choices in an order that is good for
/// diagrams, the atoms behind what they follow from.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    proofs: Proofs,
    goals: Vec<Atom>,
}

impl Shape {
    /// The shape, and the choices that its own stand for.
    fn of(proofs: &Proofs, goals: &[Atom], search: &mut Search<'_>) -> (Shape, Vec<u32>) {
        let below = search.below(goals);
        let mut shape = Proofs::default();
        let mut firsts = Vec::with_capacity(below.choices.len());
        for choice in &below.choices {
            let first = shape.choice(proofs.events_of(*choice).len() as u32).0;
            if let Some(sure) = proofs.sure[*choice as usize] {
                shape.certain(Event(first + sure.0 - proofs.events_of(*choice).start));
            }
            firsts.push(first);
        }
        let mut strata: Vec<u32> = below.atoms.iter().map(|atom| proofs.strata[atom.0 as usize]).collect();
        strata.sort_unstable();
        strata.dedup();
        for atom in &below.atoms {
            let stratum = strata.partition_point(|stratum| *stratum < proofs.strata[atom.0 as usize]);
            shape.atom(stratum as u32);
        }
        let event = |event: &Event| {
            let choice = proofs.choice_of(*event);
            Event(firsts[search.choice(choice) as usize] + event.0 - proofs.events_of(choice).start)
        };
        let own = |literal: &Literal| match plain(proofs, literal) {
            Literal::Is(of) => Literal::Is(event(&of)),
            Literal::IsNot(of) => Literal::IsNot(event(&of)),
            Literal::Follows(atom) => Literal::Follows(search.atom(atom)),
            Literal::FollowsNot(atom) => Literal::FollowsNot(search.atom(atom)),
        };
        for (at, atom) in (0..).map(Atom).zip(&below.atoms) {
            for rule in &proofs.rules_of[atom.0 as usize] {
                let body: Vec<Literal> = proofs.body(*rule).iter().map(own).collect();
                shape.rule(at, &body);
            }
        }
        let goals = goals.iter().map(|goal| search.atom(*goal)).collect();
        (Shape { proofs: shape, goals }, below.choices)
    }

    /// The circuit by the first order of choices whose diagrams are small enough: all orders are tried with few nodes, then
    /// with more, so that a bad one costs little.
    fn circuit(&self, limits: &Limits<'_>) -> Result<Circuit, Failure> {
        let mut orders =
            vec![(0..self.proofs.alternatives.len().saturating_sub(1) as u32).collect::<Vec<u32>>()];
        let mut nodes = FEW;
        loop {
            let allowed = nodes.min(limits.nodes);
            for order in &orders {
                match self.diagrams(order, allowed, limits) {
                    Ok(circuit) => return Ok(circuit),
                    Err(Full { stopped: true }) => return Err(Failure::Stopped),
                    Err(Full { stopped: false }) => {}
                }
            }
            if allowed == limits.nodes && nodes > FEW {
                return Err(Failure::TooLarge { nodes: limits.nodes });
            }
            if nodes == FEW {
                orders = order::orders(&self.proofs, &self.goals);
            } else {
                nodes = nodes.saturating_mul(MORE);
            }
            nodes = nodes.max(FEW * MORE);
        }
    }

    /// The diagrams of all atoms, the choices in this order, as a circuit of the goals.
    fn diagrams(&self, order: &[u32], nodes: usize, limits: &Limits<'_>) -> Result<Circuit, Full> {
        let proofs = &self.proofs;
        let branches = order.iter().map(|choice| proofs.events_of(*choice).len() as u32 + 1).collect();
        let mut diagrams = Diagrams::new(branches, nodes, limits.stop);
        let values = values(proofs, &self.goals, order, &mut diagrams)?;
        let roots: Vec<Node> = self.goals.iter().map(|goal| values[goal.0 as usize]).collect();
        let sure = |choice: u32| {
            let event = proofs.sure[choice as usize];
            event.map(|event| event.0 - proofs.events_of(choice).start)
        };
        Ok(Circuit::new(&diagrams, &roots, order, &sure))
    }
}
