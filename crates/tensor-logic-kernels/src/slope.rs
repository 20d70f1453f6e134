//! The adjoint of lnorm along rows.

use rayon::prelude::*;
use training::kernels::{Kernel, vectorised};

use super::array::{Array, Typed, Ways, known_or};
use super::normalise::wide_sum;
use super::number::{Buffer, Number, Pool, volume};
use super::point::Point;
use super::space::Space;

/// `(q - mean(q) - y mean(q y)) / sqrt(var(x) + eps)` with means along rows of `along` entries: what comes down to the
/// argument x of lnorm, where q comes down to its result y. All of them are over the same space.
#[derive(Debug, Clone)]
pub struct LnormSlope {
    /// x
    pub argument: Point,
    /// q
    pub incoming: Point,
    /// y
    pub result: Point,
    /// What is added to the variance.
    pub epsilon: Point,
    /// Entries of a row.
    pub along: usize,
}

/// So many entries are one task.
const TASK: usize = 1 << 14;

impl Typed for LnormSlope {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.points().into_iter().for_each(|point| point.inputs(visit));
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        [&mut self.argument, &mut self.incoming, &mut self.result, &mut self.epsilon]
            .into_iter()
            .for_each(|point| point.reads(visit));
    }

    fn is_even(&self) -> bool {
        self.points().into_iter().all(Typed::is_even)
    }

    fn unsigned_zeros(&self) -> bool {
        true
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let mut result = pool.take::<T>(volume(&self.argument.shape));
        self.evaluate(&mut result, &mut |point, to| point.evaluate(to, false, pool), pool);
        T::buffer(result)
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(self.spaces()))
    }

    fn run_into<T: Number>(&self, to: &mut [T], _: Option<&Ways>, pool: &Pool) -> bool {
        self.evaluate(to, &mut |point, to| point.evaluate(to, false, pool), pool);
        true
    }

    fn is_free(&self) -> bool {
        self.points().into_iter().all(|point| !point.truth)
    }

    fn run_on<T: Number>(&self, mut from: &[&[T]], to: &mut [T], ways: Option<&Ways>, _: bool, pool: &Pool) {
        let spaces = known_or(ways, || self.spaces());
        let mut spaces = spaces.iter();
        let mut one = |point: &Point, to: &mut [T]| {
            let Some(space) = spaces.next() else { return };
            let (own, others) = from.split_at(point.inputs.len().min(from.len()));
            from = others;
            point.evaluate_over(space, &point.sources_on(space, own), to, false, pool);
        };
        self.evaluate(to, &mut one, pool);
    }
}

impl LnormSlope {
    fn points(&self) -> [&Point; 4] {
        [&self.argument, &self.incoming, &self.result, &self.epsilon]
    }

    fn spaces(&self) -> Vec<Space> {
        self.points().into_iter().map(|point| Space::new(&point.shape, &point.inputs, 0)).collect()
    }

    /// Each part is computed by `one`, in the order in which they are visited.
    fn evaluate<T: Number>(&self, to: &mut [T], one: &mut dyn FnMut(&Point, &mut [T]), pool: &Pool) {
        let mut parts = [0; 3].map(|_| pool.take::<T>(to.len()));
        let [argument, result, epsilon] = &mut parts;
        one(&self.argument, argument);
        one(&self.incoming, to);
        one(&self.result, result);
        one(&self.epsilon, epsilon);
        let along = self.along;
        let rows = TASK.checked_div(along).map_or(1, |rows| rows.max(1) * along);
        let work = |(nth, to): (usize, &mut [T])| {
            let own = nth * rows..nth * rows + to.len();
            let [argument, result, epsilon] = parts.each_ref().map(|part| &part[own.clone()]);
            vectorised(Rows { to, argument, result, epsilon, along });
        };
        if along == 0 {
            // There is no entry.
        } else if to.len() > 2 * TASK && rayon::current_num_threads() > 1 {
            to.par_chunks_mut(rows).enumerate().for_each(work);
        } else {
            to.chunks_mut(rows).enumerate().for_each(work);
        }
        parts.into_iter().for_each(|part| pool.give(part));
    }
}

/// Rows, in place of what comes down to them.
struct Rows<'a, T> {
    to: &'a mut [T],
    argument: &'a [T],
    result: &'a [T],
    epsilon: &'a [T],
    along: usize,
}

impl<T: Number> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Rows { to, argument, result, epsilon, along } = self;
        let rows = argument.chunks_exact(along).zip(result.chunks_exact(along));
        let rows = rows.zip(epsilon.chunks_exact(along));
        for (to, ((x, y), epsilon)) in to.chunks_exact_mut(along).zip(rows) {
            let count = along as f64;
            let mean = wide_sum(x, |value| value) / count;
            // As in lnorm itself: of large numbers that are equal a mean may miss the last digit.
            let mean = mean + wide_sum(x, |value| value - mean) / count;
            let variance = wide_sum(x, |value| (value - mean) * (value - mean)) / count;
            let incoming = wide_sum(to, |value| value) / count;
            let product = wide_product(to, y) / count;
            let even = epsilon.iter().all(|other| *other == epsilon[0]);
            let root = (variance + epsilon[0].double()).sqrt();
            for ((slot, y), epsilon) in to.iter_mut().zip(y).zip(epsilon) {
                let root = if even { root } else { (variance + epsilon.double()).sqrt() };
                let centred = slot.double() - incoming - y.double() * product;
                *slot = T::of(centred / root) + T::ZERO;
            }
        }
    }
}

/// A sum of products of 64 bits in eight lanes.
#[inline(always)]
fn wide_product<T: Number>(a: &[T], b: &[T]) -> f64 {
    let mut lanes = [0.0; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            lanes[lane] += a[lane].double() * b[lane].double();
        }
    }
    let rest = a_rest.iter().zip(b_rest);
    rest.fold(lanes.iter().sum(), |sum, (a, b)| sum + a.double() * b.double())
}
