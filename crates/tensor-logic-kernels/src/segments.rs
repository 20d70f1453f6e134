//! Sums over the rows of a table by group: a relation times dense tensors.
//!
//! Each row contributes a number times the product of slabs (arrays over the dense indices). Groups
//! are shared out in tasks of about as many rows each, so that every sum has one owner. Rows are gone through
//! group by group, and what is looked up by row is kept in that order ([`Grouping`]).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rayon::prelude::*;
use training::kernels::{Kernel, fetch_ahead, vectorised};

use super::array::{Array, Known, Step, Typed, View, Ways, WeakArray, known_or, visit_views};
use super::fold::Folding;
use super::number::{Buffer, Number, Pool, volume};
use super::space::{Few, buffers};

/// The rows of a table by group, one group behind the other, and what was looked up by row, in that order.
///
/// What is looked up is kept as long as that from which it was is: columns of positions at once, numbers that are
/// given once they are met a second time.
#[derive(Debug, Default)]
pub struct Grouping {
    start: Vec<u32>,
    rows: Vec<u32>,
    /// The most rows of a group.
    longest: usize,
    /// Whether the rows stand in their own order.
    in_order: bool,
    columns: Mutex<Vec<Column>>,
    numbers: Mutex<Vec<Met>>,
}

/// A column of positions, and the same in the order of the groups.
type Column = (Weak<Vec<u32>>, Arc<Vec<u32>>);

/// Numbers by row that were met.
#[derive(Debug)]
struct Met {
    array: WeakArray,
    offset: usize,
    times: usize,
    /// How the positions are found; none: by the row.
    map: Option<Weak<Vec<u32>>>,
    /// The numbers in the order of the groups.
    found: Option<Buffer>,
}

/// So many columns, and numbers, are kept at most.
const KEPT: usize = 4;

impl Grouping {
    /// Where the rows of each group begin, and at the end how many there are; the rows, group by group.
    pub fn new(start: Vec<u32>, rows: Vec<u32>) -> Arc<Grouping> {
        let in_order = rows.iter().enumerate().all(|(at, row)| at == *row as usize);
        let longest = start.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        Arc::new(Grouping { start, rows, longest, in_order, ..Grouping::default() })
    }

    /// As many groups of the same sizes, of other rows.
    #[cfg(test)]
    pub(super) fn turned(&self) -> Arc<Grouping> {
        Grouping::new(self.start.clone(), self.rows.iter().rev().copied().collect())
    }

    fn is_same(self: &Arc<Grouping>, other: &Arc<Grouping>) -> bool {
        Arc::ptr_eq(self, other) || (self.start == other.start && self.rows == other.rows)
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// How many bytes it takes, with a column that is kept.
    pub fn bytes(&self) -> usize {
        4 * (self.start.len() + self.rows.len() * if self.in_order { 1 } else { 2 })
    }

    /// The rows of a group.
    fn group(&self, group: usize) -> std::ops::Range<usize> {
        self.start[group] as usize..self.start[group + 1] as usize
    }

    /// A column of the table, in the order of the groups.
    fn column(&self, map: &Arc<Vec<u32>>) -> Arc<Vec<u32>> {
        if self.in_order && self.rows.len() == map.len() {
            return Arc::clone(map);
        }
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        columns.retain(|(of, _)| of.strong_count() > 0);
        if let Some((_, column)) = columns.iter().find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(map)))
        {
            return Arc::clone(column);
        }
        let column =
            Arc::new(self.rows.par_iter().with_min_len(PARALLEL).map(|row| map[*row as usize]).collect());
        if columns.len() >= KEPT {
            columns.remove(0);
        }
        columns.push((Arc::downgrade(map), Arc::clone(&column)));
        column
    }

    /// Given numbers in the order of the groups, if they are met again.
    fn numbers<T: Number>(&self, view: &View, values: &[T]) -> Option<Buffer> {
        let (map, times) = match view.steps.first()? {
            Step::By(0) => return None,
            Step::By(_) if self.in_order => return None,
            Step::By(times) => (None, *times),
            Step::Map(map, times) => (Some(map), *times),
        };
        if !view.array.is_given() {
            return None;
        }
        let mut all = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|met| met.array.is_there() && met.map.as_ref().is_none_or(|map| map.strong_count() > 0));
        let same = |met: &&mut Met| {
            let mapped = match (&met.map, map) {
                (None, None) => true,
                (Some(a), Some(b)) => std::ptr::eq(a.as_ptr(), Arc::as_ptr(b)),
                _ => false,
            };
            mapped && met.array.is(&view.array) && met.offset == view.offset && met.times == times
        };
        let Some(met) = all.iter_mut().find(same) else {
            if all.len() >= KEPT {
                all.remove(0);
            }
            let (array, map) = (view.array.weak(), map.map(Arc::downgrade));
            all.push(Met { array, offset: view.offset, times, map, found: None });
            return None;
        };
        if met.found.as_ref().is_none_or(|found| T::slice(found).is_none()) {
            let place = |row: &u32| view.offset + times * map.map_or(*row, |map| map[*row as usize]) as usize;
            let found = self.rows.par_iter().with_min_len(PARALLEL).map(|row| values[place(row)]).collect();
            met.found = Some(T::buffer(found));
        }
        met.found.clone()
    }
}

/// `result[group] = constant · Σ Π numbers · Π slabs` over the rows of each group.
#[derive(Debug, Clone)]
pub struct Segments {
    /// The rows by group.
    pub groups: Arc<Grouping>,
    /// The dense dimensions.
    pub inner: Vec<usize>,
    /// A number for each row: views along the rows.
    pub numbers: Vec<View>,
    /// A slab for each row: views along the rows and the dense dimensions, in order along these.
    pub slabs: Vec<View>,
    /// What every sum is multiplied by.
    pub constant: f64,
    /// How the rows of a group are joined; other than by a sum: one slab and no numbers.
    pub folding: Folding,
}

/// So many tasks.
const TASKS: usize = 64;
/// So many multiply-adds are shared among threads.
const PARALLEL: usize = 1 << 17;
/// So many rows are added in their own precision before they are added in 64 bits.
const BLOCK: usize = 256;

/// Where what belongs to a row lies, by the row's place in the order of the groups.
enum Walk<'a> {
    By(usize),
    At(&'a [u32], usize),
}

/// Numbers or slabs that are there.
struct Part<'a, T: Number> {
    values: Cow<'a, [T]>,
    offset: usize,
    walk: Walk<'a>,
}

impl<T: Number> Part<'_, T> {
    #[inline(always)]
    fn place(&self, nth: usize) -> usize {
        self.offset
            + match &self.walk {
                Walk::By(step) => nth * step,
                Walk::At(column, times) => column[nth] as usize * times,
            }
    }
}

impl Typed for Segments {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.numbers.iter().chain(&self.slabs).for_each(|view| visit(&view.array));
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        visit_views(self.numbers.iter_mut().chain(&mut self.slabs), visit);
    }

    fn is_even(&self) -> bool {
        false
    }

    fn unsigned_zeros(&self) -> bool {
        // A sum that begins with 0 has no other.
        self.folding == Folding::Sum
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let mut result = pool.take::<T>(self.groups.count() * volume(&self.inner));
        let held = buffers(self.views().map(|view| &view.array));
        let columns = self.columns();
        let ordered: Few<Option<Buffer>> = held
            .iter()
            .zip(&self.numbers)
            .map(|(buffer, view)| self.groups.numbers::<T>(view, T::slice(buffer)?))
            .collect();
        let parts: Few<Part<'_, T>> = held
            .iter()
            .zip(self.views().zip(&columns))
            .enumerate()
            .map(|(at, (buffer, (view, column)))| {
                if let Some(values) = ordered.get(at).and_then(Option::as_ref).and_then(T::slice) {
                    return Part { values: Cow::Borrowed(values), offset: 0, walk: Walk::By(1) };
                }
                let values = match T::slice(buffer) {
                    Some(values) => Cow::Borrowed(values),
                    None => Cow::Owned(buffer.numbers()),
                };
                Part {
                    values,
                    offset: view.offset,
                    walk: self.walk(view, column.as_deref().map(Vec::as_slice)),
                }
            })
            .collect();
        self.sums(&parts, &mut result, pool);
        T::buffer(result)
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(self.columns()))
    }

    fn fused(self) -> Segments {
        self.put_at_once().unwrap_or(self)
    }

    fn with_numbers(mut self, known: Known<'_>) -> Segments {
        // The numbers of a row are multiplied in their order: the first of them may be what all rows begin with.
        while let Some(view) = self.numbers.first()
            && matches!(view.steps.first(), Some(Step::By(0)))
            && let Some(number) = known(&view.array, view.offset)
            && (self.constant == 1.0 || number == 1.0)
            && self.numbers.len() + self.slabs.len() > 1
        {
            self.constant *= number;
            self.numbers.remove(0);
        }
        self
    }

    fn is_same(&self, other: &Segments) -> bool {
        let views = self.views().count() == other.views().count()
            && self.numbers.len() == other.numbers.len()
            && self.views().zip(other.views()).all(|(own, other)| own.is_same(other));
        views
            && (&self.inner, self.folding) == (&other.inner, other.folding)
            && self.constant.to_bits() == other.constant.to_bits()
            && self.groups.is_same(&other.groups)
    }

    fn is_free(&self) -> bool {
        // Numbers that are given are looked up once for many rows: then they are asked for by their arrays.
        self.folding == Folding::Sum && !self.is_shared()
    }

    fn run_on<T: Number>(&self, from: &[&[T]], to: &mut [T], ways: Option<&Ways>, _: bool, pool: &Pool) {
        let columns = known_or(ways, || self.columns());
        let views = from.iter().zip(self.views().zip(columns.iter()));
        let parts: Few<Part<'_, T>> = views
            .map(|(values, (view, column))| {
                let walk = self.walk(view, column.as_deref().map(Vec::as_slice));
                Part { values: Cow::Borrowed(values), offset: view.offset, walk }
            })
            .collect();
        self.sums(&parts, to, pool);
    }
}

/// For each view the column by which it is looked up, in the order of the groups.
type Columns = Few<Option<Arc<Vec<u32>>>>;

impl Segments {
    /// Where this puts the sums of other groups elsewhere: those sums where they belong. The bits are the same.
    fn put_at_once(&self) -> Option<Segments> {
        let width = volume(&self.inner);
        let ([view], true) = (self.slabs.as_slice(), self.numbers.is_empty()) else { return None };
        let puts = self.folding == Folding::Sum && self.constant == 1.0 && self.groups.longest <= 1;
        let in_order = View { steps: view.steps.get(1..)?.to_vec(), ..view.clone() }.in_order(&self.inner);
        if !puts || !in_order || width == 0 {
            return None;
        }
        let sums = view.array.own::<Segments>()?;
        if sums.folding != Folding::Sum || volume(&sums.inner) != width {
            return None;
        }
        let step = view.steps.first()?;
        let (mut start, mut rows) = (vec![0], Vec::new());
        for group in 0..self.groups.count() {
            for nth in self.groups.group(group) {
                let place = view.offset + step.offset(self.groups.rows[nth] as usize);
                let from = place / width;
                if place % width != 0 || from >= sums.groups.count() {
                    return None;
                }
                rows.extend_from_slice(&sums.groups.rows[sums.groups.group(from)]);
            }
            start.push(u32::try_from(rows.len()).ok()?);
        }
        // A sum that several of them take is not taken anew for each.
        let groups = (rows.len() <= sums.groups.rows.len()).then(|| Grouping::new(start, rows))?;
        Some(Segments { groups, inner: self.inner.clone(), ..sums })
    }

    fn views(&self) -> impl Iterator<Item = &View> {
        self.numbers.iter().chain(&self.slabs)
    }

    /// Whether there is work for several threads.
    fn is_shared(&self) -> bool {
        self.groups.rows.len().saturating_mul(volume(&self.inner)) >= PARALLEL
    }

    fn columns(&self) -> Columns {
        let column = |view: &View| match view.steps.first() {
            Some(Step::Map(map, _)) => Some(self.groups.column(map)),
            _ => None,
        };
        self.views().map(column).collect()
    }

    /// All sums, of these numbers and slabs.
    fn sums<T: Number>(&self, parts: &[Part<'_, T>], result: &mut [T], pool: &Pool) {
        if self.groups.rows.is_empty() {
            return result.fill(T::of(self.folding.start()));
        }
        let (inner, groups) = (volume(&self.inner), self.groups.count());
        let (numbers, slabs) = parts.split_at(self.numbers.len().min(parts.len()));
        let task = |groups, to| Sum { segments: self, numbers, slabs, groups, inner, to };
        if !self.is_shared() {
            return vectorised(task(0..groups, result));
        }
        // Cut so that every task has about as many rows, whatever the threads.
        let total = self.groups.rows.len() + groups;
        let mut tasks = Vec::with_capacity(TASKS);
        let (mut rest, mut from) = (result, 0);
        for nth in 1..=TASKS {
            let to = if nth == TASKS { groups } else { self.cut(total, nth, groups) };
            let (own, others) = rest.split_at_mut((to - from) * inner);
            tasks.push(task(from..to, own));
            (rest, from) = (others, to);
        }
        let stopped = pool.stopped();
        let work = |task| {
            if !stopped() {
                vectorised(task);
            }
        };
        if rayon::current_num_threads() > 1 {
            tasks.into_par_iter().for_each(work);
        } else {
            tasks.into_iter().for_each(work);
        }
    }

    /// How a view is walked, and by which column.
    fn walk<'a>(&'a self, view: &View, column: Option<&'a [u32]>) -> Walk<'a> {
        match (view.steps.first(), column) {
            (Some(Step::Map(_, times)), Some(column)) => Walk::At(column, *times),
            (Some(Step::By(step)), _) if *step > 0 => match self.groups.in_order {
                true => Walk::By(*step),
                false => Walk::At(&self.groups.rows, *step),
            },
            _ => Walk::By(0),
        }
    }

    /// The first group of a task.
    fn cut(&self, total: usize, task: usize, groups: usize) -> usize {
        let wanted = total * task / TASKS;
        let (mut low, mut high) = (0, groups);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.groups.start[middle] as usize + middle < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The sums of some groups.
struct Sum<'a, T: Number> {
    segments: &'a Segments,
    numbers: &'a [Part<'a, T>],
    slabs: &'a [Part<'a, T>],
    groups: std::ops::Range<usize>,
    inner: usize,
    to: &'a mut [T],
}

impl<T: Number> Kernel for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Sum { segments, numbers, slabs, groups, inner, to } = self;
        let constant = T::of(segments.constant);
        if segments.folding != Folding::Sum {
            return Sum { segments, numbers, slabs, groups, inner, to }.fold();
        }
        if inner == 0 || groups.is_empty() {
            return;
        }
        let grouping = &segments.groups;
        let first = grouping.start[groups.start] as usize;
        let end = grouping.start[groups.end] as usize;
        // Looked up before the slabs are: many look-ups are on their way at a time.
        let product =
            |nth: usize| numbers.iter().fold(constant, |scale, part| scale * part.values[part.place(nth)]);
        let scales: Cow<'_, [T]> = match numbers {
            [] => Cow::Borrowed(&[]),
            [Part { values, offset, walk: Walk::By(1) }] if constant == T::ONE => {
                Cow::Borrowed(&values[offset + first..offset + end])
            }
            _ => Cow::Owned((first..end).map(product).collect()),
        };
        let none: Vec<u32> = Vec::new();
        // Where the slab of each row begins, if there is one.
        let slab = match slabs {
            [Part { values, offset, walk: Walk::At(column, times) }] => {
                Some(Slab { values, offset: *offset, places: &column[first..end], times: *times })
            }
            [Part { values, offset, walk: Walk::By(times) }] => {
                Some(Slab { values, offset: *offset + first * times, places: &none, times: *times })
            }
            _ => None,
        };
        if let Some(slab) = slab {
            let starts = &grouping.start[groups.start..=groups.end];
            let narrow = Narrow { scales: &scales, slab, starts, first, constant };
            if inner <= NARROWEST && grouping.longest <= BLOCK {
                return match inner {
                    1 => narrow.sums::<1>(to),
                    2 => narrow.sums::<2>(to),
                    3 => narrow.sums::<3>(to),
                    _ => narrow.sums::<4>(to),
                };
            }
        }
        for (to, group) in to.chunks_exact_mut(inner).zip(groups) {
            let own = grouping.group(group);
            let strip = Strip { scales: &scales, slab, slabs, first, own, column: 0, constant };
            let mut column = 0;
            while column < inner {
                let strip = Strip { column, own: strip.own.clone(), ..strip };
                // As many columns as registers have room for.
                let wide = if size_of::<T>() > 4 { WIDE / 2 } else { WIDE };
                let width = if inner - column >= wide { wide } else { NARROW.min(inner - column) };
                let to = &mut to[column..column + width];
                match width {
                    WIDE => strip.sum::<WIDE>(to),
                    _ if width == wide => strip.sum::<{ WIDE / 2 }>(to),
                    1 => strip.sum::<1>(to),
                    2 => strip.sum::<2>(to),
                    3 => strip.sum::<3>(to),
                    4 => strip.sum::<4>(to),
                    5..=8 => strip.sum::<8>(to),
                    _ => strip.sum::<NARROW>(to),
                }
                column += width;
            }
        }
    }
}

/// Columns that are summed at once: their sums stay in registers.
const WIDE: usize = 64;
const NARROW: usize = 16;
/// So many rows ahead their slabs are asked for.
const AHEAD: usize = 12;

/// The one slab of each row.
struct Slab<'a, T> {
    values: &'a [T],
    offset: usize,
    /// For each row of the task; empty: one behind the other.
    places: &'a [u32],
    times: usize,
}

impl<T> Clone for Slab<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slab<'_, T> {}

impl<T> Slab<'_, T> {
    #[inline(always)]
    fn place(&self, nth: usize) -> Option<usize> {
        let at = if self.places.is_empty() { nth } else { *self.places.get(nth)? as usize };
        Some(self.offset + at * self.times)
    }
}

/// Groups of few rows each, with a slab of few columns: what is decided for each group takes longer than its sum.
struct Narrow<'a, T: Number> {
    scales: &'a [T],
    slab: Slab<'a, T>,
    /// Where the rows of the groups of the task begin.
    starts: &'a [u32],
    /// The first row of the task.
    first: usize,
    constant: T,
}

/// So many columns are few.
const NARROWEST: usize = 4;

impl<T: Number> Narrow<'_, T> {
    #[inline(always)]
    fn sums<const W: usize>(self, to: &mut [T]) {
        match (self.slab.places.is_empty(), self.scales.is_empty()) {
            (true, true) => self.each::<W>(to, |nth| nth, |_| self.constant),
            (true, false) => self.each::<W>(to, |nth| nth, |nth| self.scales[nth]),
            (false, true) => self.each::<W>(to, |nth| self.slab.places[nth] as usize, |_| self.constant),
            (false, false) => {
                self.each::<W>(to, |nth| self.slab.places[nth] as usize, |nth| self.scales[nth]);
            }
        }
    }

    #[inline(always)]
    fn each<const W: usize>(&self, to: &mut [T], place: impl Fn(usize) -> usize, scale: impl Fn(usize) -> T) {
        let Slab { values, offset, times, .. } = self.slab;
        let values = values.get(offset..).unwrap_or(&[]);
        let (to, _) = to.as_chunks_mut::<W>();
        let sum = |rows: std::ops::Range<usize>| {
            let mut sums = [T::ZERO; W];
            for nth in rows {
                let (at, scale) = (place(nth) * times, scale(nth));
                let from = &values[at..at + W];
                (0..W).for_each(|column| sums[column] += scale * from[column]);
            }
            sums
        };
        let mut from = self.starts.first().map_or(0, |start| *start as usize - self.first);
        for (to, end) in to.iter_mut().zip(self.starts.iter().skip(1)) {
            let until = *end as usize - self.first;
            *to = sum(from..until);
            from = until;
        }
    }
}

/// Some columns of one group.
struct Strip<'a, T: Number> {
    /// What each row of the task is multiplied by; `constant`, if there is none.
    scales: &'a [T],
    slab: Option<Slab<'a, T>>,
    slabs: &'a [Part<'a, T>],
    /// The first row of the task, in the order of the groups.
    first: usize,
    /// The rows of the group.
    own: std::ops::Range<usize>,
    column: usize,
    constant: T,
}

impl<T: Number> Strip<'_, T> {
    #[inline(always)]
    fn sum<const W: usize>(&self, to: &mut [T]) {
        let width = to.len();
        if self.own.len() <= BLOCK {
            let sums = self.block::<W>(self.own.clone(), width);
            return match to.first_chunk_mut::<W>() {
                // Without a call.
                Some(to) => *to = sums,
                None => to.copy_from_slice(&sums[..width]),
            };
        }
        let mut total = [0.0; W];
        let mut from = self.own.start;
        loop {
            let until = self.own.end.min(from + BLOCK);
            let sums = self.block::<W>(from..until, width);
            if until == self.own.end {
                for (slot, (total, sum)) in to.iter_mut().zip(total.iter().zip(&sums)) {
                    *slot = T::of(total + sum.double());
                }
                return;
            }
            total.iter_mut().zip(&sums).for_each(|(total, sum)| *total += sum.double());
            from = until;
        }
    }

    /// The sums of some rows.
    #[inline(always)]
    fn block<const W: usize>(&self, rows: std::ops::Range<usize>, width: usize) -> [T; W] {
        let mut sums = [T::ZERO; W];
        let scale = |nth: usize| self.scales.get(nth).copied().unwrap_or(self.constant);
        let Some(slab) = &self.slab else {
            for row in rows {
                let mut product = [scale(row - self.first); W];
                for part in self.slabs {
                    let from = part.place(row) + self.column;
                    match part.values.get(from..from + W) {
                        Some(from) => (0..W).for_each(|at| product[at] = product[at] * from[at]),
                        // The last columns of the last slab.
                        None => {
                            let from = &part.values[from..from + width];
                            product.iter_mut().zip(from).for_each(|(slot, value)| *slot = *slot * *value);
                        }
                    }
                }
                (0..W).for_each(|at| sums[at] += product[at]);
            }
            return sums;
        };
        let line = 64 / size_of::<T>();
        for nth in rows.start - self.first..rows.end - self.first {
            if let Some(next) = slab.place(nth + AHEAD) {
                (0..W / line).for_each(|at| fetch_ahead(slab.values, next + self.column + at * line));
            }
            let scale = scale(nth);
            let from = slab.place(nth).unwrap_or(usize::MAX - W) + self.column;
            match slab.values.get(from..from + W) {
                Some(from) => (0..W).for_each(|at| sums[at] += scale * from[at]),
                // The last columns of the last slab.
                None => {
                    let from = &slab.values[from..from + width];
                    sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += scale * *value);
                }
            }
        }
        sums
    }
}

impl<T: Number> Sum<'_, T> {
    /// Joins slabs otherwise than by their sum.
    fn fold(self) {
        let Sum { segments, slabs, groups, inner, to, .. } = self;
        let Some(slab) = slabs.first() else { return };
        for (to, group) in to.chunks_exact_mut(inner.max(1)).zip(groups) {
            to.fill(T::of(segments.folding.start()));
            for nth in segments.groups.group(group) {
                let from = slab.place(nth);
                let values = &slab.values[from..from + inner];
                to.iter_mut().zip(values).for_each(|(slot, x)| *slot = segments.folding.join(*slot, *x));
            }
        }
    }
}
