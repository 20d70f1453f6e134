//! Diagrams as programs that are run on weights, forward and backward.

use crate::diagram::{Diagrams, FALSE, Node, TRUE};
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
    /// The choice of each node, and where its branches end in `children`.
    nodes: Vec<(u32, u32)>,
    /// 0 and 1 are the constants, 2 the first node.
    children: Vec<u32>,
    roots: Vec<u32>,
    /// Whether each root is met in some world in which what is certain happens.
    possible: Vec<bool>,
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
        let mut needed: Vec<Node> = Vec::new();
        let mut open: Vec<Node> = roots.to_vec();
        while let Some(node) = open.pop() {
            if places[node as usize] == u32::MAX {
                places[node as usize] = 0;
                needed.push(node);
                open.extend(diagrams.branches(node));
            }
        }
        // A node is made behind its branches.
        needed.sort_unstable();
        (2..).zip(&needed).for_each(|(place, node)| places[*node as usize] = place);
        let (nodes, children) = (Vec::new(), Vec::new());
        let mut circuit = Circuit { nodes, children, roots: Vec::new(), possible: Vec::new() };
        for node in needed {
            circuit.children.extend(diagrams.branches(node).iter().map(|branch| places[*branch as usize]));
            let choice = order[diagrams.level(node) as usize];
            circuit.nodes.push((choice, circuit.children.len() as u32));
        }
        circuit.roots = roots.iter().map(|root| places[*root as usize]).collect();
        let mut possible = vec![false, true];
        for (_, choice, branches) in circuit.nodes() {
            possible.push(match sure(choice) {
                Some(alternative) => possible[branches[alternative as usize] as usize],
                None => branches.iter().any(|branch| possible[*branch as usize]),
            });
        }
        circuit.possible = circuit.roots.iter().map(|root| possible[*root as usize]).collect();
        circuit
    }

    /// The nodes with their choices and branches, each behind its branches.
    fn nodes(&self) -> impl DoubleEndedIterator<Item = (usize, u32, &[u32])> {
        self.nodes.iter().enumerate().map(|(at, (choice, end))| {
            let begin = at.checked_sub(1).map_or(0, |before| self.nodes[before].1);
            (at + 2, *choice, &self.children[begin as usize..*end as usize])
        })
    }

    /// The probability of every node.
    fn values(&self, weights: &Weights<'_>, choices: &[u32], values: &mut Vec<f64>) {
        values.clear();
        values.extend([0.0, 1.0]);
        for (_, choice, branches) in self.nodes() {
            let (happens, rest) = weights.of(choices[choice as usize]);
            let mut value = 0.0;
            for (branch, weight) in branches.iter().zip(happens) {
                value += weight * values[*branch as usize];
            }
            value += rest * values[branches[happens.len()] as usize];
            values.push(value);
        }
    }
}

/// Weights of events, and what they leave of each choice.
struct Weights<'w> {
    weights: &'w [f64],
    rests: Vec<f64>,
    alternatives: &'w [u32],
}

impl<'w> Weights<'w> {
    fn new(weights: &'w [f64], alternatives: &'w [u32]) -> Result<Weights<'w>, Failure> {
        let mut rests = Vec::with_capacity(alternatives.len());
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
            rests.push((1.0 - sum).max(0.0));
        }
        Ok(Weights { weights, rests, alternatives })
    }

    fn events(&self, choice: u32) -> std::ops::Range<usize> {
        let at = choice as usize;
        self.alternatives[at] as usize..self.alternatives[at + 1] as usize
    }

    /// The weights of a choice's alternatives, and of none of them.
    fn of(&self, choice: u32) -> (&'w [f64], f64) {
        (&self.weights[self.events(choice)], self.rests[choice as usize])
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
            for (node, choice, branches) in circuit.nodes().rev() {
                let adjoint: f64 = owed[node];
                if adjoint == 0.0 {
                    continue;
                }
                let choice = part.choices[choice as usize];
                let (happens, rest) = weights.of(choice);
                let none = branches[happens.len()] as usize;
                for ((event, weight), branch) in weights.events(choice).zip(happens).zip(branches) {
                    slopes[event] += adjoint * (values[*branch as usize] - values[none]);
                    owed[*branch as usize] += adjoint * weight;
                }
                owed[none] += adjoint * rest;
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
