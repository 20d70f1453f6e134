//! Steps of a recursion that are all recorded, gone through one after the other.
//!
//! Enter at [`Machine::gone_through`]. What stands between two operations of a few hundred numbers (a tensor to be looked
//! up, an array to be made, a lock) takes as long as they do. So where the contributions to all tensors of a recursion
//! are recorded (`replay`), the tensors that step are taken out of the store for as long as the steps last, what is read
//! besides them is looked up once, and results have places that all steps use. The operations and their order are those
//! of `replay`, and so are the bits.

use std::collections::BTreeMap;
use std::sync::Arc;

mod lanes;

use lanes::Lanes;

use smallvec::SmallVec;

use crate::component::{Fixings, range_of};
use crate::error::Result;
use crate::kernels::{Array, Buffer, Number, Places, Pool, Precision, Recorded, along, together};
use crate::program::{Combine, Equation, Expr, IndexId, Kind, Style, TensorId};
use crate::store::machine::{Machine, Stored};
use crate::store::records::{Fixed, Input, Moved, Record, Target};

/// Fewer steps are done one by one, and at most so many are gone through at once.
const STEPS: usize = 2;
const MOST: usize = 1 << 12;
/// Threads share steps of so many results.
const STEP: usize = 1 << 14;
/// What an operation reads: few arrays.
type Sources<'a, T> = SmallVec<[&'a [T]; 4]>;

/// How far steps were gone through.
pub(crate) struct Gone {
    /// Whole steps.
    pub(crate) steps: usize,
    /// Tensors of the step behind them: more than none only where numbers are doubted.
    pub(crate) tensors: usize,
}

/// What one equation contributes.
struct Part<'p> {
    equation: &'p Equation,
    /// The index that moves, if one does; without a record its steps are not gone through.
    index: Option<IndexId>,
    record: Option<Record>,
    /// For each step the position of the index.
    at: Vec<Option<u32>>,
    /// For each operation what it reads, and the second of it in order, if that stays the same; for each slice what goes there,
    /// and for each doubt of what.
    reads: Vec<Vec<Slot>>,
    ordered: Vec<Option<usize>>,
    slices: Vec<Slot>,
    suspects: Vec<Slot>,
}

/// A tensor that steps.
struct Member<'p> {
    id: TensorId,
    fresh: bool,
    /// The place that moves.
    moving: usize,
    parts: Vec<Part<'p>>,
    /// Whether its only equation writes where its results belong.
    direct: bool,
}

/// Where numbers are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slot {
    /// In a tensor that steps.
    State(usize),
    /// In one that does not.
    Outer(usize),
    /// With an operation of the same equation.
    Made(usize),
}

/// The numbers of a recursion while its steps are gone through.
struct Numbers<T> {
    states: Vec<Vec<T>>,
    outer: Vec<Arc<Vec<T>>>,
    ordered: Vec<Vec<T>>,
    /// What the operations of one tensor's equations make.
    made: Vec<Vec<T>>,
}

impl Machine {
    /// Goes through the first of these steps, as many as are recorded, if these are some.
    pub(crate) fn gone_through(
        &mut self,
        members: &[TensorId],
        all: &BTreeMap<TensorId, Fixings<'_>>,
        steps: &[i64],
    ) -> Result<Option<Gone>> {
        if steps.len() < STEPS || self.notes.is_some() {
            return Ok(None);
        }
        let steps = &steps[..steps.len().min(MOST)];
        let mut found: Vec<Member<'_>> = Vec::new();
        for id in members {
            let tensor = self.program.tensor(*id);
            let plain = tensor.style == Style::Square && tensor.combine == Combine::Sum;
            match all.get(id).filter(|fixings| plain && fixings.moving.len() == 1) {
                Some(fixings) => found.push(self.member(*id, fixings, steps)),
                None => break,
            }
        }
        let run = (0..steps.len()).take_while(|nth| found.iter().all(|member| member.covers(*nth))).count();
        let outcome = if found.len() < members.len() || run < STEPS {
            Ok(None)
        } else {
            match self.precision {
                Precision::Double => self.go::<f64>(&mut found, run, all.len() == members.len()),
                Precision::Single => self.go::<f32>(&mut found, run, all.len() == members.len()),
            }
        };
        for part in found.into_iter().flat_map(|member| member.parts) {
            if let Some(index) = part.index {
                self.records.known.insert((part.equation.node.number(), index), part.record);
            }
        }
        outcome
    }

    /// The records of a tensor's equations.
    fn member<'p>(&mut self, id: TensorId, fixings: &Fixings<'p>, steps: &[i64]) -> Member<'p> {
        if self.records.exact != self.exact.len() {
            self.records.known.clear();
            self.records.exact = self.exact.len();
        }
        let mut parts = Vec::new();
        for (equation, places) in &fixings.of {
            let [place] = places.as_slice() else { continue };
            if !fixings.fresh && adds_nothing(equation) {
                continue;
            }
            let fixed = |found: &[Fixed]| match found {
                [fixed] => match fixed.as_slice() {
                    [one] => Some(*one),
                    _ => None,
                },
                _ => None,
            };
            let first = place.first_key_value().and_then(|(_, found)| fixed(found));
            let ranged = first.and_then(|(index, _)| Some((index, range_of(place, index)?)));
            let record = ranged.and_then(|(index, range)| {
                let known = self.records.known.remove(&(equation.node.number(), index));
                known.unwrap_or_else(|| self.record(equation, index, range))
            });
            // A step of which another binding is asked has the position that no record covers.
            let at = |step: &i64| place.get(step).map(|found| fixed(found).map_or(u32::MAX, |(_, at)| at));
            parts.push(Part {
                equation,
                index: ranged.map(|(index, _)| index),
                record,
                at: steps.iter().map(at).collect(),
                reads: Vec::new(),
                ordered: Vec::new(),
                slices: Vec::new(),
                suspects: Vec::new(),
            });
        }
        let direct = match parts.as_slice() {
            [Part { record: Some(record), .. }] => fixings.fresh && record.ends_in(id),
            _ => false,
        };
        let moving = fixings.moving.first().map_or(usize::MAX, |moving| moving.place);
        Member { id, fresh: fixings.fresh, moving, parts, direct }
    }

    /// Does so many steps; `alone` says whether these are all tensors of their component.
    fn go<T: Number>(
        &mut self,
        members: &mut [Member<'_>],
        steps: usize,
        alone: bool,
    ) -> Result<Option<Gone>> {
        let ids: Vec<TensorId> = members.iter().map(|member| member.id).collect();
        let Some(outer) = self.looked_up::<T>(members, &ids) else { return Ok(None) };
        let typed = |id: &TensorId| match self.stored(*id) {
            Some(Stored::Dense(array)) => array.done().is_some_and(|buffer| T::slice(&buffer).is_some()),
            _ => false,
        };
        if !ids.iter().all(typed) {
            return Ok(None);
        }
        let states: Vec<Vec<T>> = ids.iter().map(|id| self.taken(*id)).collect();
        let pool = Arc::clone(&self.pool);
        let made = room(members, &pool);
        let ordered = in_order(members, &outer, &pool);
        let mut numbers = Numbers { states, outer, ordered, made };
        let mut gone = Ok(Gone { steps, tensors: 0 });
        let (stop, head, members) = (&self.stop, self.head, &*members);
        let records =
            || members.iter().flat_map(|member| &member.parts).filter_map(|part| part.record.as_ref());
        let each = records().flat_map(|record| &record.operations);
        let entries: usize = each.map(|moved| moved.operation.len()).sum();
        // Whether counts are too large is asked of all of them.
        let counts = |id: TensorId| self.program.tensor(id).kind == Kind::Count;
        let unread = |id: TensorId| alone && self.unread.contains(&id) && !counts(id);
        let lanes = Lanes::of(&self.program, members, (steps, entries * steps), &unread);
        let work = || {
            if let Some(lanes) = &lanes {
                return gone = lanes.go(&mut numbers, members, steps, (stop, head), &pool);
            }
            for nth in 0..steps {
                if let Err(refusal) = stop.check(head) {
                    return gone = Err(refusal);
                }
                for (at, member) in members.iter().enumerate() {
                    if !numbers.step(at, member, nth, &pool) {
                        return gone = Ok(Gone { steps: nth, tensors: at });
                    }
                }
            }
        };
        // The threads stay awake where a step is worth it.
        together(if entries >= STEP { steps } else { 0 }, entries * steps, work);
        numbers.made.into_iter().chain(numbers.ordered).for_each(|made| pool.give(made));
        if let Some(lanes) = &lanes {
            self.left_out.extend(lanes.passing(members));
        }
        for (id, state) in ids.into_iter().zip(numbers.states) {
            self.store(id, Stored::Dense(Array::pooled(T::buffer(state), &pool)));
        }
        gone.map(Some)
    }

    /// Finds what operations read; `None`, if something of it is not there, or reads and writes would meet.
    fn looked_up<T: Number>(&self, members: &mut [Member<'_>], ids: &[TensorId]) -> Option<Vec<Arc<Vec<T>>>> {
        let mut outer: Vec<Arc<Vec<T>>> = Vec::new();
        let mut slot = |source: &Input| -> Option<Slot> {
            match source {
                Input::Made(at) => return Some(Slot::Made(*at)),
                Input::Tensor(id, len) => {
                    if let Some(at) = ids.iter().position(|other| other == id) {
                        let whole =
                            matches!(self.stored(*id), Some(Stored::Dense(array)) if array.len() == *len);
                        return whole.then_some(Slot::State(at));
                    }
                }
                Input::Values(_) | Input::Within(..) | Input::Given(_) => {}
            }
            let buffer = self.array_of(source, &[])?.done()?;
            let typed = T::slice(&buffer).is_some();
            outer.push(match typed.then(|| T::numbers_of(buffer.clone())).flatten() {
                Some(values) => values,
                None => Arc::new(buffer.numbers()),
            });
            Some(Slot::Outer(outer.len() - 1))
        };
        for (own, member) in members.iter_mut().enumerate() {
            for part in &mut member.parts {
                let Some(record) = &part.record else { continue };
                let free = |moved: &Moved<Recorded>| moved.operation.is_free();
                if !record.operations.iter().all(free) {
                    return None;
                }
                for moved in &record.operations {
                    part.reads.push(moved.sources.iter().map(&mut slot).collect::<Option<_>>()?);
                }
                part.slices = record.slices.iter().map(|(source, _)| slot(source)).collect::<Option<_>>()?;
                part.suspects =
                    record.suspects.iter().map(|(_, source, _)| slot(source)).collect::<Option<_>>()?;
                if part.slices.contains(&Slot::State(own)) {
                    return None;
                }
            }
        }
        Some(outer)
    }

    /// The numbers of a stored tensor, which is stored no more.
    fn taken<T: Number>(&mut self, id: TensorId) -> Vec<T> {
        let slot = self.tensors.get_mut(id.0 as usize).and_then(Option::take);
        let Some((Stored::Dense(mut array), _)) = slot else { return Vec::new() };
        let buffer = match array.change() {
            Some(buffer) => std::mem::replace(buffer, Buffer::Truths(Arc::default())),
            // Somebody else holds what stood there so far.
            None => array.done().unwrap_or_else(|| Buffer::Truths(Arc::default())),
        };
        let values = T::numbers_of(buffer).unwrap_or_default();
        Arc::try_unwrap(values).unwrap_or_else(|values| values.to_vec())
    }
}

/// Whether an equation adds zeros: to a sum that begins with them.
fn adds_nothing(equation: &Equation) -> bool {
    equation.terms.iter().all(|term| matches!(term.body, Expr::Number(number) if number == 0.0))
}

/// What all steps read from the same place, as their operations want it.
fn in_order<T: Number>(members: &mut [Member<'_>], outer: &[Arc<Vec<T>>], pool: &Pool) -> Vec<Vec<T>> {
    let mut ordered = Vec::new();
    for part in members.iter_mut().flat_map(|member| &mut member.parts) {
        let Some(record) = &part.record else { continue };
        for (moved, slots) in record.operations.iter().zip(&part.reads) {
            let found = match (slots.as_slice(), moved.begins.as_slice()) {
                (&[_, Slot::Outer(at)], &[_, (begin, 0)]) => {
                    let second = outer[at].get(begin..).unwrap_or_default();
                    moved.operation.ordered(&[&[], second], pool)
                }
                _ => None,
            };
            part.ordered.push(found.map(|found| {
                ordered.push(found);
                ordered.len() - 1
            }));
        }
    }
    ordered
}

/// Room for what the operations of one tensor make.
fn room<T: Number>(members: &[Member<'_>], pool: &Pool) -> Vec<Vec<T>> {
    let mut sizes: Vec<usize> = Vec::new();
    for member in members {
        let records = member.parts.iter().filter_map(|part| part.record.as_ref());
        for (at, moved) in records.flat_map(|record| &record.operations).enumerate() {
            match sizes.get_mut(at) {
                Some(size) => *size = moved.operation.len().max(*size),
                None => sizes.push(moved.operation.len()),
            }
        }
    }
    sizes.into_iter().map(|size| pool.take(size)).collect()
}

impl Member<'_> {
    /// Whether all that contributes at a step is recorded.
    fn covers(&self, nth: usize) -> bool {
        let covered = |part: &Part<'_>| match (part.at.get(nth), &part.record) {
            (Some(Some(at)), Some(record)) => (record.from..=record.to).contains(at),
            (Some(Some(_)), None) => false,
            (Some(None) | None, _) => true,
        };
        self.parts.iter().all(covered)
    }
}

impl Part<'_> {
    /// How many operations its record has.
    fn operations(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.operations.len())
    }

    /// The record, and by how many steps it is moved, if it contributes at a step.
    fn moved(&self, nth: usize) -> Option<(&Record, isize)> {
        let record = self.record.as_ref()?;
        let at = self.at.get(nth).copied().flatten()?;
        Some((record, at as isize - record.from as isize))
    }
}

impl<T: Number> Numbers<T> {
    /// Does a step of a tensor; nothing is written where numbers are doubted.
    fn step(&mut self, own: usize, member: &Member<'_>, nth: usize, pool: &Pool) -> bool {
        let mut state = std::mem::take(&mut self.states[own]);
        let fine = self.computed(own, member, nth, &mut state, pool);
        if fine && !member.direct {
            self.written(member, nth, &mut state);
        }
        self.states[own] = state;
        fine
    }

    /// Does the operations of a step of a tensor; says whether their numbers are what they are taken for.
    fn computed(
        &mut self,
        own: usize,
        member: &Member<'_>,
        nth: usize,
        state: &mut [T],
        pool: &Pool,
    ) -> bool {
        let mut next = 0;
        for part in &member.parts {
            // Each part has its own places, also where others have nothing to do.
            let first = next;
            next += part.operations();
            let Some((record, moved)) = part.moved(nth) else { continue };
            let last = record.operations.len().wrapping_sub(1);
            let operations = record.operations.iter().zip(&part.reads).zip(&part.ordered);
            for (at, ((operation, slots), ordered)) in operations.enumerate() {
                let (before, behind) = self.made.split_at_mut(first + at);
                let places = Others { states: &self.states, outer: &self.outer, made: &before[first..] };
                let begins =
                    || operation.begins.iter().map(|(begin, step)| begin.saturating_add_signed(step * moved));
                let len = operation.operation.len();
                let also = ordered.map(|at| self.ordered[at].as_slice());
                if member.direct && at == last {
                    let Some((_, target)) = record.slices.first() else { return false };
                    let from = target.positions.offset.saturating_add_signed(target.step * moved);
                    // It does not read what it writes.
                    let sources = places.sources(slots, begins(), (own, &[]), also);
                    operation.operation.run_on(&sources, &mut state[from..from + len], pool);
                } else if let Some(to) = behind.first_mut() {
                    let sources = places.sources(slots, begins(), (own, state), also);
                    operation.operation.run_on(&sources, &mut to[..len], pool);
                }
            }
            for ((_, source, doubt), slot) in record.suspects.iter().zip(&part.suspects) {
                let whole = match slot {
                    Slot::State(at) if *at == own => &*state,
                    Slot::State(at) => &self.states[*at],
                    Slot::Outer(at) => &self.outer[*at],
                    Slot::Made(at) => &self.made[first + at],
                };
                let len = match source {
                    Input::Made(at) => record.operations[*at].operation.len(),
                    _ => whole.len(),
                };
                if !doubt.dispelled(&whole[..len]) {
                    return false;
                }
            }
        }
        true
    }

    /// Puts what was made where it belongs.
    fn written(&self, member: &Member<'_>, nth: usize, state: &mut [T]) {
        let (mut next, mut fresh) = (0, member.fresh);
        for part in &member.parts {
            let first = next;
            next += part.operations();
            let Some((record, moved)) = part.moved(nth) else { continue };
            for ((source, target), slot) in record.slices.iter().zip(&part.slices) {
                let values: &[T] = match slot {
                    Slot::State(at) => &self.states[*at],
                    Slot::Outer(at) => &self.outer[*at],
                    Slot::Made(at) => &self.made[first + at],
                };
                let values = match source {
                    Input::Made(at) => &values[..record.operations[*at].operation.len()],
                    _ => values,
                };
                let offset = target.positions.offset.saturating_add_signed(target.step * moved);
                // 0 added makes -0 a 0.
                match std::mem::take(&mut fresh) {
                    true => put(target, offset, state, values, |slot, value| *slot = value + T::ZERO),
                    false => put(target, offset, state, values, |slot, value| *slot += value),
                }
            }
        }
    }
}

/// Joins values with what stands from a place on.
fn put<T: Number>(
    target: &Target,
    offset: usize,
    state: &mut [T],
    values: &[T],
    join: impl Fn(&mut T, T) + Sync,
) {
    if !target.in_order {
        return Places { offset, ..target.positions.clone() }.join(state, values, join);
    }
    let slots = state.get_mut(offset..).unwrap_or_default();
    let len = slots.len().min(values.len());
    along(&mut slots[..len], &values[..len], &join);
}

/// What an operation may read besides the tensor at hand.
struct Others<'a, T> {
    states: &'a [Vec<T>],
    outer: &'a [Arc<Vec<T>>],
    made: &'a [Vec<T>],
}

impl<'a, T: Number> Others<'a, T> {
    /// What an operation reads, from where it begins on, and behind it what it is handed over besides.
    #[inline(always)]
    fn sources(
        &self,
        slots: &[Slot],
        begins: impl Iterator<Item = usize>,
        (own, state): (usize, &'a [T]),
        also: Option<&'a [T]>,
    ) -> Sources<'a, T> {
        let mut sources = Sources::new();
        for (slot, begin) in slots.iter().zip(begins) {
            let values: &'a [T] = match slot {
                Slot::State(at) if *at == own => state,
                Slot::State(at) => &self.states[*at],
                Slot::Outer(at) => &self.outer[*at],
                Slot::Made(at) => &self.made[*at],
            };
            sources.push(values.get(begin..).unwrap_or_default());
        }
        sources.extend(also);
        sources
    }
}
