//! Samples that nothing is learned from: after each epoch their loss says how good the parameters are, and the best are
//! kept.
//!
//! Which samples these are hangs on the program's seed and on how many there are, on nothing else. The start is no
//! epoch: where few samples are held out its loss may be low by luck, and nobody learns to get the start back.

use std::borrow::Cow;
use std::sync::Arc;

use super::state::{Column, State, Stored, Unfit};
use crate::answer::Validated;
use crate::engine::{Engine, Parameters};
use crate::error::{Code, Refusal};
use crate::model;
use crate::program::{Batch, Program, TensorId};
use crate::value::{Const, Domain};

/// The values of the index of the batches, in their order.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// In batches.
    pub learned: Vec<Const>,
    /// In no batch.
    pub held: Vec<Const>,
}

impl Split {
    /// # Errors
    /// `valid` that holds out no value or leaves none.
    pub(super) fn of(values: Vec<Const>, batch: &Batch, seed: u64) -> Result<Split, Refusal> {
        let Some(valid) = batch.valid else { return Ok(Split { learned: values, held: Vec::new() }) };
        let count = (valid.part * values.len() as f64).round() as usize;
        if count == 0 || count >= values.len() {
            let (index, part, all) = (&batch.index, valid.part, values.len());
            let message =
                format!("`valid={part}` of the {all} values of `{index}` holds out {count} of them");
            let help = "one at least is held out, and one at least is learned from";
            return Err(Refusal::new(Code::BadArgument, valid.span, message).help(help));
        }
        let family = seeded::Family::new("tensor-logic", "validation", seed);
        let order = family.stream(0).permutation(u32::try_from(values.len()).unwrap_or(u32::MAX));
        let mut is_held = vec![false; values.len()];
        for at in order.into_iter().take(count) {
            if let Some(is_held) = is_held.get_mut(at as usize) {
                *is_held = true;
            }
        }
        let mut split = Split::default();
        for (value, is_held) in values.into_iter().zip(is_held) {
            if is_held { &mut split.held } else { &mut split.learned }.push(value);
        }
        Ok(split)
    }
}

/// What is known of the samples that are held out.
#[derive(Debug)]
pub(super) struct Validation {
    /// The index of the batches takes their values only.
    pub program: Program,
    patience: Option<u64>,
    found: Validated,
    /// Their loss behind each epoch.
    losses: Vec<f64>,
    /// The parameters of the best epoch.
    best: Vec<(TensorId, Arc<Vec<f64>>)>,
}

impl Validation {
    /// Of the values that are held out, if there are any; of their loss nothing is known yet.
    pub(super) fn of(program: &Program, goal: TensorId, batch: &Batch, held: &[Const]) -> Option<Validation> {
        let valid = batch.valid?;
        let domain = Domain::listed(held.iter().copied());
        Some(Validation {
            program: model::limited(program, &[goal], &batch.index, &domain),
            patience: valid.patience,
            found: Validated { first: f64::NAN, best: f64::NAN, epoch: 0, epochs: 0 },
            losses: Vec::new(),
            best: Vec::new(),
        })
    }

    /// Their loss with the parameters of the start.
    pub(super) fn begin(&mut self, loss: f64, parameters: &Parameters, learned: &[TensorId]) {
        self.found = Validated { first: loss, best: loss, epoch: 0, epochs: 0 };
        self.remember(parameters, learned);
    }

    /// Their loss behind one more epoch.
    pub(super) fn look(&mut self, loss: f64, parameters: &Parameters, learned: &[TensorId]) {
        self.found.epochs += 1;
        self.losses.push(loss);
        if self.found.epochs == 1 || loss < self.found.best {
            (self.found.best, self.found.epoch) = (loss, self.found.epochs);
            self.remember(parameters, learned);
        }
    }

    /// Values are shared until a step changes them.
    fn remember(&mut self, parameters: &Parameters, learned: &[TensorId]) {
        let held = learned.iter().filter_map(|id| Some((*id, Arc::clone(parameters.get(id)?))));
        self.best = held.collect();
    }

    /// How many epochs were looked at.
    pub(super) fn epochs(&self) -> u64 {
        self.found.epochs
    }

    /// Whether patience is at an end.
    pub(super) fn is_over(&self) -> bool {
        self.patience.is_some_and(|patience| self.found.epochs - self.found.epoch >= patience)
    }

    /// Gives the parameters of the best epoch back, what was found, and the losses.
    pub(super) fn end(self, engine: &mut dyn Engine, parameters: &mut Parameters) -> (Validated, Vec<f64>) {
        for (id, values) in self.best {
            engine.release(id);
            parameters.insert(id, values);
        }
        (self.found, self.losses)
    }

    /// Adds what is known to a state.
    pub(super) fn keep<'a>(&'a self, program: &Program, state: &mut State<'a>) {
        let found = &self.found;
        state.counters.valid = Some((found.epochs, found.epoch));
        state.add("held", Column::Doubles(Cow::Borrowed(&self.losses)));
        state.add("least", Column::Doubles(Cow::Owned(vec![found.first, found.best])));
        for (id, values) in &self.best {
            let tensor = program.tensor(*id);
            state.shaped(format!("best.{}", tensor.name), tensor.sizes(), values);
        }
    }

    /// Knows what was kept.
    pub(super) fn take(
        &mut self,
        program: &Program,
        learned: &[TensorId],
        stored: &mut Stored,
    ) -> Result<(), Unfit> {
        let (epochs, epoch) = stored.counters.valid.ok_or(Unfit)?;
        let [first, best] = stored.doubles("least", None)?[..] else { return Err(Unfit) };
        self.found = Validated { first, best, epoch, epochs };
        self.losses = stored.doubles("held", usize::try_from(epochs).ok())?;
        let values = |id: &TensorId| {
            let tensor = program.tensor(*id);
            let count = tensor.sizes().into_iter().product();
            Ok((*id, Arc::new(stored.doubles(&format!("best.{}", tensor.name), Some(count))?)))
        };
        self.best = learned.iter().map(values).collect::<Result<_, Unfit>>()?;
        if epoch > epochs { Err(Unfit) } else { Ok(()) }
    }
}
