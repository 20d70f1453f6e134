//! A relation at rest: columns sorted in one order of the places.
//!
//! The first column is not stored but implied by offsets (compressed sparse rows), so a binary
//! tuple takes 4 bytes and its share of the offsets. A prefix of the order names a range of rows:
//! by the offsets, then by binary search along the further columns.

use std::ops::Range;

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
    /// From a column in any order.
    fn of(column: impl Iterator<Item = u32> + Clone, len: usize) -> First {
        let largest = column.clone().max().map_or(0, |last| last as usize + 1);
        if largest <= DENSE_FACTOR * len + 1024 {
            return First::Dense(counted(column, largest));
        }
        let mut keys: Vec<u32> = column.clone().collect();
        keys.sort_unstable();
        keys.dedup();
        let starts =
            counted(column.filter_map(|key| Some(keys.binary_search(&key).ok()? as u32)), keys.len());
        First::Sparse { keys, starts }
    }

    /// Which of the starts is that of a constant, or of none.
    #[inline]
    fn position(&self, key: u32) -> Option<usize> {
        match self {
            First::Dense(_) => Some(key as usize),
            First::Sparse { keys, .. } => keys.binary_search(&key).ok(),
        }
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
        let first =
            columns.first().map_or_else(First::default, |column| First::of(column.iter().copied(), len));
        columns.drain(..1.min(columns.len()));
        Sorted { order, len, first, rest: columns, values: Vec::new(), loose: false }
    }

    /// From rows in the order of the places; else as [`Sorted::new`].
    pub(super) fn from_rows<'a>(
        ring: Ring,
        arity: usize,
        rows: impl Iterator<Item = &'a [u32]> + Clone,
        values: &[Value],
        len: usize,
    ) -> Result<Sorted, Vec<u32>> {
        if ring.valued() || arity == 0 {
            let column = |place| rows.clone().map(|row| row[place]).collect();
            let columns: Vec<Vec<u32>> = (0..arity).map(column).collect();
            return Sorted::new(ring, (0..arity).collect(), &columns, values, len);
        }
        // Each row goes to the part of its first constant; the parts are then put in order.
        let first = First::of(rows.clone().map(|row| row[0]), len);
        let mut next = first.starts().to_vec();
        let mut rest: Vec<Vec<u32>> = (1..arity).map(|_| vec![0; len]).collect();
        for row in rows {
            if let Some(next) = first.position(row[0]).and_then(|at| next.get_mut(at)) {
                for (column, constant) in rest.iter_mut().zip(&row[1..]) {
                    column[*next as usize] = *constant;
                }
                *next += 1;
            }
        }
        let mut sorted = Sorted { order: (0..arity).collect(), len, first, rest, ..Sorted::default() };
        let width: u32 = sorted.rest.iter().map(|column| bits(column)).sum();
        if width + (usize::BITS - len.leading_zeros()) > u64::BITS {
            return Sorted::new(ring, sorted.order.clone(), &sorted.columns(), values, len);
        }
        if sorted.put_in_order() {
            sorted.dedup();
        }
        Ok(sorted)
    }

    /// Puts each part of the first column in order; whether rows are equal.
    fn put_in_order(&mut self) -> bool {
        let columns = self.rest.iter_mut().map(Vec::as_mut_slice).collect();
        sort_parts(self.first.starts(), columns, &mut Default::default())
    }

    /// Leaves of equal rows, which stand together, one.
    fn dedup(&mut self) {
        let (First::Dense(starts) | First::Sparse { starts, .. }) = &mut self.first;
        let (mut kept, mut from) = (0, 0);
        for start in &mut starts[1..] {
            let (group, end) = (kept, *start as usize);
            for row in from..end {
                if kept == group || self.rest.iter().any(|column| column[row] != column[kept - 1]) {
                    self.rest.iter_mut().for_each(|column| column[kept] = column[row]);
                    kept += 1;
                }
            }
            (*start, from) = (kept as u32, end);
        }
        self.len = kept;
        for column in &mut self.rest {
            column.truncate(kept);
        }
    }

    /// A unary relation from its constants in ascending order.
    pub(super) fn unary(column: &[u32], values: Vec<Value>) -> Sorted {
        let (len, first) = (column.len(), First::of(column.iter().copied(), column.len()));
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
        let starts = counted(self.column(1).iter().copied(), size);
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
        if std::mem::take(&mut self.loose) {
            self.put_in_order();
        }
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
    pub(super) fn range(&self, mut prefix: impl Iterator<Item = u32>) -> Range<usize> {
        let Some(first) = prefix.next() else { return 0..self.len };
        let mut range = self.first.group(first);
        for (column, key) in self.rest.iter().zip(prefix) {
            range = equal_range(column, range, key);
        }
        range
    }

    /// The rows of a range of one first constant whose second is this one.
    #[inline]
    pub(super) fn narrowed(&self, range: Range<usize>, second: u32) -> Range<usize> {
        match self.rest.first() {
            Some(column) => equal_range(column, range, second),
            None => range,
        }
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
            match self.rest.as_slice() {
                [] => rows.push(key),
                [second] => rows.extend(second[group].iter().flat_map(|second| [key, *second])),
                [second, third] => {
                    let pairs = second[group.clone()].iter().zip(&third[group]);
                    rows.extend(pairs.flat_map(|(second, third)| [key, *second, *third]));
                }
                rest => {
                    for row in group {
                        rows.push(key);
                        rows.extend(rest.iter().map(|column| column[row]));
                    }
                }
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

    /// The number of different constants in each place, where the order is that of the places.
    pub(super) fn statistics(&self) -> Vec<usize> {
        let first = self.groups(0..self.len).count();
        let rest = self.rest.iter().map(|column| distinct(column));
        std::iter::once(first).chain(rest).take(self.order.len()).collect()
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

/// The number of different constants in a column.
fn distinct(column: &[u32]) -> usize {
    let largest = column.iter().max().map_or(0, |max| *max as usize + 1);
    if largest > 64 * column.len() + 1024 {
        let mut sorted = column.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        return sorted.len();
    }
    let mut seen = vec![0_u64; largest.div_ceil(64)];
    for constant in column {
        seen[*constant as usize / 64] |= 1 << (constant % 64);
    }
    seen.iter().map(|word| word.count_ones() as usize).sum()
}

/// How many bits the constants of a column have.
fn bits(column: &[u32]) -> u32 {
    u32::BITS - column.iter().fold(0, |all, constant| all | constant).leading_zeros()
}

/// Sorts the rows of each part; whether some of a part are equal. All columns of a row fit into 64 bits with its number.
fn sort_parts(starts: &[u32], mut columns: Vec<&mut [u32]>, space: &mut [Vec<u64>; 2]) -> bool {
    let from = starts[0] as usize;
    let len = starts[starts.len() - 1] as usize - from;
    if len >= TOGETHER && starts.len() > 2 {
        let middle = starts.partition_point(|start| (*start as usize) < from + len / 2);
        let middle = middle.clamp(1, starts.len() - 2);
        let at = starts[middle] as usize - from;
        let (left, right) = columns.into_iter().map(|column| column.split_at_mut(at)).unzip();
        let (starts, further) = (&starts[..=middle], &starts[middle..]);
        if len < PARALLEL || rayon::current_num_threads() == 1 {
            return sort_parts(starts, left, space) | sort_parts(further, right, space);
        }
        let other = || sort_parts(further, right, &mut Default::default());
        let (left, right) = rayon::join(|| sort_parts(starts, left, space), other);
        return left | right;
    }
    // The number of the part among those with rows, then the columns, as one number each.
    let ([keys, spare], mut parts) = (space, 0_u64);
    keys.clear();
    for end in &starts[1..] {
        let more = *end as usize - from > keys.len();
        keys.resize(*end as usize - from, parts);
        parts += u64::from(more);
    }
    let widths: Vec<u32> = columns.iter().map(|column| bits(column)).collect();
    for (column, width) in columns.iter().zip(&widths) {
        for (key, constant) in keys.iter_mut().zip(&**column) {
            *key = *key << width | u64::from(*constant);
        }
    }
    if !keys.is_sorted() {
        radix(keys, spare, u64::BITS - parts.leading_zeros() + widths.iter().sum::<u32>());
        let mut shift = 0;
        for (column, width) in columns.iter_mut().zip(&widths).rev() {
            for (constant, key) in column.iter_mut().zip(&*keys) {
                *constant = (key >> shift & ((1 << width) - 1)) as u32;
            }
            shift += width;
        }
    }
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Parts are sorted together up to so many rows, which stay in the cache.
const TOGETHER: usize = 1 << 15;

/// Digits have about so many bits.
const DIGIT: u32 = 9;

/// Sorts numbers of so many bits, digit by digit, the least significant first.
fn radix(keys: &mut Vec<u64>, spare: &mut Vec<u64>, width: u32) {
    if keys.len() < 256 {
        return keys.sort_unstable();
    }
    spare.resize(keys.len(), 0);
    let passes = width.div_ceil(DIGIT);
    let digit = width.div_ceil(passes);
    let mut counts = vec![0; 1 << digit];
    for pass in 0..passes {
        let place = |key: u64| (key >> (pass * digit)) as usize & ((1 << digit) - 1);
        counts.fill(0_usize);
        keys.iter().for_each(|key| counts[place(*key)] += 1);
        let mut sum = 0;
        for count in &mut counts {
            sum += std::mem::replace(count, sum);
        }
        for key in &*keys {
            let at = &mut counts[place(*key)];
            spare[*at] = *key;
            *at += 1;
        }
        std::mem::swap(keys, spare);
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

/// The first row of a range that has `key` or more in a column that is sorted there. It is looked for a little behind a
/// row where it may be, before it is looked for everywhere.
#[inline]
pub(super) fn seek(column: &[u32], range: &Range<usize>, key: u32, near: &mut usize) -> usize {
    if column.get(range.start).is_none_or(|first| *first >= key) {
        return range.start;
    }
    let (mut from, mut to, at) = (range.start, range.end, (*near).clamp(range.start, range.end));
    if at < to && column[at] < key {
        from = at;
        let behind = (from + NEAR).min(to);
        if behind == to || column[behind] >= key {
            to = behind;
        }
    } else {
        to = at;
    }
    *near = from + column[from..to].partition_point(|value| *value < key);
    *near
}

/// So many rows are near.
const NEAR: usize = 4;

/// Where the rows of each constant below `size` begin, once they are sorted, and at the end how many there are.
pub(super) fn counted(column: impl IntoIterator<Item = u32>, size: usize) -> Vec<u32> {
    let mut starts = vec![0; size + 1];
    for constant in column {
        starts[constant as usize + 1] += 1;
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
        let mut starts = counted(column.iter().copied(), size);
        for row in &rows {
            let start = &mut starts[column[*row as usize] as usize];
            next[*start as usize] = *row;
            *start += 1;
        }
        std::mem::swap(&mut rows, &mut next);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Rows of several kinds: none, one, few and many constants, constants far apart, and one that has nearly all rows.
    fn rows(round: u64) -> (usize, Vec<u32>) {
        let mut stream = seeded::Family::new("datarel", "rows", 0).stream(round);
        let arity = 1 + stream.below(5) as usize;
        let len = [0, 1, 2, 40, 3000, 70_000][stream.below(6) as usize];
        let bounds: Vec<u64> =
            (0..arity).map(|_| [1, 3, 200, 1 << 17, 1 << 32][stream.below(5) as usize]).collect();
        let skewed = stream.below(3) == 0;
        let mut row = |at: usize| match at {
            0 if skewed && stream.below(50) > 0 => 7,
            _ => stream.below(bounds[at]) as u32,
        };
        (arity, (0..len * arity).map(|number| row(number % arity)).collect())
    }

    #[test]
    fn rows_come_to_rest_in_order_and_once() {
        for round in 0..120 {
            let (arity, rows) = rows(round);
            let all: BTreeSet<&[u32]> = rows.chunks_exact(arity).collect();
            let wanted: Vec<u32> = all.iter().flat_map(|row| row.iter().copied()).collect();
            let made = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let (len, rows) = (rows.len() / arity, rows.chunks_exact(arity));
                pool.install(|| Sorted::from_rows(Ring::BOOLEAN, arity, rows, &[], len).unwrap())
            };
            let sorted = made(1);
            assert_eq!((sorted.len(), sorted.rows()), (all.len(), wanted), "round {round}");
            assert_eq!(made(2).rows(), sorted.rows(), "round {round}");
            let distinct = |place: usize| all.iter().map(|row| row[place]).collect::<BTreeSet<u32>>().len();
            assert_eq!(sorted.statistics(), (0..arity).map(distinct).collect::<Vec<_>>(), "round {round}");
            for row in all.iter().step_by(97) {
                let found = sorted.range(row.iter().copied());
                assert_eq!(all.iter().nth(found.start), Some(row));
                assert_eq!((found.len(), sorted.group(row[0]).is_empty()), (1, false));
            }
        }
    }

    #[test]
    fn a_sought_row_is_the_first_that_is_large_enough() {
        let mut stream = seeded::Family::new("datarel", "seek", 0).stream(0);
        for _ in 0..2000 {
            let bound = [1, 4, 60, 1 << 32][stream.below(4) as usize];
            let mut column: Vec<u32> = (0..stream.below(50)).map(|_| stream.below(bound) as u32).collect();
            let mut below = |most: usize| stream.below(most as u64 + 1) as usize;
            let start = below(column.len());
            let range = start..start + below(column.len() - start);
            column[range.clone()].sort_unstable();
            let mut near = below(60);
            for _ in 0..20 {
                let key = column.get(below(60)).copied().unwrap_or_default().saturating_add(below(2) as u32);
                let wanted = range.start + column[range.clone()].partition_point(|value| *value < key);
                assert_eq!(seek(&column, &range, key, &mut near), wanted);
            }
        }
    }
}
