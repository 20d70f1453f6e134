//! A relation at rest: columns sorted in one order of the places.
//!
//! The first column is not stored but implied by offsets (compressed sparse rows), so a binary
//! tuple takes 4 bytes and its share of the offsets. A prefix of the order names a range of rows:
//! by the offsets, then by binary search along the further columns.

use std::ops::Range;

use rayon::prelude::*;

use super::ring::{Ring, Value};

/// Sorted columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Sorted {
    /// The places in the order in which they are sorted.
    pub(super) order: Vec<usize>,
    len: usize,
    first: First,
    /// The columns behind the first.
    rest: Vec<Vec<u32>>,
    /// One a row, or none.
    values: Vec<Value>,
    /// Whether the second of two columns is in any order within each part of the first: a product that is only counted
    /// is never put in order.
    pub(super) loose: bool,
}

/// Where the rows of each constant of the first column start.
#[derive(Debug, Clone)]
enum First {
    /// By constant.
    Dense(Vec<u32>),
    /// By position among the constants that occur.
    Sparse { keys: Vec<u32>, starts: Vec<u32> },
}

impl Default for First {
    fn default() -> First {
        First::Dense(vec![0])
    }
}

/// Offsets by constant may take so many times the space of the rows.
const DENSE_FACTOR: usize = 4;

impl First {
    /// From a sorted column.
    fn new(column: &[u32]) -> First {
        let largest = column.last().map_or(0, |last| *last as usize + 1);
        if largest <= DENSE_FACTOR * column.len() + 1024 {
            return First::Dense(counted(column, largest));
        }
        let mut keys: Vec<u32> = Vec::new();
        let mut starts = Vec::new();
        for (row, constant) in (0..).zip(column) {
            if keys.last() != Some(constant) {
                keys.push(*constant);
                starts.push(row);
            }
        }
        starts.push(u32::try_from(column.len()).unwrap_or(u32::MAX));
        First::Sparse { keys, starts }
    }

    #[inline]
    fn group(&self, key: u32) -> Range<usize> {
        let (starts, at) = match self {
            First::Dense(starts) => (starts, key as usize),
            First::Sparse { keys, starts } => match keys.binary_search(&key) {
                Ok(at) => (starts, at),
                Err(_) => return 0..0,
            },
        };
        match starts.get(at..=at + 1) {
            Some(&[from, to]) => from as usize..to as usize,
            _ => 0..0,
        }
    }

    fn starts(&self) -> &[u32] {
        match self {
            First::Dense(starts) | First::Sparse { starts, .. } => starts,
        }
    }

    fn key(&self, at: usize) -> u32 {
        match self {
            First::Dense(_) => at as u32,
            First::Sparse { keys, .. } => keys[at],
        }
    }
}

impl Sorted {
    /// Without rows, in the order of the places.
    pub(super) fn empty(arity: usize) -> Sorted {
        let rest = vec![Vec::new(); arity.saturating_sub(1)];
        Sorted { order: (0..arity).collect(), rest, ..Sorted::default() }
    }

    /// From columns by place, of equal lengths, and values (one a row, or none). Equal rows are
    /// joined by ⊕; `None` where a count overflows, with the row.
    pub(super) fn new(
        ring: Ring,
        order: Vec<usize>,
        columns: &[Vec<u32>],
        values: &[Value],
        len: usize,
    ) -> Result<Sorted, Vec<u32>> {
        if order.is_empty() {
            let mut joined: Vec<Value> = Vec::new();
            for value in values {
                match joined.first_mut() {
                    None => joined.push(*value),
                    Some(old) => *old = ring.plus(*old, *value).ok_or_else(Vec::new)?,
                }
            }
            return Ok(Sorted { len: len.min(1), values: joined, ..Sorted::default() });
        }
        let columns: Vec<&[u32]> = order.iter().map(|place| columns[*place].as_slice()).collect();
        let permutation = sorting(&columns, len);
        let at = |row: usize| permutation.as_ref().map_or(row, |rows| rows[row] as usize);
        let mut keep: Vec<u32> = Vec::with_capacity(len);
        let mut joined: Vec<Value> = Vec::with_capacity(values.len());
        for sorted_row in 0..len {
            let row = at(sorted_row);
            let same = keep.last().is_some_and(|last| columns.iter().all(|c| c[*last as usize] == c[row]));
            if !same {
                keep.push(row as u32);
                joined.extend(values.get(row));
            } else if let (Some(old), Some(new)) = (joined.last_mut(), values.get(row)) {
                *old = ring
                    .plus(*old, *new)
                    .ok_or_else(|| columns.iter().map(|c| c[row]).collect::<Vec<_>>())?;
            }
        }
        drop(permutation);
        let gather = |column: &&[u32]| -> Vec<u32> { keep.iter().map(|row| column[*row as usize]).collect() };
        let sorted = Sorted::distinct(columns.iter().map(gather).collect(), keep.len());
        Ok(Sorted { order, values: joined, ..sorted })
    }

    /// From columns whose rows are different and in order.
    pub(super) fn distinct(mut columns: Vec<Vec<u32>>, len: usize) -> Sorted {
        let order = (0..columns.len()).collect();
        let first = columns.first().map_or_else(First::default, |column| First::new(column));
        columns.drain(..1.min(columns.len()));
        Sorted { order, len, first, rest: columns, values: Vec::new(), loose: false }
    }

    /// From rows, one behind the other, in the order of the places; else as [`Sorted::new`].
    pub(super) fn from_rows(
        ring: Ring,
        arity: usize,
        rows: &[u32],
        values: &[Value],
        len: usize,
    ) -> Result<Sorted, Vec<u32>> {
        if !ring.valued()
            && let Some(packed) = Packed::new(arity, rows)
        {
            return Ok(packed.sorted());
        }
        let column = |place| rows.iter().skip(place).step_by(arity.max(1)).copied().collect();
        let columns: Vec<Vec<u32>> = (0..arity).map(column).collect();
        Sorted::new(ring, (0..arity).collect(), &columns, values, len)
    }

    /// A unary relation from its constants in ascending order.
    pub(super) fn unary(column: &[u32], values: Vec<Value>) -> Sorted {
        let (len, first) = (column.len(), First::new(column));
        Sorted { order: vec![0], len, first, rest: Vec::new(), values, loose: false }
    }

    /// A binary relation in the order of its places: ascending constants of the first, where
    /// their part of the second ends, and the second, ascending within each part.
    pub(super) fn from_groups(keys: &[u32], ends: &[u32], second: Vec<u32>, values: Vec<Value>) -> Sorted {
        let largest = keys.last().map_or(0, |last| *last as usize + 1);
        let mut starts = Vec::with_capacity(largest + 1);
        let mut end = 0;
        for (key, next) in keys.iter().zip(ends) {
            starts.resize(*key as usize + 1, end);
            end = *next;
        }
        starts.push(end);
        let first = if largest <= DENSE_FACTOR * second.len() + 1024 {
            First::Dense(starts)
        } else {
            First::Sparse {
                keys: keys.to_vec(),
                starts: std::iter::once(0).chain(ends.iter().copied()).collect(),
            }
        };
        Sorted { order: vec![0, 1], len: second.len(), first, rest: vec![second], values, loose: false }
    }

    /// A binary relation in the order of its places with the places exchanged.
    pub(super) fn transposed(&self) -> Sorted {
        let size = self.column(1).iter().max().map_or(0, |last| *last as usize + 1);
        if size > DENSE_FACTOR * self.len + 1024 {
            let columns = self.columns();
            let (ring, columns) = (Ring::BOOLEAN, [columns[1].clone(), columns[0].clone()]);
            // Rows are different: nothing is joined.
            return Sorted::new(ring, vec![0, 1], &columns, &self.values, self.len).unwrap_or_default();
        }
        let starts = counted(self.column(1), size);
        let mut next = starts.clone();
        let mut second = vec![0; self.len];
        let mut values = self.values.clone();
        for (from, group) in self.groups(0..self.len) {
            for row in group {
                let at = &mut next[self.column(1)[row] as usize];
                second[*at as usize] = from;
                if let Some(value) = self.value(row) {
                    values[*at as usize] = value;
                }
                *at += 1;
            }
        }
        let first = First::Dense(starts);
        Sorted { order: vec![0, 1], len: self.len, first, rest: vec![second], values, loose: false }
    }

    /// Puts rows in order that are not.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.loose) {
            return;
        }
        let Some(column) = self.rest.first_mut() else { return };
        let (mut groups, mut open) = (Vec::new(), column.as_mut_slice());
        for ends in self.first.starts().windows(2) {
            let (group, further) = open.split_at_mut((ends[1] - ends[0]) as usize);
            groups.push(group);
            open = further;
        }
        groups.into_par_iter().with_min_len(256).for_each(<[u32]>::sort_unstable);
    }

    /// Whether both hold the same rows (without values) in the same order of places.
    pub(super) fn same_rows(&self, other: &Sorted) -> bool {
        self.order == other.order
            && self.rest == other.rest
            && self.groups(0..self.len).eq(other.groups(0..other.len))
    }

    /// One more than the largest constant of the first column, or more.
    pub(super) fn first_bound(&self) -> usize {
        match &self.first {
            First::Dense(starts) => starts.len() - 1,
            First::Sparse { keys, .. } => keys.last().map_or(0, |last| *last as usize + 1),
        }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The rows with a constant in the first column.
    #[inline]
    pub(super) fn group(&self, key: u32) -> Range<usize> {
        self.first.group(key)
    }

    /// The rows that start with a prefix.
    #[inline]
    pub(super) fn range(&self, prefix: &[u32]) -> Range<usize> {
        let Some((first, further)) = prefix.split_first() else { return 0..self.len };
        let mut range = self.first.group(*first);
        for (column, key) in self.rest.iter().zip(further) {
            range = equal_range(column, range, *key);
        }
        range
    }

    /// A column behind the first, by its position in the order (from 1).
    #[inline]
    pub(super) fn column(&self, position: usize) -> &[u32] {
        &self.rest[position - 1]
    }

    /// The value of a row.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Option<Value> {
        self.values.get(row).copied()
    }

    /// All values.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// The constants of the first column that occur, with their rows, cut to `rows`.
    pub(super) fn groups(&self, rows: Range<usize>) -> impl Iterator<Item = (u32, Range<usize>)> + '_ {
        let starts = self.first.starts();
        let from = starts.partition_point(|start| *start as usize <= rows.start).saturating_sub(1);
        (from..starts.len().saturating_sub(1))
            .take_while({
                let end = rows.end;
                move |at| (starts[*at] as usize) < end
            })
            .filter_map(move |at| {
                let group = (starts[at] as usize).max(rows.start)..(starts[at + 1] as usize).min(rows.end);
                (!group.is_empty()).then(|| (self.first.key(at), group))
            })
    }

    /// All rows, one behind the other, where the order is that of the places.
    pub(super) fn rows(&self) -> Vec<u32> {
        let arity = self.order.len();
        let mut rows = Vec::with_capacity(self.len * arity);
        for (key, group) in self.groups(0..self.len) {
            for row in group {
                rows.push(key);
                rows.extend((1..arity).map(|position| self.column(position)[row]));
            }
        }
        rows
    }

    /// For each constant of a place (without a place: for 0) its rows folded in their order; `None` where constants lie
    /// far apart.
    pub(super) fn folded<T: Clone>(
        &self,
        place: Option<usize>,
        first: impl Fn(usize) -> T,
        next: impl Fn(T, usize) -> T,
    ) -> Option<Vec<(u32, T)>> {
        let fold = |(key, mut rows): (u32, Range<usize>)| {
            let start = first(rows.next()?);
            Some((key, rows.fold(start, &next)))
        };
        let position = match place.map(|place| self.order.iter().position(|other| *other == place)) {
            None => return Some(fold((0, 0..self.len)).into_iter().collect()),
            Some(Some(0) | None) => return Some(self.groups(0..self.len).filter_map(fold).collect()),
            Some(Some(position)) => position,
        };
        let column = self.column(position);
        let size = column.iter().max().map_or(0, |most| *most as usize + 1);
        if size > DENSE_FACTOR * self.len + 1024 {
            return None;
        }
        let mut folded: Vec<Option<T>> = vec![None; size];
        for (row, constant) in column.iter().enumerate() {
            let slot = &mut folded[*constant as usize];
            *slot = Some(slot.take().map_or_else(|| first(row), |so_far| next(so_far, row)));
        }
        Some((0..).zip(folded).filter_map(|(key, found)| Some((key, found?))).collect())
    }

    /// All rows in sorted order, by place.
    pub(super) fn columns(&self) -> Vec<Vec<u32>> {
        let mut columns = vec![Vec::new(); self.order.len()];
        if let Some((first, further)) = self.order.split_first() {
            let mut column = Vec::with_capacity(self.len);
            for (key, group) in self.groups(0..self.len) {
                column.resize(group.end, key);
            }
            columns[*first] = column;
            for (place, column) in further.iter().zip(&self.rest) {
                columns[*place] = column.clone();
            }
        }
        columns
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let first = match &self.first {
            First::Dense(starts) => starts.capacity(),
            First::Sparse { keys, starts } => keys.capacity() + starts.capacity(),
        };
        let rest: usize = self.rest.iter().map(Vec::capacity).sum();
        4 * (first + rest) + 8 * self.values.capacity()
    }
}

/// Rows as one number each, in the order of rows.
struct Packed {
    keys: Vec<u64>,
    /// The bits of each place.
    bits: Vec<u32>,
}

impl Packed {
    /// `None` where the places take more than 64 bits together, or there are none.
    fn new(arity: usize, rows: &[u32]) -> Option<Packed> {
        if arity == 0 {
            return None;
        }
        let mut all = vec![0; arity];
        for row in rows.chunks_exact(arity) {
            for (all, constant) in all.iter_mut().zip(row) {
                *all |= *constant;
            }
        }
        let bits: Vec<u32> = all.iter().map(|all: &u32| 32 - all.leading_zeros()).collect();
        if bits.iter().sum::<u32>() > 64 {
            return None;
        }
        let pack =
            |row: &[u32]| row.iter().zip(&bits).fold(0, |key: u64, (c, bits)| key << bits | u64::from(*c));
        let mut keys: Vec<u64> = rows.chunks_exact(arity).map(pack).collect();
        if !keys.is_sorted() {
            match keys.len() {
                0..PARALLEL => keys.sort_unstable(),
                _ => keys.par_sort_unstable(),
            }
        }
        keys.dedup();
        Some(Packed { keys, bits })
    }

    fn sorted(self) -> Sorted {
        let mut shift = 0;
        let mut columns: Vec<Vec<u32>> = Vec::new();
        for bits in self.bits.iter().rev() {
            let mask = (1_u64 << bits) - 1;
            columns.push(self.keys.iter().map(|key| (key >> shift & mask) as u32).collect());
            // A shift by all 64 bits is behind the first place only.
            shift += *bits;
        }
        columns.reverse();
        Sorted::distinct(columns, self.keys.len())
    }
}

/// From so many rows on sorting runs in parallel.
const PARALLEL: usize = 1 << 17;

/// The rows of `range` with `key` in a column that is sorted there.
#[inline]
fn equal_range(column: &[u32], range: Range<usize>, key: u32) -> Range<usize> {
    let part = &column[range.clone()];
    if part.len() <= 16 {
        let from = part.iter().take_while(|value| **value < key).count();
        let count = part[from..].iter().take_while(|value| **value == key).count();
        return range.start + from..range.start + from + count;
    }
    let from = part.partition_point(|value| *value < key);
    let count = match part.get(from..) {
        Some([first, ..]) if *first != key => 0,
        Some([_, second, ..]) if *second != key => 1,
        _ => part[from..].partition_point(|value| *value == key),
    };
    range.start + from..range.start + from + count
}

/// Where the rows of each constant below `size` begin, once they are sorted, and at the end how many there are.
pub(super) fn counted(column: &[u32], size: usize) -> Vec<u32> {
    let mut starts = vec![0; size + 1];
    for constant in column {
        starts[*constant as usize + 1] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    starts
}

/// The stable permutation that sorts rows by all columns, the first the most significant;
/// `None` where they are sorted already.
pub fn sorting(columns: &[&[u32]], len: usize) -> Option<Vec<u32>> {
    let compare = |a: usize, b: usize| {
        columns
            .iter()
            .map(|c| c[a].cmp(&c[b]))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    if (1..len).all(|row| compare(row - 1, row).is_le()) {
        return None;
    }
    let mut rows: Vec<u32> = (0..u32::try_from(len).unwrap_or(u32::MAX)).collect();
    let size = |column: &&[u32]| column.iter().max().map_or(0, |max| *max as usize + 1);
    let sizes: Vec<usize> = columns.iter().map(size).collect();
    if len < 256 || sizes.iter().any(|size| *size > DENSE_FACTOR * len + 1024) {
        rows.sort_by(|a, b| compare(*a as usize, *b as usize));
        return Some(rows);
    }
    // Counting sort by each column, the least significant first.
    let mut next = vec![0; len];
    for (column, size) in columns.iter().zip(sizes).rev() {
        let mut starts = counted(column, size);
        for row in &rows {
            let start = &mut starts[column[*row as usize] as usize];
            next[*start as usize] = *row;
            *start += 1;
        }
        std::mem::swap(&mut rows, &mut next);
    }
    Some(rows)
}
