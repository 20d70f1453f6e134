//! Operations that are done again and again, on other arrays or other parts of the same, without being described anew.

use std::sync::{Arc, OnceLock};

use tensor_logic_core::engine::Numbers;

use super::array::{Along, Array, Known, Operation, Ways};
use super::number::{Buffer, Number, Pool, Precision};

/// An operation whose arrays are put in before it is done.
#[derive(Debug)]
pub struct Recorded {
    operation: Box<dyn Operation>,
    len: usize,
    ways: OnceLock<Option<Ways>>,
}

impl Recorded {
    /// The operation that an array waits for.
    pub fn of(array: &Array) -> Option<Recorded> {
        let operation = array.operation()?.copy();
        Some(Recorded { operation, len: array.len(), ways: OnceLock::new() })
    }

    /// Whether every place that it reads follows from steps alone, so that it is moved by where its views begin.
    pub fn is_even(&self) -> bool {
        self.operation.is_even()
    }

    /// Visits the arrays that it reads, and where it begins in those that it reads by steps.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut Array, Option<&mut usize>)) {
        self.operation.reads(visit);
    }

    fn ways(&self) -> Option<&Ways> {
        self.ways.get_or_init(|| self.operation.ways()).as_ref()
    }

    /// Does it.
    pub fn run(&self, precision: Precision, pool: &Pool) -> Buffer {
        let Some(ways) = self.ways() else { return self.operation.run(precision, pool) };
        match precision {
            Precision::Double => {
                let mut to = pool.take(self.len);
                if self.operation.run_doubles(&mut to, Some(ways), pool) {
                    return f64::buffer(to);
                }
                pool.give(to);
            }
            Precision::Single => {
                let mut to = pool.take(self.len);
                if self.operation.run_singles(&mut to, Some(ways), pool) {
                    return f32::buffer(to);
                }
                pool.give(to);
            }
        }
        self.operation.run(precision, pool)
    }

    /// Does it; the bits are those of an operation that is described anew.
    pub(super) fn run_again(&self, precision: Precision, pool: &Pool) -> Buffer {
        self.operation.run_along(precision, self.ways(), pool)
    }

    /// Does it where its results belong, from an entry of an array on, if it can; then no result is -0.
    pub fn run_into(&self, to: &mut Buffer, from: usize, pool: &Pool) -> bool {
        let places = from..from.saturating_add(self.len);
        match to {
            Buffer::Numbers(Numbers::Double(values)) => {
                let to = Arc::make_mut(values).get_mut(places);
                to.is_some_and(|to| self.operation.run_doubles(to, self.ways(), pool))
            }
            Buffer::Numbers(Numbers::Single(values)) => {
                let to = Arc::make_mut(values).get_mut(places);
                to.is_some_and(|to| self.operation.run_singles(to, self.ways(), pool))
            }
            Buffer::Truths(_) => false,
        }
    }

    /// The number of results.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether [`Recorded::run_on`] does it.
    pub fn is_free(&self) -> bool {
        self.operation.is_free()
    }

    /// Does it on entries that stand anywhere, in the order of the visits: those from where it begins in an array on.
    /// No result is -0.
    pub fn run_on<T: Number>(&self, from: &[&[T]], to: &mut [T], pool: &Pool) {
        self.operation.run_on(T::on(from, to), self.ways(), true, pool);
    }

    /// The second array in the order in which it is read, where [`Recorded::run_on`] takes that behind the others: it saves to
    /// bring an array that stays the same in order each time.
    pub fn ordered<T: Number>(&self, from: &[&[T]], pool: &Pool) -> Option<Vec<T>> {
        let precision = if size_of::<T>() == 4 { Precision::Single } else { Precision::Double };
        let mut to = pool.take(self.operation.ordered(precision)?);
        self.operation.order(T::on(from, &mut to));
        Some(to)
    }

    /// The same on `to` of the `lanes` equal parts in which its results lie one behind the other, to the bit, and for each array
    /// that it reads how these parts lie there.
    pub fn cut(&self, lanes: usize, to: usize) -> Option<(Recorded, Vec<Along>)> {
        let (operation, along) = self.operation.cut(lanes, to)?;
        Some((Recorded { operation, len: self.len / lanes * to, ways: OnceLock::new() }, along))
    }

    /// Does it on whole arrays; the bits are those of an operation that is described anew.
    pub(super) fn run_on_again<T: Number>(&self, from: &[&[T]], to: &mut [T], pool: &Pool) {
        self.operation.run_on(T::on(from, to), self.ways(), false, pool);
    }

    /// What it makes of these arrays, in the order in which it visits them: an array that waits for it.
    pub fn waiting(&self, arrays: impl IntoIterator<Item = Array>) -> Array {
        Array::waits(self.len, self.on(arrays).into())
    }

    /// The same, with the numbers in it that stay the same, and with the work in it that makes those of the arrays that nobody
    /// else holds.
    pub(super) fn fused(&self, arrays: impl IntoIterator<Item = Array>, known: Known<'_>) -> Array {
        Array::waits(self.len, self.on(arrays).with_numbers(known).fused().into())
    }

    fn on(&self, arrays: impl IntoIterator<Item = Array>) -> Box<dyn Operation> {
        let mut operation = self.operation.copy();
        let mut arrays = arrays.into_iter();
        operation.reads(&mut |array, _| {
            if let Some(other) = arrays.next() {
                *array = other;
            }
        });
        operation
    }
}
