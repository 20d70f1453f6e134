//! Learners whose mathematics is a program of the equation language: `learner-*.tl` among the programs of the crate
//! `tensor-logic`.
//!
//! Enter at [`transformer::Written`], a network like those that are written by hand. A batch and its weights are given
//! to the program, whose loss and gradients are asked for: that is a [`Bound`]. The weights lie as the hand-written
//! learner has them, so that checkpoints, evaluation and export know no difference.

#[cfg(any(test, feature = "bench"))]
pub(crate) mod recurrent;

pub(crate) mod transformer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use tensor_logic::engine::{Budget, Engine, Numbers, Parameters, Request, Value};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::notebook::Notebook;
use tensor_logic::program::{Program, TensorId};

/// What an evaluation may use.
const BUDGET: Budget = Budget { tuples: 100_000_000, bytes: 16 << 30 };

/// A program with the data of one batch, and what is asked of it.
pub(crate) struct Bound {
    program: Program,
    goals: Vec<TensorId>,
}

impl Bound {
    /// A program that is asked for these tensors.
    ///
    /// # Errors
    /// The refusals of the program; a tensor that it does not have.
    pub(crate) fn new(notebook: &mut Notebook, goals: &[&str]) -> Result<Self> {
        let program = notebook.core().map_err(|refusals| anyhow!("{refusals}"))?;
        let goals = goals.iter().map(|name| tensor(&program, name)).collect::<Result<_>>()?;
        Ok(Self { program, goals })
    }

    /// A program that is asked for a scalar, and behind it for its gradient by each of the weights.
    ///
    /// # Errors
    /// As [`Bound::new`]; a weight that the scalar does not depend on.
    pub(crate) fn with_gradients(notebook: &mut Notebook, scalar: &str, weights: &[&str]) -> Result<Self> {
        let Self { program, mut goals } = Self::new(notebook, &[scalar])?;
        let by: Vec<TensorId> = weights.iter().map(|name| tensor(&program, name)).collect::<Result<_>>()?;
        let scalar_id = tensor(&program, scalar)?;
        let grown = adjoint(&program, scalar_id, &by);
        for (name, gradient) in weights.iter().zip(&grown.gradients) {
            goals.push(gradient.ok_or_else(|| anyhow!("`{scalar}` does not depend on `{name}`"))?);
        }
        Ok(Self { program: grown.program, goals })
    }

    /// What is asked, at these values of parameters; those that are not named start as the program says.
    ///
    /// # Errors
    /// A name that the program does not have, or of another size; refusals of the evaluation.
    pub(crate) fn values<'a>(
        &self,
        engine: &mut Fast,
        given: impl IntoIterator<Item = (&'a str, Vec<f64>)>,
    ) -> Result<Vec<Numbers>> {
        let mut parameters = Parameters::new();
        for (name, mut values) in given {
            let id = tensor(&self.program, name)?;
            let places = &self.program.tensor(id).places;
            let sizes = places.iter().map(|place| place.domain.as_ref().map_or(0, |domain| domain.len()));
            let wanted: usize = sizes.product();
            ensure!(values.len() == wanted, "`{name}` has {wanted} elements, and {} are given", values.len());
            // A 0 among parameters has no sign: -0 + 0 is 0.
            values.iter_mut().for_each(|value| *value += 0.0);
            parameters.insert(id, Arc::new(values));
        }
        let request = Request { program: &self.program, parameters: &parameters, budget: BUDGET };
        let values = engine.values(&request, &self.goals).map_err(|report| anyhow!("{report}"))?;
        let numbers = |value| match value {
            Value::Dense(numbers) => Ok(numbers),
            Value::Tuples(_) | Value::Counts(_) => {
                Err(anyhow!("a relation, where a square tensor is asked for"))
            }
        };
        values.into_iter().map(numbers).collect()
    }
}

/// A tensor by its name.
fn tensor(program: &Program, name: &str) -> Result<TensorId> {
    let named = (0u32..).map(TensorId).zip(&program.tensors).find(|(_, tensor)| tensor.name == name);
    named.map(|(id, _)| id).ok_or_else(|| anyhow!("the program has no tensor `{name}`"))
}
