//! Rows put elsewhere, where not every place gets one.

use std::sync::Arc;

use super::array::{Array, Typed};
use super::number::{Buffer, Number, Pool};
use super::space::buffers;

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

    fn run<T: Number>(&self, pool: &Pool) -> Buffer {
        let buffer = buffers(std::iter::once(&self.from)).remove(0);
        if let Buffer::Truths(truths) = &buffer {
            return Buffer::Truths(Arc::new(self.moved(truths, false, Vec::new())));
        }
        match T::slice(&buffer) {
            Some(values) => T::buffer(self.moved(values, T::ZERO, pool.take(0))),
            None => T::buffer(self.moved(&buffer.numbers(), T::ZERO, pool.take(0))),
        }
    }
}

impl Slabs {
    fn moved<E: Copy>(&self, values: &[E], zero: E, mut to: Vec<E>) -> Vec<E> {
        to.reserve(self.positions.len() * self.inner);
        for at in self.positions.iter() {
            let from = *at as usize * self.inner;
            match values.get(from..from + self.inner).filter(|_| *at != NOWHERE) {
                Some(slab) => to.extend_from_slice(slab),
                None => to.resize(to.len() + self.inner, zero),
            }
        }
        to
    }
}
