//! One learning at work: its batches, what is held out, and the steps, one after the other.
//!
//! What a step or an epoch leaves is complete before anybody is asked whether to go on, so that [`Work::state`] is true whenever
//! it can be asked for. An epoch whose samples are still to be looked at is known by the number of steps.

use std::borrow::Cow;

use super::Keeper;
use super::learner::Learner;
use super::moving::Gradient;
use super::state::{Column, State, Stored, Unfit};
use super::validation::{Split, Validation};
use crate::answer::{Lifting, Minimized};
use crate::engine::{Budget, Engine, Parameters, Request, Slope, Value};
use crate::error::{Code, Refusal, Result};
use crate::gradient::{Adjoint, adjoint, guarded_adjoint};
use crate::learning::batches::Batches;
use crate::learning::lift::lifted;
use crate::model;
use crate::program::{Batch, Duration, Minimize, Program, TensorId};
use crate::value::Const;

/// Learning, and how far it has come.
pub(super) struct Work<'a> {
    program: &'a Program,
    budget: Budget,
    goal: TensorId,
    minimize: &'a Minimize,
    /// What was merged of what is equal.
    lifted: Lifting,
    slopes: Slopes,
    /// The same where nothing flows along a way with a 0 on it, for steps that give no number otherwise.
    guarded: Option<Slopes>,
    /// What the loss is of, where it is not the program itself.
    seen: Option<Program>,
    /// The batches' index, and the values of it that are learned from.
    batch: Option<(&'a Batch, Vec<Const>)>,
    validation: Option<Validation>,
    learner: Learner,
    /// Of the batches in this epoch.
    order: Vec<usize>,
    steps: u64,
    /// The loss over all data before the first step.
    first: f64,
    /// The loss of each step's batch before it.
    losses: Vec<f64>,
}

/// The gradients of a loss.
struct Slopes {
    whole: Adjoint,
    /// A program for each batch.
    parts: Option<Batches>,
}

impl Slopes {
    fn new(whole: Adjoint, goal: TensorId, batch: Option<&(&Batch, Vec<Const>)>, bytes: u64) -> Slopes {
        let parts = batch.map(|(batch, values)| Batches::new(goal, &whole, batch, values, bytes));
        Slopes { parts, whole }
    }

    /// How many batches there are; none where each step sees everything.
    fn len(&self) -> usize {
        self.parts.as_ref().map_or(0, Batches::len)
    }
}

/// What a step finds.
struct Found {
    loss: f64,
    /// Of every learned tensor.
    gradients: Vec<Gradient>,
    /// The sum of their squares.
    squares: f64,
}

impl Found {
    /// A loss without gradients.
    fn only(loss: f64) -> Found {
        Found { loss, gradients: Vec::new(), squares: 0.0 }
    }

    /// Whether the gradients are numbers. Squares may be infinite where no number is.
    fn has_numbers(&self) -> bool {
        self.squares.is_finite() || self.gradients.iter().all(Gradient::is_finite)
    }
}

impl<'a> Work<'a> {
    /// All that does not hang on how far it has come, from the parameters of the start.
    pub(super) fn new(
        engine: &mut dyn Engine,
        (program, budget): (&'a Program, Budget),
        parameters: &Parameters,
        goal: TensorId,
        minimize: &'a Minimize,
    ) -> Result<Work<'a>> {
        let learned = program.learnable(goal);
        let mut batch = minimize.batch.as_ref();
        if let (Some(each), true) = (batch, minimize.lift) {
            let split = split(program, goal, each, minimize)?;
            // One batch of all samples is no batch, unless the index has other values too: samples may be merged.
            let others = |each: &&Batch| {
                let count = model::count(program, goal, &each.index);
                count.is_some_and(|count| count > split.learned.len())
            };
            let some = |each: &&Batch| split.learned.len() > each.size.max(1) || others(each);
            batch = batch.filter(|each| !split.held.is_empty() || some(each));
        }
        let kept = batch.map(|batch| batch.index.as_str());
        let lifted = match minimize.lift {
            true => lifted(engine, program, budget, parameters, goal, kept)?,
            false => None,
        };
        // What is learned from; the loss is that of the program itself.
        let seen = lifted.as_ref().map_or(program, |lifted| &lifted.program);
        let whole = adjoint(seen, goal, &learned);
        let (mut learned_from, mut validation) = (None, None);
        if let Some(batch) = batch {
            // The samples are those of the program itself: what is lifted may say less of some, and more of others.
            let split = split(program, goal, batch, minimize)?;
            validation = Validation::of(seen, goal, batch, &split.held);
            learned_from = Some((batch, split.learned));
        }
        let slopes = Slopes::new(whole, goal, learned_from.as_ref(), budget.bytes);
        let parts = slopes.len();
        let steps = match minimize.duration {
            Duration::Steps(steps) => steps,
            Duration::Epochs(epochs) => epochs.saturating_mul(parts.max(1) as u64),
        };
        Ok(Work {
            learner: Learner::new((seen, goal), &learned, minimize, (steps, parts)),
            lifted: lifted.as_ref().map_or(Lifting::default(), |lifted| lifted.merged),
            seen: lifted.map(|lifted| lifted.program),
            order: (0..parts).collect(),
            first: f64::NAN,
            losses: Vec::new(),
            program,
            budget,
            goal,
            minimize,
            slopes,
            guarded: None,
            batch: learned_from,
            validation,
            steps,
        })
    }

    /// What is known before the first step.
    pub(super) fn begin(&mut self, engine: &mut dyn Engine, parameters: &Parameters) -> Result<()> {
        self.first = self.loss(engine, self.program, parameters)?;
        if let Some(mut validation) = self.validation.take() {
            let value = self.loss(engine, &validation.program, parameters)?;
            self.check(&Found::only(value), 0)?;
            validation.begin(value, parameters, self.learner.learned());
            self.validation = Some(validation);
        }
        Ok(())
    }

    /// What was kept.
    pub(super) fn take(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        mut stored: Stored,
    ) -> Result<()> {
        self.known(engine, parameters, &mut stored).map_err(|Unfit| {
            let message = "the state that was kept does not fit what is learned";
            Refusal::new(Code::FileFormat, self.minimize.span, message)
        })
    }

    fn known(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        stored: &mut Stored,
    ) -> std::result::Result<(), Unfit> {
        let [first] = stored.doubles("begun", None)?[..] else { return Err(Unfit) };
        self.first = first;
        self.losses = stored.doubles("losses", usize::try_from(stored.step()).ok())?;
        let is_held = stored.counters.valid.is_some();
        if stored.steps() != self.steps || self.taken() > self.steps || is_held != self.validation.is_some() {
            return Err(Unfit);
        }
        if let Some(validation) = &mut self.validation {
            validation.take(self.program, self.learner.learned(), stored)?;
        }
        self.learner.take(self.program, engine, parameters, stored)?;
        if !self.taken().is_multiple_of(self.per_epoch()) {
            self.mix();
        }
        Ok(())
    }

    /// How it stands.
    pub(super) fn state<'s>(&'s self, parameters: &'s Parameters) -> State<'s> {
        let mut state = State::default();
        (state.counters.step, state.counters.steps) = (self.taken(), self.steps);
        state.add("begun", Column::Doubles(Cow::Owned(vec![self.first])));
        state.add("losses", Column::Doubles(Cow::Borrowed(&self.losses)));
        self.learner.keep(self.program, parameters, &mut state);
        if let Some(validation) = &self.validation {
            validation.keep(self.program, &mut state);
        }
        state
    }

    /// Takes all steps that are left.
    pub(super) fn go(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        keeper: &mut dyn Keeper,
    ) -> Result<()> {
        loop {
            if self.is_epoch_over() {
                self.look(engine, parameters)?;
            }
            if self.is_over() {
                return Ok(());
            }
            keeper.stands(super::Moment::Between, self.taken(), &|| self.state(parameters))?;
            engine.stop().check(self.minimize.span)?;
            self.step(engine, parameters, keeper)?;
        }
    }

    /// Steps taken.
    pub(super) fn taken(&self) -> u64 {
        self.losses.len() as u64
    }

    fn per_epoch(&self) -> u64 {
        self.slopes.len().max(1) as u64
    }

    fn is_over(&self) -> bool {
        self.taken() >= self.steps || self.validation.as_ref().is_some_and(Validation::is_over)
    }

    /// Whether an epoch is behind that nobody has looked at. The last one may be incomplete.
    fn is_epoch_over(&self) -> bool {
        let (taken, per_epoch) = (self.taken(), self.per_epoch());
        let ends = taken.is_multiple_of(per_epoch) || taken == self.steps;
        ends && self.validation.as_ref().is_some_and(|known| known.epochs() < taken.div_ceil(per_epoch))
    }

    /// The loss of what is held out.
    fn look(&mut self, engine: &mut dyn Engine, parameters: &mut Parameters) -> Result<()> {
        self.learner.prepare(engine, parameters, None);
        let Some(validation) = &self.validation else { return Ok(()) };
        let value = self.loss(engine, &validation.program, parameters)?;
        self.check(&Found::only(value), self.taken())?;
        if let Some(validation) = &mut self.validation {
            validation.look(value, parameters, self.learner.learned());
        }
        Ok(())
    }

    fn step(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &mut Parameters,
        keeper: &mut dyn Keeper,
    ) -> Result<()> {
        let (taken, per_epoch) = (self.taken(), self.per_epoch());
        if taken.is_multiple_of(per_epoch) {
            self.mix();
        }
        let part = self.order.get((taken % per_epoch) as usize).copied().unwrap_or(0);
        self.learner.prepare(engine, parameters, Some(part));
        let found = self.found(engine, parameters, &self.slopes, part);
        let found = self.without_steep_zeros(engine, parameters, part, found)?;
        self.check(&found, taken)?;
        let Found { loss: value, gradients, squares } = found;
        keeper.step(taken, self.steps, value);
        self.learner.fits(parameters, &gradients, self.budget.bytes, self.minimize.span)?;
        self.learner.step(engine, parameters, (gradients, squares), part);
        self.losses.push(value);
        Ok(())
    }

    fn found(
        &self,
        engine: &mut dyn Engine,
        parameters: &Parameters,
        slopes: &Slopes,
        part: usize,
    ) -> Result<Found> {
        let batch = slopes.parts.as_ref().and_then(|parts| parts.program(&slopes.whole, part));
        let program = batch.as_deref().unwrap_or(&slopes.whole.program);
        let request = Request { program, parameters, budget: self.budget };
        evaluate(engine, &request, self.goal, &slopes.whole, self.learner.learned())
    }

    /// What a step found, or where that is no number what it is without the ways on which nothing flows. Each step is asked
    /// anew: what it finds hangs on its parameters alone, not on where learning began.
    fn without_steep_zeros(
        &mut self,
        engine: &mut dyn Engine,
        parameters: &Parameters,
        part: usize,
        found: Result<Found>,
    ) -> Result<Found> {
        let fails = match &found {
            Ok(found) => found.loss.is_finite() && !found.has_numbers(),
            Err(refusal) => refusal.code == Code::Divergence,
        };
        if !fails {
            return found;
        }
        let guarded = self.guarded.take().unwrap_or_else(|| {
            let seen = self.seen.as_ref().unwrap_or(self.program);
            let whole = guarded_adjoint(seen, self.goal, self.learner.learned());
            Slopes::new(whole, self.goal, self.batch.as_ref(), self.budget.bytes)
        });
        let again = self.found(engine, parameters, &guarded, part);
        self.guarded = Some(guarded);
        again.or(found)
    }

    /// The order of the batches in this epoch, by the program's seed.
    fn mix(&mut self) {
        if self.minimize.batch.as_ref().is_some_and(|batch| batch.shuffle) {
            let epoch = self.taken() / self.per_epoch();
            self.order = shuffled(self.slopes.len(), self.program.settings.seed, epoch);
        }
    }

    /// What came of it, with the parameters that are kept.
    pub(super) fn end(mut self, engine: &mut dyn Engine, parameters: &mut Parameters) -> Result<Minimized> {
        self.learner.prepare(engine, parameters, None);
        let valid = self.validation.take().map(|validation| validation.end(engine, parameters));
        let (valid, held) = valid.map_or((None, Vec::new()), |(valid, held)| (Some(valid), held));
        let last = self.loss(engine, self.program, parameters)?;
        self.check(&Found::only(last), self.taken())?;
        let name = |id: &TensorId| self.program.name(*id).to_owned();
        Ok(Minimized {
            steps: self.taken(),
            first: self.first,
            last,
            parameters: self.learner.learned().iter().map(name).collect(),
            lifted: self.lifted,
            valid,
            per_epoch: self.per_epoch(),
            losses: self.losses,
            held,
        })
    }

    fn loss(&self, engine: &mut dyn Engine, program: &Program, parameters: &Parameters) -> Result<f64> {
        let request = Request { program, parameters, budget: self.budget };
        Ok(number(engine.listed(&request, &[self.goal])?.first()))
    }

    fn check(&self, found: &Found, step: u64) -> Result<()> {
        let loss = found.loss;
        if loss.is_finite() && found.has_numbers() {
            return Ok(());
        }
        let message = format!("after {step} steps the loss is {loss} or has a gradient that is no number");
        let help = "take a smaller lr, clip=1, or look for log(0) and a division by 0";
        Err(Refusal::new(Code::Divergence, self.minimize.span, message).help(help))
    }
}

/// The loss and the gradient of every learned tensor.
fn evaluate(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    goal: TensorId,
    adjoint: &Adjoint,
    learned: &[TensorId],
) -> Result<Found> {
    let mut goals = vec![goal];
    goals.extend(adjoint.gradients.iter().flatten());
    let mut slopes = engine.listed(request, &goals)?.into_iter();
    let loss = number(slopes.next().as_ref());
    let gradient = |(gradient, id): (&Option<TensorId>, &TensorId)| match gradient.and_then(|_| slopes.next())
    {
        Some(slope) => Gradient::of(slope, request.program.tensor(*id)),
        None => Gradient::Nothing,
    };
    let gradients: Vec<Gradient> = adjoint.gradients.iter().zip(learned).map(gradient).collect();
    let squares = gradients.iter().map(Gradient::squares).sum();
    Ok(Found { loss, gradients, squares })
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

/// The values of the index of the batches: those that are learned from, and those that are held out.
fn split(program: &Program, goal: TensorId, batch: &Batch, minimize: &Minimize) -> Result<Split> {
    let refuse = |message: String| Err(Refusal::new(Code::BadArgument, minimize.span, message));
    let index = &batch.index;
    match model::samples(program, goal, index) {
        None => refuse(format!("the loss has no index `{index}`")),
        Some(samples) if samples.is_empty() => refuse(format!(
            "nothing to learn from: no relation of the loss has a tuple at its index `{index}`"
        )),
        Some(samples) => Split::of(samples, batch, program.settings.seed),
    }
}

/// The order of an epoch.
fn shuffled(count: usize, seed: u64, epoch: u64) -> Vec<usize> {
    let family = seeded::Family::new("tensor-logic", "batches", seed);
    let order = family.stream(epoch).permutation(u32::try_from(count).unwrap_or(u32::MAX));
    order.into_iter().map(|at| at as usize).collect()
}
