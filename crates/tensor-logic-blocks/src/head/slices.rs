//! Contributions to some elements of a stored square tensor, and how they are written to it.

use std::sync::Arc;

use crate::engine::Numbers;
use crate::kernels::{
    self, Array, Binary, Buffer, Number, Places, Point, View, along, larger, smaller, volume,
};
use crate::program::{Combine, Role, Style, TensorId};
use crate::store::block::Dim;
use crate::store::machine::{Machine, Stored};
use crate::store::offsets::Offsets;

/// Contributions to some elements.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(super) positions: Positions,
    pub(super) values: Array,
    pub(super) present: Option<Arc<Vec<bool>>>,
}

/// What an equation contributes to one step, described.
pub(crate) struct Described {
    pub(crate) positions: Positions,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Array,
}

impl Described {
    /// Whether both go to the same elements.
    pub(crate) fn is_beside(&self, other: &Described) -> bool {
        match (&self.positions, &other.positions) {
            (Positions::From(a), Positions::From(b)) => a == b && self.shape == other.shape,
            (Positions::Apart(a), Positions::Apart(b)) => {
                (a.offset, &a.shape, &a.steps) == (b.offset, &b.shape, &b.steps)
            }
            _ => false,
        }
    }

    /// The sum of two contributions to the same elements, in one pass.
    pub(crate) fn plus(self, other: Described) -> Described {
        let Described { positions, shape, values } = self;
        let inputs = vec![View::whole(values, &shape), View::whole(other.values, &shape)];
        let code = vec![kernels::Code::Load(0), kernels::Code::Load(1), kernels::Code::Binary(Binary::Add)];
        let sum = Point { shape: shape.clone(), inputs, code, truth: false }.fused();
        Described { positions, values: Array::of(volume(&shape), sum), shape }
    }
}

/// Where the entries of a block go.
#[derive(Debug)]
pub(crate) enum Positions {
    /// Each to a position of its own; negative ones are outside.
    Each(Vec<i64>),
    /// In order, from this position on.
    From(usize),
    /// Along each dimension by a step.
    Apart(Places),
    /// Each row of a table to an offset of its own, if that is not below 0; along the other dimensions by a step.
    Rows(Vec<i64>, Places),
}

impl Positions {
    /// Where the entries over a space go in a tensor of so many elements; by steps only where all of them are there.
    pub(super) fn of(offsets: &Offsets, dims: &[Dim], shape: &[usize], len: usize, all: bool) -> Positions {
        let apart = || offsets.apart(dims, shape, len).map(Positions::Apart);
        let rows =
            || offsets.rows_apart(dims, shape, len).map(|(starts, places)| Positions::Rows(starts, places));
        let found = if all { apart().or_else(rows) } else { None };
        found.unwrap_or_else(|| Positions::Each(offsets.over(dims, shape)))
    }
}

/// One contribution to an element of a square tensor.
pub(crate) fn join<T: Number>(combine: Combine, slot: &mut T, value: T) {
    *slot = match combine {
        // What is proved is evaluated before (`weighted`), and stands as data here.
        Combine::Sum | Combine::Avg | Combine::Exists | Combine::Proofs | Combine::Slopes => *slot + value,
        Combine::Times => *slot * value,
        Combine::Max => larger(*slot, value),
        Combine::Min => smaller(*slot, value),
        Combine::Or => {
            if value > T::ZERO {
                T::ONE
            } else {
                *slot
            }
        }
    };
}

impl Slice {
    /// Values that are all there.
    pub(crate) fn new(positions: Positions, values: Array) -> Slice {
        Slice { positions, values, present: None }
    }

    /// How many contributions there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Joins the contributions to an array, or writes them over whatever stands there.
    fn write<T: Number>(&self, combine: Combine, fresh: bool, data: &mut [T]) {
        match combine {
            // 0 added makes -0 a 0.
            _ if fresh => self.each(data, |slot, value| *slot = value + T::ZERO),
            Combine::Sum => self.each(data, |slot, value| *slot += value),
            _ => self.each(data, |slot, value| join(combine, slot, value)),
        }
    }

    fn each<T: Number>(&self, data: &mut [T], join: impl Fn(&mut T, T) + Sync) {
        let Some(buffer) = self.values.done() else { return };
        let Some(values) = T::slice(&buffer) else { return };
        let here = |at: usize| self.present.as_ref().is_none_or(|present| present[at]);
        match &self.positions {
            Positions::From(from) => {
                let slots = data.get_mut(*from..).unwrap_or_default();
                if self.present.is_none() {
                    let len = slots.len().min(values.len());
                    along(&mut slots[..len], &values[..len], &join);
                } else {
                    let present = slots.iter_mut().zip(values).enumerate().filter(|(at, _)| here(*at));
                    present.for_each(|(_, (slot, value))| join(slot, *value));
                }
            }
            Positions::Apart(places) => places.join(data, values, join),
            Positions::Rows(offsets, places) => places.join_rows(offsets, data, values, join),
            Positions::Each(positions) => {
                for (at, position) in positions.iter().enumerate().filter(|(at, _)| here(*at)) {
                    let slot = usize::try_from(*position).ok().and_then(|at| data.get_mut(at));
                    slot.into_iter().for_each(|slot| join(slot, values[at]));
                }
            }
        }
    }
}

impl Machine {
    /// Joins contributions to some elements of a stored square tensor; those that get no others are `fresh`.
    pub(crate) fn write_slices(&mut self, id: TensorId, parts: &[Slice], fresh: bool) {
        let combine = self.program.tensor(id).combine;
        match self.state(id) {
            Some(Buffer::Numbers(Numbers::Double(values))) => {
                let values = Arc::make_mut(values);
                let first = |at| fresh && at == 0;
                parts.iter().enumerate().for_each(|(at, part)| part.write(combine, first(at), values));
            }
            Some(Buffer::Numbers(Numbers::Single(values))) => {
                let values = Arc::make_mut(values);
                let first = |at| fresh && at == 0;
                parts.iter().enumerate().for_each(|(at, part)| part.write(combine, first(at), values));
            }
            _ => {}
        }
    }

    /// The numbers of a stored square tensor, to write to.
    pub(crate) fn state(&mut self, id: TensorId) -> Option<&mut Buffer> {
        let stamp = self.number();
        let Some(Some((Stored::Dense(state), own))) = self.tensors.get_mut(id.0 as usize) else {
            return None;
        };
        *own = stamp;
        if state.change().is_none() {
            // Somebody else holds what stood there so far.
            let Some(Buffer::Numbers(numbers)) = state.done() else { return None };
            *state = Array::pooled(Buffer::Numbers(numbers), &self.pool);
            self.note_address(id);
        }
        match self.tensors.get_mut(id.0 as usize) {
            Some(Some((Stored::Dense(state), _))) => state.change(),
            _ => None,
        }
    }

    /// All elements of a square tensor to which nothing is given, before anything is contributed; whatever numbers, if
    /// all of them are `fresh`.
    pub(crate) fn nothing(&mut self, id: TensorId, fresh: bool) -> Option<Stored> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(id);
        if tensor.style != Style::Square || !tensor.given.is_empty() || tensor.role == Role::Parameter {
            return None;
        }
        // What stood there is free for what comes.
        self.forget(id);
        let sizes = program.tensor(id).sizes();
        let value = tensor.combine.default_value();
        if fresh {
            return Some(Stored::Dense(Array::any(volume(&sizes), self.precision, &self.pool)));
        }
        Some(Stored::Dense(Array::filled(value, volume(&sizes), self.precision, &self.pool)))
    }
}
