//! Parameters that follow their gradients, and what has been done to each so far.

use std::borrow::Cow;
use std::sync::Arc;

use super::moving::{Gradient, Moving};
use super::rule::{Decline, Pace, Rule, Schedule};
use super::state::{Column, State, Stored, Unfit};
use crate::ast::Span;
use crate::engine::{Engine, Parameters};
use crate::error::{Code, Refusal};
use crate::program::{self, Minimize, Optimiser, Program, TensorId};
use tensor_logic_rewrites::gradient::are_all_listed;

/// What moves the parameters.
pub(super) struct Learner {
    learned: Vec<TensorId>,
    clip: Option<f64>,
    weight_decay: f64,
    rule: Rule,
    moving: Vec<Moving>,
    /// The steps so far.
    paces: Vec<Pace>,
    /// Which parameters have gradients that list whatever the loss looks at.
    listed: Vec<bool>,
    /// What each batch looks at: the elements of each parameter, `None` for all. Unknown before the first time.
    looked_at: Vec<Option<Vec<Option<Vec<usize>>>>>,
    schedule: Schedule,
}

impl Learner {
    /// At the start of so many steps with so many batches.
    pub(super) fn new(
        (program, goal): (&Program, TensorId),
        learned: &[TensorId],
        minimize: &Minimize,
        (steps, batches): (u64, usize),
    ) -> Learner {
        let rule = rule_of(minimize.optimiser);
        Learner {
            learned: learned.to_vec(),
            clip: minimize.clip,
            weight_decay: minimize.weight_decay,
            rule,
            moving: learned.iter().map(|_| Moving::new(rule)).collect(),
            paces: Vec::new(),
            listed: learned.iter().map(|id| are_all_listed(program, goal, *id)).collect(),
            looked_at: vec![None; batches.max(1)],
            schedule: schedule_of(minimize, steps),
        }
    }

    pub(super) fn learned(&self) -> &[TensorId] {
        &self.learned
    }

    /// Brings what a batch looks at up to date; all elements without one.
    pub(super) fn prepare(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        part: Option<usize>,
    ) {
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

    /// Takes a step against these gradients, the sum of whose squares is known.
    pub(super) fn step(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        (gradients, squares): (Vec<Gradient>, f64),
        part: usize,
    ) {
        let norm = squares.sqrt();
        let factor = match self.clip {
            Some(clip) if norm > clip => clip / norm,
            _ => 1.0,
        };
        self.paces.push(self.pace(self.paces.len(), factor));
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

    /// Refuses a step where the parameters and what is known of their way do not fit.
    pub(super) fn fits(
        &self,
        parameters: &Parameters,
        gradients: &[Gradient],
        limit: u64,
        place: Span,
    ) -> Result<(), Refusal> {
        let values = self.learned.iter().filter_map(|id| parameters.get(id));
        let values: u128 = values.map(|values| values.len() as u128 * 8).sum();
        let moments: u128 = self.moving.iter().zip(gradients).map(|(moving, own)| moving.bytes(own)).sum();
        if values + moments <= u128::from(limit) {
            return Ok(());
        }
        let message = format!(
            "the parameters need {values} bytes and their moments {moments}, and {limit} are allowed (`--max-bytes`)"
        );
        let help = "`opt=sgd` without momentum has no moments";
        Err(Refusal::new(Code::TooLarge, place, message).help(help))
    }

    /// The step behind so many others.
    fn pace(&self, before: usize, factor: f64) -> Pace {
        let number = before as u64 + 1;
        Pace { number, rate: self.schedule.rate(number), weight_decay: self.weight_decay, factor }
    }

    /// Adds the parameters, and what was done to them, to a state.
    pub(super) fn keep<'a>(&'a self, program: &Program, parameters: &'a Parameters, state: &mut State<'a>) {
        let factors = self.paces.iter().map(|pace| pace.factor).collect();
        state.add("factors", Column::Doubles(Cow::Owned(factors)));
        for (id, moving) in self.learned.iter().zip(&self.moving) {
            let tensor = program.tensor(*id);
            let values = parameters.get(id).map_or(&[][..], |values| values.as_slice());
            state.shaped(&tensor.name, tensor.sizes(), values);
            moving.keep(&tensor.name, state);
        }
    }

    /// Knows what was kept, and gives the parameters their values. Which elements a batch looks at is found out anew.
    pub(super) fn take(
        &mut self,
        program: &Program,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        stored: &mut Stored,
    ) -> Result<(), Unfit> {
        let step = stored.counters.step;
        let factors = stored.doubles("factors", usize::try_from(step).ok())?;
        self.paces = factors.iter().enumerate().map(|(before, factor)| self.pace(before, *factor)).collect();
        let counters = std::mem::take(&mut stored.counters.parameters);
        if counters.len() != self.learned.len() {
            return Err(Unfit);
        }
        for ((id, moving), known) in self.learned.iter().zip(&mut self.moving).zip(counters) {
            let tensor = program.tensor(*id);
            let len = tensor.sizes().into_iter().product();
            *moving = Moving::of(self.rule, &tensor.name, (len, step), known, stored)?;
            engine.release(*id);
            parameters.insert(*id, Arc::new(stored.doubles(&tensor.name, Some(len))?));
        }
        Ok(())
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
