//! Operations that are done again and again, on other arrays or other parts of the same, without being described anew.

use super::array::{Array, Operation};
use super::number::{Buffer, Pool, Precision};

/// An operation whose arrays are put in before it is done.
#[derive(Debug)]
pub struct Recorded {
    operation: Box<dyn Operation>,
    len: usize,
}

impl Recorded {
    /// The operation that an array waits for.
    pub fn of(array: &Array) -> Option<Recorded> {
        Some(Recorded { operation: array.operation()?.copy(), len: array.len() })
    }

    /// Whether every place that it reads follows from steps alone, so that it is moved by where its views begin.
    pub fn is_even(&self) -> bool {
        self.operation.is_even()
    }

    /// Visits the arrays that it reads, and where it begins in those that it reads by steps.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        self.operation.reads(visit);
    }

    /// Does it.
    pub fn run(&self, precision: Precision, pool: &Pool) -> Buffer {
        self.operation.run(precision, pool)
    }

    /// What it makes of these arrays, in the order in which it visits them: an array that waits for it.
    pub fn waiting(&self, arrays: impl IntoIterator<Item = Array>) -> Array {
        let mut operation = self.operation.copy();
        let mut arrays = arrays.into_iter();
        operation.reads(&mut |array, _| {
            if let Some(other) = arrays.next() {
                *array = other;
            }
        });
        Array::waits(self.len, operation.into())
    }
}
