//! Sums over the rows of a table by group: a relation times dense tensors.
//!
//! Each row contributes a number times the product of slabs (arrays over the dense indices). Groups
//! are shared out in tasks of about as many rows each, so that every sum has one owner.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;
use training::kernels::{Kernel, fetch_ahead, vectorised};

use super::array::{Array, Typed, View, visit_views};
use super::fold::Folding;
use super::number::{Buffer, Number, Pool, volume};
use super::space::buffers;

/// `result[group] = constant · Σ Π numbers · Π slabs` over the rows of each group.
#[derive(Debug, Clone)]
pub struct Segments {
    /// Where the rows of each group begin, and at the end how many there are.
    pub start: Arc<Vec<u32>>,
    /// The rows, group by group.
    pub rows: Arc<Vec<u32>>,
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

/// Numbers or slabs that are there.
struct Part<'a, T: Number> {
    values: Cow<'a, [T]>,
    view: &'a View,
}

impl<T: Number> Part<'_, T> {
    #[inline(always)]
    fn place(&self, row: usize) -> usize {
        self.view.offset + self.view.steps.first().map_or(0, |step| step.offset(row))
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

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let inner = volume(&self.inner);
        let groups = self.start.len().saturating_sub(1);
        let held = buffers(self.numbers.iter().chain(&self.slabs).map(|view| &view.array));
        let own = |buffer| match T::slice(buffer) {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(Buffer::numbers(buffer)),
        };
        let parts = held.iter().zip(self.numbers.iter().chain(&self.slabs));
        let mut parts: Vec<Part<'_, T>> = parts.map(|(b, view)| Part { values: own(b), view }).collect();
        let slabs = parts.split_off(self.numbers.len());
        let mut result = pool.take::<T>(groups * inner);
        // Cut so that every task has about as many rows, whatever the threads.
        let total = self.rows.len() + groups;
        let mut tasks = Vec::with_capacity(TASKS);
        let (mut rest, mut from) = (result.as_mut_slice(), 0);
        let shared = self.rows.len().saturating_mul(inner) >= PARALLEL;
        for task in 1..=TASKS {
            let to = if task == TASKS || !shared { groups } else { self.cut(total, task, groups) };
            let (own, others) = rest.split_at_mut((to - from) * inner);
            tasks.push(Sum {
                segments: self,
                numbers: &parts,
                slabs: &slabs,
                groups: from..to,
                inner,
                to: own,
            });
            (rest, from) = (others, to);
        }
        let stopped = pool.stopped();
        let work = |task| {
            if !stopped() {
                vectorised(task);
            }
        };
        if shared && rayon::current_num_threads() > 1 {
            tasks.into_par_iter().for_each(work);
        } else {
            tasks.into_iter().for_each(work);
        }
        T::buffer(result)
    }
}

impl Segments {
    /// The first group of a task.
    fn cut(&self, total: usize, task: usize, groups: usize) -> usize {
        let wanted = total * task / TASKS;
        let (mut low, mut high) = (0, groups);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.start[middle] as usize + middle < wanted {
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
        let first = segments.start[groups.start] as usize;
        let rows = &segments.rows[first..segments.start[groups.end] as usize];
        // What is looked up by row stands in the order of the groups: many look-ups are on their way at a time, and the
        // slabs that come next are known.
        let scales: Vec<T> = match numbers {
            [] => Vec::new(),
            [one] => rows.iter().map(|row| constant * one.values[one.place(*row as usize)]).collect(),
            many => {
                let scale = |row: &u32| {
                    let places = many.iter().map(|part| part.values[part.place(*row as usize)]);
                    places.fold(constant, |scale, value| scale * value)
                };
                rows.iter().map(scale).collect()
            }
        };
        let places: Vec<usize> = match slabs {
            [one] => rows.iter().map(|row| one.place(*row as usize)).collect(),
            _ => Vec::new(),
        };
        for (to, group) in to.chunks_exact_mut(inner).zip(groups) {
            let own = segments.start[group] as usize - first..segments.start[group + 1] as usize - first;
            let rows = &rows[own.clone()];
            let scales = scales.get(own.clone()).unwrap_or_default();
            let mut column = 0;
            while column < inner {
                let places =
                    (places.get(own.clone()).unwrap_or_default(), places.get(own.end..).unwrap_or_default());
                let strip = Strip { scales, slabs, places, rows, column, constant };
                if inner - column >= STRIP {
                    strip.sum::<STRIP>(STRIP, &mut to[column..column + STRIP]);
                    column += STRIP;
                } else {
                    let width = NARROW.min(inner - column);
                    strip.sum::<NARROW>(width, &mut to[column..column + width]);
                    column += width;
                }
            }
        }
    }
}

/// Columns that are summed at once: their sums stay in registers.
const STRIP: usize = 64;
const NARROW: usize = 16;
/// So many rows ahead their slabs are asked for.
const AHEAD: usize = 6;

/// Some columns of one group.
struct Strip<'a, T: Number> {
    /// What each row is multiplied by; `constant`, if there is none.
    scales: &'a [T],
    slabs: &'a [Part<'a, T>],
    /// Where the slab of each row begins, if there is one, and of those behind them.
    places: (&'a [usize], &'a [usize]),
    rows: &'a [u32],
    column: usize,
    constant: T,
}

impl<T: Number> Strip<'_, T> {
    #[inline(always)]
    fn sum<const W: usize>(&self, width: usize, to: &mut [T]) {
        let mut sums = [T::ZERO; W];
        let mut total = [0.0; W];
        for (nth, row) in self.rows.iter().enumerate() {
            let row = *row as usize;
            if nth > 0 && nth % BLOCK == 0 {
                for (total, sum) in total.iter_mut().zip(&mut sums) {
                    *total += sum.double();
                    *sum = T::ZERO;
                }
            }
            let scale = self.scales.get(nth).copied().unwrap_or(self.constant);
            match self.slabs {
                [] => sums.iter_mut().for_each(|sum| *sum += scale),
                [one] => {
                    let (own, behind) = self.places;
                    let ahead = nth + AHEAD;
                    if let Some(next) = own.get(ahead).or_else(|| behind.get(ahead - own.len())) {
                        let line = 64 / size_of::<T>();
                        (0..W / line).for_each(|at| {
                            fetch_ahead(&one.values, next + self.column + at * line);
                        });
                    }
                    let from = own[nth] + self.column;
                    match one.values.get(from..from + W) {
                        Some(from) => (0..W).for_each(|at| sums[at] += scale * from[at]),
                        // The last columns of the last slab.
                        None => {
                            let from = &one.values[from..from + width];
                            sums.iter_mut().zip(from).for_each(|(sum, value)| *sum += scale * *value);
                        }
                    }
                }
                many => {
                    let mut product = [scale; W];
                    for part in many {
                        let from = part.place(row) + self.column;
                        let from = &part.values[from..from + width];
                        product.iter_mut().zip(from).for_each(|(slot, value)| *slot = *slot * *value);
                    }
                    sums[..width].iter_mut().zip(&product).for_each(|(sum, value)| *sum += *value);
                }
            }
        }
        if self.rows.len() > BLOCK {
            for (sum, total) in sums.iter_mut().zip(&total) {
                *sum = T::of(total + sum.double());
            }
        }
        to.copy_from_slice(&sums[..width]);
    }
}

impl<T: Number> Sum<'_, T> {
    /// Joins slabs otherwise than by their sum.
    fn fold(self) {
        let Sum { segments, slabs, groups, inner, to, .. } = self;
        let Some(slab) = slabs.first() else { return };
        for (to, group) in to.chunks_exact_mut(inner.max(1)).zip(groups) {
            to.fill(T::of(segments.folding.start()));
            let rows = segments.start[group] as usize..segments.start[group + 1] as usize;
            for row in &segments.rows[rows] {
                let from = slab.place(*row as usize);
                let values = &slab.values[from..from + inner];
                to.iter_mut().zip(values).for_each(|(slot, x)| *slot = segments.folding.join(*slot, *x));
            }
        }
    }
}
