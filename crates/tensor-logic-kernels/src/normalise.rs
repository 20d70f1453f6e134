//! softmax and lnorm of groups of entries.

use std::sync::Arc;

use rayon::prelude::*;
use smallvec::SmallVec;
use training::kernels::{Kernel, vectorised};

use super::array::{Array, Typed, Ways, known_or};
use super::number::{Buffer, NOTHING, Number, Pool, volume};
use super::point::Point;
use super::space::{Few, Space};
use super::threads::shared;
use super::values::{Each, Values};

/// softmax (without epsilon) or lnorm of groups of entries.
#[derive(Debug, Clone)]
pub struct Normalise {
    /// The entries.
    pub values: Point,
    /// Which are present: 1 or 0 over the same space; all, if there is none.
    pub present: Option<Point>,
    /// What is added to the variance, over the same space.
    pub epsilon: Option<Point>,
    /// How the entries lie, and which belong together.
    pub layout: Layout,
}

/// How the entries lie: rows, `kept` independent slots in each, `along` entries in each of these.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The group of each row, and how many there are; `None`: each row is one.
    pub groups: Option<(Arc<Vec<u32>>, usize)>,
    /// Slots in each row; each is normalised by itself.
    pub kept: usize,
    /// Entries in each slot.
    pub along: usize,
}

/// So many entries are one task.
const TASK: usize = 1 << 14;

impl Typed for Normalise {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.points().into_iter().for_each(|point| point.inputs(visit));
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        self.values.reads(visit);
        self.present.iter_mut().chain(&mut self.epsilon).for_each(|point| point.reads(visit));
    }

    fn is_even(&self) -> bool {
        let mut points =
            [Some(&self.values), self.present.as_ref(), self.epsilon.as_ref()].into_iter().flatten();
        self.layout.groups.is_none() && points.all(Typed::is_even)
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let mut result = pool.take::<T>(volume(&self.values.shape));
        self.normalise(&mut result, pool);
        T::buffer(result)
    }

    fn unsigned_zeros(&self) -> bool {
        // What softmax makes has no sign, and to what lnorm makes 0 is added.
        true
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(self.spaces()))
    }

    fn fused(self) -> Normalise {
        Normalise {
            values: self.values.taken_in(true).lean(),
            present: self.present.map(|point| point.taken_in(true).lean()),
            epsilon: self.epsilon.map(|point| point.taken_in(true).lean()),
            ..self
        }
    }

    fn is_free(&self) -> bool {
        self.layout.groups.is_none() && self.points().iter().all(|point| !point.truth)
    }

    fn run_on<T: Number>(&self, mut from: &[&[T]], to: &mut [T], ways: Option<&Ways>, _: bool, pool: &Pool) {
        let spaces = known_or(ways, || self.spaces());
        let mut more = SmallVec::new();
        for (nth, (point, space)) in self.points().into_iter().zip(spaces.iter()).enumerate() {
            let (own, others) = from.split_at(point.inputs.len().min(from.len()));
            from = others;
            let sources: Few<_> = point.sources_on(space, own).collect();
            if nth == 0 {
                point.evaluate_over(space, &sources, to, false, pool);
            } else {
                more.push(point.numbers(space, &sources, pool));
            }
        }
        self.groups(to, more, pool);
    }

    fn run_into<T: Number>(&self, to: &mut [T], _: Option<&Ways>, pool: &Pool) -> bool {
        self.normalise(to, pool);
        true
    }
}

impl Normalise {
    fn normalise<T: Number>(&self, result: &mut [T], pool: &Pool) {
        self.values.evaluate(result, false, pool);
        let mut more = SmallVec::new();
        for point in self.points().into_iter().skip(1) {
            let mut values = pool.take::<T>(result.len());
            point.evaluate(&mut values, false, pool);
            more.push(Values::Made(values));
        }
        self.groups(result, more, pool);
    }

    /// What is evaluated, normalised in place; behind it which entries are present, and epsilons.
    fn groups<T: Number>(&self, result: &mut [T], more: SmallVec<[Values<'_, T>; 2]>, pool: &Pool) {
        let len = result.len();
        let mut more = more.into_iter();
        let present =
            self.present.as_ref().and_then(|_| more.next()).map(|present| present.spread(len, pool));
        let epsilon = more.next();
        let along = self.layout.along;
        match &self.layout.groups {
            Some((groups, count)) => {
                let epsilon = epsilon.as_ref().map(|epsilon| epsilon.part(0..len));
                self.grouped(result, groups, *count, present.as_ref().map(Values::slice), epsilon);
            }
            None if along > 0 => {
                let task = shared(len, TASK);
                let rows = (task.unwrap_or(TASK) / along).max(1) * along;
                let work = |(nth, part): (usize, &mut [T])| {
                    let own = nth * rows..nth * rows + part.len();
                    let here = present.as_ref().and_then(|present| present.slice().get(own.clone()));
                    self.rows(part, here, epsilon.as_ref().map(|epsilon| epsilon.part(own)));
                };
                if task.is_some() {
                    result.par_chunks_mut(rows).enumerate().for_each(work);
                } else {
                    result.chunks_mut(rows).enumerate().for_each(work);
                }
            }
            None => {}
        }
        [present, epsilon].into_iter().flatten().for_each(|values| values.give(pool));
    }

    /// How the elementwise work goes through what it reads.
    fn spaces(&self) -> Vec<Space> {
        self.points().into_iter().map(|point| Space::new(&point.shape, &point.inputs, 0)).collect()
    }

    /// The elementwise work, in the order in which it is visited.
    pub(super) fn points(&self) -> SmallVec<[&Point; 3]> {
        [Some(&self.values), self.present.as_ref(), self.epsilon.as_ref()].into_iter().flatten().collect()
    }

    /// Some rows, each a group of its own, in place.
    pub(super) fn rows<T: Number>(
        &self,
        part: &mut [T],
        present: Option<&[T]>,
        epsilon: Option<Each<'_, T>>,
    ) {
        vectorised(Rows { part, along: self.layout.along, present, epsilon });
    }

    /// Entries of several rows together.
    fn grouped<T: Number>(
        &self,
        result: &mut [T],
        groups: &[u32],
        count: usize,
        present: Option<&[T]>,
        epsilon: Option<Each<'_, T>>,
    ) {
        let Layout { kept, along, .. } = self.layout;
        let here = |at: usize| present.is_none_or(|present| present[at] != T::ZERO);
        let slots = count * kept;
        let (mut counts, mut most) = (vec![0.0_f64; slots], vec![f64::NEG_INFINITY; slots]);
        let (mut means, mut sums) = (vec![0.0_f64; slots], vec![0.0_f64; slots]);
        let each = |visit: &mut dyn FnMut(usize, usize)| {
            for (row, group) in groups.iter().enumerate() {
                for k in 0..kept {
                    let at = (row * kept + k) * along;
                    (at..at + along)
                        .filter(|at| here(*at))
                        .for_each(|at| visit(*group as usize * kept + k, at));
                }
            }
        };
        each(&mut |slot, at| {
            let value = result[at].double();
            counts[slot] += 1.0;
            most[slot] = most[slot].max(value);
            means[slot] += value;
        });
        match epsilon {
            None => {
                each(&mut |slot, at| {
                    // One entry alone is 1, also an infinite one.
                    let power = (result[at].double() - most[slot]).exp();
                    result[at] = if counts[slot] == 1.0 { T::ONE } else { T::of(power) };
                    sums[slot] += result[at].double();
                });
                each(&mut |slot, at| result[at] = T::of(result[at].double() / sums[slot]));
            }
            Some(epsilon) => {
                means.iter_mut().zip(&counts).for_each(|(mean, count)| *mean /= count);
                // Of large numbers that are equal a mean may miss the last digit: what is left of it is added.
                let mut left = vec![0.0_f64; slots];
                each(&mut |slot, at| left[slot] += result[at].double() - means[slot]);
                let corrected = means.iter_mut().zip(&left).zip(&counts);
                corrected.for_each(|((mean, left), count)| *mean += left / count);
                each(&mut |slot, at| {
                    let difference = result[at].double() - means[slot];
                    sums[slot] += difference * difference;
                });
                each(&mut |slot, at| {
                    let variance = sums[slot] / counts[slot];
                    let root = (variance + epsilon.at(at).double()).sqrt();
                    result[at] = T::of((result[at].double() - means[slot]) / root) + T::ZERO;
                });
            }
        }
    }
}

/// Rows of `along` entries, each a group of its own.
struct Rows<'a, T> {
    part: &'a mut [T],
    along: usize,
    present: Option<&'a [T]>,
    epsilon: Option<Each<'a, T>>,
}

impl<T: Number> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Rows { part, along, present, epsilon } = self;
        if epsilon.is_none() && present.is_none() {
            match along {
                2 => return short::<2, T>(part),
                3 => return short::<3, T>(part),
                4 => return short::<4, T>(part),
                5 => return short::<5, T>(part),
                6 => return short::<6, T>(part),
                7 => return short::<7, T>(part),
                8 => return short::<8, T>(part),
                _ => {}
            }
        }
        for (nth, row) in part.chunks_exact_mut(along).enumerate() {
            let range = nth * along..(nth + 1) * along;
            let here = present.map(|present| &present[range.clone()]);
            match (epsilon, here) {
                (None, None) => softmax(row),
                (None, Some(here)) => masked_softmax(row, here),
                (Some(epsilon), here) => lnorm(row, here, epsilon.part(range)),
            }
        }
    }
}

/// So many entries of short rows are done together: to begin a row takes as long as some of them.
const TOGETHER: usize = 256;

/// Softmax of rows of so many entries, in place, with the bits of each by itself.
#[inline(always)]
fn short<const ALONG: usize, T: Number>(part: &mut [T]) {
    let some = TOGETHER / ALONG * ALONG;
    for block in part.chunks_mut(some) {
        let mut beside = [T::ZERO; TOGETHER];
        let beside = &mut beside[..block.len()];
        let mut usual = true;
        for (row, beside) in block.as_chunks::<ALONG>().0.iter().zip(beside.as_chunks_mut::<ALONG>().0) {
            let (mut most, mut least) = (T::of(f64::NEG_INFINITY), T::of(f64::INFINITY));
            for value in row {
                most = if *value > most { *value } else { most };
                least = if *value < least { *value } else { least };
            }
            let near = T::LEAST == f64::NEG_INFINITY || (least - most).double() >= T::LEAST;
            usual &= most.finite() & near;
            *beside = [most; ALONG];
        }
        if !usual {
            block.as_chunks_mut::<ALONG>().0.iter_mut().for_each(|row| softmax(row));
            continue;
        }
        block.iter_mut().zip(&*beside).for_each(|(value, most)| *value = (*value - *most).exp_below_zero());
        for (row, beside) in block.as_chunks::<ALONG>().0.iter().zip(beside.as_chunks_mut::<ALONG>().0) {
            *beside = [row.iter().fold(T::ZERO, |sum, value| sum + *value); ALONG];
        }
        block.iter_mut().zip(&*beside).for_each(|(value, sum)| *value = share(*value, *sum));
    }
}

/// What a power is of a sum of at least 1.
#[inline(always)]
fn share<T: Number>(power: T, sum: T) -> T {
    // To divide doubles takes as long as half of their exponentials.
    if size_of::<T>() == 4 { power / sum } else { power * (T::ONE / sum) }
}

/// Softmax of a row, in place.
#[inline(always)]
fn softmax<T: Number>(row: &mut [T]) {
    if let [one] = row {
        // One entry alone is 1, also an infinite one.
        *one = T::ONE;
        return;
    }
    let most = extreme(row, f64::NEG_INFINITY, |value, most| value > most);
    // How far down the others are makes no difference to numbers of 32 bits.
    let far = T::LEAST > f64::NEG_INFINITY || !most.finite();
    let least = if far { extreme(row, f64::INFINITY, |value, least| value < least) } else { most };
    exponentials(row, most, least);
    let sum = sum(row);
    row.iter_mut().for_each(|value| *value = share(*value, sum));
}

/// The number beyond all others, in sixteen lanes; those that are none are passed over.
#[inline(always)]
fn extreme<T: Number>(row: &[T], start: f64, beyond: impl Fn(T, T) -> bool) -> T {
    let mut lanes = [T::of(start); 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for chunk in chunks {
        for lane in 0..16 {
            lanes[lane] = if beyond(chunk[lane], lanes[lane]) { chunk[lane] } else { lanes[lane] };
        }
    }
    let mut width = 8;
    while width > 0 {
        for lane in 0..width {
            let other = lanes[lane + width];
            lanes[lane] = if beyond(other, lanes[lane]) { other } else { lanes[lane] };
        }
        width /= 2;
    }
    rest.iter().fold(lanes[0], |all, value| if beyond(*value, all) { *value } else { all })
}

#[inline(always)]
fn exponentials<T: Number>(row: &mut [T], most: T, least: T) {
    if (least - most).double() >= T::LEAST {
        row.iter_mut().for_each(|value| *value = (*value - most).exp_below_zero());
        return;
    }
    // What is taken far down, as a mask of attention does, is nothing; in between exponentials lose digits.
    let between = |value: &T| (NOTHING..T::LEAST).contains(&(*value - most).double());
    if row.iter().fold(false, |any, value| any | between(value)) {
        row.iter_mut().for_each(|value| *value = T::of((*value - most).double().exp()));
        return;
    }
    for value in row {
        let exponent = *value - most;
        let below = exponent.double() < NOTHING;
        let power = (if below { T::ZERO } else { exponent }).exp_below_zero();
        *value = if below { T::ZERO } else { power };
    }
}

#[inline(always)]
fn masked_softmax<T: Number>(row: &mut [T], here: &[T]) {
    let mut count = 0;
    let mut most = T::of(f64::NEG_INFINITY);
    let mut least = T::of(f64::INFINITY);
    for (value, here) in row.iter_mut().zip(here) {
        if *here == T::ZERO {
            *value = T::of(f64::NEG_INFINITY);
        } else {
            count += 1;
            most = if *value > most { *value } else { most };
            least = if *value < least { *value } else { least };
        }
    }
    if count == 1 {
        row.iter_mut().zip(here).for_each(|(value, here)| *value = *here);
        return;
    }
    exponentials(row, most, least);
    // What is absent adds nothing, whatever the exponential made of it.
    row.iter_mut()
        .zip(here)
        .for_each(|(value, here)| *value = if *here == T::ZERO { T::ZERO } else { *value });
    // To divide takes as long as some of the exponential; the sum is at least 1.
    let share = T::ONE / sum(row);
    row.iter_mut().for_each(|value| *value = *value * share);
}

#[inline(always)]
fn lnorm<T: Number>(row: &mut [T], here: Option<&[T]>, epsilon: Each<'_, T>) {
    if let (None, Some(first)) = (here, epsilon.same()) {
        let count = row.len() as f64;
        let mean = wide_sum(row, |value| value) / count;
        // Of large numbers that are equal a mean may miss the last digit: what is left of it is added.
        let mean = mean + wide_sum(row, |value| value - mean) / count;
        let squares = wide_sum(row, |value| (value - mean) * (value - mean));
        let root = (squares / count + first.double()).sqrt();
        row.iter_mut().for_each(|value| *value = T::of((value.double() - mean) / root) + T::ZERO);
        return;
    }
    let here = |at: usize| here.is_none_or(|here| here[at] != T::ZERO);
    let present = || row.iter().enumerate().filter(|(at, _)| here(*at)).map(|(_, value)| value.double());
    let count = present().count() as f64;
    let mean = present().sum::<f64>() / count;
    let mean = mean + present().map(|value| value - mean).sum::<f64>() / count;
    let squares: f64 = present().map(|value| (value - mean) * (value - mean)).sum();
    // One root serves all entries with the same epsilon.
    let (mut last, mut root) = (f64::NAN, f64::NAN);
    for (at, value) in row.iter_mut().enumerate() {
        let epsilon = epsilon.at(at).double();
        if epsilon != last {
            (last, root) = (epsilon, (squares / count + epsilon).sqrt());
        }
        *value = T::of((value.double() - mean) / root) + T::ZERO;
    }
}

/// A sum of 64 bits in eight lanes.
#[inline(always)]
pub(super) fn wide_sum<T: Number>(values: &[T], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            lanes[lane] += of(chunk[lane].double());
        }
    }
    rest.iter().fold(across(lanes), |sum, value| sum + of(value.double()))
}

/// The sum of eight lanes, by halves: one behind the other they would wait for each other.
#[inline(always)]
pub(super) fn across(lanes: [f64; 8]) -> f64 {
    let mut four = [0.0; 4];
    (0..4).for_each(|lane| four[lane] = lanes[lane] + lanes[lane + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// A sum in sixteen lanes.
#[inline(always)]
fn sum<T: Number>(values: &[T]) -> T {
    let mut lanes = [T::ZERO; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for lane in 0..16 {
            lanes[lane] += chunk[lane];
        }
    }
    lanes.iter().chain(rest).fold(T::ZERO, |sum, value| sum + *value)
}
