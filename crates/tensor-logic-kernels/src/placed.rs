//! Arrays put at places of a larger one, each element at a place of its own.

use std::sync::Arc;

use rayon::prelude::*;
use training::kernels::{Kernel, vectorised};

use super::array::{Along, Array, Typed, cut};
use super::number::{Buffer, Number, Pool, volume};
use super::space::{advance, buffers};
use super::threads::shared;

/// The sum of arrays that are spread over a larger one, and of an array as large as it.
#[derive(Debug, Clone)]
pub struct Placed {
    /// How many elements the whole has.
    pub len: usize,
    /// What the others are added to; zeros, if there is none.
    pub base: Option<Array>,
    /// What is added, and where.
    pub parts: Vec<(Array, Places)>,
}

/// Where the elements of a row-major space go: no two to the same place.
#[derive(Debug, Clone)]
pub struct Places {
    /// Where the first goes.
    pub offset: usize,
    /// The sizes of the space.
    pub shape: Arc<[usize]>,
    /// The step along each dimension.
    pub steps: Arc<[usize]>,
}

/// So many elements are one task.
const TASK: usize = 1 << 16;

impl Typed for Placed {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        self.base.iter().chain(self.parts.iter().map(|(array, _)| array)).for_each(visit);
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        let parts = self.parts.iter_mut().map(|(array, _)| array);
        self.base.iter_mut().chain(parts).for_each(|array| visit(array, None));
    }

    // Where its parts go may move from step to step.
    fn is_even(&self) -> bool {
        false
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let mut result = pool.take::<T>(self.len);
        match &self.base {
            None => result.fill(T::ZERO),
            Some(base) => typed::<T>(base, |values| result.copy_from_slice(values)),
        }
        for (array, places) in &self.parts {
            typed::<T>(array, |values| places.join(&mut result, values, |slot, value| *slot += value));
        }
        T::buffer(result)
    }
}

/// The entries of an array that is there, as numbers of a type.
fn typed<T: Number>(array: &Array, then: impl FnOnce(&[T])) {
    let buffer = buffers(std::iter::once(array)).remove(0);
    match T::slice(&buffer) {
        Some(values) => then(values),
        None => then(&buffer.numbers()),
    }
}

impl Placed {
    /// One more array put into another, as one operation where nobody else reads that one.
    pub fn onto(base: Option<Array>, len: usize, part: (Array, Places)) -> Placed {
        match base.as_ref().and_then(Array::own::<Placed>) {
            Some(mut placed) => {
                placed.parts.push(part);
                placed
            }
            None => Placed { len, base, parts: vec![part] },
        }
    }
}

impl Places {
    /// The same for `to` of the `lanes` equal parts in which the elements lie one behind the other, and how these parts lie where
    /// they go.
    pub fn cut(&self, lanes: usize, to: usize) -> Option<(Places, Along)> {
        let mut shape = self.shape.to_vec();
        let along = cut(&mut shape, std::iter::once(&self.steps[..]), (lanes, to))?.pop()?;
        Some((Places { shape: shape.into(), ..self.clone() }, along))
    }

    /// Joins values, in order, with what stands where they go.
    pub fn join<T: Number>(&self, to: &mut [T], values: &[T], join: impl Fn(&mut T, T) + Sync) {
        self.join_from(self.offset, to, values, &join);
    }

    /// The same for as many rows of values as there are offsets: each goes so far behind `offset`, or nowhere if that is below 0.
    pub fn join_rows<T: Number>(
        &self,
        offsets: &[i64],
        to: &mut [T],
        values: &[T],
        join: impl Fn(&mut T, T) + Sync,
    ) {
        let inner = volume(&self.shape).max(1);
        for (row, offset) in values.chunks_exact(inner).zip(offsets) {
            if let Ok(offset) = usize::try_from(*offset) {
                self.join_from(self.offset + offset, to, row, &join);
            }
        }
    }

    fn join_from<T: Number>(
        &self,
        offset: usize,
        to: &mut [T],
        values: &[T],
        join: &(impl Fn(&mut T, T) + Sync),
    ) {
        let Some((inner, outer)) = self.shape.split_last() else {
            let slot = to.get_mut(offset);
            slot.into_iter().zip(values).for_each(|(slot, value)| join(slot, *value));
            return;
        };
        if *inner == 0 {
            return;
        }
        let step = self.steps[outer.len()].max(1);
        let mut places = vec![0; outer.len()];
        for run in values.chunks_exact(*inner) {
            let from: usize = places.iter().zip(&*self.steps).map(|(place, step)| place * step).sum();
            let to = &mut to[offset + from..];
            if step == 1 {
                along(&mut to[..run.len()], run, join);
            } else {
                to.iter_mut().step_by(step).zip(run).for_each(|(slot, value)| join(slot, *value));
            }
            advance(outer, &mut places);
        }
    }
}

/// Fewer values are joined as they stand: to ask for the widest registers takes as long.
const WIDE: usize = 64;

struct Joined<'a, T, J> {
    to: &'a mut [T],
    values: &'a [T],
    join: &'a J,
}

impl<T: Copy, J: Fn(&mut T, T)> Kernel for Joined<'_, T, J> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.iter_mut().zip(self.values).for_each(|(slot, value)| (self.join)(slot, *value));
    }
}

/// Joins values with as many slots in order.
pub fn along<T: Number>(to: &mut [T], values: &[T], join: &(impl Fn(&mut T, T) + Sync)) {
    let work = |(to, values): (&mut [T], &[T])| match to.len() {
        ..WIDE => to.iter_mut().zip(values).for_each(|(slot, value)| join(slot, *value)),
        _ => vectorised(Joined { to, values, join }),
    };
    match shared(to.len(), TASK) {
        Some(task) => to.par_chunks_mut(task).zip(values.par_chunks(task)).for_each(work),
        None => work((to, values)),
    }
}
