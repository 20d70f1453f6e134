//! The relations of a recursion at work: what is known, and which rows have their turn.
//!
//! A row that is new (or better, in a valued relation) waits, takes its turn once as the delta of
//! every rule, and is then known. Rows wait in blocks of the first place.

use super::database::Database;
use super::limits::Failure;
use super::ring::Value;
use super::rule::RelationId;
use super::step::Version;
use super::table::{Arrival, Table};

/// A relation of the component at work.
pub(super) struct Growing {
    /// Which.
    pub(super) relation: RelationId,
    /// Its tuples.
    pub(super) table: Table,
    /// The rows whose turn it is, and their marks.
    pub(super) turn: Vec<u32>,
    in_turn: Vec<bool>,
    /// The rows that are new or better and wait for their turn, in blocks, and how many.
    waiting: Vec<Vec<u32>>,
    wait: usize,
    /// Marks of those of a valued relation: they may improve several times.
    waits: Vec<bool>,
}

/// So many constants of the first place make a block of rows that take their turn together: what
/// is known of them stays in the cache until they are done, if rules carry the first place.
const BLOCK: u32 = 256;

/// Blocks beyond this share a number.
const BLOCKS: u32 = 1 << 14;

/// So many rows take their turn together, unless there are fewer.
const TURN: usize = 1 << 12;

impl Growing {
    /// None of the rows of the table has had its turn.
    pub(super) fn new(relation: RelationId, table: Table) -> Growing {
        let (turn, in_turn, waiting, waits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Growing { relation, table, turn, in_turn, waiting, wait: 0, waits }
    }

    /// The number of rows in a version.
    pub(super) fn rows(&self, version: Version) -> usize {
        match version {
            Version::Delta => self.turn.len(),
            Version::Old | Version::Current => self.table.len(),
        }
    }

    /// A row of a version by its number.
    #[inline]
    pub(super) fn row(&self, version: Version, number: usize) -> usize {
        match version {
            Version::Delta => self.turn[number] as usize,
            Version::Old | Version::Current => number,
        }
    }

    /// Whether a row belongs to a version.
    #[inline]
    pub(super) fn sees(&self, version: Version, row: usize) -> bool {
        version != Version::Old || !self.in_turn.get(row).is_some_and(|in_turn| *in_turn)
    }

    /// Ends the turn of rows.
    fn end_turn(&mut self) {
        for row in self.turn.drain(..) {
            self.in_turn[row as usize] = false;
        }
    }

    /// Gives the rows of a block their turn.
    fn begin_turn(&mut self, block: usize) {
        let Some(waiting) = self.waiting.get_mut(block) else { return };
        self.wait -= waiting.len();
        self.in_turn.resize(self.table.len(), false);
        for row in waiting.drain(..) {
            self.in_turn[row as usize] = true;
            if let Some(waits) = self.waits.get_mut(row as usize) {
                *waits = false;
            }
            self.turn.push(row);
        }
    }

    /// Adds a tuple; what is new or better waits.
    pub(super) fn insert(&mut self, tuple: &[u32], value: Value) -> Result<(), Failure> {
        let row = match self.table.insert(tuple, value) {
            Arrival::Known => return Ok(()),
            Arrival::Overflow => {
                return Err(Failure::Overflow { relation: self.relation, tuple: tuple.to_vec() });
            }
            Arrival::New => self.table.len() as u32 - 1,
            Arrival::Better(row) => row,
        };
        let valued = self.table.ring().valued();
        if valued {
            self.waits.resize(self.table.len(), false);
            if std::mem::replace(&mut self.waits[row as usize], true) {
                return Ok(());
            }
        }
        // Values come to rest in rounds that are counted: all rows of a round belong together.
        let block = match tuple.first() {
            Some(first) if !valued => (first / BLOCK % BLOCKS) as usize,
            _ => 0,
        };
        if block >= self.waiting.len() {
            self.waiting.resize(block + 1, Vec::new());
        }
        self.waiting[block].push(row);
        self.wait += 1;
        Ok(())
    }
}

/// The relations of the component at work.
#[derive(Default)]
pub(super) struct Component {
    pub(super) growing: Vec<Growing>,
}

impl Component {
    /// Empty tables of the relations of a recursion, to make plans with.
    pub(super) fn of(database: &Database, relations: &[RelationId], recursive: bool) -> Component {
        let table = |id: &RelationId| {
            let relation = database.relation(*id);
            Growing::new(*id, Table::new(relation.arity(), relation.ring()))
        };
        Component { growing: relations.iter().filter(|_| recursive).map(table).collect() }
    }

    /// A relation, if it is one of the component.
    #[inline]
    pub(super) fn table(&self, relation: RelationId) -> Option<&Growing> {
        self.growing.iter().find(|growing| growing.relation == relation)
    }

    /// A relation, if it is one of the component.
    pub(super) fn table_mut(&mut self, relation: RelationId) -> Option<&mut Growing> {
        self.growing.iter_mut().find(|growing| growing.relation == relation)
    }

    /// Gives waiting rows their turn: those of the block, and of further ones while they are few;
    /// false where none waits. The block is done when none of its rows waits.
    pub(super) fn begin_turn(&mut self, block: &mut usize) -> bool {
        self.growing.iter_mut().for_each(Growing::end_turn);
        let waiting: usize = self.growing.iter().map(|growing| growing.wait).sum();
        let blocks = self.growing.iter().map(|growing| growing.waiting.len()).max().unwrap_or(0);
        let (mut taken, mut first) = (0, None);
        for at in 0..blocks {
            if taken >= TURN.min(waiting) {
                break;
            }
            let number = (*block + at) % blocks;
            for growing in &mut self.growing {
                let before = growing.turn.len();
                growing.begin_turn(number);
                taken += growing.turn.len() - before;
            }
            if taken > 0 && first.is_none() {
                first = Some(number);
            }
        }
        *block = first.unwrap_or(0);
        taken > 0
    }

    /// The tuples of all.
    pub(super) fn tuples(&self) -> u64 {
        self.growing.iter().map(|growing| growing.table.len() as u64).sum()
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        self.growing.iter().map(|growing| growing.table.bytes() as u64).sum()
    }
}
