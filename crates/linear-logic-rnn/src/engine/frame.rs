//! Where values lie: one frame a step, one place a value, and who writes a gradient first.
//!
//! A frame is the rows of all values of a step, the input first. A state is not copied: before step t it *is* its
//! next value in frame t − 1. Frame 0 holds what stands before the first step, at the places of the states' next
//! values and of the input. Gradients have frames of the same form. An operand's gradient is stored by the first
//! that writes it and added to by the others; backward, step t + 1 writes into frame t before step t does.

use std::collections::BTreeSet;

use super::tiled::Tiled;
use crate::step::{Act, Op, Start, Step, ValueId};

/// Where a value is read: rows from `at` of this frame or of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// 0: this frame; 1: the one before.
    pub(super) back: usize,
    /// The first row.
    pub(super) at: usize,
    /// The number of rows.
    pub(super) rows: usize,
}

/// What the backward pass does with the gradient of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Nothing depends on it that is trained.
    None,
    /// It is the first to write.
    Store,
    /// Others have written before.
    Add,
}

impl Flow {
    pub(super) fn adds(self) -> bool {
        self == Self::Add
    }
}

/// An operation with places.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The value that it makes.
    pub(super) value: ValueId,
    /// Where it goes.
    pub(super) out: Place,
    /// Its operands, as [`Op::operands`] lists them.
    pub(super) operands: Vec<Place>,
    /// What happens to their gradients.
    pub(super) flows: Vec<Flow>,
    /// For an affine map, the number of each term's matrix in [`Code::factors`].
    pub(super) factors: Vec<usize>,
    /// Whether the objective depends on it and something trained is below it.
    pub(super) carries: bool,
}

/// A step with places.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// Rows of a frame.
    pub(super) rows: usize,
    /// The operations that compute, in order.
    pub(super) lines: Vec<Line>,
    /// The matrices that are used.
    pub(super) factors: Vec<Tiled>,
    /// The place of every value.
    pub(super) places: Vec<Place>,
    /// The place of the input.
    pub(super) input: Place,
    /// The places of the states' next values.
    pub(super) next: Vec<Place>,
    /// Rows whose gradient must be cleared in the last frame, because a later step would have stored it.
    pub(super) carried: Vec<Place>,
}

impl Code {
    pub(super) fn new(step: &Step) -> Self {
        let input = Place { back: 0, at: 0, rows: step.input };
        let mut rows = step.input;
        let mut places: Vec<Place> = Vec::with_capacity(step.nodes.len());
        for node in &step.nodes {
            let is_here = !matches!(node.op, Op::Input | Op::Previous | Op::State(_));
            places.push(Place { back: 0, at: rows, rows: node.len });
            if is_here {
                rows += node.len;
            }
        }
        let next: Vec<Place> = step.states.iter().map(|state| places[state.next.index()]).collect();
        for (place, node) in places.iter_mut().zip(&step.nodes) {
            match node.op {
                Op::Input => *place = input,
                Op::Previous => *place = Place { back: 1, ..input },
                Op::State(state) => *place = Place { back: 1, ..next[state.index()] },
                _ => {}
            }
        }
        let mut code =
            Self { rows, lines: Vec::new(), factors: Vec::new(), places, input, next, carried: Vec::new() };
        let (trained, needed) = (code.trained(step), code.needed(step));
        code.write_lines(step, &trained, &needed);
        code.flow(step, &trained);
        code
    }

    /// For each value, whether something trained is below it, in this step or an earlier one.
    fn trained(&self, step: &Step) -> Vec<bool> {
        let is_weight = |start: &Start| matches!(start, Start::Weight(_));
        let mut states: Vec<bool> = step.states.iter().map(|s| is_weight(&s.start)).collect();
        loop {
            let mut known: Vec<bool> = Vec::with_capacity(step.nodes.len());
            for node in &step.nodes {
                let by_weight = match &node.op {
                    Op::Vector(w) | Op::Row(w) => step.weights[w.index()].fixed.is_none(),
                    Op::Affine { terms, bias, .. } => {
                        let mut used = terms.iter().map(|(f, _)| f.weight).chain(*bias);
                        used.any(|w| step.weights[w.index()].fixed.is_none())
                    }
                    Op::State(state) => states[state.index()],
                    Op::Previous => is_weight(&step.previous),
                    _ => false,
                };
                known.push(by_weight || node.op.operands().iter().any(|v| known[v.index()]));
            }
            let after: Vec<bool> = step
                .states
                .iter()
                .zip(&states)
                .map(|(state, before)| *before || known[state.next.index()])
                .collect();
            if after == states {
                return known;
            }
            states = after;
        }
    }

    /// For each value, whether a next state or the logits depend on it.
    fn needed(&self, step: &Step) -> Vec<bool> {
        let mut needed = vec![false; step.nodes.len()];
        for value in step.states.iter().map(|s| s.next).chain(step.logits) {
            needed[value.index()] = true;
        }
        for at in (0..step.nodes.len()).rev() {
            if needed[at] {
                for operand in step.nodes[at].op.operands() {
                    needed[operand.index()] = true;
                }
            }
        }
        needed
    }

    fn write_lines(&mut self, step: &Step, trained: &[bool], needed: &[bool]) {
        for (at, node) in step.nodes.iter().enumerate() {
            if matches!(node.op, Op::Input | Op::Previous | Op::State(_)) {
                continue;
            }
            let operands: Vec<Place> = node.op.operands().iter().map(|v| self.places[v.index()]).collect();
            let mut factors = Vec::new();
            if let Op::Affine { terms, .. } = &node.op {
                for (factor, _) in terms {
                    let known = self.factors.iter().position(|tiled| tiled.factor == *factor);
                    factors.push(known.unwrap_or_else(|| {
                        self.factors.push(Tiled::new(step, *factor));
                        self.factors.len() - 1
                    }));
                }
            }
            self.lines.push(Line {
                value: ValueId(at),
                out: self.places[at],
                flows: vec![Flow::None; operands.len()],
                operands,
                factors,
                carries: trained[at] && needed[at],
            });
        }
    }

    /// Says of every operand who writes its gradient first: the last reader of the frame after, if there is one.
    fn flow(&mut self, step: &Step, trained: &[bool]) {
        let mut written: BTreeSet<(usize, usize)> = BTreeSet::new();
        let logits = step.logits.map(|value| self.places[value.index()].at);
        for back in [1, 0] {
            for line in self.lines.iter_mut().rev().filter(|line| line.carries) {
                let operands = step.nodes[line.value.index()].op.operands();
                for ((place, flow), operand) in line.operands.iter().zip(&mut line.flows).zip(operands) {
                    if place.back != back || !trained[operand.index()] {
                        continue;
                    }
                    // The loss stores the gradient of the logits before anything else does.
                    let is_first = !written.contains(&(place.at, place.rows)) && Some(place.at) != logits;
                    *flow = if is_first { Flow::Store } else { Flow::Add };
                    if is_first {
                        written.insert((place.at, place.rows));
                        if back == 1 {
                            self.carried.push(Place { back: 0, ..*place });
                        }
                    }
                }
            }
            // A next state that no later step reads is written by nobody: it is cleared like the others.
            if back == 1 {
                for next in &self.next {
                    if !written.contains(&(next.at, next.rows)) {
                        written.insert((next.at, next.rows));
                        self.carried.push(*next);
                    }
                }
            }
        }
    }
}

/// What the backward pass of an elementwise function needs: the value.
pub(super) fn slope<T: super::real::Real>(act: Act, y: T) -> T {
    match act {
        Act::Identity => T::ONE,
        Act::Relu if y > T::ZERO => T::ONE,
        Act::Relu => T::ZERO,
        Act::Tanh => T::ONE - y * y,
        Act::Sigmoid => y * (T::ONE - y),
    }
}
