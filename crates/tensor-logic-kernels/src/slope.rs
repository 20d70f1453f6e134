//! The adjoint of lnorm along rows.

use rayon::prelude::*;
use smallvec::SmallVec;
use training::kernels::{Kernel, vectorised};

use super::array::{Array, Typed, Ways, known_or};
use super::normalise::{across, wide_sum};
use super::number::{Buffer, Number, Pool, volume};
use super::point::Point;
use super::space::{Source, Space, buffers};
use super::threads::shared;
use super::values::Each;

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

/// What all parts read: lists of their own would be moved about as long as a small row takes.
type Sources<'a, T> = SmallVec<[Source<'a, T>; 8]>;

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
        self.evaluate_whole(&mut result, pool);
        T::buffer(result)
    }

    fn ways(&self) -> Option<Ways> {
        Some(Box::new(self.spaces()))
    }

    fn run_into<T: Number>(&self, to: &mut [T], _: Option<&Ways>, pool: &Pool) -> bool {
        self.evaluate_whole(to, pool);
        true
    }

    fn fused(self) -> LnormSlope {
        let LnormSlope { argument, incoming, result, epsilon, along } = self;
        let [argument, incoming, result, epsilon] = [argument, incoming, result, epsilon].map(Point::fused);
        LnormSlope { argument, incoming, result, epsilon, along }
    }

    fn is_free(&self) -> bool {
        self.points().into_iter().all(|point| !point.truth)
    }

    fn run_on<T: Number>(&self, mut from: &[&[T]], to: &mut [T], ways: Option<&Ways>, _: bool, pool: &Pool) {
        let spaces = known_or(ways, || self.spaces());
        let mut sources = SmallVec::new();
        for (point, space) in self.points().into_iter().zip(spaces.iter()) {
            let (own, others) = from.split_at(point.inputs.len().min(from.len()));
            from = others;
            sources.extend(point.sources_on(space, own));
        }
        self.evaluate(to, &spaces, &sources, pool);
    }
}

impl LnormSlope {
    fn points(&self) -> [&Point; 4] {
        [&self.argument, &self.incoming, &self.result, &self.epsilon]
    }

    fn spaces(&self) -> [Space; 4] {
        self.points().map(|point| Space::new(&point.shape, &point.inputs, 0))
    }

    fn evaluate_whole<T: Number>(&self, to: &mut [T], pool: &Pool) {
        let (points, spaces) = (self.points(), self.spaces());
        let buffers = points.map(|point| buffers(point.inputs.iter().map(|view| &view.array)));
        let each = points.iter().zip(&spaces).zip(&buffers);
        let sources = each.flat_map(|((point, space), buffers)| point.sources(space, buffers)).collect();
        self.evaluate(to, &spaces, &sources, pool);
    }

    /// What the parts read, in the order in which it is visited.
    fn evaluate<T: Number>(&self, to: &mut [T], spaces: &[Space; 4], sources: &Sources<'_, T>, pool: &Pool) {
        let (len, mut rest) = (to.len(), sources.as_slice());
        let parts = self.points().map(|point| {
            let (own, others) = rest.split_at(point.inputs.len().min(rest.len()));
            rest = others;
            own
        });
        let numbers = |nth: usize| self.points()[nth].numbers(&spaces[nth], parts[nth], pool);
        let (argument, result, epsilon) =
            (numbers(0).spread(len, pool), numbers(2).spread(len, pool), numbers(3));
        self.incoming.evaluate_over(&spaces[1], parts[1], to, false, pool);
        let along = self.along;
        let task = shared(len, TASK);
        let rows = task.unwrap_or(TASK).checked_div(along).map_or(1, |rows| rows.max(1) * along);
        let work = |(nth, to): (usize, &mut [T])| {
            let own = nth * rows..nth * rows + to.len();
            let [argument, result] = [&argument, &result].map(|part| &part.slice()[own.clone()]);
            let epsilon = epsilon.part(own);
            vectorised(Rows { to, argument, result, epsilon, along });
        };
        if along == 0 {
            // There is no entry.
        } else if task.is_some() {
            to.par_chunks_mut(rows).enumerate().for_each(work);
        } else {
            to.chunks_mut(rows).enumerate().for_each(work);
        }
        [argument, result, epsilon].into_iter().for_each(|part| part.give(pool));
    }
}

/// Rows, in place of what comes down to them.
struct Rows<'a, T> {
    to: &'a mut [T],
    argument: &'a [T],
    result: &'a [T],
    epsilon: Each<'a, T>,
    along: usize,
}

impl<T: Number> Kernel for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Rows { to, argument, result, epsilon, along } = self;
        let rows = argument.chunks_exact(along).zip(result.chunks_exact(along)).enumerate();
        for (to, (nth, (x, y))) in to.chunks_exact_mut(along).zip(rows) {
            let epsilon = epsilon.part(nth * along..(nth + 1) * along);
            let count = along as f64;
            let mean = wide_sum(x, |value| value) / count;
            // As in lnorm itself: of large numbers that are equal a mean may miss the last digit.
            let mean = mean + wide_sum(x, |value| value - mean) / count;
            let variance = wide_sum(x, |value| (value - mean) * (value - mean)) / count;
            let incoming = wide_sum(to, |value| value) / count;
            let product = wide_product(to, y) / count;
            let root = |epsilon: T| (variance + epsilon.double()).sqrt();
            let of = |slot: T, y: T, root: f64| {
                let centred = slot.double() - incoming - y.double() * product;
                T::of(centred / root) + T::ZERO
            };
            match epsilon.same() {
                Some(epsilon) => {
                    let root = root(epsilon);
                    to.iter_mut().zip(y).for_each(|(slot, y)| *slot = of(*slot, *y, root));
                }
                None => {
                    let all = to.iter_mut().zip(y).enumerate();
                    all.for_each(|(at, (slot, y))| *slot = of(*slot, *y, root(epsilon.at(at))));
                }
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
    rest.fold(across(lanes), |sum, (a, b)| sum + a.double() * b.double())
}
