//! A step run on candle: the oracle of [`crate::engine`], and what runs on a GPU.
//!
//! The same questions as [`crate::engine::Engine`], asked of candle's operations on tensors [batch, features] in any
//! dtype and on any device. Gradients are candle's, one step at a time: the states of all steps are kept from the
//! forward pass, and backward each step is run once more from the states before it. So the graph is as deep as one
//! step, whatever the length; candle's walk over it recurses.
//!
//! Slow and obvious. A weight that nothing depends on has the gradient 0.

mod operations;

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var, bail};
use training::composed::cross_entropy;

use crate::engine::{Inputs, Objective, Predictions, Real, Sequences, Starts, Targets};
use crate::step::{Start, Step, ValueId};
use operations::{Before, normed, run};

/// A step with certain weights, on a device.
#[derive(Debug)]
pub struct Composed {
    step: Arc<Step>,
    dtype: DType,
    device: Device,
    starts: Starts,
    weights: Vec<Leaf>,
}

/// A weight, before and after its norm: both are leaves of graphs of their own.
#[derive(Debug)]
struct Leaf {
    before: Var,
    after: Var,
}

impl Composed {
    /// `theta` holds the trained weights one after another, in the order of the step.
    ///
    /// # Errors
    /// If `theta` has another length, or the device refuses.
    pub fn new<T: Real>(step: Arc<Step>, theta: &[T], dtype: DType, device: &Device) -> Result<Self> {
        let mut made =
            Self { step, dtype, device: device.clone(), starts: Starts::default(), weights: Vec::new() };
        made.set(theta)?;
        Ok(made)
    }

    /// The same with given starts.
    #[must_use]
    pub fn with_starts(mut self, starts: Starts) -> Self {
        self.starts = starts;
        self
    }

    /// Takes other weights.
    ///
    /// # Errors
    /// As for [`Composed::new`].
    pub fn set<T: Real>(&mut self, theta: &[T]) -> Result<()> {
        let mut rest = theta;
        let mut weights = Vec::with_capacity(self.step.weights.len());
        for weight in &self.step.weights {
            let entries: Vec<f64> = match &weight.fixed {
                Some(value) => value.clone(),
                None => {
                    let Some((entries, behind)) = rest.split_at_checked(weight.len()) else {
                        bail!("the weights end within `{}`", weight.name)
                    };
                    rest = behind;
                    entries.iter().map(|x| x.to_f64()).collect()
                }
            };
            let before = Var::from_tensor(&self.tensor(entries, &weight.shape)?)?;
            let after = Var::from_tensor(&normed(weight.norm, before.as_tensor())?.copy()?.detach())?;
            weights.push(Leaf { before, after });
        }
        if !rest.is_empty() {
            bail!("{} numbers are left over behind the weights", rest.len());
        }
        self.weights = weights;
        Ok(())
    }

    /// The step.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// The objective over all sequences; writes its gradient over `gradient`, weight after weight like `theta`.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn gradient<T: Real>(
        &self,
        sequences: Sequences<'_>,
        objective: Objective<'_>,
        gradient: &mut [T],
    ) -> Result<f64> {
        gradient.fill(T::ZERO);
        if sequences.count == 0 {
            return Ok(0.0);
        }
        let befores = self.befores(sequences)?;
        let Some(end) = befores.last() else { return Ok(0.0) };
        let mut losses = Vec::new();
        let mut towards: Vec<Tensor> = end.states.iter().map(Tensor::zeros_like).collect::<Result<_>>()?;
        if let (Objective::LastState, Some(h), Some(first)) =
            (objective, end.states.first(), towards.first_mut())
        {
            losses.push(h.sum_all()?);
            *first = h.ones_like()?;
        }
        let mut sums: Vec<Option<Tensor>> = vec![None; self.weights.len()];
        let mut to_previous = None;
        let weights: Vec<Tensor> = self.weights.iter().map(|w| w.after.as_tensor().clone()).collect();
        for (time, before) in befores.iter().enumerate().take(sequences.length).rev() {
            let leaves: Vec<Var> = before.states.iter().map(Var::from_tensor).collect::<Result<_>>()?;
            let previous = Var::from_tensor(&before.previous.copy()?)?;
            let here = Before {
                states: leaves.iter().map(|leaf| leaf.as_tensor().clone()).collect(),
                previous: previous.as_tensor().clone(),
                input: before.input.clone(),
            };
            let values = run(&self.step, &weights, &here, time)?;
            let mut total: Vec<Tensor> = Vec::new();
            for (state, g) in self.step.states.iter().zip(&towards) {
                total.push((values.get(state.next)? * g)?.sum_all()?);
            }
            if let (Objective::CrossEntropy(targets), Some(logits)) = (objective, self.step.logits) {
                let loss = self.loss(values.get(logits)?, targets, time)?;
                losses.push(loss.detach());
                total.push(loss);
            }
            let store = Tensor::stack(&total, 0)?.sum_all()?.backward()?;
            // What the store holds is itself a graph over the leaves: it is cut off, or the next step's gradient
            // would run into it.
            let found = |leaf: &Tensor| store.get(leaf).map(Tensor::detach);
            for (sum, weight) in sums.iter_mut().zip(&weights) {
                add(sum, found(weight))?;
            }
            for (towards, leaf) in towards.iter_mut().zip(&leaves) {
                *towards = match found(leaf.as_tensor()) {
                    Some(g) => g,
                    None => leaf.zeros_like()?,
                };
            }
            to_previous = found(previous.as_tensor());
        }
        self.add_starts(&mut sums, &towards, to_previous.as_ref())?;
        self.write(&sums, gradient)?;
        losses.iter().try_fold(0.0, |total, loss| Ok(total + numbers(loss)?.iter().sum::<f64>()))
    }

    /// Adds the gradients of what stands before the first step.
    fn add_starts(
        &self,
        sums: &mut [Option<Tensor>],
        states: &[Tensor],
        previous: Option<&Tensor>,
    ) -> Result<()> {
        let mut starts: Vec<(&Start, &Tensor)> = Vec::new();
        for (at, (state, g)) in self.step.states.iter().zip(states).enumerate() {
            if at > 0 || self.starts.state.is_none() {
                starts.push((&state.start, g));
            }
        }
        if let (Some(g), None) = (previous, &self.starts.previous) {
            starts.push((&self.step.previous, g));
        }
        for (start, g) in starts {
            if let Start::Weight(weight) = start
                && let Some(sum) = sums.get_mut(weight.index())
            {
                add(sum, Some(g.sum(0)?))?;
            }
        }
        Ok(())
    }

    /// Writes the gradients of trained weights, through their norms, as numbers.
    fn write<T: Real>(&self, sums: &[Option<Tensor>], gradient: &mut [T]) -> Result<()> {
        let mut rest = gradient;
        for (id, weight) in self.step.trained() {
            let Some((here, behind)) = rest.split_at_mut_checked(weight.len()) else {
                bail!("the gradient ends within `{}`", weight.name)
            };
            rest = behind;
            let (Some(Some(g)), Some(leaf)) = (sums.get(id.index()), self.weights.get(id.index())) else {
                continue;
            };
            let store = (normed(weight.norm, leaf.before.as_tensor())? * g)?.sum_all()?.backward()?;
            let Some(g) = store.get(leaf.before.as_tensor()) else { continue };
            for (to, g) in here.iter_mut().zip(numbers(g)?) {
                *to = T::from_f64(g);
            }
        }
        Ok(())
    }

    /// Classes and loss, without a gradient.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn predict(&self, sequences: Sequences<'_>, targets: Targets<'_>) -> Result<Predictions> {
        let (mut classes, mut loss) = (vec![0; sequences.length * sequences.count], 0.0);
        if let (Some(logits), true) = (self.step.logits, sequences.count > 0) {
            let found = self.tensors(sequences, logits)?;
            for (time, (logits, to)) in found.iter().zip(classes.chunks_mut(sequences.count)).enumerate() {
                to.copy_from_slice(&logits.argmax(1)?.to_vec1::<u32>()?);
                loss += numbers(&self.loss(logits, targets, time)?)?.iter().sum::<f64>();
            }
        }
        Ok(Predictions { classes, loss })
    }

    /// A value at every step, of all sequences: [step][sequence, feature].
    ///
    /// # Errors
    /// If the device refuses.
    pub fn values(&self, sequences: Sequences<'_>, value: ValueId) -> Result<Vec<Vec<f64>>> {
        self.tensors(sequences, value)?.iter().map(numbers).collect()
    }

    /// The first state after every step, of all sequences: [step][sequence, feature].
    ///
    /// # Errors
    /// If the device refuses.
    pub fn states(&self, sequences: Sequences<'_>) -> Result<Vec<Vec<f64>>> {
        match self.step.states.first() {
            Some(h) => self.values(sequences, h.next),
            None => Ok(Vec::new()),
        }
    }

    fn tensors(&self, sequences: Sequences<'_>, value: ValueId) -> Result<Vec<Tensor>> {
        if sequences.count == 0 {
            return Ok(Vec::new());
        }
        let weights = self.constants();
        let mut before = self.start(sequences)?;
        let mut found = Vec::with_capacity(sequences.length);
        for time in 0..sequences.length {
            let values = run(&self.step, &weights, &before, time)?;
            found.push(values.get(value)?.clone());
            before = self.after(sequences, &before, &values, time)?;
        }
        Ok(found)
    }

    /// What stands before every step, and after the last.
    fn befores(&self, sequences: Sequences<'_>) -> Result<Vec<Before>> {
        let weights = self.constants();
        let mut befores = Vec::with_capacity(sequences.length + 1);
        let mut before = self.start(sequences)?;
        for time in 0..sequences.length {
            let values = run(&self.step, &weights, &before, time)?;
            let next = self.after(sequences, &before, &values, time)?;
            befores.push(std::mem::replace(&mut before, next));
        }
        befores.push(before);
        Ok(befores)
    }

    /// The weights, without a graph.
    fn constants(&self) -> Vec<Tensor> {
        self.weights.iter().map(|weight| weight.after.as_tensor().detach()).collect()
    }

    fn start(&self, sequences: Sequences<'_>) -> Result<Before> {
        let input = self.input(sequences, 0)?;
        let mut states = Vec::with_capacity(self.step.states.len());
        for (at, state) in self.step.states.iter().enumerate() {
            let given = if at == 0 { self.starts.state.as_deref() } else { None };
            states.push(self.before_first(&state.start, state.len, given, sequences.count)?);
        }
        let given = self.starts.previous.as_deref();
        let previous = if self.step.previous == Start::First && given.is_none() {
            input.clone()
        } else {
            self.before_first(&self.step.previous, self.step.input, given, sequences.count)?
        };
        Ok(Before { states, previous, input })
    }

    /// A start, for every sequence.
    fn before_first(&self, start: &Start, len: usize, given: Option<&[f64]>, count: usize) -> Result<Tensor> {
        let one = match (given, start) {
            (Some(given), _) => self.tensor(given.to_vec(), &[len])?,
            (None, Start::Constant(entries)) => self.tensor(entries.clone(), &[len])?,
            (None, Start::Weight(weight)) => match self.weights.get(weight.index()) {
                Some(weight) => weight.after.as_tensor().detach(),
                None => bail!("a weight is missing"),
            },
            (None, Start::Zero | Start::First) => Tensor::zeros(len, self.dtype, &self.device)?,
        };
        one.reshape((1, len))?.broadcast_as((count, len))?.contiguous()
    }

    /// What stands before the step behind step `time` (from 0).
    fn after(
        &self,
        sequences: Sequences<'_>,
        before: &Before,
        values: &operations::Values,
        time: usize,
    ) -> Result<Before> {
        let states = self.step.states.iter().map(|state| values.get(state.next).cloned());
        Ok(Before {
            states: states.collect::<Result<_>>()?,
            previous: before.input.clone(),
            input: self.input(sequences, time + 1)?,
        })
    }

    /// The input of step `time` (from 0), zero behind the last: [sequence, feature].
    fn input(&self, sequences: Sequences<'_>, time: usize) -> Result<Tensor> {
        let (width, count) = (self.step.input, sequences.count);
        let mut entries = vec![0.0; count * width];
        if time < sequences.length {
            match sequences.inputs {
                Inputs::Dense(all) => match all.get(time * count * width..(time + 1) * count * width) {
                    Some(here) => entries.copy_from_slice(here),
                    None => bail!("the inputs end before step {time}"),
                },
                Inputs::Tokens(all) => {
                    let Some(here) = all.get(time * count..(time + 1) * count) else {
                        bail!("the inputs end before step {time}")
                    };
                    for (row, token) in entries.chunks_mut(width).zip(here) {
                        if let Some(entry) = row.get_mut(*token as usize) {
                            *entry = 1.0;
                        }
                    }
                }
            }
        }
        self.tensor(entries, &[count, width])
    }

    /// The summed cross-entropy of step `time` (from 0).
    fn loss(&self, logits: &Tensor, targets: Targets<'_>, time: usize) -> Result<Tensor> {
        let count = logits.dim(0)?;
        let here = time * count..(time + 1) * count;
        let (Some(classes), Some(mask)) = (targets.classes.get(here.clone()), targets.mask.get(here)) else {
            bail!("the targets end before step {time}")
        };
        let classes = Tensor::from_slice(classes, count, &self.device)?;
        let mask = self.tensor(mask.iter().map(|m| f64::from(u8::from(*m))).collect(), &[count])?;
        cross_entropy(logits, &classes, &mask)
    }

    /// Numbers in the dtype of the computation, on its device.
    fn tensor(&self, entries: Vec<f64>, shape: &[usize]) -> Result<Tensor> {
        // The dtype is changed before the device: not every device has f64.
        Tensor::from_vec(entries, shape, &Device::Cpu)?.to_dtype(self.dtype)?.to_device(&self.device)
    }
}

/// Adds a gradient to a sum, where there is one.
fn add(sum: &mut Option<Tensor>, g: Option<Tensor>) -> Result<()> {
    if let Some(g) = g {
        *sum = Some(match sum.take() {
            Some(sum) => (sum + g)?,
            None => g,
        });
    }
    Ok(())
}

/// The entries of a tensor, row by row.
fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.flatten_all()?.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.to_vec1()
}
