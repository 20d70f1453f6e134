//! Elementwise work folded along some dimensions, without ever standing there in whole.

use rayon::prelude::*;
use training::kernels::{Kernel, vectorised};

use super::array::{Along, Array, Known, Typed, View, Ways, cut, even_steps, known_or};
use super::code::Evaluator;
use super::number::{Buffer, Number, Pool, larger, smaller, volume};
use super::point::Point;
use super::space::{Few, Run, Scratch, Source, Space, TILE, advance, buffers, positions};
use super::threads::shared;

/// How numbers are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folding {
    /// They are added.
    Sum,
    /// They are multiplied.
    Product,
    /// The largest; NaN if one is.
    Larger,
    /// The smallest; NaN if one is.
    Smaller,
}

impl Folding {
    /// Where a fold begins.
    pub fn start(self) -> f64 {
        match self {
            Folding::Sum => 0.0,
            Folding::Product => 1.0,
            Folding::Larger => f64::NEG_INFINITY,
            Folding::Smaller => f64::INFINITY,
        }
    }

    /// One more number.
    #[inline(always)]
    pub(super) fn join<T: Number>(self, a: T, b: T) -> T {
        match self {
            Folding::Sum => a + b,
            Folding::Product => a * b,
            Folding::Larger => larger(a, b),
            Folding::Smaller => smaller(a, b),
        }
    }
}

/// What is done with the function that joins two numbers: compiled once for each.
macro_rules! with_join {
    ($folding:expr, |$join:ident| $done:expr) => {
        match $folding {
            Folding::Sum => {
                let $join = |a, b| a + b;
                $done
            }
            Folding::Product => {
                let $join = |a, b| a * b;
                $done
            }
            Folding::Larger => {
                let $join = larger;
                $done
            }
            Folding::Smaller => {
                let $join = smaller;
                $done
            }
        }
    };
}

impl Folding {
    /// One more number for each of several folds.
    fn join_all<T: Number>(self, to: &mut [T], more: &[T]) {
        with_join!(self, |join| vectorised(Joined { to, more, join }));
    }
}

struct Joined<'a, T, F> {
    to: &'a mut [T],
    more: &'a [T],
    join: F,
}

impl<T: Copy, F: Fn(T, T) -> T> Kernel for Joined<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.more).for_each(|(slot, value)| *slot = (self.join)(*slot, *value));
    }
}

/// A fold over the last dimensions of an elementwise operation.
#[derive(Debug, Clone)]
pub struct Fold {
    /// What is folded.
    pub point: Point,
    /// How many dimensions stay.
    pub kept: usize,
    /// How.
    pub folding: Folding,
}

/// So many entries are one task.
const TASK: usize = 1 << 15;
/// So many parts of one fold are worked on apart at most.
const PARTS: usize = 32;
/// After so many tiles it is asked whether the rest is to be left out.
const ASKED: usize = 64;
/// So many numbers are added in their own precision before they are added in 64 bits.
const BLOCK: usize = 128;
/// Rows of so many entries at most are folded into one as they lie.
const ROW: usize = 64;

/// Part of the work: some entries of what stays, some of what goes.
#[derive(Debug, Clone, Copy)]
struct Task {
    kept: (usize, usize),
    dropped: (usize, usize),
}

#[derive(Clone)]
pub(super) struct Spaces {
    kept: Space,
    dropped: Space,
    /// Whether tiles run along what goes.
    along: bool,
    /// Both, where what goes is so short that a tile holds some entries whole: to begin a tile takes as long as some
    /// dozen numbers do.
    both: Option<Space>,
    /// In the order in which numbers lie, where what goes stands between short rows of what stays.
    blocks: Option<Blocks>,
}

/// What stays, in two parts, and what goes between them: `len` rows of so many entries are folded into one.
#[derive(Clone)]
struct Blocks {
    space: Space,
    len: usize,
    row: usize,
    /// Whether there is nothing before what goes: few sums of many rows.
    columns: bool,
}

impl Spaces {
    /// In which order numbers are joined.
    fn order(&self) -> (bool, bool, bool) {
        let columns = self.blocks.as_ref().is_some_and(|blocks| blocks.columns);
        (self.along, self.both.is_some(), columns)
    }

    /// What tiles run along.
    pub(super) fn own(&self) -> &Space {
        match (&self.both, &self.blocks) {
            (Some(both), _) => both,
            (None, Some(blocks)) => &blocks.space,
            (None, None) if self.along => &self.dropped,
            (None, None) => &self.kept,
        }
    }
}

/// How the work is cut: what stays into chunks of a width, what goes into parts of so many entries.
struct Parts {
    width: usize,
    step: usize,
    parts: usize,
}

impl Parts {
    /// They depend on the shape alone.
    fn of(rows: usize, len: usize, along: bool) -> Parts {
        let width = if along { (TASK / len).clamp(1, 1024) } else { TILE };
        let chunks = rows.div_ceil(width);
        let parts =
            if chunks >= PARTS { 1 } else { (rows.saturating_mul(len) / chunks / TASK).clamp(1, PARTS) };
        let step = len.div_ceil(parts);
        Parts { width, step, parts: len.div_ceil(step) }
    }
}

impl Typed for Fold {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.point.inputs(visit);
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        self.point.reads(visit);
    }

    fn is_even(&self) -> bool {
        self.point.is_even()
    }

    fn unsigned_zeros(&self) -> bool {
        // A sum that begins with 0 has no other.
        self.folding == Folding::Sum
    }

    fn may_be_truths(&self) -> bool {
        self.point.truth
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(self.spaces()))
    }

    fn cut(&self, lanes: usize, to: usize) -> Option<(Fold, Vec<Along>)> {
        let mut own = self.clone();
        let kept = own.point.shape.iter().take(self.kept).any(|size| *size != 1);
        let steps = even_steps(&self.point.inputs)?;
        let along = cut(&mut own.point.shape, steps.iter(), (lanes, to)).filter(|_| kept)?;
        (own.spaces().order() == self.spaces().order() && Typed::is_free(&own)).then_some((own, along))
    }

    fn fused(self) -> Fold {
        // What is read decides how tiles run, and that in which order numbers are joined.
        let order = self.spaces().order();
        let lean = Fold { point: self.point.taken_in(true).lean(), ..self };
        if lean.spaces().order() == order {
            return lean;
        }
        let fused = Fold { point: self.point.taken_in(false), ..self };
        if fused.spaces().order() == order { fused } else { self }
    }

    fn with_numbers(self, known: Known<'_>) -> Fold {
        let order = self.spaces().order();
        let with = Fold { point: self.point.clone().by_numbers(known), ..self };
        if with.spaces().order() == order { with } else { self }
    }

    fn is_same(&self, other: &Fold) -> bool {
        (self.kept, self.folding) == (other.kept, other.folding) && Typed::is_same(&self.point, &other.point)
    }

    fn run_into<T: Number>(&self, to: &mut [T], ways: Option<&Ways>, pool: &Pool) -> bool {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(kept), volume(dropped));
        if rows == 0 || len == 0 || self.point.truth || self.folding != Folding::Sum {
            return false;
        }
        let spaces = known_or(ways, || self.spaces());
        let parts = Parts::of(rows, len, spaces.along);
        if parts.parts == 1 {
            self.fold(&spaces, &parts, to, pool);
        }
        parts.parts == 1
    }

    fn is_free(&self) -> bool {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(kept), volume(dropped));
        let there = rows > 0 && len > 0 && !self.point.truth && self.folding == Folding::Sum;
        there && Parts::of(rows, len, self.spaces().along).parts == 1
    }

    fn run_on<T: Number>(&self, from: &[&[T]], to: &mut [T], ways: Option<&Ways>, _: bool, pool: &Pool) {
        let spaces = known_or(ways, || self.spaces());
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let parts = Parts::of(volume(kept), volume(dropped), spaces.along);
        let sources: Few<_> = self.point.sources_on(spaces.own(), from).collect();
        self.fold_over(&spaces, &sources, &parts, to, pool);
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        self.run_along::<T>(None, pool)
    }

    fn run_along<T: Number>(&self, ways: Option<&Ways>, pool: &Pool) -> Buffer {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(kept), volume(dropped));
        let spaces = known_or(ways, || self.spaces());
        if rows == 0 || len == 0 {
            let start = T::of(self.folding.start());
            return match self.point.truth {
                true => Buffer::Truths(std::sync::Arc::new(vec![start != T::ZERO; rows])),
                false => T::buffer(vec![start; rows]),
            };
        }
        let parts = Parts::of(rows, len, spaces.along);
        let mut result = pool.take::<T>(rows * parts.parts);
        self.fold(&spaces, &parts, &mut result, pool);
        let (total, others) = result.split_at_mut(rows);
        for other in others.chunks(rows) {
            total.iter_mut().zip(other).for_each(|(slot, value)| *slot = self.folding.join(*slot, *value));
        }
        result.truncate(rows);
        if self.point.truth {
            let truths = result.iter().map(|value| *value != T::ZERO).collect();
            return Buffer::Truths(std::sync::Arc::new(truths));
        }
        T::buffer(result)
    }
}

impl Fold {
    /// Folds each part, one behind the other.
    fn fold<T: Number>(&self, spaces: &Spaces, parts: &Parts, result: &mut [T], pool: &Pool) {
        let buffers = buffers(self.point.inputs.iter().map(|view| &view.array));
        let sources: Few<_> = self.point.sources(spaces.own(), &buffers).collect();
        self.fold_over(spaces, &sources, parts, result, pool);
    }

    fn fold_over<T: Number>(
        &self,
        spaces: &Spaces,
        sources: &[Source<'_, T>],
        parts: &Parts,
        result: &mut [T],
        pool: &Pool,
    ) {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(kept), volume(dropped));
        let Parts { mut width, step, parts } = *parts;
        let task = shared(rows.saturating_mul(len), TASK);
        // Each entry is folded by itself, so that its chunk does not matter.
        match (&spaces.blocks, task) {
            (Some(Blocks { row, columns: false, .. }), _) => {
                width = (task.unwrap_or(TASK) / len / row).max(1) * row
            }
            (None, Some(task)) if spaces.along => width = width.min((task / len).max(1)),
            _ => {}
        }
        let chunks = rows.div_ceil(width);
        let stopped = pool.stopped_within(rows.saturating_mul(len));
        let work = |(nth, to): (usize, &mut [T])| {
            if stopped() {
                return;
            }
            let (part, chunk) = (nth / chunks, nth % chunks);
            let first = chunk * width;
            let task = Task {
                kept: (first, (first + width).min(rows)),
                dropped: (part * step, ((part + 1) * step).min(len)),
            };
            self.part(spaces, sources, task, to, &stopped);
        };
        if parts * chunks == 1 {
            return work((0, result));
        }
        let mut pieces: Vec<(usize, &mut [T])> = Vec::with_capacity(parts * chunks);
        for (part, to) in result.chunks_mut(rows).enumerate() {
            pieces.extend(to.chunks_mut(width).enumerate().map(|(at, to)| (part * chunks + at, to)));
        }
        if task.is_some() {
            pieces.into_par_iter().for_each(work);
        } else {
            pieces.into_iter().for_each(work);
        }
    }

    /// How its two kinds of dimensions are gone through.
    pub(super) fn spaces(&self) -> Spaces {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let kept_space = Space::new(kept, &self.point.inputs, 0);
        let dropped_space = Space::new(dropped, &self.point.inputs, self.kept);
        let unit = |space: &Space| {
            space.walks.iter().filter(|walk| walk.steps.last().is_some_and(|s| s.by() == Some(1))).count()
        };
        let (rows, len) = (volume(kept), volume(dropped));
        let inside = len >= 8 && unit(&dropped_space) > unit(&kept_space);
        let blocks = match rows < 16 || inside {
            true if inside => None,
            true => self.columns(),
            false => self.columns().or_else(|| self.blocks(&kept_space)),
        };
        let along = (rows < 16 || inside) && blocks.is_none();
        let both = along && rows > 1 && len <= TILE / 2;
        let both = both.then(|| Space::new(&self.point.shape, &self.point.inputs, 0));
        Spaces { kept: kept_space, dropped: dropped_space, along, both, blocks }
    }

    /// How numbers are gone through as they lie, if that is another order: short rows that are brought together take longer
    /// than what is done with them.
    fn blocks(&self, kept: &Space) -> Option<Blocks> {
        let (stays, goes) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(stays), volume(goes));
        let none = rows == 0 || len == 0;
        if none || kept.is_flat() || len > BLOCK || Parts::of(rows, len, false).parts > 1 {
            return None;
        }
        (1..self.kept).rev().find_map(|cut| {
            let row = volume(&stays[cut..]);
            let space = self.behind(cut).filter(|_| row > 1 && row * len <= TILE)?;
            Some(Blocks { space, len, row, columns: false })
        })
    }

    /// The same where few sums are of many rows that stand one behind the other.
    fn columns(&self) -> Option<Blocks> {
        let (stays, goes) = self.point.shape.split_at(self.kept);
        let (row, len) = (volume(stays), volume(goes));
        let many = (2..=ROW).contains(&row) && len * row > TILE && self.folding != Folding::Product;
        let space = self.behind(0).filter(|_| many)?;
        Some(Blocks { space, len, row, columns: true })
    }

    /// What goes before some of what stays, if so all numbers are gone through as they lie.
    fn behind(&self, cut: usize) -> Option<Space> {
        let shape = &self.point.shape;
        let order: Vec<usize> = (0..cut).chain(self.kept..shape.len()).chain(cut..self.kept).collect();
        let shape: Vec<usize> = order.iter().map(|dim| shape[*dim]).collect();
        let moved = |view: &View| View {
            steps: order.iter().map(|dim| view.steps[*dim].clone()).collect(),
            ..view.clone()
        };
        let views: Vec<View> = self.point.inputs.iter().map(moved).collect();
        Some(Space::new(&shape, &views, 0)).filter(Space::is_flat)
    }

    /// Whether each entry is folded by itself, from the first number to the last.
    pub(super) fn is_by_rows(&self) -> bool {
        let (kept, dropped) = self.point.shape.split_at(self.kept);
        let (rows, len) = (volume(kept), volume(dropped));
        let along = self.spaces().along;
        !self.point.truth && rows > 0 && len > 0 && along && Parts::of(rows, len, along).parts == 1
    }

    /// Entries from the `first` on, each folded by itself, of inputs wherever they stand.
    pub(super) fn rows<'a, T: Number>(
        &'a self,
        spaces: &'a Spaces,
        sources: &'a [Source<'a, T>],
        first: usize,
        to: &mut [T],
    ) {
        let mut evaluator = Evaluator::over(&self.point.code, spaces.own(), sources);
        let mut tile = [T::ZERO; TILE];
        let len = volume(&self.point.shape[self.kept..]);
        if spaces.both.is_some() {
            return self.short(&mut evaluator, len, first, to, &mut tile);
        }
        let mut places = Few::new();
        let mut bases: Few<usize> = self.point.inputs.iter().map(|_| 0).collect();
        positions(&spaces.kept.sizes, first, &mut places);
        for slot in to {
            for (base, walk) in bases.iter_mut().zip(&spaces.kept.walks) {
                *base = walk.offset + walk.offset_at(&places);
            }
            *slot = self.along(&mut evaluator, &bases, (0, len), &mut tile, &|| false);
            advance(&spaces.kept.sizes, &mut places);
        }
    }

    /// One task, whose rest is left out when `stopped` says so: a fold of a single long row is few tasks.
    fn part<T: Number>(
        &self,
        spaces: &Spaces,
        sources: &[Source<'_, T>],
        task: Task,
        to: &mut [T],
        stopped: &dyn Fn() -> bool,
    ) {
        let own = spaces.own();
        let other = if spaces.along { &spaces.kept } else { &spaces.dropped };
        let mut evaluator = Evaluator::over(&self.point.code, own, sources);
        let mut places = Few::new();
        let mut bases: Few<usize> = self.point.inputs.iter().map(|_| 0).collect();
        let rebase = |places: &[usize], bases: &mut [usize]| {
            for (base, walk) in bases.iter_mut().zip(&other.walks) {
                *base = walk.offset + walk.offset_at(places);
            }
        };
        let mut scratch = Scratch::<T>::new();
        let mut tile = scratch.tile();
        if spaces.both.is_some() {
            let len = task.dropped.1 - task.dropped.0;
            self.short(&mut evaluator, len, task.kept.0, to, &mut tile);
            return scratch.give(Run::Tile(tile));
        }
        if let Some(Blocks { row, columns: true, .. }) = spaces.blocks {
            self.rows_of(&mut evaluator, row, task.dropped, (to, &mut tile), stopped);
            return scratch.give(Run::Tile(tile));
        }
        if let Some(Blocks { len, row, .. }) = spaces.blocks {
            let (mut first, some) = (task.kept.0 * len, TILE / (row * len) * row);
            for to in to.chunks_mut(some) {
                let values = &mut tile[..to.len() * len];
                evaluator.evaluate(first, &[], values);
                first += values.len();
                vectorised(Rows { folding: self.folding, values, len, row, to });
            }
            return scratch.give(Run::Tile(tile));
        }
        if spaces.along {
            positions(&other.sizes, task.kept.0, &mut places);
            for slot in to {
                rebase(&places, &mut bases);
                *slot = self.along(&mut evaluator, &bases, task.dropped, &mut tile, stopped);
                advance(&other.sizes, &mut places);
            }
            return scratch.give(Run::Tile(tile));
        }
        let (first, len) = (task.kept.0, to.len());
        let start = T::of(self.folding.start());
        if task.dropped.1 - task.dropped.0 <= BLOCK {
            // A single block: nothing is added up in 64 bits.
            to.fill(start);
            positions(&other.sizes, task.dropped.0, &mut places);
            for _ in task.dropped.0..task.dropped.1 {
                rebase(&places, &mut bases);
                evaluator.evaluate(first, &bases, &mut tile[..len]);
                self.folding.join_all(to, &tile[..len]);
                advance(&other.sizes, &mut places);
            }
            return scratch.give(Run::Tile(tile));
        }
        let (mut doubles, mut block) = (Scratch::<f64>::new(), scratch.tile());
        let mut total = doubles.tile();
        total[..len].fill(self.folding.start());
        block[..len].fill(start);
        positions(&other.sizes, task.dropped.0, &mut places);
        for at in task.dropped.0..task.dropped.1 {
            rebase(&places, &mut bases);
            evaluator.evaluate(first, &bases, &mut tile[..len]);
            let folding = self.folding;
            folding.join_all(&mut block[..len], &tile[..len]);
            advance(&other.sizes, &mut places);
            if (at + 1 - task.dropped.0).is_multiple_of(BLOCK) {
                if stopped() {
                    break;
                }
                let pairs = total[..len].iter_mut().zip(&mut block[..len]);
                pairs.for_each(|(total, x)| {
                    *total = folding.join(*total, x.double());
                    *x = start;
                });
            }
        }
        for (slot, (total, x)) in to.iter_mut().zip(total.iter().zip(block.iter())) {
            *slot = T::of(self.folding.join(*total, x.double()));
        }
        doubles.give(Run::Tile(total));
        [tile, block].into_iter().for_each(|tile| scratch.give(Run::Tile(tile)));
    }

    /// Rows of so many entries into one, as many side by side as lanes hold.
    fn rows_of<T: Number>(
        &self,
        evaluator: &mut Evaluator<'_, T>,
        row: usize,
        (from, until): (usize, usize),
        (to, tile): (&mut [T], &mut [T; TILE]),
        stopped: &dyn Fn() -> bool,
    ) {
        let (folding, start) = (self.folding, self.folding.start());
        let width = ROW / row * row;
        let (mut total, mut block) = ([start; ROW], [T::of(start); ROW]);
        let mut added = 0;
        let some = TILE / width * width;
        for (nth, first) in (from * row..until * row).step_by(some).enumerate() {
            if nth.is_multiple_of(ASKED) && stopped() {
                break;
            }
            let values = &mut tile[..some.min(until * row - first)];
            evaluator.evaluate(first, &[], values);
            vectorised(Columns { folding, values, block: &mut block[..width] });
            added += some / width;
            if added + some / width > BLOCK || first + some >= until * row {
                for (total, value) in total.iter_mut().zip(&mut block) {
                    *total = folding.join(*total, value.double());
                    *value = T::of(start);
                }
                added = 0;
            }
        }
        for (at, slot) in to.iter_mut().enumerate() {
            let all = total[at..width].iter().step_by(row);
            *slot = T::of(all.fold(start, |so_far, value| folding.join(so_far, *value)));
        }
    }

    /// Entries from the `first` on, some in a tile: the fold of each is that of a tile of its own.
    fn short<T: Number>(
        &self,
        evaluator: &mut Evaluator<'_, T>,
        len: usize,
        mut first: usize,
        to: &mut [T],
        tile: &mut [T; TILE],
    ) {
        for some in to.chunks_mut((TILE / len).max(1)) {
            let values = &mut tile[..some.len() * len];
            evaluator.evaluate(first * len, &[], values);
            first += some.len();
            vectorised(Short { folding: self.folding, values, len, to: some });
        }
    }

    /// One entry: the fold of tiles along what goes.
    fn along<T: Number>(
        &self,
        evaluator: &mut Evaluator<'_, T>,
        bases: &[usize],
        (from, to): (usize, usize),
        tile: &mut [T; TILE],
        stopped: &dyn Fn() -> bool,
    ) -> T {
        let mut total = self.folding.start();
        let mut at = from;
        while at < to && !((at - from).is_multiple_of(ASKED * TILE) && stopped()) {
            let len = TILE.min(to - at);
            evaluator.evaluate(at, bases, &mut tile[..len]);
            let lanes = vectorised(Lanes { folding: self.folding, values: &tile[..len] });
            total = self.folding.join(total, lanes.double());
            at += len;
        }
        T::of(total)
    }
}

/// Rows of a tile into one; the last may be shorter.
struct Columns<'a, T> {
    folding: Folding,
    values: &'a [T],
    block: &'a mut [T],
}

impl<T: Number> Kernel for Columns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        with_join!(self.folding, |join| self.joined(join))
    }
}

impl<T: Number> Columns<'_, T> {
    #[inline(always)]
    fn joined(self, join: impl Fn(T, T) -> T) {
        for row in self.values.chunks(self.block.len()) {
            self.block.iter_mut().zip(row).for_each(|(slot, value)| *slot = join(*slot, *value));
        }
    }
}

/// The folds of so many rows of a tile at a time into one.
struct Rows<'a, T> {
    folding: Folding,
    values: &'a [T],
    len: usize,
    row: usize,
    to: &'a mut [T],
}

impl<T: Number> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        with_join!(self.folding, |join| self.joined(join))
    }
}

impl<T: Number> Rows<'_, T> {
    #[inline(always)]
    fn joined(self, join: impl Fn(T, T) -> T) {
        match self.row {
            ..=8 => self.wide::<8>(join),
            9..=16 => self.wide::<16>(join),
            _ => self.plain(0, join),
        }
    }

    /// Rows of at most so many entries: to loop over so few takes longer than to fold what stands behind them too, whose place
    /// is written later.
    #[inline(always)]
    fn wide<const WIDE: usize>(self, join: impl Fn(T, T) -> T) {
        let start = T::of(self.folding.start());
        let (block, row) = (self.len * self.row, self.row);
        let rows = self.to.len() / row;
        let mut done = 0;
        while done < rows {
            let (from, to) = (done * block, done * row);
            let there = self.values.get(from..from + block - row + WIDE).zip(self.to.get_mut(to..to + WIDE));
            let Some((values, to)) = there else { break };
            let mut total = [start; WIDE];
            for values in values.windows(WIDE).step_by(row) {
                for (slot, value) in total.iter_mut().zip(values) {
                    *slot = join(*slot, *value);
                }
            }
            to.copy_from_slice(&total);
            done += 1;
        }
        self.plain(done, join);
    }

    /// Those from one on.
    #[inline(always)]
    fn plain(self, first: usize, join: impl Fn(T, T) -> T) {
        let start = T::of(self.folding.start());
        let blocks = self.values.chunks_exact(self.len * self.row);
        for (to, block) in self.to.chunks_exact_mut(self.row).zip(blocks).skip(first) {
            to.fill(start);
            for row in block.chunks_exact(self.row) {
                to.iter_mut().zip(row).for_each(|(slot, value)| *slot = join(*slot, *value));
            }
        }
    }
}

/// The folds of rows of a tile.
struct Short<'a, T> {
    folding: Folding,
    values: &'a [T],
    len: usize,
    to: &'a mut [T],
}

impl<T: Number> Kernel for Short<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Short { folding, values, len, to } = self;
        for (slot, values) in to.iter_mut().zip(values.chunks_exact(len)) {
            *slot = T::of(folding.join(folding.start(), lanes(folding, values).double()));
        }
    }
}

/// The fold of a tile.
struct Lanes<'a, T> {
    folding: Folding,
    values: &'a [T],
}

impl<T: Number> Kernel for Lanes<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run(self) -> T {
        lanes(self.folding, self.values)
    }
}

/// The fold of some numbers, in eight lanes.
#[inline(always)]
fn lanes<T: Number>(folding: Folding, values: &[T]) -> T {
    let start = T::of(folding.start());
    let mut lanes = [start; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    match folding {
        // The sum apart, so that it is vectorised.
        Folding::Sum => {
            for chunk in chunks {
                lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += *value);
            }
        }
        _ => {
            for chunk in chunks {
                lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = folding.join(*lane, *value));
            }
        }
    }
    rest.iter().chain(&lanes).fold(start, |all, value| folding.join(all, *value))
}
