//! Blocks of samples, a column of states for each variable.
//!
//! Enter at [`Network::draw`]. For each variable in turn, for all samples of the block: the row of its table by the states of
//! its parents, 31 random bits, and how many thresholds of the row these reach. A step is one short loop over columns.

use seeded::Stream;

use crate::sums::Sums;
use crate::{Failure, Model, VariableId};

/// The samples of a block.
pub(crate) const BLOCK: usize = 1024;

/// Random numbers are below this.
const UNIT: f64 = (1_u32 << 31) as f64;

/// A row of a published table sums to one but for rounding, and is scaled; what is further off goes into the weight. A
/// million million samples would show so little.
const EXACT: f64 = 1e-6;

/// So many thresholds are counted, of more the place is searched.
const COUNTED: usize = 8;

/// A variable, with those before it known.
struct Node {
    variable: usize,
    /// The parents' variables, and by how many rows a state of each moves.
    parents: Vec<(usize, u32)>,
    choice: Choice,
    /// For each row a logarithm that is added to the weight's, if there is one.
    logs: Option<Vec<f64>>,
}

enum Choice {
    /// The state is the number of thresholds that the draw reaches; so many a row.
    Drawn {
        thresholds: Vec<u32>,
        width: usize,
    },
    Observed {
        state: u16,
    },
}

/// A Bayesian network, ready to be drawn from.
pub(crate) struct Network {
    /// Parents first.
    nodes: Vec<Node>,
    /// Where the states of each variable begin among all, and the end.
    offsets: Vec<usize>,
    weighted: bool,
}

impl Network {
    /// What a network of the model, and so many threads that draw from it, take in bytes.
    pub(crate) fn bytes(model: &Model, threads: usize) -> f64 {
        let table = |factor: &crate::Factor| {
            let width = factor.scope.last().map_or(1, |own| model.states(*own).max(1));
            // Thresholds, and of each row its sum and its logarithm.
            4.0 * factor.values.len() as f64 + 16.0 * (factor.values.len() / width) as f64
        };
        let tables: f64 = model.factors().iter().map(table).sum();
        let variables = model.variables();
        let states: usize = variables.iter().map(|variable| variable.states.len()).sum();
        let columns = BLOCK as f64 * (2.0 * variables.len() as f64 + 32.0);
        tables + (threads as f64 + 1.0) * (columns + 16.0 * states as f64)
    }

    pub(crate) fn new(model: &Model, evidence: &[(VariableId, usize)]) -> Result<Network, Failure> {
        let observed = model.observed(evidence)?;
        let order = order(model)?;
        let mut nodes = Vec::new();
        for at in order {
            nodes.push(node(model, at, observed[at])?);
        }
        let mut offsets = vec![0];
        for variable in model.variables() {
            offsets.push(offsets.last().unwrap_or(&0) + variable.states.len());
        }
        let weighted = nodes.iter().any(|node| node.logs.is_some());
        Ok(Network { nodes, offsets, weighted })
    }

    /// The states of all variables together.
    pub(crate) fn cells(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Draws so many samples.
    pub(crate) fn draw(&self, stream: &mut Stream, len: usize, scratch: &mut Scratch) {
        scratch.len = len;
        scratch.logs.fill(0.0);
        for node in &self.nodes {
            let rows = &mut scratch.rows[..len];
            rows.fill(0);
            for (parent, stride) in &node.parents {
                let states = &scratch.columns[*parent][..len];
                rows.iter_mut().zip(states).for_each(|(row, state)| *row += u32::from(*state) * stride);
            }
            if let Some(logs) = &node.logs {
                scratch.logs.iter_mut().zip(&*rows).for_each(|(log, row)| *log += logs[*row as usize]);
            }
            let states = &mut scratch.columns[node.variable][..len];
            match &node.choice {
                Choice::Observed { state } => states.fill(*state),
                Choice::Drawn { width: 0, .. } => states.fill(0),
                Choice::Drawn { thresholds, width } => {
                    for pair in scratch.draws.chunks_exact_mut(2) {
                        let word = stream.next_u64();
                        pair.copy_from_slice(&[(word as u32) >> 1, (word >> 33) as u32]);
                    }
                    choose(thresholds, *width, rows, &scratch.draws[..len], states);
                }
            }
        }
    }
}

/// For each sample how many thresholds of its row the draw reaches.
fn choose(thresholds: &[u32], width: usize, rows: &[u32], draws: &[u32], states: &mut [u16]) {
    match width {
        1 => counted::<1>(thresholds, rows, draws, states),
        2 => counted::<2>(thresholds, rows, draws, states),
        3 => counted::<3>(thresholds, rows, draws, states),
        4 => counted::<4>(thresholds, rows, draws, states),
        5..=COUNTED => {
            for ((row, draw), state) in rows.iter().zip(draws).zip(states) {
                let row = &thresholds[*row as usize * width..][..width];
                *state = row.iter().map(|threshold| u16::from(draw >= threshold)).sum();
            }
        }
        _ => {
            for ((row, draw), state) in rows.iter().zip(draws).zip(states) {
                let row = &thresholds[*row as usize * width..][..width];
                *state = row.partition_point(|threshold| draw >= threshold) as u16;
            }
        }
    }
}

/// The same with the number of thresholds known to the compiler.
fn counted<const WIDTH: usize>(thresholds: &[u32], rows: &[u32], draws: &[u32], states: &mut [u16]) {
    let (thresholds, _) = thresholds.as_chunks::<WIDTH>();
    for ((row, draw), state) in rows.iter().zip(draws).zip(states) {
        let row = &thresholds[*row as usize];
        *state = row.iter().map(|threshold| u16::from(draw >= threshold)).sum();
    }
}

/// The variables, parents first.
fn order(model: &Model) -> Result<Vec<usize>, Failure> {
    for (at, variable) in model.variables().iter().enumerate() {
        if model.definition(VariableId(at)).is_none() {
            let message = format!(
                "`{}` has no distribution given other variables: Bayesian networks can be sampled only",
                variable.name
            );
            return Err(Failure::Model(message));
        }
    }
    if model.factors().len() > model.variables().len() {
        let message = "there are factors that are no distributions: Bayesian networks can be sampled only";
        return Err(Failure::Model(message.to_owned()));
    }
    model.parents_first().map_err(|circle| Failure::Model(model.circle(&circle)))
}

fn node(model: &Model, variable: usize, observed: Option<usize>) -> Result<Node, Failure> {
    let own = model.variable(VariableId(variable));
    let width = own.states.len();
    let none = || Failure::Model(format!("`{}` has no distribution", own.name));
    let table = model.definition(VariableId(variable)).ok_or_else(none)?;
    if width > usize::from(u16::MAX) || table.values.len() > u32::MAX as usize {
        return Err(Failure::Model(format!("`{}` has too many states to be sampled", own.name)));
    }
    let mut parents = Vec::new();
    let mut stride = 1_u32;
    for parent in table.scope.iter().rev().skip(1) {
        parents.push((parent.0, stride));
        // No overflow: so many rows there are.
        stride = stride.saturating_mul(model.states(*parent) as u32);
    }
    let rows = table.values.chunks(width.max(1));
    let sums: Vec<f64> = rows.clone().map(|row| row.iter().sum()).collect();
    let (choice, logs) = match observed {
        Some(state) => {
            let logs = rows.map(|row| row[state].ln()).collect();
            (Choice::Observed { state: state as u16 }, Some(logs))
        }
        None => {
            let thresholds = rows.zip(&sums).flat_map(|(row, sum)| thresholds(row, *sum)).collect();
            let inexact = sums.iter().any(|sum| (sum - 1.0).abs() > EXACT);
            let logs = inexact.then(|| sums.iter().map(|sum| sum.ln()).collect());
            (Choice::Drawn { thresholds, width: width - 1 }, logs)
        }
    };
    Ok(Node { variable, parents, choice, logs })
}

/// Where the states of a row begin, but for the first: a draw of 31 bits that reaches it is that state or a later one. What
/// has probability 0 has no room.
fn thresholds(row: &[f64], sum: f64) -> Vec<u32> {
    let last = row.iter().rposition(|value| *value > 0.0).unwrap_or(0);
    let mut before = 0.0;
    let bound = |(at, value): (usize, &f64)| {
        before += value;
        // The sum of all that are possible is the whole, whatever was rounded.
        if at >= last { UNIT as u32 } else { (before / sum * UNIT).round() as u32 }
    };
    row[..row.len() - 1].iter().enumerate().map(bound).collect()
}

/// What a thread needs to draw.
pub(crate) struct Scratch {
    len: usize,
    rows: Vec<u32>,
    draws: Vec<u32>,
    /// The logarithms of the weights.
    logs: Vec<f64>,
    weights: Vec<f64>,
    columns: Vec<Vec<u16>>,
}

impl Scratch {
    pub(crate) fn new(network: &Network) -> Scratch {
        Scratch {
            len: 0,
            rows: vec![0; BLOCK],
            draws: vec![0; BLOCK],
            logs: vec![0.0; BLOCK],
            weights: vec![1.0; BLOCK],
            columns: vec![vec![0; BLOCK]; network.nodes.len()],
        }
    }

    /// Adds the samples of the block.
    pub(crate) fn add_to(&mut self, network: &Network, sums: &mut Sums) {
        if !network.weighted {
            sums.at_scale(0.0);
            sums.weight += self.len as f64;
            sums.square += self.len as f64;
            for (column, offset) in self.columns.iter().zip(network.offsets.windows(2)) {
                let states = offset[0]..offset[1];
                count(&column[..self.len], &mut sums.weights[states.clone()], &mut sums.squares[states]);
            }
            return;
        }
        let logs = &self.logs[..self.len];
        let factor = sums.at_scale(logs.iter().fold(f64::NEG_INFINITY, |most, log| most.max(*log)));
        if factor == 0.0 && sums.scale == f64::NEG_INFINITY {
            return;
        }
        let weights = &mut self.weights[..self.len];
        for (weight, log) in weights.iter_mut().zip(logs) {
            *weight = (log - sums.scale).exp();
            sums.weight += *weight;
            sums.square += *weight * *weight;
        }
        for (column, offset) in self.columns.iter().zip(network.offsets.windows(2)) {
            let own = &mut sums.weights[offset[0]..offset[1]];
            let squares = &mut sums.squares[offset[0]..offset[1]];
            for (state, weight) in column.iter().zip(&*weights) {
                own[usize::from(*state)] += weight;
                squares[usize::from(*state)] += weight * weight;
            }
        }
    }
}

/// Adds how often each state stands in a column.
fn count(column: &[u16], sums: &mut [f64], squares: &mut [f64]) {
    let states = sums.len();
    let mut found = |state: usize, times: f64| {
        sums[state] += times;
        squares[state] += times;
    };
    if states <= COUNTED {
        let mut rest = column.len();
        for state in 1..states {
            let times: u16 = column.iter().map(|own| u16::from(usize::from(*own) == state)).sum();
            rest -= usize::from(times);
            found(state, f64::from(times));
        }
        found(0, rest as f64);
    } else {
        column.iter().for_each(|state| found(usize::from(*state), 1.0));
    }
}
