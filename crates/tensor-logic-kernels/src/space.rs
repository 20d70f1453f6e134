//! Spaces as loops: how the entries that several views name are gone through, a tile at a time.

use std::rc::Rc;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::array::{Array, Step, View};
use super::number::{Buffer, Number, strides};
pub(super) use super::spare::{TILE, Tile};
use super::values::Values;
use tensor_logic_core::engine::Numbers;

/// A thread keeps so many.
const SPARE: usize = 32;

/// One number for each dimension: there are few.
pub(super) type Few<T> = SmallVec<[T; 6]>;

/// A space and the views that walk it, neighbouring dimensions joined where all views nest.
#[derive(Debug, Clone)]
pub(super) struct Space {
    pub(super) sizes: Few<usize>,
    pub(super) walks: Few<Walk>,
}

/// How one view walks a space.
#[derive(Debug, Clone, Default)]
pub(super) struct Walk {
    pub(super) offset: usize,
    pub(super) steps: Few<Step>,
    /// Whether the entries of the whole space stand one behind the other.
    flat: bool,
    pattern: OnceLock<Option<Pattern>>,
}

/// Where the entries of some short rows lie from the first of them: to go through rows of few entries dimension by
/// dimension takes several times as long as to look their places up.
#[derive(Debug, Clone)]
struct Pattern {
    /// The leading dimensions; what is behind them is a row.
    outer: usize,
    /// The entries of a row.
    row: usize,
    /// The places of the entries of some rows that are evenly apart, one row behind the other.
    places: Vec<u32>,
    /// So many entries stand together, each run of them.
    run: usize,
    /// How far rows are apart along the last of the leading dimensions; none, if there is no such dimension, or a map.
    apart: Option<usize>,
}

/// Rows of fewer entries are looked up, of so many at a time at most.
const SHORT: usize = 16;
const PLACES: usize = 128;
/// Runs of fewer entries are looked up one by one.
const LEAST_RUN: usize = 2;

impl Pattern {
    fn of(sizes: &[usize], steps: &[Step]) -> Option<Pattern> {
        let (mut outer, mut row) = (sizes.len(), 1);
        while outer > 0 && steps[outer - 1].by().is_some() && row * sizes[outer - 1] <= PLACES {
            outer -= 1;
            row *= sizes[outer];
        }
        if sizes.last().is_none_or(|inner| *inner >= SHORT) || row < 2 {
            return None;
        }
        let apart = steps[..outer].last().and_then(Step::by);
        let rows = apart.map_or(1, |_| (PLACES / row).min(sizes[outer - 1]));
        let mut places: Vec<u32> = Vec::with_capacity(rows * row);
        places.push(0);
        // From the inside out: each dimension repeats what is inside of it.
        let all = (outer..sizes.len()).rev().map(|at| (sizes[at], steps[at].by().unwrap_or(0)));
        for (size, step) in all.chain(apart.map(|apart| (rows, apart))) {
            let inside = places.len();
            u32::try_from(places[inside - 1] as usize + size * step).ok()?;
            for nth in 1..size {
                let shift = (nth * step) as u32;
                places.extend_from_within(..inside);
                places[nth * inside..].iter_mut().for_each(|place| *place += shift);
            }
        }
        let run = if steps.last().and_then(Step::by) == Some(1) { sizes[sizes.len() - 1] } else { 1 };
        Some(Pattern { outer, row, places, run, apart })
    }
}

impl Walk {
    fn pattern(&self, sizes: &[usize]) -> Option<&Pattern> {
        self.pattern.get_or_init(|| Pattern::of(sizes, &self.steps)).as_ref()
    }

    /// Where the entry at these positions lies, from the view's first.
    pub(super) fn offset_at(&self, positions: &[usize]) -> usize {
        self.steps.iter().zip(positions).map(|(step, position)| step.offset(*position)).sum()
    }
}

impl Space {
    /// The space of these sizes; `first` is where its dimensions begin among those of the views.
    pub(super) fn new(shape: &[usize], views: &[View], first: usize) -> Space {
        let mut sizes: Few<usize> = Few::new();
        let walk = |_: &View| Walk::default();
        let mut walks: Few<Walk> = views.iter().map(walk).collect();
        for (at, size) in shape.iter().enumerate() {
            let steps = || views.iter().map(|view| &view.steps[first + at]);
            if *size == 1 {
                walks.iter_mut().zip(steps()).for_each(|(walk, step)| walk.offset += step.offset(0));
                continue;
            }
            let nests = |(walk, step): (&Walk, &Step)| match (walk.steps.last(), step) {
                (Some(Step::By(outer)), Step::By(inner)) => *outer == inner * size,
                _ => false,
            };
            let joins = !sizes.is_empty() && walks.iter().zip(steps()).all(nests);
            if joins {
                if let Some(last) = sizes.last_mut() {
                    *last *= size;
                }
                walks.iter_mut().for_each(|walk| {
                    walk.steps.pop();
                });
            } else {
                sizes.push(*size);
            }
            walks.iter_mut().zip(steps()).for_each(|(walk, step)| walk.steps.push(step.clone()));
        }
        let nested = strides(&sizes);
        for walk in &mut walks {
            walk.flat = walk.steps.iter().zip(&nested).all(|(step, nested)| step.by() == Some(*nested));
        }
        Space { sizes, walks }
    }

    /// Whether nothing is to be brought together: the entries of each view stand one behind the other, or are one.
    pub(super) fn is_flat(&self) -> bool {
        let one = |walk: &Walk| walk.steps.iter().all(|step| step.by() == Some(0));
        self.walks.iter().all(|walk| walk.flat || one(walk))
    }
}

/// The positions of an entry along each dimension.
pub(super) fn positions(sizes: &[usize], mut at: usize, into: &mut Few<usize>) {
    into.clear();
    into.resize(sizes.len(), 0);
    for (slot, size) in into.iter_mut().zip(sizes).rev() {
        *slot = at % size;
        at /= size;
    }
}

/// The next entry's positions.
pub fn advance(sizes: &[usize], positions: &mut [usize]) {
    for (position, size) in positions.iter_mut().zip(sizes).rev() {
        *position += 1;
        if *position < *size {
            return;
        }
        *position = 0;
    }
}

/// The buffers of computed arrays.
pub(super) fn buffers<'a>(arrays: impl Iterator<Item = &'a Array>) -> Few<Buffer> {
    let empty = || Buffer::Truths(Default::default());
    arrays.map(|array| array.done().unwrap_or_else(empty)).collect()
}

/// The entries of an array.
#[derive(Clone, Copy)]
enum Entries<'a, T> {
    Own(&'a [T]),
    Double(&'a [f64]),
    Single(&'a [f32]),
    Truths(&'a [bool]),
}

/// A view of entries that are there.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, T> {
    entries: Entries<'a, T>,
    /// Where the first entry lies; below 0, wrapped, where only a part is there that begins behind it.
    offset: usize,
    walk: &'a Walk,
    /// The same entry everywhere.
    one: bool,
}

/// Some entries in order.
pub(super) enum Run<'a, T> {
    One(T),
    Slice(&'a [T]),
    Tile(Tile<T>),
    /// A tile that is kept, too.
    Shared(Rc<Tile<T>>),
}

impl<'a, T: Copy> Run<'a, T> {
    /// The same twice.
    pub(super) fn twice(self) -> (Run<'a, T>, Run<'a, T>) {
        match self {
            Run::One(value) => (Run::One(value), Run::One(value)),
            Run::Slice(values) => (Run::Slice(values), Run::Slice(values)),
            Run::Tile(tile) => Run::Shared(Rc::new(tile)).twice(),
            Run::Shared(tile) => (Run::Shared(Rc::clone(&tile)), Run::Shared(tile)),
        }
    }
}

/// Space to work in.
pub(super) struct Scratch<T: Number> {
    spare: SmallVec<[Tile<T>; 4]>,
}

impl<T: Number> Scratch<T> {
    pub(super) fn new() -> Scratch<T> {
        Scratch { spare: SmallVec::new() }
    }

    /// A tile of whatever numbers.
    pub(super) fn tile(&mut self) -> Tile<T> {
        let kept = || T::spare().try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        self.spare.pop().or_else(kept).unwrap_or_else(|| Box::new([T::ZERO; TILE]))
    }

    pub(super) fn give(&mut self, run: Run<'_, T>) {
        match run {
            Run::Tile(tile) => self.spare.push(tile),
            Run::Shared(tile) => self.spare.extend(Rc::into_inner(tile)),
            Run::One(_) | Run::Slice(_) => {}
        }
    }
}

impl<T: Number> Drop for Scratch<T> {
    fn drop(&mut self) {
        // At the end of a thread there is nobody to keep them.
        let _ = T::spare().try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let room = SPARE.saturating_sub(spare.len());
            spare.extend(self.spare.drain(..).take(room));
        });
    }
}

impl<'a, T: Number> Source<'a, T> {
    pub(super) fn new(buffer: &'a Buffer, view: &View, walk: &'a Walk) -> Source<'a, T> {
        let entries = match (T::slice(buffer), buffer) {
            (Some(own), _) => Entries::Own(own),
            (None, Buffer::Numbers(Numbers::Double(values))) => Entries::Double(values),
            (None, Buffer::Numbers(Numbers::Single(values))) => Entries::Single(values),
            (None, Buffer::Truths(values)) => Entries::Truths(values),
        };
        let one = walk.steps.iter().all(|step| step.by() == Some(0));
        Source { entries, offset: view.offset + walk.offset, walk, one }
    }

    /// A view of an array of which only some entries are there, from the `first` on: those that will be asked for.
    pub(super) fn part(values: &'a [T], first: usize, view: &View, walk: &'a Walk) -> Source<'a, T> {
        let one = walk.steps.iter().all(|step| step.by() == Some(0));
        let offset = (view.offset + walk.offset).wrapping_sub(first);
        Source { entries: Entries::Own(values), offset, walk, one }
    }

    /// So many entries of a space, where they stand one behind the other or are all the same.
    pub(super) fn entries(&self, len: usize) -> Option<Values<'a, T>> {
        if self.one && len > 0 {
            return Some(Values::Same(self.at(self.offset)));
        }
        match self.entries {
            Entries::Own(values) if self.walk.flat => {
                values.get(self.offset..self.offset.checked_add(len)?).map(Values::Stand)
            }
            _ => None,
        }
    }

    fn at(&self, at: usize) -> T {
        match self.entries {
            Entries::Own(values) => values[at],
            Entries::Double(values) => T::of(values[at]),
            Entries::Single(values) => T::of(f64::from(values[at])),
            Entries::Truths(values) => T::of(f64::from(u8::from(values[at]))),
        }
    }

    /// `len` entries from a position of the space on, moved by `base`.
    pub(super) fn load(
        &self,
        sizes: &[usize],
        position: usize,
        len: usize,
        base: usize,
        scratch: &mut Scratch<T>,
    ) -> Run<'a, T> {
        let first = self.offset.wrapping_add(base);
        if self.one {
            return Run::One(self.at(first));
        }
        let (Some(inner), Some(last)) = (sizes.last().copied(), self.walk.steps.last()) else {
            return Run::One(self.at(first));
        };
        if let (Entries::Own(values), true) = (self.entries, self.walk.flat) {
            return Run::Slice(&values[first.wrapping_add(position)..][..len]);
        }
        if let (Entries::Own(values), Step::By(1)) = (self.entries, last)
            && position % inner + len <= inner
        {
            let mut positions = Few::new();
            self::positions(sizes, position, &mut positions);
            let from = first.wrapping_add(self.walk.offset_at(&positions));
            return Run::Slice(&values[from..from + len]);
        }
        let mut tile = scratch.tile();
        self.load_into(sizes, position, base, &mut tile[..len]);
        Run::Tile(tile)
    }

    /// Entries from a position of the space on, moved by `base`.
    pub(super) fn load_into(&self, sizes: &[usize], position: usize, base: usize, to: &mut [T]) {
        let first = self.offset.wrapping_add(base);
        match self.entries {
            Entries::Own(values) => self.gather(values, sizes, position, first, to, |value| value),
            Entries::Double(values) => self.gather(values, sizes, position, first, to, T::of),
            Entries::Single(values) => {
                self.gather(values, sizes, position, first, to, |value| T::of(f64::from(value)));
            }
            Entries::Truths(values) => {
                self.gather(values, sizes, position, first, to, |v| if v { T::ONE } else { T::ZERO });
            }
        }
    }

    #[inline(always)]
    fn gather<S: Copy>(
        &self,
        from: &[S],
        sizes: &[usize],
        position: usize,
        first: usize,
        to: &mut [T],
        number: impl Fn(S) -> T + Copy,
    ) {
        let (Some(inner), Some(last)) = (sizes.last().copied(), self.walk.steps.last()) else {
            return to.fill(number(from[first]));
        };
        let len = to.len();
        if self.walk.flat {
            let from = &from[first.wrapping_add(position)..][..len];
            return to.iter_mut().zip(from).for_each(|(slot, value)| *slot = number(*value));
        }
        if let Some(pattern) = self.walk.pattern(sizes) {
            return self.look_up(pattern, from, sizes, position, first, to, number);
        }
        let mut positions: Few<usize> = Few::new();
        self::positions(sizes, position, &mut positions);
        let outer = sizes.len() - 1;
        let steps = &self.walk.steps[..outer];
        let start_of = |positions: &[usize]| -> usize {
            let offsets = steps.iter().zip(positions).map(|(step, place)| step.offset(*place));
            first.wrapping_add(offsets.sum::<usize>())
        };
        // The step and the size of the dimension before the last, if rows lie evenly apart along it.
        let even = steps.last().and_then(Step::by).zip(sizes[..outer].last().copied());
        let mut start = start_of(&positions);
        let mut filled = 0;
        while filled < len {
            let along = positions[outer];
            if along > 0 || len - filled < inner || even.is_none() {
                let count = (inner - along).min(len - filled);
                // A step is counted from the first entry that is asked for.
                let (start_here, from_here) = match last {
                    Step::By(step) => (start.wrapping_add(along * step), 0),
                    Step::Map(..) => (start, along),
                };
                fill(&mut to[filled..filled + count], from, start_here, 0, count, last, from_here, number);
                filled += count;
                positions[outer] = inner - 1;
                advance(sizes, &mut positions);
                start = start_of(&positions);
                continue;
            }
            // Whole rows together, as far as they are evenly apart.
            let (apart, size) = even.unwrap_or((0, 1));
            let place = positions[outer - 1];
            let rows = ((len - filled) / inner).min(size - place);
            let count = rows * inner;
            fill(&mut to[filled..filled + count], from, start, apart, inner, last, 0, number);
            filled += count;
            if place + rows < size {
                positions[outer - 1] += rows;
                start = start.wrapping_add(rows * apart);
                continue;
            }
            // The next row is one step further along a dimension before.
            positions[outer - 1] = 0;
            start = start.wrapping_sub(place * apart);
            let before = outer - 1;
            let single = positions[..before].last().zip(sizes[..before].last()).zip(steps[..before].last());
            match single {
                Some(((place, size), Step::By(step))) if place + 1 < *size => {
                    start = start.wrapping_add(*step);
                    positions[before - 1] += 1;
                }
                _ => {
                    advance(&sizes[..before], &mut positions[..before]);
                    start = start_of(&positions);
                }
            }
        }
    }
}

impl<T: Number> Source<'_, T> {
    /// Entries of short rows from a position on.
    #[expect(clippy::too_many_arguments, reason = "where the entries of a tile stand")]
    #[inline(always)]
    fn look_up<S: Copy>(
        &self,
        pattern: &Pattern,
        from: &[S],
        sizes: &[usize],
        position: usize,
        first: usize,
        to: &mut [T],
        number: impl Fn(S) -> T + Copy,
    ) {
        let Pattern { outer, row, ref places, run, apart } = *pattern;
        let copy = |to: &mut [T], start: usize, along: usize| {
            let places = &places[along..along + to.len()];
            if run >= LEAST_RUN && along.is_multiple_of(run) && to.len().is_multiple_of(run) {
                let starts = places.iter().step_by(run).map(|place| start.wrapping_add(*place as usize));
                return match run {
                    ..4 => copy_runs::<2, _, _>(to, from, starts, run, number),
                    4..8 => copy_runs::<4, _, _>(to, from, starts, run, number),
                    _ => copy_runs::<8, _, _>(to, from, starts, run, number),
                };
            }
            let place = |at: &u32| start.wrapping_add(*at as usize);
            to.iter_mut().zip(places).for_each(|(slot, at)| *slot = number(from[place(at)]));
        };
        let (sizes, steps) = (&sizes[..outer], &self.walk.steps[..outer]);
        let mut positions: Few<usize> = Few::new();
        self::positions(sizes, position / row, &mut positions);
        let start_of = |positions: &[usize]| -> usize {
            let offsets = steps.iter().zip(positions).map(|(step, place)| step.offset(*place));
            first.wrapping_add(offsets.sum::<usize>())
        };
        let mut start = start_of(&positions);
        let (mut rest, mut along) = (to, position % row);
        while !rest.is_empty() {
            if let (0, Some(Step::Map(map, times)), Some(size), Some(place)) =
                (along, steps.last(), sizes.last(), positions.last_mut())
                && run == row
                && rest.len() >= row
            {
                // Whole rows, each where a map says.
                let rows = (size - *place).min(rest.len() / row);
                let picks = &map[*place..*place + rows];
                let base = start.wrapping_sub(map[*place] as usize * times);
                let (here, behind) = rest.split_at_mut(rows * row);
                let starts = picks.iter().map(|at| base.wrapping_add(*at as usize * times));
                match row {
                    ..4 => copy_runs::<2, _, _>(here, from, starts, row, number),
                    4..8 => copy_runs::<4, _, _>(here, from, starts, row, number),
                    _ => copy_runs::<8, _, _>(here, from, starts, row, number),
                }
                rest = behind;
                *place += rows - 1;
                advance(sizes, &mut positions);
                start = start_of(&positions);
                continue;
            }
            let mut rows = 1;
            let mut count = (row - along).min(rest.len());
            if let (0, Some(size), Some(place)) = (along, sizes.last(), positions.last())
                && apart.is_some()
                && rest.len() > row
            {
                rows = (places.len() / row).min(size - place).min(rest.len() / row);
                count = rows * row;
            }
            let (here, behind) = rest.split_at_mut(count);
            copy(here, start, along);
            (rest, along) = (behind, 0);
            match (apart, sizes.last(), positions.last_mut()) {
                (Some(apart), Some(size), Some(place)) if *place + rows < *size => {
                    *place += rows;
                    start = start.wrapping_add(rows * apart);
                }
                (_, size, place) => {
                    if let (Some(size), Some(place)) = (size.filter(|_| rows > 1), place) {
                        *place = size - 1;
                    }
                    advance(sizes, &mut positions);
                    start = start_of(&positions);
                }
            }
        }
    }
}

/// Runs of at least so many entries that stand together, one behind the other: each as two blocks of that many, its first
/// and its last, since a block of fixed length is one instruction.
#[inline(always)]
fn copy_runs<const BLOCK: usize, T: Copy, S: Copy>(
    to: &mut [T],
    from: &[S],
    starts: impl Iterator<Item = usize>,
    run: usize,
    number: impl Fn(S) -> T + Copy,
) {
    let copy = |to: &mut [T], from: &[S]| {
        if let (Some(to), Some(from)) = (to.first_chunk_mut::<BLOCK>(), from.first_chunk::<BLOCK>()) {
            *to = from.map(number);
        }
    };
    for (to, start) in to.chunks_exact_mut(run).zip(starts) {
        let from = &from[start..][..run];
        copy(to, from);
        copy(&mut to[run - BLOCK..], &from[run - BLOCK..]);
    }
}

/// Rows of `width` entries; each begins `apart` behind the one before.
#[expect(clippy::too_many_arguments, reason = "where the entries of a tile stand")]
#[inline(always)]
fn fill<T: Copy, S: Copy>(
    to: &mut [T],
    from: &[S],
    start: usize,
    apart: usize,
    width: usize,
    step: &Step,
    along: usize,
    number: impl Fn(S) -> T + Copy,
) {
    let len = to.len();
    if let Step::By(step) = step
        && *step > 1
        && apart == 1
        && len >= 8 * width
    {
        // A transpose: along what stands together.
        for at in 0..width {
            let from = &from[start + (along + at) * step..][..len / width];
            to[at..].iter_mut().step_by(width).zip(from).for_each(|(slot, value)| *slot = number(*value));
        }
        return;
    }
    let rows = to.chunks_exact_mut(width.max(1)).zip(0..).map(|(to, row)| (to, start + row * apart));
    match step {
        Step::By(0) => rows.for_each(|(to, start)| to.fill(number(from[start]))),
        Step::By(1) => rows.for_each(|(to, start)| {
            let from = &from[start + along..][..to.len()];
            to.iter_mut().zip(from).for_each(|(slot, value)| *slot = number(*value));
        }),
        Step::By(step) => rows.for_each(|(to, start)| {
            let from = &from[start + along * step..];
            to.iter_mut().zip(from.iter().step_by(*step)).for_each(|(slot, value)| *slot = number(*value));
        }),
        Step::Map(map, times) => rows.for_each(|(to, start)| {
            let picks = &map[along..along + to.len()];
            to.iter_mut()
                .zip(picks)
                .for_each(|(slot, at)| *slot = number(from[start + *at as usize * times]));
        }),
    }
}
