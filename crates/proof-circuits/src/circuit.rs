//! Diagrams as programs that are run on weights, forward and backward.

use crate::diagram::{Case, Diagrams, FALSE, Node, TRUE};
use crate::proofs::{Atom, Event, Proofs};
use crate::{Failure, Limits};

/// How far the alternatives of a choice may add up to more than 1: a softmax of a thousand numbers of 32 bits is off by less.
const ROUNDING: f64 = 1e-6;

/// Compiled proofs: goals, and the diagrams that say when they follow.
#[derive(Debug, Clone)]
pub struct Circuits {
    circuits: Vec<Circuit>,
    pub(crate) parts: Vec<Part>,
    /// The first event of each choice, and the end.
    alternatives: Vec<u32>,
    goals: usize,
}

/// Goals that share choices or atoms.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) circuit: u32,
    /// The choices that those of the circuit stand for.
    pub(crate) choices: Vec<u32>,
    /// The positions of its goals.
    pub(crate) goals: Vec<usize>,
}

/// A diagram with its nodes in order: what a node branches to stands before it.
#[derive(Debug, Clone)]
pub(crate) struct Circuit {
    nodes: Vec<Ask>,
    /// The alternatives that nodes name, and where they lead: 0 and 1 are the constants, 2 the first node.
    cases: Vec<Case>,
    roots: Vec<u32>,
    /// Whether each root is met in some world in which what is certain happens.
    possible: Vec<bool>,
}

/// Which alternative of a choice is the case.
#[derive(Debug, Clone, Copy)]
struct Ask {
    choice: u32,
    /// Where the others lead, and none of them.
    other: u32,
    /// Where its cases end.
    end: u32,
}

impl Circuit {
    /// The part of the diagrams that the roots need. `order` says which choice stands at each level.
    /// `sure` is the alternative of a choice that is the case for certain.
    pub(crate) fn new(
        diagrams: &Diagrams<'_>,
        roots: &[Node],
        order: &[u32],
        sure: &dyn Fn(u32) -> Option<u32>,
    ) -> Circuit {
        let mut places = vec![u32::MAX; diagrams.len()];
        (places[FALSE as usize], places[TRUE as usize]) = (0, 1);
        let mut count = 0;
        let mut open: Vec<Node> = roots.to_vec();
        while let Some(node) = open.pop() {
            if places[node as usize] == u32::MAX {
                places[node as usize] = 0;
                count += 1;
                open.extend(diagrams.cases(node).iter().map(|(_, branch)| *branch));
                open.push(diagrams.other(node));
            }
        }
        let (mut nodes, mut cases) = (Vec::with_capacity(count), Vec::new());
        // A node is made behind its branches.
        for node in 2..diagrams.len() as Node {
            if places[node as usize] == u32::MAX {
                continue;
            }
            places[node as usize] = nodes.len() as u32 + 2;
            cases.extend(diagrams.cases(node).iter().map(|(at, branch)| (*at, places[*branch as usize])));
            let choice = order[diagrams.level(node) as usize];
            let other = places[diagrams.other(node) as usize];
            nodes.push(Ask { choice, other, end: cases.len() as u32 });
        }
        cases.shrink_to_fit();
        let roots = roots.iter().map(|root| places[*root as usize]).collect();
        let mut circuit = Circuit { nodes, cases, roots, possible: Vec::new() };
        let mut possible = vec![false, true];
        for (_, ask, cases) in circuit.nodes() {
            let other = possible[ask.other as usize];
            possible.push(match sure(ask.choice) {
                Some(alternative) => match cases.binary_search_by_key(&alternative, |(at, _)| *at) {
                    Ok(at) => possible[cases[at].1 as usize],
                    Err(_) => other,
                },
                None => other || cases.iter().any(|(_, branch)| possible[*branch as usize]),
            });
        }
        circuit.possible = circuit.roots.iter().map(|root| possible[*root as usize]).collect();
        circuit
    }

    /// What it takes, with the values and derivatives of its nodes while it runs.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.len() * (size_of::<Ask>() + 2 * size_of::<f64>())
            + self.cases.len() * size_of::<Case>()
            + self.roots.len() * 2 * size_of::<u32>()
    }

    /// The nodes with their cases, each behind its branches.
    fn nodes(&self) -> impl DoubleEndedIterator<Item = (usize, &Ask, &[Case])> {
        self.nodes.iter().enumerate().map(|(at, ask)| {
            let begin = at.checked_sub(1).map_or(0, |before| self.nodes[before].end);
            (at + 2, ask, &self.cases[begin as usize..ask.end as usize])
        })
    }

    /// The probability of every node.
    fn values(&self, weights: &Weights<'_>, choices: &[u32], values: &mut Vec<f64>) {
        values.clear();
        values.extend([0.0, 1.0]);
        for (_, ask, cases) in self.nodes() {
            let happens = weights.of(choices[ask.choice as usize]);
            let (mut value, mut named) = (0.0, 0.0);
            for (alternative, branch) in cases {
                let weight = happens[*alternative as usize];
                value += weight * values[*branch as usize];
                named += weight;
            }
            value += left(named) * values[ask.other as usize];
            values.push(value);
        }
    }
}

/// What alternatives leave to others and to none, which is not less than nothing by rounding.
fn left(named: f64) -> f64 {
    (1.0 - named).max(0.0)
}

/// Weights of events.
struct Weights<'w> {
    weights: &'w [f64],
    alternatives: &'w [u32],
}

impl<'w> Weights<'w> {
    fn new(weights: &'w [f64], alternatives: &'w [u32]) -> Result<Weights<'w>, Failure> {
        for ends in alternatives.windows(2) {
            let mut sum = 0.0;
            for event in ends[0]..ends[1] {
                let weight = weights.get(event as usize).copied().unwrap_or(f64::NAN);
                if !(0.0..=1.0).contains(&weight) {
                    return Err(Failure::NoProbability { event: Event(event), weight });
                }
                sum += weight;
            }
            if sum > 1.0 + ROUNDING {
                return Err(Failure::NoDistribution { event: Event(ends[0]), sum });
            }
        }
        Ok(Weights { weights, alternatives })
    }

    fn events(&self, choice: u32) -> std::ops::Range<usize> {
        let at = choice as usize;
        self.alternatives[at] as usize..self.alternatives[at + 1] as usize
    }

    /// The weights of a choice's alternatives.
    fn of(&self, choice: u32) -> &'w [f64] {
        &self.weights[self.events(choice)]
    }
}

impl Circuits {
    pub(crate) fn new(proofs: &Proofs, goals: usize) -> Circuits {
        let alternatives = proofs.alternatives.clone();
        Circuits { circuits: Vec::new(), parts: Vec::new(), alternatives, goals }
    }

    /// Adds a circuit and says its number.
    pub(crate) fn add(&mut self, circuit: Circuit) -> u32 {
        self.circuits.push(circuit);
        self.circuits.len() as u32 - 1
    }

    /// How many circuits there are.
    pub(crate) fn len(&self) -> usize {
        self.circuits.len()
    }

    /// Forgets circuits that no part has: those behind the first ones.
    pub(crate) fn truncate(&mut self, circuits: usize) {
        self.circuits.truncate(circuits);
    }

    /// How many nodes the diagrams have, each shape once.
    pub fn nodes(&self) -> usize {
        self.circuits.iter().map(|circuit| circuit.nodes.len()).sum()
    }

    /// How many different diagrams there are, and how many parts share them.
    pub fn shapes(&self) -> (usize, usize) {
        (self.circuits.len(), self.parts.len())
    }

    /// Whether each goal follows in some world in which what is certain happens, whatever that world's probability is.
    pub fn possible(&self) -> Vec<bool> {
        let mut possible = vec![false; self.goals];
        for part in &self.parts {
            for (goal, there) in part.goals.iter().zip(&self.circuits[part.circuit as usize].possible) {
                possible[*goal] = *there;
            }
        }
        possible
    }

    /// The probability of each goal, where `weights` are those of the events.
    ///
    /// # Errors
    /// [`Failure::NoProbability`] and [`Failure::NoDistribution`].
    pub fn probabilities(&self, weights: &[f64]) -> Result<Vec<f64>, Failure> {
        let weights = Weights::new(weights, &self.alternatives)?;
        let mut found = vec![0.0; self.goals];
        let mut values = Vec::new();
        for part in &self.parts {
            let circuit = &self.circuits[part.circuit as usize];
            circuit.values(&weights, &part.choices, &mut values);
            for (goal, root) in part.goals.iter().zip(&circuit.roots) {
                found[*goal] = values[*root as usize];
            }
        }
        Ok(found)
    }

    /// The derivative of the sum of all goals, each times its adjoint, by the weight of each event. What an alternative
    /// gains, none of them loses.
    ///
    /// # Errors
    /// As [`Circuits::probabilities`].
    pub fn slopes(&self, weights: &[f64], adjoints: &[f64]) -> Result<Vec<f64>, Failure> {
        let weights = Weights::new(weights, &self.alternatives)?;
        let mut slopes = vec![0.0; weights.weights.len()];
        let (mut values, mut owed) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let circuit = &self.circuits[part.circuit as usize];
            circuit.values(&weights, &part.choices, &mut values);
            owed.clear();
            owed.resize(values.len(), 0.0);
            for (goal, root) in part.goals.iter().zip(&circuit.roots) {
                owed[*root as usize] += adjoints.get(*goal).copied().unwrap_or(0.0);
            }
            for (node, ask, cases) in circuit.nodes().rev() {
                let adjoint: f64 = owed[node];
                if adjoint == 0.0 {
                    continue;
                }
                let events = weights.events(part.choices[ask.choice as usize]);
                let other = ask.other as usize;
                let mut named = 0.0;
                for (alternative, branch) in cases {
                    let event = events.start + *alternative as usize;
                    let weight = weights.weights[event];
                    slopes[event] += adjoint * (values[*branch as usize] - values[other]);
                    owed[*branch as usize] += adjoint * weight;
                    named += weight;
                }
                owed[other] += adjoint * left(named);
            }
        }
        Ok(slopes)
    }
}

impl Proofs {
    /// The probability of one goal.
    ///
    /// # Errors
    /// As [`Proofs::compile`] and [`Circuits::probabilities`].
    pub fn probability(&self, goal: Atom, weights: &[f64]) -> Result<f64, Failure> {
        let found = self.compile(&[goal], &Limits::default())?.probabilities(weights)?;
        Ok(found.first().copied().unwrap_or(0.0))
    }
}
