//! What is remembered between evaluations: everything that does not change while the tensors it
//! came from do not change.
//!
//! Every remembered thing stands under the number of the node of the program that it belongs
//! to, the fixed indices and the table of bindings; it is good as long as the stamps of the
//! tensors it was made from are what they were. A training loop changes the stamps of parameters
//! only, so tables of bindings, their joins and the positions of elements are found again.

use std::collections::HashMap;
use std::sync::Arc;

use super::block::{Block, Dim, Groups};
use super::condition::Support;
use super::doubt::Doubt;
use super::records::Input;
use super::relation::{Relation, Skeleton, Union};
use super::rows::Rows;
use crate::kernels::{Array, Recorded};
use crate::program::{IndexId, TensorId};

/// The spaces of factors, and what is summed.
pub(crate) type Network = (Vec<(Vec<Dim>, Vec<usize>)>, Vec<Dim>);

/// Where a remembered thing belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The number of the node, and one that tells kinds of things apart.
    pub(crate) place: (u64, u8),
    /// The table of bindings.
    pub(crate) rows: u64,
    /// Fixed indices that matter.
    pub(crate) fixed: Vec<(IndexId, u32)>,
}

/// What a thing may be made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The value of a tensor.
    Tensor(TensorId),
    /// The tuples of a relation, whatever their values.
    Tuples(TensorId),
    /// The range of an index.
    Range(IndexId),
}

/// The stamps of what a thing was made from.
pub(crate) type Stamps = Vec<(Source, u64)>;

/// A remembered thing.
#[derive(Debug, Clone)]
pub(crate) enum Thing {
    /// The support of a scope.
    Support(Support),
    /// A relation as a table of bindings.
    Table(Arc<Rows>),
    /// The same, and which tuples it lists.
    Listed(Arc<Rows>, u64),
    /// A table with fewer columns or rows, and which row became which.
    Grouped(Arc<Rows>, Arc<Vec<u32>>),
    /// The rows of a table by group.
    Groups(Groups),
    /// The tuples that a term makes; `None`: some are made twice.
    Skeleton(Option<Skeleton>),
    /// The tuples of several relations, and of which.
    Union(Vec<u64>, Union),
    /// Positions of elements.
    Offsets(Arc<super::offsets::Offsets>),
    /// For each binding of some indices the row of a table.
    Positions(Arc<Vec<u32>>),
    /// Values.
    Block(Block),
}

impl Thing {
    fn bytes(&self) -> usize {
        match self {
            Thing::Support(support) => support.rows.as_ref().map_or(64, |rows| table_bytes(rows)),
            Thing::Table(rows) => table_bytes(rows),
            // The table is counted where it stands alone.
            Thing::Listed(..) => 64,
            Thing::Grouped(rows, column) => table_bytes(rows) + 4 * column.len(),
            Thing::Groups(groups) => 4 * groups.of.len() + groups.rows.bytes(),
            Thing::Skeleton(None) => 8,
            Thing::Skeleton(Some(skeleton)) => {
                4 * skeleton.relation.len * (skeleton.relation.columns.len() + 1)
            }
            Thing::Union(_, union) => union.bytes(),
            Thing::Offsets(offsets) => offsets.bytes(),
            Thing::Positions(positions) => 4 * positions.len(),
            Thing::Block(block) => 9 * block.values.array.len(),
        }
    }
}

fn table_bytes(rows: &Rows) -> usize {
    64 + 4 * rows.len * (rows.columns.len() + rows.tags.len())
}

/// What is known of a tensor's evaluations.
#[derive(Default)]
pub(crate) struct Slot {
    /// Whether it was evaluated before.
    pub(crate) seen: bool,
    /// Records that could not be made, or did not hold.
    pub(crate) failed: u32,
    pub(crate) record: Option<Box<Again>>,
    /// Which description of its operations the last one was.
    pub(crate) described: u64,
}

/// The operations that make a tensor.
pub(crate) struct Again {
    pub(crate) operations: Vec<(Recorded, Vec<Input>)>,
    pub(crate) suspects: Vec<(u64, Input, Doubt)>,
    pub(crate) result: (Option<Relation>, Input),
    /// What it was asked of.
    pub(crate) asked: Asked,
    pub(crate) reads: Vec<(TensorId, Kept)>,
    /// The bytes of the tensor, as far as they are counted while it is evaluated.
    pub(crate) bytes: u64,
}

/// How a tensor is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    /// So many elements; and by which description, above 0, where that waits for whoever takes its operation over.
    Dense(usize, u64),
    /// By its stamp.
    Relation(u64),
    /// A relation whose values are computed with, or are none: by its tuples.
    Tuples(u64, bool),
}

/// What a description depends on beside the tensors that it reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// When a range changed the last time.
    pub(crate) ranges: u64,
    /// How many scopes are exact.
    pub(crate) exact: usize,
    /// Remembered things.
    pub(crate) things: Stamps,
}

/// What was asked for since a description began.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) things: Stamps,
    pub(crate) blocks: Vec<Array>,
    pub(crate) looks: u64,
    pub(crate) kept: u64,
    pub(crate) bytes: u64,
    /// What it reads, before it may take over operations of that.
    pub(crate) reads: Vec<(TensorId, Kept)>,
}

impl Watch {
    /// A remembered thing is used.
    pub(crate) fn recalled(&mut self, stamps: &Stamps, thing: &Thing) {
        self.things.extend(stamps);
        if let Thing::Block(block) = thing {
            self.blocks.push(block.values.array.clone());
            self.blocks.extend(block.mask.iter().map(|mask| mask.values.array.clone()));
        }
    }
}

/// Remembered things.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    things: HashMap<Key, (Stamps, Thing)>,
    bytes: usize,
    /// How many bytes they may take now, and from when on an evaluation asks for what the one before it did.
    most: usize,
    again: usize,
    kept: u64,
}

/// Beyond this much everything is forgotten: before anything is evaluated a second time, and in rounds, which ask for much
/// that no later one asks for.
const ONCE: usize = 48 << 20;
const ROUNDS: usize = 256 << 20;
/// The same from the second evaluation on: this share of what may be taken, and no less than in rounds where half of that is
/// more. A step of learning finds nothing again if it asks for more in turns than is remembered.
const SHARE: u64 = 8;

impl Memory {
    /// Nothing is remembered yet; an evaluation may take so many bytes.
    pub(crate) fn new(budget: u64) -> Memory {
        let again = (budget / SHARE).max((ROUNDS as u64).min(budget / 2));
        let again = usize::try_from(again).unwrap_or(usize::MAX);
        Memory { most: ONCE, again, ..Memory::default() }
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Finds a thing whose stamps are still right.
    pub(crate) fn find(&self, key: &Key, current: impl Fn(Source) -> u64) -> Option<(&Stamps, &Thing)> {
        let (stamps, thing) = self.things.get(key)?;
        stamps.iter().all(|(source, stamp)| current(*source) == *stamp).then_some((stamps, thing))
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Memory { most: self.most, again: self.again, kept: self.kept, ..Memory::default() };
    }

    /// Something is done in rounds: what is remembered is worth more from now on.
    pub(crate) fn is_used(&mut self) {
        self.most = self.most.max(ROUNDS);
    }

    /// Something is evaluated again that no rounds ask for: so will the rest be.
    pub(crate) fn is_repeated(&mut self) {
        self.most = self.most.max(self.again);
    }

    /// How many things were ever remembered.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// Remembers a thing.
    pub(crate) fn keep(&mut self, key: Key, stamps: Stamps, thing: Thing) {
        self.kept += 1;
        let bytes = thing.bytes() + 128;
        let most = self.most;
        if bytes > most / 2 {
            return;
        }
        if self.bytes + bytes > most {
            self.things.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, old)) = self.things.insert(key, (stamps, thing)) {
            self.bytes = self.bytes.saturating_sub(old.bytes() + 128);
        }
    }
}
