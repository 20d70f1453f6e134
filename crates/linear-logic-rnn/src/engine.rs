//! The engine that trains: a step run over blocks of sequences, forward and backward, without a graph.
//!
//! Enter at [`Engine::gradient`]. A block of [`LANES`] sequences, or of [`NARROW`] in a small batch, is run from the first step to the last and back,
//! alone, so blocks go to threads; their gradients are added in the order of the blocks, so that the number of
//! threads changes nothing. Lanes that no sequence fills repeat the block's first sequence and weigh nothing.

mod backward;
mod forward;
mod frame;
mod lanes;
mod loss;
mod one_hot;
mod pack;
mod real;
mod tiled;
mod weights;

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use training::kernels::{Kernel, vectorised};

use crate::step::{Start, Step, ValueId, WeightId};
use forward::Machine;
use frame::{Code, Place};
pub use lanes::{LANES, NARROW, lanes};
use loss::{Wanted, classes, cross_entropy};
use one_hot::{NONE, OneHot, Tokens};
use pack::{Prepared, norm_backward};
pub use real::Real;

/// What goes into the steps.
#[derive(Debug, Clone, Copy)]
pub enum Inputs<'a> {
    /// One-hot inputs: [time, sequence].
    Tokens(&'a [u32]),
    /// [time, sequence, feature]
    Dense(&'a [f64]),
}

/// Some sequences of one length.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a> {
    /// Their inputs.
    pub inputs: Inputs<'a>,
    /// Steps of each.
    pub length: usize,
    /// How many.
    pub count: usize,
}

/// What is wanted of the logits: both [time, sequence].
#[derive(Debug, Clone, Copy)]
pub struct Targets<'a> {
    /// Classes.
    pub classes: &'a [u32],
    /// Whether the position counts.
    pub mask: &'a [bool],
}

impl Targets<'_> {
    fn wanted<const L: usize>(&self, time: usize, count: usize, block: usize) -> Wanted<L> {
        let mut wanted = Wanted { targets: [0; L], weights: [0.0; L] };
        for lane in 0..L.min(count - block) {
            let at = time * count + block + lane;
            wanted.targets[lane] = self.classes[at];
            wanted.weights[lane] = f32::from(u8::from(self.mask[at]));
        }
        wanted
    }
}

/// What is differentiated.
#[derive(Debug, Clone, Copy)]
pub enum Objective<'a> {
    /// The summed cross-entropy, in nats.
    CrossEntropy(Targets<'a>),
    /// The sum of the last first state.
    LastState,
}

/// The answer of [`Engine::predict`].
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// [time, sequence]
    pub classes: Vec<u32>,
    /// The summed cross-entropy, in nats.
    pub loss: f64,
}

/// Given starts, instead of those of the step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Starts {
    /// Of the first state.
    pub state: Option<Vec<f64>>,
    /// x⁽⁰⁾
    pub previous: Option<Vec<f64>>,
}

/// A step ready to run with certain weights.
#[derive(Debug)]
pub struct Engine<T> {
    step: Arc<Step>,
    code: Code,
    /// How one-hot inputs are read by their tokens, if they may be.
    one_hot: Option<OneHot>,
    prepared: Prepared<T>,
    starts: Starts,
    // Buffers are kept: fresh pages cost as much as a small cell's arithmetic.
    buffers: Mutex<Vec<Buffers<T>>>,
}

#[derive(Debug)]
struct Buffers<T> {
    frames: Vec<T>,
    gradients: Vec<T>,
}

/// The values of one step, of one sequence.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a, T> {
    code: &'a Code,
    /// The frame before the step, and the one that it has written.
    frames: [&'a [T]; 2],
}

impl<T: Real> Seen<'_, T> {
    /// A value of this step; of a state, what it was before.
    pub fn value(&self, value: ValueId) -> Vec<f64> {
        let place = self.code.places[value.index()];
        let rows = self.frames[1 - place.back][place.at * NARROW..(place.at + place.rows) * NARROW]
            .chunks_exact(NARROW);
        rows.map(|row| row[0].to_f64()).collect()
    }
}

impl<T: Real> Engine<T> {
    /// An engine for a step; `theta` holds the trained weights one after another, in the order of the step.
    pub fn new(step: Arc<Step>, theta: &[T]) -> Self {
        let code = Code::new(&step);
        let prepared = Prepared::new(&step, &code, theta);
        let one_hot = OneHot::new(&step, &code);
        Self { step, code, one_hot, prepared, starts: Starts::default(), buffers: Mutex::default() }
    }

    /// The same with given starts.
    #[must_use]
    pub fn with_starts(mut self, starts: Starts) -> Self {
        self.starts = starts;
        self
    }

    /// Takes other weights.
    pub fn set(&mut self, theta: &[T]) {
        self.prepared = Prepared::new(&self.step, &self.code, theta);
    }

    /// The step.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// The step, to be run by another engine.
    pub fn shared_step(&self) -> Arc<Step> {
        Arc::clone(&self.step)
    }

    /// The numbers that the values of so many steps take, for one block of a batch of so many sequences.
    pub fn numbers(&self, length: usize, count: usize) -> usize {
        length.saturating_add(1).saturating_mul(self.code.rows * lanes(count))
    }

    fn machine<'a, const L: usize>(&'a self, tokens: Option<&'a Tokens<L>>) -> Machine<'a, T, L> {
        let hot = self.one_hot.as_ref().zip(tokens.map(Vec::as_slice));
        Machine { step: &self.step, code: &self.code, prepared: &self.prepared, hot }
    }

    /// The tokens of a block, if its inputs are read by them: before the first step, then step by step.
    fn tokens<const L: usize>(&self, sequences: Sequences<'_>, block: usize) -> Option<Tokens<L>> {
        let Inputs::Tokens(tokens) = sequences.inputs else { return None };
        if self.one_hot.is_none() || self.starts.previous.is_some() {
            return None;
        }
        let of = |time: usize| {
            let lane = |lane: usize| if block + lane < sequences.count { block + lane } else { block };
            std::array::from_fn(|at| tokens[time * sequences.count + lane(at)])
        };
        let first =
            if self.step.previous == Start::First && sequences.length > 0 { of(0) } else { [NONE; L] };
        Some(std::iter::once(first).chain((0..sequences.length).map(of)).collect())
    }

    fn take(&self) -> Buffers<T> {
        let kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Buffers { frames: Vec::new(), gradients: Vec::new() })
    }

    fn give(&self, buffers: Buffers<T>) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffers);
    }

    /// The objective over all sequences; writes its gradient over `gradient`, weight after weight like `theta`.
    pub fn gradient(&self, sequences: Sequences<'_>, objective: Objective<'_>, gradient: &mut [T]) -> f64 {
        let lanes = lanes(sequences.count);
        let blocks: Vec<usize> = (0..sequences.count).step_by(lanes).collect();
        let block = |block: &usize| match lanes {
            NARROW => self.block::<NARROW>(sequences, *block, objective),
            _ => self.block::<LANES>(sequences, *block, objective),
        };
        let done: Vec<(f64, Vec<Vec<T>>)> = blocks.par_iter().map(block).collect();
        gradient.fill(T::ZERO);
        let mut total = 0.0;
        for (loss, sums) in done {
            total += loss;
            let mut at = 0;
            for (id, weight) in self.step.trained() {
                let to = &mut gradient[at..at + weight.len()];
                for (g, sum) in to.iter_mut().zip(&sums[id.index()]) {
                    *g += *sum;
                }
                at += weight.len();
            }
        }
        let mut at = 0;
        for (id, weight) in self.step.trained() {
            let to = &mut gradient[at..at + weight.len()];
            if self.is_replaced(id) {
                to.fill(T::ZERO);
            }
            norm_backward(weight.norm, &weight.shape, &self.prepared.weights[id.index()], to);
            at += weight.len();
        }
        total
    }

    /// Whether a given start stands where this weight would.
    fn is_replaced(&self, weight: WeightId) -> bool {
        let is_state = self.step.states.first().is_some_and(|h| h.start == Start::Weight(weight));
        let is_previous = self.step.previous == Start::Weight(weight);
        is_state && self.starts.state.is_some() || is_previous && self.starts.previous.is_some()
    }

    /// Objective and sums of one block. Its frames are free for the next block of this thread.
    fn block<const L: usize>(
        &self,
        sequences: Sequences<'_>,
        block: usize,
        objective: Objective<'_>,
    ) -> (f64, Vec<Vec<T>>) {
        let mut buffers = self.take();
        let tokens = self.tokens::<L>(sequences, block);
        let machine = self.machine(tokens.as_ref());
        let len = (sequences.length + 1) * machine.frame();
        buffers.frames.resize(len, T::ZERO);
        buffers.gradients.resize(len, T::ZERO);
        let mut sums: Vec<Vec<T>> = self.step.weights.iter().map(|w| vec![T::ZERO; w.len()]).collect();
        self.start::<L>(&mut buffers.frames, sequences, block);
        // Frames that are read by tokens hold none of their inputs.
        let written = if machine.hot.is_some() { 0 } else { sequences.length };
        for (time, frame) in
            buffers.frames.chunks_exact_mut(machine.frame()).enumerate().skip(1).take(written)
        {
            self.fill::<L>(frame, sequences, block, time - 1);
        }
        let logits = self.step.logits.map(|value| self.code.places[value.index()]);
        let pass =
            Pass { machine, buffers: &mut buffers, sums: &mut sums, sequences, block, objective, logits };
        let total = vectorised(pass);
        self.give(buffers);
        (total, sums)
    }

    /// Writes what stands before the first step into frame 0.
    fn start<const L: usize>(&self, frames: &mut [T], sequences: Sequences<'_>, block: usize) {
        for (at, (state, place)) in self.step.states.iter().zip(&self.code.next).enumerate() {
            let given = if at == 0 { self.starts.state.as_deref() } else { None };
            self.spread::<L>(frames, *place, &state.start, given);
        }
        let given = self.starts.previous.as_deref();
        if self.step.previous == Start::First && given.is_none() && sequences.length > 0 {
            self.fill::<L>(&mut frames[..self.code.rows * L], sequences, block, 0);
        } else {
            self.spread::<L>(frames, self.code.input, &self.step.previous, given);
        }
    }

    fn spread<const L: usize>(&self, frame: &mut [T], place: Place, start: &Start, given: Option<&[f64]>) {
        let rows = frame[place.at * L..(place.at + place.rows) * L].chunks_exact_mut(L);
        for (at, row) in rows.enumerate() {
            let value = match (given, start) {
                (Some(given), _) => given.get(at).map_or(T::ZERO, |x| T::from_f64(*x)),
                (None, Start::Constant(all)) => all.get(at).map_or(T::ZERO, |x| T::from_f64(*x)),
                (None, Start::Weight(weight)) => self.prepared.weights[weight.index()][at],
                (None, Start::Zero | Start::First) => T::ZERO,
            };
            row.fill(value);
        }
    }

    /// Writes the input of step `time` (from 0) into a frame.
    fn fill<const L: usize>(&self, frame: &mut [T], sequences: Sequences<'_>, block: usize, time: usize) {
        let rows = &mut frame[..self.code.input.rows * L];
        rows.fill(T::ZERO);
        for lane in 0..L {
            let sequence = if block + lane < sequences.count { block + lane } else { block };
            let at = time * sequences.count + sequence;
            match sequences.inputs {
                Inputs::Tokens(tokens) => {
                    if let Some(entry) = rows.get_mut(tokens[at] as usize * L + lane) {
                        *entry = T::ONE;
                    }
                }
                Inputs::Dense(entries) => {
                    let width = self.code.input.rows;
                    for (feature, x) in entries[at * width..(at + 1) * width].iter().enumerate() {
                        rows[feature * L + lane] = T::from_f64(*x);
                    }
                }
            }
        }
    }

    /// Classes and loss, without a gradient; memory does not grow with the length.
    pub fn predict(&self, sequences: Sequences<'_>, targets: Targets<'_>) -> Predictions {
        match lanes(sequences.count) {
            NARROW => self.predict_in::<NARROW>(sequences, targets),
            _ => self.predict_in::<LANES>(sequences, targets),
        }
    }

    fn predict_in<const L: usize>(&self, sequences: Sequences<'_>, targets: Targets<'_>) -> Predictions {
        let blocks: Vec<usize> = (0..sequences.count).step_by(L).collect();
        let done: Vec<(Vec<[u32; L]>, f64)> = blocks
            .par_iter()
            .map(|block| {
                let (mut found, mut loss) = (Vec::with_capacity(sequences.length), 0.0);
                let logits = self.step.logits.map(|value| self.code.places[value.index()]);
                let mut scratch = vec![T::ZERO; logits.map_or(0, |place| place.rows * L)];
                let tokens = self.tokens::<L>(sequences, *block);
                self.roll(sequences, *block, tokens.as_ref(), |time, [_, frame]| {
                    let Some(place) = logits else { return };
                    let logits = &frame[place.at * L..(place.at + place.rows) * L];
                    let wanted = targets.wanted::<L>(time, sequences.count, *block);
                    let (best, part) = vectorised(Judged { logits, wanted, scratch: &mut scratch });
                    found.push(best);
                    loss += part;
                });
                (found, loss)
            })
            .collect();
        let mut classes = vec![0; sequences.length * sequences.count];
        let mut loss = 0.0;
        for (block, (found, part)) in blocks.iter().zip(&done) {
            loss += part;
            for (time, found) in found.iter().enumerate() {
                let lanes = L.min(sequences.count - block);
                let at = time * sequences.count + block;
                classes[at..at + lanes].copy_from_slice(&found[..lanes]);
            }
        }
        Predictions { classes, loss }
    }

    /// Runs one sequence (the first) and shows every step, counted from 0.
    pub fn observe(&self, sequences: Sequences<'_>, mut see: impl FnMut(usize, Seen<'_, T>)) {
        // Reports may be of what is not written where tokens choose.
        self.roll::<NARROW>(sequences, 0, None, |time, frames| {
            see(time, Seen { code: &self.code, frames });
        });
    }

    /// Runs a block with two frames.
    fn roll<const L: usize>(
        &self,
        sequences: Sequences<'_>,
        block: usize,
        tokens: Option<&Tokens<L>>,
        mut see: impl FnMut(usize, [&[T]; 2]),
    ) {
        let machine = self.machine(tokens);
        let frame = machine.frame();
        let mut frames = vec![T::ZERO; 2 * frame];
        self.start::<L>(&mut frames, sequences, block);
        for time in 0..sequences.length {
            if machine.hot.is_none() {
                self.fill::<L>(&mut frames[frame..], sequences, block, time);
            }
            vectorised(OneStep { machine, frames: &mut frames, time: time + 1 });
            let (before, written) = frames.split_at(frame);
            see(time, [before, written]);
            frames.copy_within(frame.., 0);
        }
    }
}

struct OneStep<'a, T, const L: usize> {
    machine: Machine<'a, T, L>,
    frames: &'a mut [T],
    time: usize,
}

impl<T: Real, const L: usize> Kernel for OneStep<'_, T, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.machine.forward(self.frames, self.machine.frame(), self.time);
    }
}

/// Classes and loss of one step.
struct Judged<'a, T, const L: usize> {
    logits: &'a [T],
    wanted: Wanted<L>,
    scratch: &'a mut [T],
}

impl<T: Real, const L: usize> Kernel for Judged<'_, T, L> {
    type Output = ([u32; L], f64);

    #[inline(always)]
    fn run(self) -> Self::Output {
        (classes::<_, L>(self.logits), cross_entropy(self.logits, &self.wanted, self.scratch))
    }
}

/// A block, forward and backward.
struct Pass<'a, T, const L: usize> {
    machine: Machine<'a, T, L>,
    buffers: &'a mut Buffers<T>,
    sums: &'a mut [Vec<T>],
    sequences: Sequences<'a>,
    block: usize,
    objective: Objective<'a>,
    logits: Option<Place>,
}

impl<T: Real, const L: usize> Kernel for Pass<'_, T, L> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Buffers { frames, gradients } = self.buffers;
        let (machine, frame, length) = (self.machine, self.machine.frame(), self.sequences.length);
        for time in 1..=length {
            machine.forward(frames, time * frame, time);
        }
        // Frame 0 is cleared too: a start that no step reads has the gradient 0.
        for end in [0, length * frame] {
            for place in &machine.code.carried {
                gradients[end + place.at * L..end + (place.at + place.rows) * L].fill(T::ZERO);
            }
        }
        let mut total = 0.0;
        if let (Objective::LastState, Some(place)) = (self.objective, machine.code.next.first()) {
            let rows = length * frame + place.at * L..length * frame + (place.at + place.rows) * L;
            let lanes = L.min(self.sequences.count - self.block);
            for (g, h) in gradients[rows.clone()].chunks_exact_mut(L).zip(frames[rows].chunks_exact(L)) {
                g[..lanes].iter_mut().for_each(|g| *g += T::ONE);
                total += h[..lanes].iter().map(|h| h.to_f64()).sum::<f64>();
            }
        }
        for time in (1..=length).rev() {
            let here = time * frame;
            if let Some(place) = self.logits {
                let rows = here + place.at * L..here + (place.at + place.rows) * L;
                let gradient = &mut gradients[rows.clone()];
                match self.objective {
                    Objective::CrossEntropy(targets) => {
                        let wanted = targets.wanted::<L>(time - 1, self.sequences.count, self.block);
                        total += cross_entropy::<_, L>(&frames[rows], &wanted, gradient);
                    }
                    Objective::LastState => gradient.fill(T::ZERO),
                }
            }
            machine.backward(frames, gradients, here);
        }
        machine.weights_backward(frames, gradients, length, self.sums);
        total
    }
}
