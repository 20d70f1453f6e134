//! Rows put elsewhere, where not every place gets one.

use std::sync::Arc;

use rayon::prelude::*;

use super::array::{Array, Typed};
use super::number::{Buffer, Number, Pool};
use super::space::buffers;
use super::threads::shared;

/// No row.
pub const NOWHERE: u32 = u32::MAX;

/// For each position a slab of an array, zeros where there is none.
#[derive(Debug, Clone)]
pub struct Slabs {
    /// Slabs one behind the other.
    pub from: Array,
    /// Which slab stands where.
    pub positions: Arc<Vec<u32>>,
    /// The length of a slab.
    pub inner: usize,
}

impl Typed for Slabs {
    fn inputs(&self, visit: &mut dyn FnMut(&Array)) {
        visit(&self.from);
    }

    fn reads(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        visit(&mut self.from, None);
    }

    fn is_even(&self) -> bool {
        false
    }

    fn copies(&self) -> bool {
        let count = self.positions.len();
        self.from.len() == count * self.inner && self.positions.iter().copied().eq(0..count as u32)
    }

    fn may_be_truths(&self) -> bool {
        true
    }

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let buffer = buffers(std::iter::once(&self.from)).remove(0);
        let len = self.positions.len() * self.inner;
        if let Buffer::Truths(truths) = &buffer {
            let mut result = vec![false; len];
            self.moved(truths, false, &mut result);
            return Buffer::Truths(Arc::new(result));
        }
        let mut result = pool.take::<T>(len);
        match T::slice(&buffer) {
            Some(values) => self.moved(values, T::ZERO, &mut result),
            None => self.moved(&buffer.numbers(), T::ZERO, &mut result),
        }
        T::buffer(result)
    }
}

/// So many entries are one task.
const TASK: usize = 1 << 15;

impl Slabs {
    fn moved<E: Copy + Send + Sync>(&self, values: &[E], zero: E, to: &mut [E]) {
        let inner = self.inner;
        if inner == 0 {
            return;
        }
        let work = |(to, positions): (&mut [E], &[u32])| {
            if inner == 1 {
                let pairs = to.iter_mut().zip(positions);
                pairs.for_each(|(slot, at)| *slot = values.get(*at as usize).copied().unwrap_or(zero));
                return;
            }
            for (to, at) in to.chunks_exact_mut(inner).zip(positions) {
                let from = (*at as usize).saturating_mul(inner);
                match values.get(from..from.saturating_add(inner)) {
                    Some(slab) => to.copy_from_slice(slab),
                    None => to.fill(zero),
                }
            }
        };
        match shared(to.len(), TASK) {
            Some(task) => {
                let each = (task / inner).max(1);
                to.par_chunks_mut(each * inner).zip(self.positions.par_chunks(each)).for_each(work);
            }
            None => work((to, &self.positions)),
        }
    }
}
