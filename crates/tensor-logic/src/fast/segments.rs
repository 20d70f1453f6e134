//! Sums over the rows of a table by group: a relation times dense tensors.
//!
//! Enter at [`Segments::add_to`]. Each row contributes a number times the product of slabs (arrays over
//! the dense indices). Rows are taken group by group, so that threads write to parts of the result
//! of their own and every sum is taken in the order of the rows, whoever takes it.

use std::ops::Range;
use std::sync::Arc;

/// Which row of a shorter table each row stands for; `None`: itself.
pub(crate) type Map = Option<Arc<Vec<u32>>>;

/// So many multiply-adds are shared among threads.
pub(crate) const PARALLEL: usize = 1 << 18;

/// A number for each row.
pub(crate) struct Numbers {
    pub(crate) data: Arc<Vec<f64>>,
    pub(crate) map: Map,
}

/// A slab for each row, or one for all.
pub(crate) struct Slabs {
    pub(crate) data: Arc<Vec<f64>>,
    pub(crate) map: Map,
    pub(crate) by_row: bool,
}

/// What the rows contribute.
pub(crate) struct Segments {
    pub(crate) numbers: Vec<Numbers>,
    pub(crate) slabs: Vec<Slabs>,
    pub(crate) constant: f64,
    /// The length of a slab.
    pub(crate) inner: usize,
}

/// The rows of a part of the result.
#[derive(Clone, Copy)]
struct Taken<'a> {
    groups: &'a [u32],
    /// The rows group by group; `None`: as they are.
    order: Option<&'a [u32]>,
}

impl Taken<'_> {
    fn row(self, at: usize) -> usize {
        self.order.map_or(at, |order| order[at] as usize)
    }

    fn group(self, at: usize) -> usize {
        self.groups[self.row(at)] as usize
    }
}

fn at(map: &Map, row: usize) -> usize {
    map.as_ref().map_or(row, |map| map[row] as usize)
}

impl Segments {
    /// `result[groups[row]] += constant · Π numbers · Π slabs` for all rows.
    pub(crate) fn add_to(&self, data: &mut [f64], groups: &[u32], order: Option<&[u32]>) {
        let taken = Taken { groups, order };
        let sorted = order.is_some() || groups.is_sorted();
        let work = groups.len().saturating_mul(self.inner);
        if !sorted || work < PARALLEL || rayon::current_num_threads() < 2 {
            self.add(taken, 0..groups.len(), 0, data);
        } else {
            self.share(taken, 0..groups.len(), 0, data);
        }
    }

    /// Halves the rows between two groups until little is left.
    fn share(&self, taken: Taken<'_>, range: Range<usize>, first: usize, data: &mut [f64]) {
        let middle = range.start + range.len() / 2;
        let split = if range.len().saturating_mul(self.inner) < PARALLEL {
            range.start
        } else {
            let group = taken.group(middle);
            let before = (range.start..middle).rev().take_while(|at| taken.group(*at) == group).count();
            middle - before
        };
        if split <= range.start || split >= range.end {
            return self.add(taken, range, first, data);
        }
        let boundary = taken.group(split);
        let (left, right) = data.split_at_mut((boundary - first) * self.inner);
        rayon::join(
            || self.share(taken, range.start..split, first, left),
            || self.share(taken, split..range.end, boundary, right),
        );
    }

    /// Adds some rows; `data` begins with the group `first`.
    fn add(&self, taken: Taken<'_>, range: Range<usize>, first: usize, data: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "the same safe code, compiled for AVX2")]
            // SAFETY: the processor has AVX2; nothing else is asked for.
            unsafe {
                self.add_avx2(taken, range, first, data);
            }
            return;
        }
        self.add_rows(taken, range, first, data);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_avx2(&self, taken: Taken<'_>, range: Range<usize>, first: usize, data: &mut [f64]) {
        self.add_rows(taken, range, first, data);
    }

    #[inline(always)]
    fn add_rows(&self, taken: Taken<'_>, range: Range<usize>, first: usize, data: &mut [f64]) {
        let inner = self.inner;
        let mut product = vec![0.0; inner];
        for place in range {
            let row = taken.row(place);
            let scale = self.numbers.iter().fold(self.constant, |scale, n| scale * n.data[at(&n.map, row)]);
            let slab = |slabs: &Slabs| {
                let from = if slabs.by_row { at(&slabs.map, row) * inner } else { 0 };
                from..from + slabs.data.len().min(inner)
            };
            let to = (taken.groups[row] as usize - first) * inner;
            let to = &mut data[to..to + inner];
            match self.slabs.as_slice() {
                [] => to.iter_mut().for_each(|slot| *slot += scale),
                [one] => {
                    let from = &one.data[slab(one)];
                    to.iter_mut().zip(from).for_each(|(slot, value)| *slot += scale * value);
                }
                [first, others @ ..] => {
                    product.copy_from_slice(&first.data[slab(first)]);
                    for other in others {
                        let from = &other.data[slab(other)];
                        product.iter_mut().zip(from).for_each(|(slot, value)| *slot *= value);
                    }
                    to.iter_mut().zip(&product).for_each(|(slot, value)| *slot += scale * value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_one_pass_over_the_rows() {
        let mut stream = seeded::Family::new("tensor-logic/tests", "segments", 0).stream(0);
        for (len, count, inner) in [(0, 3, 2), (7, 3, 2), (40_000, 300, 9), (70_000, 2, 5)] {
            let groups: Vec<u32> = (0..len).map(|_| stream.below(count as u64) as u32).collect();
            let map: Vec<u32> = (0..len).map(|_| stream.below(11) as u32).collect();
            let numbers: Vec<f64> = (0..len).map(|_| stream.normal()).collect();
            let slabs: Vec<f64> = (0..11 * inner).map(|_| stream.normal()).collect();
            let mut expected = vec![0.0; count * inner];
            for row in 0..len {
                for k in 0..inner {
                    let at = groups[row] as usize * inner + k;
                    expected[at] += 0.5 * numbers[row] * slabs[map[row] as usize * inner + k];
                }
            }
            let mut order: Vec<u32> = (0..len as u32).collect();
            order.sort_by_key(|row| groups[*row as usize]);
            let sum = Segments {
                numbers: vec![Numbers { data: Arc::new(numbers), map: None }],
                slabs: vec![Slabs { data: Arc::new(slabs), map: Some(Arc::new(map)), by_row: true }],
                constant: 0.5,
                inner,
            };
            for order in [None, Some(order.as_slice())] {
                let mut data = vec![0.0; count * inner];
                sum.add_to(&mut data, &groups, order);
                assert_eq!(data, expected);
            }
        }
    }
}
