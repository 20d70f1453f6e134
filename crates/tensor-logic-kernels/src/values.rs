//! What an operation on rows reads, wherever it stands: nothing is written out that another one can read where it is.

use std::ops::Range;

use super::number::{Number, Pool};

/// All entries of an elementwise operation.
pub(super) enum Values<'a, T> {
    /// All are this number.
    Same(T),
    /// They stand one behind the other in what is read.
    Stand(&'a [T]),
    /// They were computed.
    Made(Vec<T>),
}

impl<T: Number> Values<'_, T> {
    /// Those of a range.
    pub(super) fn part(&self, range: Range<usize>) -> Each<'_, T> {
        match self {
            Values::Same(number) => Each::Same(*number),
            Values::Stand(numbers) => Each::Own(&numbers[range]),
            Values::Made(numbers) => Each::Own(&numbers[range]),
        }
    }

    /// The same, so many of them one behind the other.
    pub(super) fn spread(self, len: usize, pool: &Pool) -> Self {
        match self {
            Values::Same(number) => {
                let mut made = pool.take::<T>(len);
                made.fill(number);
                Values::Made(made)
            }
            other => other,
        }
    }

    /// They are one behind the other.
    pub(super) fn slice(&self) -> &[T] {
        match self {
            Values::Same(_) => &[],
            Values::Stand(numbers) => numbers,
            Values::Made(numbers) => numbers,
        }
    }

    /// Nobody reads them any more.
    pub(super) fn give(self, pool: &Pool) {
        if let Values::Made(numbers) = self {
            pool.give(numbers);
        }
    }
}

/// One number for each of some entries, or the same for all.
#[derive(Clone, Copy)]
pub(super) enum Each<'a, T> {
    Same(T),
    Own(&'a [T]),
}

impl<'a, T: Number> Each<'a, T> {
    #[inline(always)]
    pub(super) fn at(self, at: usize) -> T {
        match self {
            Each::Same(number) => number,
            Each::Own(numbers) => numbers[at],
        }
    }

    #[inline(always)]
    pub(super) fn part(self, range: Range<usize>) -> Each<'a, T> {
        match self {
            Each::Same(number) => Each::Same(number),
            Each::Own(numbers) => Each::Own(&numbers[range]),
        }
    }

    /// The number that all of them are.
    #[inline(always)]
    pub(super) fn same(self) -> Option<T> {
        match self {
            Each::Same(number) => Some(number),
            Each::Own([]) => None,
            Each::Own(numbers) => {
                let first = numbers[0];
                numbers.iter().fold(true, |same, other| same & (*other == first)).then_some(first)
            }
        }
    }
}
