//! Elementwise work: a small program for every entry of a space.

use rayon::prelude::*;
use training::kernels::vectorised;

use super::array::{Along, Array, Known, Step, Typed, View, Ways, cut, even_steps, known_or, visit_views};
use super::code::{Binary, Code, Evaluator, Unsigned};
use super::number::{Buffer, Number, Pool, strides, volume};
use super::space::{Few, Source, Space, TILE, buffers};
use super::threads::shared;
use super::values::Values;
use tensor_logic_core::ast::Comparison;
use tensor_logic_core::function::Function;

/// An elementwise operation over a row-major space.
#[derive(Debug, Clone)]
pub struct Point {
    /// The size of each dimension of the result.
    pub shape: Vec<usize>,
    /// What is read, along the dimensions of the result.
    pub inputs: Vec<View>,
    /// The program; it leaves one number on the stack.
    pub code: Vec<Code>,
    /// Whether only that counts which results are not 0.
    pub truth: bool,
}

/// So many entries are one task.
const TASK: usize = 1 << 15;

/// What may be computed anew for every reader.
const CHEAP: usize = 3;

/// The longest program that is taken into a reader: a sum of thousands of terms is copied once for each of them otherwise.
pub(super) const LONGEST: usize = 256;

impl Typed for Point {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.inputs.iter().for_each(|view| visit(&view.array));
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        visit_views(&mut self.inputs, visit);
    }

    fn is_even(&self) -> bool {
        self.inputs.iter().all(View::is_even)
    }

    fn unsigned_zeros(&self) -> bool {
        match self.code.as_slice() {
            [.., Code::Call(Function::Relu | Function::Step | Function::Abs, 1)] => true,
            [.., Code::Number(number), Code::Binary(Binary::Add)] => {
                *number == 0.0 && number.is_sign_positive()
            }
            _ => self.truth,
        }
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        self.run_along::<T>(None, pool)
    }

    fn run_along<T: Number>(&self, ways: Option<&Ways>, pool: &Pool) -> Buffer {
        let len = volume(&self.shape);
        let mut result = pool.take::<T>(len);
        match ways.and_then(|ways| ways.downcast_ref()) {
            Some(space) => self.evaluate_along(space, &mut result, false, pool),
            None => self.evaluate(&mut result, false, pool),
        }
        if self.truth {
            let truths = result.iter().map(|value| *value != T::ZERO).collect();
            pool.give(result);
            return Buffer::Truths(std::sync::Arc::new(truths));
        }
        T::buffer(result)
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(Space::new(&self.shape, &self.inputs, 0)))
    }

    fn run_into<T: Number>(&self, to: &mut [T], ways: Option<&Ways>, pool: &Pool) -> bool {
        if self.truth {
            return false;
        }
        let clean = !self.unsigned_zeros();
        match ways.and_then(|ways| ways.downcast_ref()) {
            Some(space) => self.evaluate_along(space, to, clean, pool),
            None => self.evaluate(to, clean, pool),
        }
        true
    }

    fn is_free(&self) -> bool {
        !self.truth
    }

    fn cut(&self, lanes: usize, to: usize) -> Option<(Point, Vec<Along>)> {
        let mut own = self.clone();
        let along = cut(&mut own.shape, even_steps(&self.inputs)?.iter(), (lanes, to))?;
        Some((own, along))
    }

    fn copies(&self) -> bool {
        let ([Code::Load(0)], false, [view]) = (self.code.as_slice(), self.truth, self.inputs.as_slice())
        else {
            return false;
        };
        let each = |((size, step), own): ((&usize, &Step), usize)| match step {
            Step::By(by) => *size == 1 || *by == own,
            Step::Map(map, by) => *by == own && map.iter().copied().take(*size).eq(0..*size as u32),
        };
        let dims = self.shape.iter().zip(&view.steps).zip(strides(&self.shape));
        view.offset == 0 && view.array.len() == volume(&self.shape) && dims.into_iter().all(each)
    }

    fn may_be_truths(&self) -> bool {
        self.truth
    }

    fn fused(self) -> Point {
        self.taken_in(true).lean()
    }

    fn with_numbers(self, known: Known<'_>) -> Point {
        self.by_numbers(known)
    }

    fn is_same(&self, other: &Point) -> bool {
        let inputs = self.inputs.len() == other.inputs.len() && {
            let mut pairs = self.inputs.iter().zip(&other.inputs);
            pairs.all(|(own, other)| own.is_same(other))
        };
        let code = self.code.len() == other.code.len() && {
            let mut pairs = self.code.iter().zip(&other.code);
            pairs.all(|(own, other)| own.is_same(other))
        };
        inputs && code && self.shape == other.shape && self.truth == other.truth
    }

    fn run_on<T: Number>(&self, from: &[&[T]], to: &mut [T], ways: Option<&Ways>, clean: bool, pool: &Pool) {
        let space = known_or(ways, || Space::new(&self.shape, &self.inputs, 0));
        let sources: Few<_> = self.sources_on(&space, from).collect();
        self.evaluate_over(&space, &sources, to, clean && !self.unsigned_zeros(), pool);
    }
}

impl Point {
    /// The operation of one input, unchanged.
    pub fn of(shape: Vec<usize>, view: View) -> Point {
        Point { shape, inputs: vec![view], code: vec![Code::Load(0)], truth: false }
    }

    /// Whether it is what it reads but for the sign of 0.
    pub(super) fn only_cleans(&self) -> bool {
        let ([code, Code::Number(zero), Code::Binary(Binary::Add)], [view]) =
            (self.code.as_slice(), self.inputs.as_slice())
        else {
            return false;
        };
        matches!(code, Code::Load(0)) && zero.to_bits() == 0 && !self.truth && view.is_whole(&self.shape)
    }

    /// Whether it may be computed anew for every entry of a larger reader.
    fn is_cheap(&self) -> bool {
        self.code.len() <= CHEAP && !self.code.iter().any(Code::is_dear)
    }

    /// Takes elementwise work that only this operation reads into itself.
    #[must_use]
    pub fn fused(self) -> Point {
        self.taken_in(false)
    }

    /// The same operation with that work taken in, and if it is to become lean also what it reads several times alike; the
    /// arrays are still its own.
    pub(super) fn taken_in(&self, lean: bool) -> Point {
        let space = volume(&self.shape);
        let (inputs, code) = (Vec::new(), Vec::new());
        let mut result = Point { shape: self.shape.clone(), inputs, code, truth: self.truth };
        let mut parts: Vec<Vec<Code>> = Vec::new();
        // What each keeps has numbers of its own.
        let slots = |code: &[Code]| {
            code.iter().map(|code| if let Code::Keep(slot) = code { slot + 1 } else { 0 }).max().unwrap_or(0)
        };
        let mut kept = slots(&self.code);
        for view in &self.inputs {
            let small = |inner: &Point| {
                inner.code.len() <= LONGEST && (inner.is_cheap() || volume(&inner.shape) >= space)
            };
            let alike = match lean && self.inputs.len() <= LONGEST {
                true => self.inputs.iter().filter(|other| other.is_same(view)).count(),
                false => 1,
            };
            let inner = view.array.own_of::<Point>(alike).filter(small);
            let inner = inner.and_then(|inner| Some((placed(&inner, view, &result.shape)?, inner)));
            let shift = result.inputs.len();
            match inner {
                None => {
                    result.inputs.push(view.clone());
                    parts.push(vec![Code::Load(shift)]);
                }
                Some((inputs, inner)) => {
                    result.inputs.extend(inputs);
                    let moved = |code: Code| match code {
                        Code::Load(at) => Code::Load(at + shift),
                        Code::Keep(slot) => Code::Keep(slot + kept),
                        Code::Kept(slot) => Code::Kept(slot + kept),
                        other => other,
                    };
                    let own = slots(&inner.code);
                    let mut code: Vec<Code> = inner.code.into_iter().map(moved).collect();
                    if inner.truth {
                        code.extend([Code::Number(0.0), Code::Binary(Binary::Compare(Comparison::NotEqual))]);
                    }
                    kept += own;
                    parts.push(code);
                }
            }
        }
        for code in &self.code {
            match code {
                Code::Load(at) => result.code.extend(parts[*at].iter().cloned()),
                other => result.code.push(other.clone()),
            }
        }
        result
    }

    /// Computes all entries into a slice, and makes -0 a 0 if that is asked for.
    pub(super) fn evaluate<T: Number>(&self, result: &mut [T], clean: bool, pool: &Pool) {
        self.evaluate_along(&Space::new(&self.shape, &self.inputs, 0), result, clean, pool);
    }

    fn evaluate_along<T: Number>(&self, space: &Space, result: &mut [T], clean: bool, pool: &Pool) {
        let buffers = buffers(self.inputs.iter().map(|view| &view.array));
        let sources: Few<_> = self.sources(space, &buffers).collect();
        self.evaluate_over(space, &sources, result, clean, pool);
    }

    /// Its entries, with as little done for them as they need.
    pub(super) fn numbers<'a, T: Number>(
        &self,
        space: &Space,
        sources: &[Source<'a, T>],
        pool: &Pool,
    ) -> Values<'a, T> {
        let len = volume(&self.shape);
        if let ([Code::Load(at)], false) = (self.code.as_slice(), self.truth)
            && let Some(found) = sources.get(*at).and_then(|source| source.entries(len))
        {
            return found;
        }
        let mut made = pool.take::<T>(len);
        self.evaluate_over(space, sources, &mut made, false, pool);
        Values::Made(made)
    }

    /// Its inputs where they are whole arrays.
    pub(super) fn sources<'a, T: Number>(
        &self,
        space: &'a Space,
        buffers: &'a [Buffer],
    ) -> impl Iterator<Item = Source<'a, T>> {
        let sources = self.inputs.iter().zip(buffers).zip(&space.walks);
        sources.map(|((view, buffer), walk)| Source::new(buffer, view, walk))
    }

    /// Its inputs where only what is behind the place is there at which each begins.
    pub(super) fn sources_on<'a, T: Number>(
        &self,
        space: &'a Space,
        from: &[&'a [T]],
    ) -> impl Iterator<Item = Source<'a, T>> {
        let sources = self.inputs.iter().zip(from).zip(&space.walks);
        sources.map(|((view, values), walk)| Source::part(values, 0, view, walk))
    }

    /// Computes all entries of these inputs.
    pub(super) fn evaluate_over<T: Number>(
        &self,
        space: &Space,
        sources: &[Source<'_, T>],
        result: &mut [T],
        clean: bool,
        pool: &Pool,
    ) {
        let stopped = pool.stopped_within(result.len());
        let several = shared(result.len(), TASK);
        let task = several.unwrap_or(TASK);
        let work = |(nth, part): (usize, &mut [T])| {
            if stopped() {
                return;
            }
            let mut evaluator = Evaluator::over(&self.code, space, sources);
            for (at, tile) in part.chunks_mut(TILE).enumerate() {
                evaluator.evaluate(nth * task + at * TILE, &[], tile);
                if clean {
                    vectorised(Unsigned(tile));
                }
            }
        };
        if several.is_some() {
            result.par_chunks_mut(task).enumerate().for_each(work);
        } else {
            result.chunks_mut(task).enumerate().for_each(work);
        }
    }
}

/// The inputs of an operation as a reader of its result walks them, where the reader's dimensions
/// are its own, or where the inputs lie as the result does.
fn placed(inner: &Point, view: &View, shape: &[usize]) -> Option<Vec<View>> {
    by_dimensions(inner, view, shape)
        .or_else(|| inner.inputs.iter().map(|input| flat(inner, input, view)).collect())
}

/// An input of which every entry lies so many times as far behind the first as that of the result does: where a reader's
/// view of the result leads in it.
fn flat(inner: &Point, input: &View, view: &View) -> Option<View> {
    let mut times = None;
    for ((size, step), own) in inner.shape.iter().zip(&input.steps).zip(strides(&inner.shape)) {
        if *size > 1 {
            let by = step.by().filter(|by| by % own == 0)? / own;
            if *times.get_or_insert(by) != by {
                return None;
            }
        }
    }
    let times = times.unwrap_or(0);
    let more: usize = inner
        .shape
        .iter()
        .zip(&input.steps)
        .filter(|(size, _)| **size == 1)
        .map(|(_, step)| step.offset(0))
        .sum();
    let moved = |step: &Step| match step {
        Step::By(by) => Step::By(by * times),
        Step::Map(..) if times == 0 => Step::By(0),
        Step::Map(map, by) => Step::Map(std::sync::Arc::clone(map), by * times),
    };
    let (array, offset) = (input.array.clone(), input.offset + more + view.offset * times);
    Some(View { array, offset, steps: view.steps.iter().map(moved).collect() })
}

fn by_dimensions(inner: &Point, view: &View, shape: &[usize]) -> Option<Vec<View>> {
    let own = strides(&inner.shape);
    // For each dimension of the reader, which of the operation's it is.
    let mut of: Vec<Option<usize>> = vec![None; shape.len()];
    let mut found = vec![false; inner.shape.len()];
    if view.offset != 0 || volume(shape) == 0 {
        return None;
    }
    for (at, step) in view.steps.iter().enumerate() {
        let times = match step {
            Step::By(0) => continue,
            Step::By(_) if shape[at] == 1 => continue,
            Step::By(step) => *step,
            Step::Map(_, times) => *times,
        };
        let mut places = (0..own.len()).filter(|place| own[*place] == times && inner.shape[*place] > 1);
        let place = places.next()?;
        let whole = matches!(step, Step::Map(..)) || shape[at] == inner.shape[place];
        if found[place] || !whole {
            return None;
        }
        found[place] = true;
        of[at] = Some(place);
    }
    if found.iter().zip(&inner.shape).any(|(found, size)| !found && *size > 1) {
        return None;
    }
    let walked = |input: &View| {
        let mut input = input.clone();
        // Dimensions of one entry may still be moved by a map.
        for (at, size) in inner.shape.iter().enumerate() {
            if *size == 1 {
                input.offset += input.steps[at].offset(0);
            }
        }
        let step = |(at, place): (usize, &Option<usize>)| match place {
            None => Some(Step::By(0)),
            Some(place) => match (&view.steps[at], &input.steps[*place]) {
                (Step::By(_), step) => Some(step.clone()),
                (Step::Map(map, _), Step::By(times)) => Some(Step::Map(std::sync::Arc::clone(map), *times)),
                (Step::Map(..), Step::Map(..)) => None,
            },
        };
        let steps: Option<Vec<Step>> = of.iter().enumerate().map(step).collect();
        Some(View { steps: steps?, ..input })
    };
    inner.inputs.iter().map(walked).collect()
}
