//! Learning by gradient descent (N12): `@minimize`.
//!
//! Enter at [`minimize`]. The adjoint program is made once; a step evaluates the loss and the
//! gradients with the current parameters and moves them. With `batch=s, size=n` a step sees the
//! next n values of the index `s` only, in every equation that the loss needs.

use std::sync::Arc;

use crate::answer::Minimized;
use crate::engine::{Budget, Engine, Parameters, Request, Value};
use crate::error::{Code, Refusal, Result};
use crate::gradient::{Adjoint, adjoint};
use crate::model;
use crate::program::{self, Batch, Duration, Minimize, Optimiser, Program, TensorId};
use crate::value::Domain;

mod rule;

use rule::{Decline, Pace, Rule, Schedule, State};

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
    let whole = adjoint(program, goal, &learned);
    let parts = match &minimize.batch {
        Some(batch) => batches(program, goal, &whole, batch, minimize)?,
        None => Vec::new(),
    };
    let per_epoch = parts.len().max(1) as u64;
    let steps = match minimize.duration {
        Duration::Steps(steps) => steps,
        Duration::Epochs(epochs) => epochs.saturating_mul(per_epoch),
    };
    let loss = |engine: &mut dyn Engine, parameters: &Parameters| {
        model::scalar(engine, &Request { program, parameters, budget }, goal)
    };
    let first = loss(engine, parameters)?;
    let mut learner = Learner {
        learned: &learned,
        minimize,
        rule: rule_of(minimize.optimiser),
        states: vec![State::default(); learned.len()],
        schedule: schedule_of(minimize, steps),
    };
    let mut order: Vec<usize> = (0..parts.len()).collect();
    for step in 0..steps {
        let at = step % per_epoch;
        if at == 0 && minimize.batch.as_ref().is_some_and(|batch| batch.shuffle) {
            order = shuffled(parts.len(), program.settings.seed, step / per_epoch);
        }
        let part = order.get(at as usize).and_then(|part| parts.get(*part));
        let program = part.unwrap_or(&whole.program);
        let request = Request { program, parameters, budget };
        let (value, gradients) = evaluate(engine, &request, goal, &whole, &learned)?;
        check(value, &gradients, minimize, step)?;
        progress(step, steps, value);
        learner.step(parameters, &gradients, step + 1);
    }
    let last = loss(engine, parameters)?;
    check(last, &[], minimize, steps)?;
    let names = learned.iter().map(|id| program.name(*id).to_owned()).collect();
    Ok(Minimized { steps, first, last, parameters: names })
}

/// The loss and the gradient of every learned tensor; zeros where the loss does not depend on it.
fn evaluate(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    goal: TensorId,
    adjoint: &Adjoint,
    learned: &[TensorId],
) -> Result<(f64, Vec<Arc<[f64]>>)> {
    let mut goals = vec![goal];
    goals.extend(adjoint.gradients.iter().flatten());
    let mut values = engine.values(request, &goals)?.into_iter();
    let number = |value: Option<Value>| match value {
        Some(Value::Dense(values)) => values.first().unwrap_or(f64::NAN),
        Some(Value::Tuples(tuples)) => tuples.values.first().copied().unwrap_or(0.0),
        None => f64::NAN,
    };
    let loss = number(values.next());
    let mut gradients = Vec::new();
    for (gradient, id) in adjoint.gradients.iter().zip(learned) {
        let size = request.parameters.get(id).map_or(0, |values| values.len());
        gradients.push(match gradient.and_then(|_| values.next()) {
            Some(Value::Dense(values)) => values.doubles().as_slice().into(),
            _ => vec![0.0; size].into(),
        });
    }
    Ok((loss, gradients))
}

fn check(loss: f64, gradients: &[Arc<[f64]>], minimize: &Minimize, step: u64) -> Result<()> {
    let finite = loss.is_finite() && gradients.iter().all(|gradient| gradient.iter().all(|g| g.is_finite()));
    if finite {
        return Ok(());
    }
    let message = format!("after {step} steps the loss is {loss} or has a gradient that is no number");
    let help = "take a smaller lr, clip=1, or look for log(0) and a division by 0";
    Err(Refusal::new(Code::Divergence, minimize.span, message).help(help))
}

struct Learner<'a> {
    learned: &'a [TensorId],
    minimize: &'a Minimize,
    rule: Rule,
    states: Vec<State>,
    schedule: Schedule,
}

impl Learner<'_> {
    fn step(&mut self, parameters: &mut Parameters, gradients: &[Arc<[f64]>], number: u64) {
        let norm = gradients.iter().flat_map(|gradient| gradient.iter()).map(|g| g * g).sum::<f64>().sqrt();
        let factor = match self.minimize.clip {
            Some(clip) if norm > clip => clip / norm,
            _ => 1.0,
        };
        let pace = Pace {
            number,
            rate: self.schedule.rate(number),
            weight_decay: self.minimize.weight_decay,
            factor,
        };
        for ((id, gradient), state) in self.learned.iter().zip(gradients).zip(&mut self.states) {
            let Some(values) = parameters.get(id) else { continue };
            let mut weights = values.to_vec();
            if weights.len() == gradient.len() {
                self.rule.step(state, &mut weights, gradient, pace);
                parameters.insert(*id, weights.into());
            }
        }
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

/// One program for each batch: the index takes these values only.
fn batches(
    program: &Program,
    goal: TensorId,
    whole: &Adjoint,
    batch: &Batch,
    minimize: &Minimize,
) -> Result<Vec<Program>> {
    let Some(domain) = model::variable(program, goal, &batch.index) else {
        let message = format!("the loss has no index `{}`", batch.index);
        return Err(Refusal::new(Code::BadArgument, minimize.span, message));
    };
    let mut goals = vec![goal];
    goals.extend(whole.gradients.iter().flatten());
    let values: Vec<_> = domain.values().collect();
    let part = |values: &[_]| {
        let domain = Domain::listed(values.iter().copied());
        model::limited(&whole.program, &goals, &batch.index, &domain)
    };
    Ok(values.chunks(batch.size.max(1)).map(part).collect())
}

/// The order of an epoch, by the program's seed.
fn shuffled(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let family = seeded::Family::new("tensor-logic", "batches", seed);
    let order = family.stream(epoch).permutation(u32::try_from(count).unwrap_or(u32::MAX));
    order.into_iter().map(|at| at as usize).collect()
}
