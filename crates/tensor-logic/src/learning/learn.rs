//! Learning by gradient descent (N12): `@minimize`.
//!
//! Enter at [`minimize`]. The adjoint program is made once; a step evaluates the loss and the
//! gradients with the current parameters and moves them. With `batch=s, size=n` a step sees the
//! next n values of the index `s` only, in every equation that the loss needs. With `valid=0.2` some of
//! its values are in no batch, and say after each epoch how good it was (`validation`).

use std::sync::Arc;

use crate::answer::Minimized;
use crate::engine::{Budget, Engine, Parameters, Request, Slope, Value};
use crate::error::{Code, Refusal, Result};
use crate::gradient::{Adjoint, adjoint};
use crate::learning::batches::batches;
use crate::learning::lift::lifted;
use crate::model;
use crate::program::{self, Batch, Duration, Minimize, Optimiser, Program, TensorId};
use tensor_logic_core::gradient::are_all_listed;

mod moving;
mod rule;
mod validation;

use moving::{Gradient, Moving};
use rule::{Decline, Pace, Rule, Schedule};
use validation::{Split, Validation};

/// What is told of a step: its number, how many there are, and the loss before it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64, f64);

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
    let learned = program.learnable(goal);
    let kept = minimize.batch.as_ref().map(|batch| batch.index.as_str());
    let lifted = match minimize.lift {
        true => lifted(engine, program, budget, parameters, goal, kept)?,
        false => None,
    };
    // What is learned from; the loss is that of the program itself.
    let seen = lifted.as_ref().map_or(program, |lifted| &lifted.program);
    let whole = adjoint(seen, goal, &learned);
    let split = match &minimize.batch {
        Some(batch) => Some(split(seen, goal, batch, minimize)?),
        None => None,
    };
    let parts = match (&minimize.batch, &split) {
        (Some(batch), Some(split)) => batches(goal, &whole, batch, &split.learned),
        _ => Vec::new(),
    };
    let per_epoch = parts.len().max(1) as u64;
    let steps = match minimize.duration {
        Duration::Steps(steps) => steps,
        Duration::Epochs(epochs) => epochs.saturating_mul(per_epoch),
    };
    let loss = |engine: &mut dyn Engine, program: &Program, parameters: &Parameters| {
        let found = engine.listed(&Request { program, parameters, budget }, &[goal])?;
        Ok::<f64, Refusal>(number(found.first()))
    };
    let first = loss(engine, program, parameters)?;
    let mut validation = match (&minimize.batch, &split) {
        (Some(batch), Some(split)) => Validation::of(seen, goal, batch, &split.held),
        _ => None,
    };
    if let Some(validation) = &mut validation {
        let value = loss(engine, &validation.program, parameters)?;
        check(value, 0.0, &[], minimize, 0)?;
        validation.begin(value, parameters, &learned);
    }
    let rule = rule_of(minimize.optimiser);
    let mut learner = Learner {
        learned: &learned,
        minimize,
        moving: learned.iter().map(|_| Moving::new(rule)).collect(),
        paces: Vec::new(),
        listed: learned.iter().map(|id| are_all_listed(seen, goal, *id)).collect(),
        looked_at: vec![None; parts.len().max(1)],
        schedule: schedule_of(minimize, steps),
    };
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let mut taken = steps;
    for step in 0..steps {
        let at = step % per_epoch;
        if at == 0 && minimize.batch.as_ref().is_some_and(|batch| batch.shuffle) {
            order = shuffled(parts.len(), program.settings.seed, step / per_epoch);
        }
        let part = order.get(at as usize).copied().unwrap_or(0);
        learner.prepare(engine, parameters, Some(part));
        let request = Request { program: parts.get(part).unwrap_or(&whole.program), parameters, budget };
        let (value, gradients) = evaluate(engine, &request, goal, &whole, &learned)?;
        let squares = gradients.iter().map(Gradient::squares).sum::<f64>();
        check(value, squares, &gradients, minimize, step)?;
        progress(step, steps, value);
        learner.step(engine, parameters, gradients, squares, part);
        // The last pass may be an incomplete one.
        if let Some(validation) = validation.as_mut().filter(|_| at + 1 == per_epoch || step + 1 == steps) {
            learner.prepare(engine, parameters, None);
            let value = loss(engine, &validation.program, parameters)?;
            check(value, 0.0, &[], minimize, step + 1)?;
            validation.look(value, parameters, &learned);
            if validation.is_over() {
                taken = step + 1;
                break;
            }
        }
    }
    learner.prepare(engine, parameters, None);
    let valid = validation.map(|validation| validation.end(engine, parameters));
    let last = loss(engine, program, parameters)?;
    check(last, 0.0, &[], minimize, taken)?;
    let names = learned.iter().map(|id| program.name(*id).to_owned()).collect();
    let lifted = lifted.map(|lifted| (lifted.from, lifted.to));
    Ok(Minimized { steps: taken, first, last, parameters: names, lifted, valid })
}

/// The loss and the gradient of every learned tensor.
fn evaluate(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    goal: TensorId,
    adjoint: &Adjoint,
    learned: &[TensorId],
) -> Result<(f64, Vec<Gradient>)> {
    let mut goals = vec![goal];
    goals.extend(adjoint.gradients.iter().flatten());
    let mut slopes = engine.listed(request, &goals)?.into_iter();
    let loss = number(slopes.next().as_ref());
    let gradient = |(gradient, id): (&Option<TensorId>, &TensorId)| match gradient.and_then(|_| slopes.next())
    {
        Some(slope) => Gradient::of(slope, &request.program.tensor(*id).domains()),
        None => Gradient::Nothing,
    };
    Ok((loss, adjoint.gradients.iter().zip(learned).map(gradient).collect()))
}

/// The value of a scalar.
fn number(found: Option<&Slope>) -> f64 {
    match found {
        Some(Slope::Whole(Value::Tuples(tuples))) => tuples.values.first().copied().unwrap_or(0.0),
        Some(Slope::Whole(value)) => value.doubles().first().copied().unwrap_or(f64::NAN),
        Some(Slope::Listed(listed)) => listed.values.first().copied().unwrap_or(0.0),
        None => f64::NAN,
    }
}

fn check(loss: f64, squares: f64, gradients: &[Gradient], minimize: &Minimize, step: u64) -> Result<()> {
    // Squares may be infinite where no number is.
    if loss.is_finite() && (squares.is_finite() || gradients.iter().all(Gradient::is_finite)) {
        return Ok(());
    }
    let message = format!("after {step} steps the loss is {loss} or has a gradient that is no number");
    let help = "take a smaller lr, clip=1, or look for log(0) and a division by 0";
    Err(Refusal::new(Code::Divergence, minimize.span, message).help(help))
}

struct Learner<'a> {
    learned: &'a [TensorId],
    minimize: &'a Minimize,
    moving: Vec<Moving>,
    /// The steps so far.
    paces: Vec<Pace>,
    /// Which parameters have gradients that list whatever the loss looks at.
    listed: Vec<bool>,
    /// What each batch looks at: the elements of each parameter, `None` for all. Unknown before the first time.
    looked_at: Vec<Option<Vec<Option<Vec<usize>>>>>,
    schedule: Schedule,
}

impl Learner<'_> {
    /// Brings what a batch looks at up to date; all elements without one.
    fn prepare(&mut self, engine: &mut dyn Engine, parameters: &mut Parameters, part: Option<usize>) {
        let known = part.and_then(|part| self.looked_at.get(part)?.as_ref());
        for (nth, (id, moving)) in self.learned.iter().zip(&mut self.moving).enumerate() {
            let elements = known.and_then(|known| known.get(nth)?.as_ref());
            let is_behind = match elements {
                Some(elements) => moving.is_behind(elements, &self.paces),
                None => moving.any_behind(&self.paces),
            };
            if is_behind {
                change(engine, parameters, *id, |weights| match elements {
                    Some(elements) => moving.bring(weights, elements, &self.paces),
                    None => moving.catch_up(weights, &self.paces),
                });
            }
        }
    }

    fn step(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        gradients: Vec<Gradient>,
        squares: f64,
        part: usize,
    ) {
        let norm = squares.sqrt();
        let factor = match self.minimize.clip {
            Some(clip) if norm > clip => clip / norm,
            _ => 1.0,
        };
        let number = self.paces.len() as u64 + 1;
        let (rate, weight_decay) = (self.schedule.rate(number), self.minimize.weight_decay);
        self.paces.push(Pace { number, rate, weight_decay, factor });
        for ((id, gradient), moving) in self.learned.iter().zip(&gradients).zip(&mut self.moving) {
            change(engine, parameters, *id, |weights| moving.step(weights, gradient, &self.paces));
        }
        let looked_at = gradients.into_iter().zip(&self.listed).map(|(gradient, listed)| match gradient {
            Gradient::Listed(gradient) if *listed => Some(gradient.positions),
            Gradient::Nothing if *listed => Some(Vec::new()),
            _ => None,
        });
        if let Some(slot) = self.looked_at.get_mut(part) {
            *slot = Some(looked_at.collect());
        }
    }
}

/// Changes the values of a parameter, in place if nobody else holds them.
fn change(engine: &mut dyn Engine, parameters: &mut Parameters, id: TensorId, how: impl FnOnce(&mut [f64])) {
    engine.release(id);
    if let Some(values) = parameters.get_mut(&id) {
        how(Arc::make_mut(values).as_mut_slice());
    }
}

/// The rate as a function of the step.
fn schedule_of(minimize: &Minimize, steps: u64) -> Schedule {
    let decline = match minimize.schedule.decline {
        program::Decline::Constant => Decline::Constant,
        program::Decline::Linear => Decline::Linear,
        program::Decline::Cosine => Decline::Cosine,
    };
    let (warmup, min_lr) = (minimize.schedule.warmup, minimize.schedule.least);
    Schedule { lr: minimize.rate, warmup, total: steps, min_lr, decline }
}

fn rule_of(optimiser: Optimiser) -> Rule {
    match optimiser {
        Optimiser::Sgd { momentum } => Rule::Sgd { momentum },
        Optimiser::Adam { beta1, beta2, epsilon, decoupled } => {
            Rule::Adam { beta1, beta2, epsilon, decoupled }
        }
    }
}

/// The values of the index of the batches: those that are learned from, and those that are held out.
fn split(program: &Program, goal: TensorId, batch: &Batch, minimize: &Minimize) -> Result<Split> {
    let Some(domain) = model::variable(program, goal, &batch.index) else {
        let message = format!("the loss has no index `{}`", batch.index);
        return Err(Refusal::new(Code::BadArgument, minimize.span, message));
    };
    Split::of(&domain, batch, program.settings.seed)
}

/// The order of an epoch, by the program's seed.
fn shuffled(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let family = seeded::Family::new("tensor-logic", "batches", seed);
    let order = family.stream(epoch).permutation(u32::try_from(count).unwrap_or(u32::MAX));
    order.into_iter().map(|at| at as usize).collect()
}
