//! Loopy belief propagation: messages between variables and factors, all of them at once, round after round.
//!
//! Enter at [`Model::loopy`]. On a tree it comes to rest at what is exact; on other graphs, if it rests at all, at a stationary
//! point of the Bethe free energy (Yedidia, Freeman and Weiss, 2005).

use crate::graph::{Graph, Shapes};
use crate::inference::{Limits, within};
use crate::lanes::{Lanes, Pace};
use crate::nest::Table;
use crate::{Failure, Model, VariableId};

/// When to stop, and how fast to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loopy {
    /// At most so many rounds.
    pub rounds: usize,
    /// At rest is where no number of a message moved by more in a round.
    pub tolerance: f64,
    /// The share of the old message that stays in the new one, below 1: what swings may come to rest by it.
    pub damping: f64,
    /// What the tables and messages may take; cells are of no concern.
    pub limits: Limits,
}

impl Default for Loopy {
    fn default() -> Loopy {
        Loopy { rounds: 1000, tolerance: 1e-9, damping: 0.0, limits: Limits::default() }
    }
}

/// What the messages say of every variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Believed {
    /// For each variable the probabilities of its states.
    pub of: Vec<Vec<f64>>,
    /// Bethe's estimate of the logarithm of the probability of the evidence; exact on a tree, no bound elsewhere.
    pub log_evidence: f64,
    /// The rounds that were made.
    pub rounds: usize,
    /// By how much some number of a message from a factor moved at most in the last one.
    pub change: f64,
    /// Whether that is within the tolerance: otherwise the beliefs are those of the last round, and would be others after the
    /// next.
    pub at_rest: bool,
}

impl Model {
    /// The distribution of every variable, where some are in a given state, as messages have it. All messages start equal
    /// and are made anew together in each round.
    ///
    /// # Errors
    ///
    /// [`Failure::Evidence`] as [`Model::marginals`], where no more than impossible states of single variables show that it
    /// is; [`Failure::Question`] for damping outside of 0 ≤ d < 1, or a tolerance that is no number from 0;
    /// [`Failure::Memory`].
    pub fn loopy(&self, evidence: &[(VariableId, usize)], options: &Loopy) -> Result<Believed, Failure> {
        if !(0.0..1.0).contains(&options.damping) {
            return Err(Failure::Question(format!("the damping {} is not in 0 ≤ d < 1", options.damping)));
        }
        if options.tolerance.is_nan() || options.tolerance < 0.0 {
            return Err(Failure::Question(format!("{} is no tolerance", options.tolerance)));
        }
        let mut reduced = self.reduced(evidence)?;
        reduced.tables.iter_mut().for_each(Table::be_numbers);
        let graph = Graph::new(&reduced);
        // Tables and messages, each once more in lanes, with a place for each message.
        within(6.0 * 8.0 * (graph.cells() + graph.messages()), &options.limits)?;
        let shapes = graph.shapes();
        let lanes = lanes(&shapes);
        let places = graph.messages() * lanes as f64;
        if places > f64::from(u32::MAX) {
            return Err(Failure::TooLarge { cells: places, limit: f64::from(u32::MAX) });
        }
        let Loopy { rounds, tolerance, damping, .. } = *options;
        let pace = Pace { rounds, tolerance, damping };
        let found = match lanes {
            16 => Lanes::<16>::new(&graph, shapes).rest(&pace),
            4 => Lanes::<4>::new(&graph, shapes).rest(&pace),
            _ => Lanes::<1>::new(&graph, shapes).rest(&pace),
        };
        let mut left = found.beliefs.into_iter();
        let of = reduced.states.iter().enumerate().map(|(variable, states)| {
            let mut all = vec![0.0; self.states(VariableId(variable))];
            let own = if states.len() > 1 { left.next().unwrap_or_default() } else { vec![1.0] };
            states.iter().zip(own).for_each(|(state, value)| all[*state] = value);
            all
        });
        Ok(Believed {
            of: of.collect(),
            log_evidence: reduced.log + graph.log + found.log,
            rounds: found.rounds,
            change: found.change,
            at_rest: found.change <= options.tolerance,
        })
    }
}

/// How many factors of one shape are gone through side by side: more of them go faster, if that leaves few places empty.
fn lanes(shapes: &Shapes) -> usize {
    let cells = |lanes: usize| -> f64 {
        let padded = |(shape, members): (&Vec<usize>, &Vec<usize>)| {
            let cells = shape.iter().map(|size| *size as f64).product::<f64>();
            cells * members.len().next_multiple_of(lanes) as f64
        };
        shapes.of.iter().map(padded).sum()
    };
    [16, 4].into_iter().find(|lanes| cells(*lanes) <= 1.5 * cells(1)).unwrap_or(1)
}
