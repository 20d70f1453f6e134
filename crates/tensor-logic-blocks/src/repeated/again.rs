//! Equations that are evaluated again and again, as in steps of learning, with other numbers in the same places: their
//! operations are recorded, and done again on the arrays that stand there now.
//!
//! Enter at [`Machine::again`] and [`Machine::remember`]. To describe the arrays of an equation takes longer than to
//! compute small ones. What is described depends on the text, on tuples, ranges and tables, and not on numbers, unless
//! somebody looked at one on the way. So the second time that a tensor is evaluated, if nobody did, its operations are
//! kept with the stamps of all that was asked for; as long as these are what they were, it is described no more.

use std::collections::HashMap;

use super::stretch::Described;
use crate::head::{Accumulator, Elements};
use crate::kernels::{Array, Buffer, Point, Recorded};
use crate::program::{Combine, Role, TensorId};
use crate::store::machine::{Machine, Stored};
use crate::store::plan::{Again, Asked, Kept, Slot, Watch};
use crate::store::records::{Input, Records};
use crate::store::relation::Relation;

/// After so many records that were of no use no further one is made.
const TRIES: u32 = 3;

/// Operations in the order in which they are done, and the arrays that they make.
#[derive(Default)]
struct Listed {
    operations: Vec<(Recorded, Vec<Input>)>,
    /// By where they stand: all of them are held.
    known: HashMap<usize, usize>,
    held: Vec<Array>,
}

impl Machine {
    /// Forgets how equations were evaluated.
    pub(crate) fn forget_records(&mut self) {
        self.records = Records::default();
        for slot in &mut self.slots {
            *slot = Slot { described: slot.described, ..Slot::default() };
        }
    }

    /// The value of a tensor, if its operations are recorded.
    pub(crate) fn again(&mut self, id: TensorId) -> Option<Stored> {
        let slot = self.slots.get_mut(id.0 as usize)?;
        let record = slot.record.take()?;
        let stored = match self.notes.is_none() && self.is_right(&record) {
            true => self.made_again(&record, self.passing[id.0 as usize]),
            false => None,
        };
        let slot = self.slots.get_mut(id.0 as usize)?;
        match stored {
            Some(_) => slot.record = Some(record),
            None => slot.failed += 1,
        }
        stored
    }

    pub(crate) fn is_right(&self, record: &Again) -> bool {
        let asked = &record.asked;
        asked.ranges == self.ranged
            && asked.exact == self.exact.len()
            && record.reads.iter().all(|(id, kept)| self.is_kept(*id, *kept))
            && asked.things.iter().all(|(source, stamp)| self.source_stamp(*source) == *stamp)
    }

    /// What a record makes of the arrays that stand there now.
    pub(crate) fn described_again(&self, record: &Again) -> Option<Described> {
        let mut made: Vec<Array> = Vec::with_capacity(record.operations.len());
        for (operation, sources) in &record.operations {
            let arrays: Option<Vec<Array>> =
                sources.iter().map(|source| self.array_of(source, &made)).collect();
            made.push(operation.waiting(arrays?));
        }
        let mut suspects = Vec::new();
        for (scope, source, doubt) in &record.suspects {
            suspects.push((*scope, self.array_of(source, &made)?, *doubt));
        }
        let (relation, source) = &record.result;
        let array = self.array_of(source, &made)?;
        let stored = match relation {
            Some(tuples) => Stored::Relation(std::sync::Arc::new(tuples.valued(array))),
            None => Stored::Dense(array),
        };
        Some(Described { stored, suspects })
    }

    fn made_again(&mut self, record: &Again, passing: bool) -> Option<Stored> {
        let Described { stored, suspects } = self.described_again(record)?;
        self.suspects.extend(suspects);
        match &stored {
            Stored::Relation(relation) => relation.array().iter().for_each(|array| drop(self.force(array))),
            // What only other operations read may become part of them.
            Stored::Dense(array) if !self.defers && (!passing || !array.waits_for::<Point>()) => {
                self.force(array);
            }
            Stored::Dense(_) => {}
        }
        self.bytes += record.bytes;
        (!self.must_repeat()).then_some(stored)
    }

    pub(crate) fn kept(&self, id: TensorId) -> Kept {
        match self.stored(id) {
            None => Kept::Nothing,
            Some(Stored::Dense(array)) => {
                let waits = array.is_waiting() && self.passing[id.0 as usize];
                Kept::Dense(array.len(), if waits { self.description(id) } else { 0 })
            }
            Some(Stored::Relation(relation)) => match &relation.values {
                None => Kept::Tuples(relation.tuples, false),
                Some(_) if relation.computed().is_some() => Kept::Tuples(relation.tuples, true),
                Some(_) => Kept::Relation(self.stamp(id)),
            },
        }
    }

    /// Whether a tensor is kept as it was when somebody read it.
    pub(crate) fn is_kept(&self, id: TensorId, before: Kept) -> bool {
        match (before, self.stored(id)) {
            // An operation that was taken over is that of one description.
            (Kept::Dense(len, described), Some(Stored::Dense(array))) => {
                array.len() == len && (described == 0 || described == self.description(id))
            }
            _ => self.kept(id) == before,
        }
    }

    /// Whether a tensor was evaluated before.
    pub(crate) fn is_seen(&self, id: TensorId) -> bool {
        self.slots.get(id.0 as usize).is_some_and(|slot| slot.seen)
    }

    fn description(&self, id: TensorId) -> u64 {
        self.slots.get(id.0 as usize).map_or(0, |slot| slot.described)
    }

    /// Takes down from now on what is asked for, if a tensor is worth it.
    pub(crate) fn watch(&mut self, id: TensorId) {
        let tensor = self.program.tensor(id);
        let plain = tensor.role != Role::Parameter && matches!(tensor.combine, Combine::Sum | Combine::Avg);
        let (looks, kept, bytes) = (self.looks.get(), self.memory.kept(), self.bytes);
        let described = self.number();
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return };
        slot.described = described;
        let seen = std::mem::replace(&mut slot.seen, true);
        if seen {
            self.memory.is_used();
        }
        let worth = plain && seen && slot.failed < TRIES && self.notes.is_none();
        let watch = worth.then(|| {
            let reads = self.program.reads_of(id).into_iter().map(|read| (read, self.kept(read))).collect();
            Watch { looks, kept, bytes, reads, ..Watch::default() }
        });
        *self.watched.borrow_mut() = watch;
    }

    /// Keeps the operations of what an equation contributed, if it is to be done again.
    pub(crate) fn remember(&mut self, id: TensorId, accumulator: &Accumulator) {
        let Some(watch) = self.watched.borrow_mut().take() else { return };
        let record = self.recorded(watch, accumulator);
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return };
        slot.failed += u32::from(record.is_none());
        slot.record = record.map(Box::new);
    }

    fn recorded(&self, watch: Watch, accumulator: &Accumulator) -> Option<Again> {
        if self.looks.get() != watch.looks || self.memory.kept() != watch.kept {
            return None;
        }
        let mut listed = Listed::default();
        let mut suspects = Vec::new();
        for (scope, array, doubt) in &self.suspects {
            suspects.push((*scope, self.listed_as(array, &mut listed, &watch)?, *doubt));
        }
        let result = match accumulator {
            Accumulator::Dense { data: Elements::Sum(sum), counts: None, .. } => {
                (None, self.listed_as(sum, &mut listed, &watch)?)
            }
            Accumulator::Ready(relation) => {
                let values = relation.array()?;
                (
                    Some(Relation { values: None, ..relation.clone() }),
                    self.listed_as(&values, &mut listed, &watch)?,
                )
            }
            _ => return None,
        };
        let asked = Asked { ranges: self.ranged, exact: self.exact.len(), things: watch.things };
        let bytes = self.bytes - watch.bytes;
        Some(Again { operations: listed.operations, suspects, result, asked, reads: watch.reads, bytes })
    }

    /// What an array is; its operation, and those that it needs, join the others.
    fn listed_as(&self, array: &Array, listed: &mut Listed, watch: &Watch) -> Option<Input> {
        if let Some(at) = listed.known.get(&array.address()) {
            return Some(Input::Made(*at));
        }
        if let Some(id) = self.stored_as(array) {
            return Some(Input::Tensor(id, array.len()));
        }
        if let Some(id) = self.values_of(array) {
            return Some(Input::Values(id));
        }
        if !array.is_waiting() {
            // Given, or made once of what has not changed; anything else was computed from numbers of this time.
            let fixed = array.is_given() || watch.blocks.iter().any(|block| block.same(array));
            return if fixed { Some(Input::Given(array.clone())) } else { self.within(array) };
        }
        let mut operation = Recorded::of(array)?;
        let mut sources = Vec::new();
        operation.visit(&mut |array, _| {
            sources.push(self.listed_as(array, listed, watch));
            *array = self.nothing_there.clone();
        });
        let sources: Option<Vec<Input>> = sources.into_iter().collect();
        listed.operations.push((operation, sources?));
        listed.held.push(array.clone());
        listed.known.insert(array.address(), listed.operations.len() - 1);
        Some(Input::Made(listed.operations.len() - 1))
    }

    /// Whether an array is made of nothing that another evaluation may have other numbers of.
    pub(crate) fn is_structure(&self, array: &Array) -> bool {
        if self.stored_as(array).is_some() || self.values_of(array).is_some() {
            return false;
        }
        if array.is_waiting() {
            return array.reads().iter().all(|read| self.is_structure(read));
        }
        let made_once = |watch: &Watch| watch.blocks.iter().any(|block| block.same(array));
        array.is_given() || self.watched.borrow().as_ref().is_some_and(made_once)
    }

    /// The numbers of a structure. To look at what stays is no look, and an operation that reads what was computed for it reads
    /// what another evaluation would have, too.
    pub(crate) fn computed_once(&self, structure: &Array) -> Buffer {
        let mut waiting = Vec::new();
        waits(structure, &mut waiting);
        let numbers = structure.force(self.precision, &self.pool);
        if let Some(watch) = self.watched.borrow_mut().as_mut() {
            watch.blocks.extend(waiting.into_iter().filter(|array| !array.is_waiting()));
        }
        numbers
    }

    /// What a stored tensor that waits is made of, where that is computed: whoever reads such a tensor alone takes its operation
    /// over, and that of what it has taken over itself.
    fn within(&self, array: &Array) -> Option<Input> {
        let of = |id: TensorId| match self.stored(id)? {
            Stored::Dense(waiting) => path(waiting, array, &mut Vec::new()),
            Stored::Relation(_) => None,
        };
        let mut ids = (0u32..).map(TensorId).take(self.program.tensors.len());
        ids.find_map(|id| Some(Input::Within(id, of(id)?, array.len())))
    }

    /// The relation whose values an array is.
    fn values_of(&self, array: &Array) -> Option<TensorId> {
        self.place_of(array, false)
    }

    /// The tensor that an array is stored as.
    pub(crate) fn stored_as(&self, array: &Array) -> Option<TensorId> {
        self.place_of(array, true)
    }
}

/// By which of the arrays that operations read one comes from an array to another.
fn path(from: &Array, to: &Array, seen: &mut Vec<Array>) -> Option<Vec<usize>> {
    for (nth, read) in from.reads().iter().enumerate() {
        if read.same(to) {
            return Some(vec![nth]);
        }
        if read.is_waiting() && !seen.iter().any(|other| other.same(read)) {
            seen.push(read.clone());
            if let Some(mut rest) = path(read, to, seen) {
                rest.insert(0, nth);
                return Some(rest);
            }
        }
    }
    None
}

/// An array and those that it needs, as far as they wait.
fn waits(array: &Array, found: &mut Vec<Array>) {
    if array.is_waiting() && !found.iter().any(|other| other.same(array)) {
        found.push(array.clone());
        array.reads().iter().for_each(|read| waits(read, found));
    }
}
