//! Tables of bindings: rows of ordinals, one column an index, and how they are grouped and joined.
//!
//! [`Rows`] is the sparse part of a support: joins and guards enumerate it, and a block whose
//! first dimension is [`Dim::ROWS`](super::block::Dim::ROWS) holds one slab for each row. Keys of
//! several columns are one number each (mixed radix, compressed through a hash map where 64 bits
//! are too few), found again through a table where the key space is small, else by hashing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::program::IndexId;

/// A column of ordinals.
pub(crate) type Column = Arc<Vec<u32>>;

/// A table of bindings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    /// Tells tables apart: two tables with the same number are the same.
    pub(crate) id: u64,
    /// The number of rows (needed where there is no column).
    pub(crate) len: usize,
    /// The indices that it binds.
    pub(crate) indices: Vec<IndexId>,
    /// Their ordinals.
    pub(crate) columns: Vec<Column>,
    /// For reads that were joined: which element of the tensor each row met, by the number of
    /// the read.
    pub(crate) tags: Vec<(u64, Column)>,
}

impl Rows {
    /// The one empty binding.
    pub(crate) fn unit() -> Rows {
        Rows { len: 1, ..Rows::default() }
    }

    /// The column of an index.
    pub(crate) fn column(&self, index: IndexId) -> Option<&Column> {
        self.indices.iter().position(|i| *i == index).map(|at| &self.columns[at])
    }

    /// Whether it binds the index.
    pub(crate) fn binds(&self, index: IndexId) -> bool {
        self.indices.contains(&index)
    }

    /// The tag of a read.
    pub(crate) fn tag(&self, read: u64) -> Option<&Column> {
        self.tags.iter().find(|(at, _)| *at == read).map(|(_, column)| column)
    }

    /// These rows only, in this order.
    pub(crate) fn select(&self, picks: &[u32], id: u64) -> Rows {
        let take =
            |column: &Column| Arc::new(picks.iter().map(|at| column[*at as usize]).collect::<Vec<u32>>());
        Rows {
            id,
            len: picks.len(),
            indices: self.indices.clone(),
            columns: self.columns.iter().map(take).collect(),
            tags: self.tags.iter().map(|(read, column)| (*read, take(column))).collect(),
        }
    }

    /// The same rows with one more index.
    pub(crate) fn with(mut self, index: IndexId, column: Vec<u32>, id: u64) -> Rows {
        self.indices.push(index);
        self.columns.push(Arc::new(column));
        self.id = id;
        self
    }

    /// Whether both have the same columns for these indices.
    pub(crate) fn same_columns(&self, other: &Rows, indices: &[IndexId]) -> bool {
        self.len == other.len
            && indices.iter().all(|index| match (self.column(*index), other.column(*index)) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
                _ => false,
            })
    }
}

/// A fast hash for keys that are numbers already.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// A hash map whose keys are numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// No group.
pub(crate) const NONE: u32 = u32::MAX;

/// Finds groups of rows with equal keys: made from one table, asked with another.
#[derive(Debug)]
pub(crate) struct Keys {
    sizes: Vec<u64>,
    /// Before which column the key so far is compressed, and how.
    compressions: Vec<(usize, NumberMap<u64, u32>)>,
    last: Finder,
    /// The first row of each group.
    pub(crate) first: Vec<u32>,
}

#[derive(Debug)]
enum Finder {
    Table(Vec<u32>),
    Hash(NumberMap<u64, u32>),
}

impl Finder {
    fn find(&self, key: u64) -> u32 {
        match self {
            Finder::Table(table) => table.get(key as usize).copied().unwrap_or(NONE),
            Finder::Hash(map) => map.get(&key).copied().unwrap_or(NONE),
        }
    }
}

impl Keys {
    /// Groups the rows of some columns, numbered in the order of their first rows; also the
    /// group of each row.
    pub(crate) fn new(columns: &[&[u32]], sizes: &[usize], len: usize) -> (Keys, Vec<u32>) {
        let sizes: Vec<u64> = sizes.iter().map(|size| (*size as u64).max(1)).collect();
        let mut keys = vec![0_u64; len];
        let mut space = 1_u64;
        let mut compressions = Vec::new();
        for (at, (column, size)) in columns.iter().zip(&sizes).enumerate() {
            if space.checked_mul(*size).is_none() {
                let mut map: NumberMap<u64, u32> = NumberMap::default();
                for key in &mut keys {
                    let next = map.len() as u32;
                    *key = u64::from(*map.entry(*key).or_insert(next));
                }
                space = map.len() as u64;
                compressions.push((at, map));
            }
            for (key, ordinal) in keys.iter_mut().zip(*column) {
                *key = *key * size + u64::from(*ordinal);
            }
            space = space.saturating_mul(*size);
        }
        let mut first = Vec::new();
        let mut groups = Vec::with_capacity(len);
        let last = if space <= (len as u64).saturating_mul(8).max(4096) {
            let mut table = vec![NONE; space as usize];
            for (row, key) in keys.iter().enumerate() {
                let slot = &mut table[*key as usize];
                if *slot == NONE {
                    *slot = first.len() as u32;
                    first.push(row as u32);
                }
                groups.push(*slot);
            }
            Finder::Table(table)
        } else {
            let mut map: NumberMap<u64, u32> = NumberMap::default();
            for (row, key) in keys.iter().enumerate() {
                let next = first.len() as u32;
                let group = *map.entry(*key).or_insert(next);
                if group == next {
                    first.push(row as u32);
                }
                groups.push(group);
            }
            Finder::Hash(map)
        };
        (Keys { sizes, compressions, last, first }, groups)
    }

    /// The number of groups.
    pub(crate) fn count(&self) -> usize {
        self.first.len()
    }

    /// The group of each row of other columns, [`NONE`] where there is none.
    pub(crate) fn find(&self, columns: &[&[u32]], len: usize) -> Vec<u32> {
        let mut keys = vec![Some(0_u64); len];
        for (at, (column, size)) in columns.iter().zip(&self.sizes).enumerate() {
            if let Some((_, map)) = self.compressions.iter().find(|(before, _)| *before == at) {
                for key in &mut keys {
                    *key = key.and_then(|key| map.get(&key).copied()).map(u64::from);
                }
            }
            for (key, ordinal) in keys.iter_mut().zip(*column) {
                let inside = u64::from(*ordinal) < *size;
                *key = key.filter(|_| inside).map(|key| key * size + u64::from(*ordinal));
            }
        }
        keys.into_iter().map(|key| key.map_or(NONE, |key| self.last.find(key))).collect()
    }
}

/// The rows of each group, one behind the other.
#[derive(Debug)]
pub(crate) struct Members {
    start: Vec<u32>,
    rows: Vec<u32>,
}

impl Members {
    /// Sorts rows by group, keeping their order inside one.
    pub(crate) fn new(groups: &[u32], count: usize) -> Members {
        let mut start = vec![0_u32; count + 1];
        for group in groups {
            start[*group as usize + 1] += 1;
        }
        for at in 1..start.len() {
            start[at] += start[at - 1];
        }
        let mut next = start.clone();
        let mut rows = vec![0; groups.len()];
        for (row, group) in groups.iter().enumerate() {
            let slot = &mut next[*group as usize];
            rows[*slot as usize] = row as u32;
            *slot += 1;
        }
        Members { start, rows }
    }

    /// Where the rows of each group begin, and all rows, group by group.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.start, self.rows)
    }

    /// The rows of a group; none for [`NONE`].
    pub(crate) fn of(&self, group: u32) -> &[u32] {
        let Some(at) = (group != NONE).then_some(group as usize) else { return &[] };
        &self.rows[self.start[at] as usize..self.start[at + 1] as usize]
    }
}

/// Which rows of two tables meet where the columns of common indices agree.
#[derive(Debug)]
pub(crate) struct Match {
    keys: Keys,
    members: Members,
    common: Vec<IndexId>,
}

impl Match {
    /// Prepares the right table for a join over these indices.
    pub(crate) fn new(right: &Rows, common: &[IndexId], sizes: &[usize]) -> Match {
        let columns: Vec<&[u32]> =
            common.iter().filter_map(|i| right.column(*i)).map(|c| c.as_slice()).collect();
        let (keys, groups) = Keys::new(&columns, sizes, right.len);
        let members = Members::new(&groups, keys.count());
        Match { keys, members, common: common.to_vec() }
    }

    /// The groups of the right table that each row of the left one meets.
    pub(crate) fn probe(&self, left: &Rows) -> Vec<u32> {
        let columns: Vec<&[u32]> =
            self.common.iter().filter_map(|i| left.column(*i)).map(|c| c.as_slice()).collect();
        self.keys.find(&columns, left.len)
    }

    /// The right rows that meet.
    pub(crate) fn rows(&self, group: u32) -> &[u32] {
        self.members.of(group)
    }

    /// How many pairs meet.
    pub(crate) fn count(&self, probes: &[u32]) -> usize {
        probes.iter().map(|group| self.rows(*group).len()).sum()
    }
}
