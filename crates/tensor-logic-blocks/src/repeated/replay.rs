//! Steps of a recursion that are like each other: what an equation contributes to one is recorded, and done again for
//! the others with the arrays moved on.
//!
//! Enter at [`Machine::replayed`]. To describe the arrays of an equation takes longer than to compute small ones, and
//! from one step to the next only the places move at which they begin. So the operations are described for the first
//! step, the second and the last; where the second and the last differ from the first by an even move of these places,
//! they are kept, also for the next evaluation. That says what lies between, because only such equations are looked at:
//! without guards, of stored arrays, whose index functions are linear in what the steps move. A place that is inside at
//! both ends is inside in between.

use std::sync::Arc;

use crate::head::{Accumulator, Described, Positions, Slice};
use crate::kernels::{Array, Buffer, Places, Recorded};
use crate::linear::linear;
use crate::program::{
    Argument, Axis, AxisFunction, Combine, Equation, Expr, IndexFn, IndexId, Kind, Range, Read, Style,
    TensorId,
};
use crate::store::doubt::Doubt;
use crate::store::machine::{Machine, Stored, indices_of};
use crate::store::records::{Input, Moved, Record, Target};
use crate::value::Domain;

/// Fewer steps are described one by one.
const STEPS: usize = 2;

/// The operations of one step.
struct Step {
    operations: Vec<Moved<Recorded>>,
    slices: Vec<(Input, Places, bool)>,
    suspects: Vec<(u64, Input, Doubt)>,
}

impl Machine {
    /// The contributions of an equation where an index that its left side moves along has one position, if they are
    /// recorded, or can be; the index takes the positions from `range.0` to `range.1`.
    pub(crate) fn replayed(
        &mut self,
        equation: &Equation,
        (index, at): (IndexId, u32),
        range: (u32, u32),
        fresh: bool,
        into: &mut Vec<Slice>,
    ) -> bool {
        if self.records.exact != self.exact.len() {
            self.records.known.clear();
            self.records.exact = self.exact.len();
        }
        let place = (equation.node.number(), index);
        let known = self.records.known.remove(&place);
        let mut record = known.unwrap_or_else(|| self.record(equation, index, range));
        let own = fresh.then_some(equation.tensor);
        let done = record.as_mut().is_some_and(|record| self.replay(record, at, own, into));
        self.records.known.insert(place, record);
        done
    }

    /// Does the operations of a step. What takes the place of whatever stands in a tensor of its `own` is written there at
    /// once where it can be.
    fn replay(&mut self, record: &mut Record, at: u32, own: Option<TensorId>, into: &mut Vec<Slice>) -> bool {
        if !(record.from..=record.to).contains(&at) {
            return false;
        }
        let steps = (at - record.from) as isize;
        let mut made: Vec<Array> = Vec::with_capacity(record.operations.len());
        let own = own.filter(|own| record.ends_in(*own));
        let mut written = false;
        let last = record.operations.len().saturating_sub(1);
        for (nth, moved) in record.operations.iter_mut().enumerate() {
            let mut sources = moved.sources.iter().zip(&moved.begins);
            let mut there = true;
            moved.operation.visit(&mut |array, offset| {
                let Some((source, (begin, step))) = sources.next() else { return };
                match self.array_of(source, &made).filter(|found| !found.is_waiting()) {
                    Some(found) => *array = found,
                    None => there = false,
                }
                if let Some(offset) = offset {
                    *offset = begin.saturating_add_signed(step * steps);
                }
            });
            if let ([(_, target)], Some(own), true) = (record.slices.as_slice(), own, there && nth == last) {
                let from = target.positions.offset.saturating_add_signed(target.step * steps);
                let pool = Arc::clone(&self.pool);
                written = self.state(own).is_some_and(|state| moved.operation.run_into(state, from, &pool));
            }
            let run = || moved.operation.run(self.precision, &self.pool);
            let buffer = if written { Some(Buffer::Truths(Arc::default())) } else { there.then(run) };
            // Who writes to an array must be the only one that holds it.
            moved.operation.visit(&mut |array, offset| {
                *array = self.nothing_there.clone();
                // It is kept as `going` wants it.
                offset.into_iter().for_each(|offset| *offset = 0);
            });
            let Some(buffer) = buffer else { return false };
            made.push(Array::pooled(buffer, &self.pool));
        }
        for (scope, source, doubt) in &record.suspects {
            if let Some(array) = self.array_of(source, &made) {
                self.suspect_array(*scope, array, *doubt);
            }
        }
        for (source, target) in record.slices.iter().filter(|_| !written) {
            let Some(array) = self.array_of(source, &made) else { return false };
            let offset = target.positions.offset.saturating_add_signed(target.step * steps);
            let positions = if target.in_order {
                Positions::From(offset)
            } else {
                Positions::Apart(Places { offset, ..target.positions.clone() })
            };
            into.push(Slice::new(positions, self.typed(array)));
        }
        true
    }

    /// The array that something is now.
    pub(crate) fn array_of(&self, source: &Input, made: &[Array]) -> Option<Array> {
        match source {
            Input::Given(array) => Some(array.clone()),
            Input::Made(at) => made.get(*at).cloned(),
            Input::Values(id) => match self.stored(*id) {
                Some(Stored::Relation(relation)) => relation.computed(),
                _ => None,
            },
            Input::Tensor(id, len) => match self.stored(*id) {
                Some(Stored::Dense(array)) if array.len() == *len => Some(array.clone()),
                _ => None,
            },
            Input::Within(id, path, len) => match self.stored(*id) {
                Some(Stored::Dense(waiting)) => {
                    let mut at = waiting.clone();
                    for nth in path {
                        let next = at.reads().get(*nth).cloned();
                        at = next?;
                    }
                    (at.len() == *len).then_some(at)
                }
                _ => None,
            },
        }
    }

    /// Describes an equation at three steps.
    pub(crate) fn record(
        &mut self,
        equation: &Equation,
        index: IndexId,
        (from, to): (u32, u32),
    ) -> Option<Record> {
        if ((to - from) as usize) + 1 < STEPS || !self.is_even(equation, index) {
            return None;
        }
        let first = self.described(equation, (index, from))?;
        let last = self.described(equation, (index, to))?;
        // Of two steps the second is the last.
        let between = match to - from > 1 {
            true => Some(self.described(equation, (index, from + 1))?),
            false => None,
        };
        let second = between.as_ref().unwrap_or(&last);
        let steps = (to - from) as isize;
        // How far one step moves a place.
        let move_of = |a: usize, b: usize, c: usize| {
            let (one, all) = (b as isize - a as isize, c as isize - a as isize);
            (one.checked_mul(steps)? == all).then_some(one)
        };
        if first.operations.len() != second.operations.len()
            || first.operations.len() != last.operations.len()
            || first.slices.len() != second.slices.len()
            || first.slices.len() != last.slices.len()
            || !suspected(&first.suspects, &second.suspects)
            || !suspected(&first.suspects, &last.suspects)
        {
            return None;
        }
        let mut operations = Vec::new();
        for ((a, b), c) in first.operations.into_iter().zip(&second.operations).zip(&last.operations) {
            let written = format!("{:?}", a.operation);
            let same = |other: &Moved<Recorded>| {
                written == format!("{:?}", other.operation)
                    && a.sources.len() == other.sources.len()
                    && a.sources.iter().zip(&other.sources).all(|(a, b)| a.is(b))
            };
            if !same(c) || (between.is_some() && !same(b)) {
                return None;
            }
            let places = a.begins.iter().zip(&b.begins).zip(&c.begins);
            let begins: Option<Vec<(usize, isize)>> =
                places.map(|((a, b), c)| Some((a.0, move_of(a.0, b.0, c.0)?))).collect();
            operations.push(Moved { begins: begins?, ..a });
        }
        let mut slices = Vec::new();
        for ((a, b), c) in first.slices.into_iter().zip(&second.slices).zip(&last.slices) {
            let alike = |other: &(Input, Places, bool)| {
                a.0.is(&other.0)
                    && a.2 == other.2
                    && (&a.1.shape, &a.1.steps) == (&other.1.shape, &other.1.steps)
            };
            if !alike(b) || !alike(c) {
                return None;
            }
            let step = move_of(a.1.offset, b.1.offset, c.1.offset)?;
            slices.push((a.0, Target { positions: a.1, in_order: a.2, step }));
        }
        Some(Record { operations, slices, suspects: first.suspects, from, to })
    }

    /// The operations of an equation at one step, if nobody looks at a number to describe them.
    fn described(&mut self, equation: &Equation, fixed: (IndexId, u32)) -> Option<Step> {
        let looks = self.looks.get();
        let (notes, head) = (self.notes.take(), self.head);
        let before = std::mem::take(&mut self.suspects);
        let mut into = Accumulator::Described(Vec::new());
        let outcome = self.contribute(equation, &[fixed], &mut into);
        let suspects = std::mem::replace(&mut self.suspects, before);
        (self.notes, self.head) = (notes, head);
        let Accumulator::Described(slices) = into else { return None };
        if outcome.is_err() || self.looks.get() != looks {
            return None;
        }
        let sums = self.program.tensor(equation.tensor).combine == Combine::Sum;
        let slices = if sums { together(slices) } else { slices };
        let mut step = Step { operations: Vec::new(), slices: Vec::new(), suspects: Vec::new() };
        let mut known: Vec<(Array, usize)> = Vec::new();
        for (scope, array, doubt) in suspects {
            let source = self.source(&array, &mut step, &mut known)?;
            step.suspects.push((scope, source, doubt));
        }
        for Described { positions, values, .. } in slices {
            let source = self.source(&values, &mut step, &mut known)?;
            let (positions, in_order) = match positions {
                Positions::Each(_) | Positions::Rows(..) => return None,
                Positions::From(offset) => (Places { offset, shape: [].into(), steps: [].into() }, true),
                Positions::Apart(places) => (places, false),
            };
            step.slices.push((source, positions, in_order));
        }
        Some(step)
    }

    /// What an array is; its operation, and those that it needs, join those of the step.
    fn source(&self, array: &Array, step: &mut Step, known: &mut Vec<(Array, usize)>) -> Option<Input> {
        if let Some((_, at)) = known.iter().find(|(other, _)| other.same(array)) {
            return Some(Input::Made(*at));
        }
        if !array.is_waiting() {
            return match self.stored_as(array) {
                Some(id) => Some(Input::Tensor(id, array.len())),
                None => (array.len() <= 64).then(|| Input::Given(array.clone())),
            };
        }
        let mut operation = Recorded::of(array).filter(Recorded::is_even)?;
        let (mut sources, mut begins) = (Vec::new(), Vec::new());
        operation.visit(&mut |array, offset| {
            sources.push(self.source(array, step, known));
            begins.push((offset.as_deref().copied().unwrap_or(0), 0));
            *array = self.nothing_there.clone();
            offset.into_iter().for_each(|offset| *offset = 0);
        });
        let sources: Option<Vec<Input>> = sources.into_iter().collect();
        step.operations.push(Moved { operation, sources: sources?, begins });
        let at = step.operations.len() - 1;
        known.push((array.clone(), at));
        Some(Input::Made(at))
    }

    /// Whether steps along an index move nothing but the places at which arrays begin.
    pub(crate) fn is_even(&self, equation: &Equation, index: IndexId) -> bool {
        let tensor = self.program.tensor(equation.tensor);
        let whole = tensor.style == Style::Square && tensor.kind != Kind::Count;
        let head = equation.head.iter().all(|function| self.moves_evenly(function, index));
        let terms = || equation.terms.iter();
        whole
            && head
            && terms().all(|term| term.when.guards.is_empty() && self.is_even_expr(&term.body, index))
    }

    fn is_even_expr(&self, expr: &Expr, index: IndexId) -> bool {
        let all = |parts: &[Expr]| parts.iter().all(|part| self.is_even_expr(part, index));
        match expr {
            Expr::Number(_) => true,
            Expr::Index(_) | Expr::Missing(_) => false,
            Expr::Read(read) => self.is_even_read(read, index),
            Expr::Product(parts) | Expr::Plus(parts) | Expr::Terms(parts) => all(parts),
            Expr::Quotient(a, b) | Expr::Power(a, b) => {
                self.is_even_expr(a, index) && self.is_even_expr(b, index)
            }
            Expr::Negate(a) => self.is_even_expr(a, index),
            Expr::Reduce(reduce) => reduce.when.guards.is_empty() && self.is_even_expr(&reduce.body, index),
            Expr::Call(call) => call.when.guards.is_empty() && all(&call.arguments),
            Expr::Axis(axis) => self.is_even_axis(axis, index),
        }
    }

    fn is_even_axis(&self, axis: &Axis, index: IndexId) -> bool {
        let epsilon = match &axis.function {
            AxisFunction::Softmax | AxisFunction::Lnorm(None) => true,
            AxisFunction::Lnorm(Some(epsilon)) => self.is_even_expr(epsilon, index),
        };
        let moved = axis.axes.contains(&index) || !axis.when.guards.is_empty();
        epsilon && !moved && self.is_even_expr(&axis.argument, index)
    }

    fn is_even_read(&self, read: &Read, index: IndexId) -> bool {
        let dense = matches!(self.stored(read.tensor), Some(Stored::Dense(array)) if !array.is_waiting());
        let even = |argument: &Argument| match argument {
            Argument::At(function) => self.moves_evenly(function, index),
            Argument::Any => false,
        };
        dense && read.arguments.iter().all(even)
    }

    /// Whether a function of indices is linear in integers, where it has anything to do with an index.
    fn moves_evenly(&self, function: &IndexFn, index: IndexId) -> bool {
        let interval = |index: &IndexId| {
            matches!(self.program.index(*index).range, Range::Domain(Domain::Interval { .. }))
        };
        let indices = indices_of(function);
        let known = |index: &IndexId| matches!(self.program.index(*index).range, Range::Domain(_));
        indices.iter().all(known)
            && (!indices.contains(&index) || (linear(function).is_some() && indices.iter().all(interval)))
    }
}

/// Contributions to the same elements as one.
fn together(slices: Vec<Described>) -> Vec<Described> {
    let mut result: Vec<Described> = Vec::new();
    for slice in slices {
        let beside = result.pop_if(|last| last.is_beside(&slice));
        result.push(match beside {
            Some(last) => last.plus(slice),
            None => slice,
        });
    }
    result
}

/// Whether the same numbers are doubted for the same reasons.
fn suspected(a: &[(u64, Input, Doubt)], b: &[(u64, Input, Doubt)]) -> bool {
    let same = |((x, a, why), (y, b, other)): (&(u64, Input, Doubt), &(u64, Input, Doubt))| {
        x == y && a.is(b) && why == other
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
