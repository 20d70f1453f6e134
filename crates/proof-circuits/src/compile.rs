//! From ground rules to circuits: connected parts, parts of one shape once, goals of a part together or each alone.

use std::collections::HashMap;

use crate::circuit::{Circuit, Circuits, Part};
use crate::diagram::Share;
use crate::proofs::{Atom, Literal, Proofs, Search};
use crate::shape::Shape;
use crate::trial::Trial;
use crate::{Failure, Limits};

/// So many nodes are allowed at first, and so many times as many in the next round.
const FEW: usize = 1 << 12;
const MORE: usize = 8;

/// So many steps of joins are allowed for each node. Where an order is good, there are 1 to 10 of them.
const STEPS: u64 = 64;

/// Shapes are remembered as long as they take no more than this part of the room.
const SHAPES: usize = 8;

impl Proofs {
    /// The circuits of these goals. An atom that was not made follows never.
    ///
    /// # Errors
    /// [`Failure::NotStratified`], [`Failure::TooLarge`] and [`Failure::Stopped`].
    pub fn compile(&self, goals: &[Atom], limits: &Limits<'_>) -> Result<Circuits, Failure> {
        self.check()?;
        let (search, known) = (Search::new(self), HashMap::new());
        let circuits = Circuits::new(self, goals.len());
        let mut compiler = Compiler { proofs: self, limits, search, known, circuits, bytes: 0, shapes: 0 };
        for positions in connected(self, goals) {
            compiler.part(goals, positions)?;
        }
        Ok(compiler.circuits)
    }
}

struct Compiler<'p> {
    proofs: &'p Proofs,
    limits: &'p Limits<'p>,
    search: Search<'p>,
    /// The circuit of each shape.
    known: HashMap<Shape, u32>,
    circuits: Circuits,
    /// What circuits take, and what shapes do.
    bytes: usize,
    shapes: usize,
}

/// The goals of a part, each alone: those that have circuits, in order, and the trial of the next one.
#[derive(Default)]
struct Apart {
    parts: Vec<Part>,
    trial: Option<(Trial, Vec<u32>)>,
    /// What the circuits took.
    nodes: usize,
    steps: u64,
}

impl Compiler<'_> {
    /// The circuits of the goals of a connected part. One diagram of all of them shares what they have in common, but its
    /// one order of choices may be good for none: of noisy causes with many effects it is exponentially larger than those
    /// of each effect. So in every round both are tried, with as many nodes.
    fn part(&mut self, goals: &[Atom], positions: Vec<usize>) -> Result<(), Failure> {
        let of_part: Vec<Atom> = positions.iter().map(|at| goals[*at]).collect();
        let (shape, choices) = Shape::of(self.proofs, &of_part, &mut self.search);
        if let Some(circuit) = self.known.get(&shape).copied() {
            self.circuits.parts.push(Part { circuit, choices, goals: positions });
            return Ok(());
        }
        let mut together = Trial::new(shape);
        let mut apart = Apart::default();
        let before = (self.circuits.len() as u32, self.bytes, self.shapes);
        let mut nodes = FEW;
        loop {
            let share = Share { nodes, steps: (nodes as u64).saturating_mul(STEPS) };
            if let Some((circuit, _)) = together.circuit(share, self.room(), self.limits)? {
                self.circuits.truncate(before.0 as usize);
                self.known.retain(|_, circuit| *circuit < before.0);
                (self.bytes, self.shapes) = (before.1, before.2);
                let circuit = self.keep(together.shape, circuit);
                self.circuits.parts.push(Part { circuit, choices, goals: positions });
                return Ok(());
            }
            let is_apart = positions.len() > 1;
            if is_apart && self.apart(&mut apart, &of_part, &positions, share)? {
                self.circuits.parts.append(&mut apart.parts);
                return Ok(());
            }
            let is_over = |(trial, _): &(Trial, Vec<u32>)| trial.is_over();
            if together.is_over() && (!is_apart || apart.trial.as_ref().is_some_and(is_over)) {
                return Err(Failure::TooLarge { bytes: self.limits.bytes });
            }
            nodes = nodes.saturating_mul(MORE);
        }
    }

    /// Makes circuits of goals alone while they take no more than this share together; whether all have one.
    fn apart(
        &mut self,
        apart: &mut Apart,
        goals: &[Atom],
        positions: &[usize],
        share: Share,
    ) -> Result<bool, Failure> {
        while let Some(goal) = goals.get(apart.parts.len()) {
            if (self.limits.stop)() {
                return Err(Failure::Stopped);
            }
            let (mut trial, choices) = match apart.trial.take() {
                Some(begun) => begun,
                None => {
                    let (shape, choices) = Shape::of(self.proofs, &[*goal], &mut self.search);
                    apart.steps += (shape.proofs.literals.len() + shape.proofs.rules()) as u64;
                    (Trial::new(shape), choices)
                }
            };
            let circuit = match self.known.get(&trial.shape) {
                Some(circuit) => *circuit,
                None => {
                    let steps = share.steps.saturating_sub(apart.steps);
                    let left = Share { nodes: share.nodes.saturating_sub(apart.nodes), steps };
                    let is_left = left.nodes > 0 && left.steps > 0;
                    let found = if is_left { trial.circuit(left, self.room(), self.limits)? } else { None };
                    let Some((circuit, used)) = found else {
                        apart.trial = Some((trial, choices));
                        return Ok(false);
                    };
                    (apart.nodes, apart.steps) = (apart.nodes + used.nodes, apart.steps + used.steps);
                    self.keep(trial.shape, circuit)
                }
            };
            let goals = vec![positions[apart.parts.len()]];
            apart.parts.push(Part { circuit, choices, goals });
        }
        Ok(true)
    }

    /// The bytes that are left.
    fn room(&self) -> usize {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    /// Adds a circuit and says its number.
    fn keep(&mut self, shape: Shape, circuit: Circuit) -> u32 {
        self.bytes += circuit.bytes();
        let circuit = self.circuits.add(circuit);
        let bytes = shape.bytes();
        if self.shapes + bytes <= self.limits.bytes / SHAPES {
            self.shapes += bytes;
            self.bytes += bytes;
            self.known.insert(shape, circuit);
        }
        circuit
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
