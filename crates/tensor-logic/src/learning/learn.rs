//! Learning by gradient descent (N12): `@minimize`.
//!
//! Enter at [`minimize`], or at [`resumable`] where somebody keeps what was learned so far and goes on from there. The adjoint
//! program is made once; a step evaluates the loss and the gradients with the current parameters and moves them. With
//! `batch=s, size=n` a step sees the next n values of the index `s` only, in every equation that the loss needs. With
//! `valid=0.2` some of its values are in no batch, and say after each epoch how good it was (`validation`). What stands
//! between two steps (`state`) is all that the rest depends on.

use crate::answer::Minimized;
use crate::engine::{Budget, Engine, Parameters, is_interrupted};
use crate::error::Result;
use crate::program::{Minimize, Program, TensorId};

mod learner;
mod moving;
mod rule;
mod state;
mod validation;
mod work;

pub use state::{State, Stored};
use work::Work;

/// What is told of a step: its number, how many there are, and the loss before it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64, f64);

/// When learning stands between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first one, where nothing was kept.
    Start,
    /// Before another one.
    Between,
    /// Where somebody interrupted it.
    Interrupted,
    /// Behind the last one.
    End,
}

/// Who looks on while something is learned, and may keep it.
pub trait Keeper {
    /// A step: its number, how many there are, and the loss before it.
    fn step(&mut self, step: u64, steps: u64, loss: f64);

    /// What was kept before: learning goes on from there.
    ///
    /// # Errors
    /// Where something is kept that cannot be read, or is of another learning.
    fn kept(&mut self) -> Result<Option<Stored>> {
        Ok(None)
    }

    /// Keeps what stands, or does not.
    ///
    /// # Errors
    /// Where it cannot be kept. Learning ends then.
    fn stands<'s>(&mut self, _moment: Moment, _step: u64, _state: &dyn Fn() -> State<'s>) -> Result<()> {
        Ok(())
    }
}

/// Somebody who looks on and keeps nothing.
struct Told<'a>(Progress<'a>);

impl Keeper for Told<'_> {
    fn step(&mut self, step: u64, steps: u64, loss: f64) {
        (self.0)(step, steps, loss);
    }
}

/// Changes the parameters so that the goal, a scalar, gets smaller.
///
/// # Errors
/// Refusals of the evaluation; a loss or a gradient that is no number (`divergence`).
pub fn minimize(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    parameters: &mut Parameters,
    goal: TensorId,
    minimize: &Minimize,
    progress: Progress<'_>,
) -> Result<Minimized> {
    resumable(engine, program, budget, parameters, goal, minimize, &mut Told(progress))
}

/// The same from where it was left, with the parameters of the start given in either case. What comes out has the bits that it
/// would have if nobody had interrupted it.
///
/// # Errors
/// Those of [`minimize`], and those of the keeper.
pub fn resumable(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    parameters: &mut Parameters,
    goal: TensorId,
    minimize: &Minimize,
    keeper: &mut dyn Keeper,
) -> Result<Minimized> {
    let mut work = Work::new(engine, (program, budget), parameters, goal, minimize)?;
    match keeper.kept()? {
        Some(stored) => work.take(engine, parameters, stored)?,
        None => {
            work.begin(engine, parameters)?;
            keeper.stands(Moment::Start, 0, &|| work.state(parameters))?;
        }
    }
    let done = work.go(engine, parameters, keeper);
    let moment = if done.is_ok() { Moment::End } else { Moment::Interrupted };
    if done.as_ref().err().is_none_or(is_interrupted) {
        keeper.stands(moment, work.taken(), &|| work.state(parameters))?;
    }
    done?;
    work.end(engine, parameters)
}
