//! Tables of bindings: rows of ordinals, one column an index.
//!
//! [`Rows`] is the sparse part of a support: joins and guards enumerate it, and a block whose
//! first dimension is [`Dim::ROWS`](super::block::Dim::ROWS) holds one slab for each row. Tables are
//! grouped and joined by an [`Index`] of theirs.

use std::sync::{Arc, Weak};

use datarel::Index;

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
    /// For reads that were joined: which element of the tensor each row met.
    pub(crate) tags: Vec<Tag>,
}

/// Which element of a tensor each row of a table met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of the read.
    pub(crate) read: u64,
    /// Its indices: the table has them all.
    pub(crate) indices: Arc<[IndexId]>,
    pub(crate) met: Column,
}

/// The tables that were looked up last, by which indices: rounds join a few rows to the same ones again and again, and
/// every level of a recursion to the same dozen.
#[derive(Debug, Default)]
pub(crate) struct Indexed {
    /// The last one is the latest.
    known: Vec<(Weak<Rows>, Vec<IndexId>, Arc<Index>)>,
}

/// So many, whatever their size; and how many while they have no more rows together than these.
const INDEXED: usize = 8;
const MOST: usize = 64;
const ROWS: usize = 1 << 22;
/// Of fewer rows an index is made anew.
const LARGE: usize = 64;

impl Indexed {
    /// A table by some of its indices.
    pub(crate) fn index(&mut self, table: &Arc<Rows>, indices: &[IndexId]) -> Arc<Index> {
        if table.len < LARGE {
            return Arc::new(table.by(indices));
        }
        self.known.retain(|(of, ..)| of.strong_count() > 0);
        let same = |(of, by, _): &(Weak<Rows>, Vec<IndexId>, Arc<Index>)| {
            std::ptr::eq(of.as_ptr(), Arc::as_ptr(table)) && by == indices
        };
        let index = match self.known.iter().position(same) {
            Some(at) => self.known.remove(at).2,
            None => Arc::new(table.by(indices)),
        };
        let rows = |(of, ..): &(Weak<Rows>, Vec<IndexId>, Arc<Index>)| of.upgrade().map_or(0, |of| of.len);
        let all: usize = table.len + self.known.iter().map(rows).sum::<usize>();
        if self.known.len() >= if all > ROWS { INDEXED } else { MOST } {
            self.known.remove(0);
        }
        self.known.push((Arc::downgrade(table), indices.to_vec(), Arc::clone(&index)));
        index
    }
}

impl Rows {
    /// The one empty binding.
    pub(crate) fn unit() -> Rows {
        Rows { len: 1, ..Rows::default() }
    }

    /// Whether it has the same rows, in the same order, which met the same elements.
    pub(crate) fn is_same(&self, other: &Rows) -> bool {
        self.len == other.len
            && self.indices == other.indices
            && self.columns == other.columns
            && self.tags == other.tags
    }

    /// The column of an index.
    pub(crate) fn column(&self, index: IndexId) -> Option<&Column> {
        self.indices.iter().position(|i| *i == index).map(|at| &self.columns[at])
    }

    /// Whether it binds the index.
    pub(crate) fn binds(&self, index: IndexId) -> bool {
        self.indices.contains(&index)
    }

    fn slices(&self, indices: &[IndexId]) -> Vec<&[u32]> {
        indices.iter().filter_map(|index| self.column(*index)).map(|column| column.as_slice()).collect()
    }

    /// Its rows by the bindings of some of its indices.
    pub(crate) fn by(&self, indices: &[IndexId]) -> Index {
        Index::new(&self.slices(indices), self.len)
    }

    /// For each row the group of another table, indexed by these indices, that agrees with it.
    pub(crate) fn find_in(&self, other: &Index, indices: &[IndexId]) -> Vec<u32> {
        other.find(&self.slices(indices), self.len)
    }

    /// The tag of a read.
    pub(crate) fn tag(&self, read: u64) -> Option<&Column> {
        self.tags.iter().find(|tag| tag.read == read).map(|tag| &tag.met)
    }

    /// These rows only, in this order.
    pub(crate) fn select(&self, picks: &[u32], id: u64) -> Rows {
        self.select_but(picks, &[], id)
    }

    /// The same without the columns of some indices. Where all rows stay as they are, so do the columns.
    pub(crate) fn select_but(&self, picks: &[u32], without: &[IndexId], id: u64) -> Rows {
        let all = picks.len() == self.len && (0..).zip(picks).all(|(at, pick): (u32, _)| at == *pick);
        let take = |column: &Column| match all {
            true => Arc::clone(column),
            false => Arc::new(picks.iter().map(|at| column[*at as usize]).collect::<Vec<u32>>()),
        };
        let kept = self.indices.iter().zip(&self.columns).filter(|(index, _)| !without.contains(index));
        let (indices, columns) = kept.map(|(index, column)| (*index, take(column))).unzip();
        let tags = self.tags.iter().map(|tag| Tag { met: take(&tag.met), ..tag.clone() }).collect();
        Rows { id, len: picks.len(), indices, columns, tags }
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
