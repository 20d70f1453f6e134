//! The distribution of several variables together.
//!
//! Enter at [`Model::joint`]. The order of elimination is looked for as if one more factor held these variables, so that a
//! clique has all of them. Messages go up as ever, and down only from the root to that clique.

use crate::inference::{Clique, Limits, Planned, distribution, inputs, upward, within, without};
use crate::nest::{Folding, Table, folds};
use crate::{Failure, Model, VariableId};

/// The distribution of several variables together, given evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// As [`Marginals::log_evidence`](crate::Marginals::log_evidence).
    pub log_evidence: f64,
    /// The variables, in the order in which they were asked for.
    pub of: Vec<VariableId>,
    /// The probability of each of their states together; the last variable moves fastest.
    pub probabilities: Vec<f64>,
}

impl Model {
    /// The distribution of these variables together, where some are in a given state. Of no variables it is the number 1.
    ///
    /// # Errors
    ///
    /// [`Failure::Question`] for a variable that the model has not or that stands twice; else as [`Model::marginals`].
    /// The cells of the distribution count as those of a clique do.
    pub fn joint(
        &self,
        of: &[VariableId],
        evidence: &[(VariableId, usize)],
        limits: &Limits,
    ) -> Result<Joint, Failure> {
        for (at, id) in of.iter().enumerate() {
            if id.0 >= self.variables().len() {
                return Err(Failure::Question(format!("the model has no variable {}", id.0)));
            }
            if of[..at].contains(id) {
                return Err(Failure::Question(format!("`{}` is asked for twice", self.variable(*id).name)));
            }
        }
        let cells: f64 = of.iter().map(|id| self.states(*id) as f64).product();
        if cells > limits.cells {
            return Err(Failure::TooLarge { cells, limit: limits.cells });
        }
        within(3.0 * 8.0 * cells, limits)?;
        let Planned { reduced, position, sizes, cliques } = self.planned(evidence, of, limits)?;
        let scope: Vec<usize> = of.iter().map(|id| position[id.0]).filter(|at| *at != usize::MAX).collect();
        let (found, log) = together(&sizes, &cliques, &reduced.tables, &scope)?;
        // Back to all states: those that are left are few.
        let states: Vec<&[usize]> = of.iter().map(|id| reduced.states[id.0].as_slice()).collect();
        let mut probabilities = vec![0.0; of.iter().map(|id| self.states(*id)).product()];
        for (cell, value) in found.iter().enumerate() {
            let (mut rest, mut place, mut stride) = (cell, 0, 1);
            for (id, states) in of.iter().zip(&states).rev() {
                place += stride * states[rest % states.len()];
                rest /= states.len();
                stride *= self.states(*id);
            }
            probabilities[place] = *value;
        }
        Ok(Joint { log_evidence: reduced.log + log, of: of.to_vec(), probabilities })
    }
}

/// The distribution of the variables of a scope, which some clique holds, and the logarithm of the sum of everything.
fn together(
    sizes: &[usize],
    cliques: &[Clique],
    tables: &[Table],
    scope: &[usize],
) -> Result<(Vec<f64>, f64), Failure> {
    let up = upward(Folding::Sum, sizes, cliques, tables)?;
    let holds = |clique: &Clique| scope.iter().all(|variable| clique.variables.contains(variable));
    let Some(target) = cliques.iter().position(holds).filter(|_| !scope.is_empty()) else {
        return Ok((vec![1.0], up.log));
    };
    let mut path = vec![target];
    while let Some(parent) = path.last().and_then(|at| cliques[*at].parent) {
        path.push(parent);
    }
    let mut down: Option<Table> = None;
    let mut belief = Table::default();
    while let Some(at) = path.pop() {
        let clique = &cliques[at];
        let mut inputs = inputs(clique, tables, &up.messages);
        inputs.extend(&down);
        let asked = path.last().map_or(scope, |child| &up.messages[*child].scope);
        belief = folds(Folding::Sum, sizes, &clique.variables, &inputs, &[asked.to_vec()]).swap_remove(0);
        if let Some(child) = path.last() {
            without(&mut belief, &up.messages[*child]);
            down = Some(std::mem::take(&mut belief));
        }
    }
    Ok((distribution(belief)?, up.log))
}
