//! A relation that grows: tuples in order of arrival, found by hash.
//!
//! Rows are appended and never move, so that "the tuples before this round" is a number of rows.
//! Each index is a chain of rows per key, the newest first.

use super::ring::{Ring, Value};

/// A growing relation.
#[derive(Debug, Clone)]
pub(super) struct Table {
    arity: usize,
    ring: Ring,
    len: usize,
    /// Row after row.
    rows: Vec<u32>,
    values: Vec<Value>,
    /// Open addressing: a row + 1 in the low half, bits of its hash in the high half.
    slots: Vec<u64>,
    chains: Vec<Chain>,
}

/// An index of a table.
#[derive(Debug, Clone)]
struct Chain {
    /// The places of the key.
    places: Vec<usize>,
    heads: Heads,
    /// The next older row of the same key + 1, or 0.
    next: Vec<u32>,
}

/// The newest row + 1 of each key.
#[derive(Debug, Clone)]
enum Heads {
    /// For keys of one place: by constant.
    Direct(Vec<u32>),
    /// By hash: a row + 1 in the low half, bits of the key's hash in the high half; and how many
    /// are taken.
    Hashed(Vec<u64>, usize),
}

/// What became of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is new; its row is the last.
    New,
    /// It was there in this row, and its value improved.
    Better(u32),
    /// It was there, and nothing that recursion cares for changed.
    Known,
    /// A count left 64 bits.
    Overflow,
}

/// Keys of one place are indexed by constant below so many constants.
const DIRECT: usize = 1 << 22;

#[inline]
fn hash(constants: impl Iterator<Item = u32>) -> u64 {
    let mut hash = 0_u64;
    for constant in constants {
        hash = (hash.rotate_left(26) ^ u64::from(constant)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    hash ^ hash >> 32
}

const ROW: u64 = 0xFFFF_FFFF;

impl Table {
    /// Empty.
    pub(super) fn new(arity: usize, ring: Ring) -> Table {
        let (rows, values, chains) = (Vec::new(), Vec::new(), Vec::new());
        Table { arity, ring, len: 0, rows, values, slots: vec![0; 16], chains }
    }

    /// Its ring.
    #[inline]
    pub(super) fn ring(&self) -> Ring {
        self.ring
    }

    /// The number of tuples.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A tuple.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.rows[row * self.arity..(row + 1) * self.arity]
    }

    /// Its value, if the ring has values.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Option<Value> {
        self.values.get(row).copied()
    }

    /// Makes sure of an index on these places (ascending), and answers which.
    pub(super) fn index(&mut self, places: &[usize], constants: usize) -> usize {
        if let Some(at) = self.chains.iter().position(|chain| chain.places == places) {
            return at;
        }
        let direct = places.len() == 1 && constants <= DIRECT;
        let heads = if direct { Heads::Direct(vec![0; constants]) } else { Heads::Hashed(vec![0; 16], 0) };
        let mut chain = Chain { places: places.to_vec(), heads, next: Vec::with_capacity(self.len) };
        for row in 0..self.len {
            chain.push(&self.rows, self.arity, row);
        }
        self.chains.push(chain);
        self.chains.len() - 1
    }

    /// The places of an index.
    pub(super) fn places(&self, index: usize) -> &[usize] {
        &self.chains[index].places
    }

    /// The row of a tuple.
    #[inline]
    pub(super) fn find(&self, tuple: &[u32]) -> Option<usize> {
        let hash = hash(tuple.iter().copied());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> 32 == hash >> 32 {
                let row = (slot & ROW) as usize - 1;
                if self.row(row) == tuple {
                    return Some(row);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a tuple.
    pub(super) fn insert(&mut self, tuple: &[u32], value: Value) -> Arrival {
        let hash = hash(tuple.iter().copied());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if slot >> 32 == hash >> 32 {
                let row = (slot & ROW) as usize - 1;
                if self.row(row) == tuple {
                    return self.join(row, value);
                }
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = (hash & !ROW) | (self.len as u64 + 1);
        self.rows.extend_from_slice(tuple);
        if self.ring.valued() {
            self.values.push(value);
        }
        for chain in &mut self.chains {
            chain.push(&self.rows, self.arity, self.len);
        }
        self.len += 1;
        if self.len * 4 > self.slots.len() * 3 {
            self.grow();
        }
        Arrival::New
    }

    fn join(&mut self, row: usize, value: Value) -> Arrival {
        let Some(old) = self.values.get_mut(row) else { return Arrival::Known };
        let better = self.ring.improves(*old, value);
        match self.ring.plus(*old, value) {
            None => Arrival::Overflow,
            Some(joined) => {
                *old = joined;
                if better { Arrival::Better(row as u32) } else { Arrival::Known }
            }
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots.clear();
        self.slots.resize(mask + 1, 0);
        for row in 0..self.len {
            let hash = hash(self.rows[row * self.arity..(row + 1) * self.arity].iter().copied());
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = (hash & !ROW) | (row as u64 + 1);
        }
    }

    /// The newest row of a key + 1, or 0. The key is in the order of the index's places.
    #[inline]
    pub(super) fn newest(&self, index: usize, key: &[u32]) -> u32 {
        let chain = &self.chains[index];
        match &chain.heads {
            Heads::Direct(heads) => key.first().and_then(|key| heads.get(*key as usize)).copied().unwrap_or(0),
            Heads::Hashed(slots, _) => {
                let hash = hash(key.iter().copied());
                let at = chain.slot(slots, &self.rows, self.arity, hash, |i| key[i]);
                (slots[at] & ROW) as u32
            }
        }
    }

    /// The next older row + 1 of the same key, or 0.
    #[inline]
    pub(super) fn older(&self, index: usize, row: usize) -> u32 {
        self.chains[index].next[row]
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let chains: usize = self.chains.iter().map(|chain| 4 * chain.next.capacity() + chain.heads.bytes()).sum();
        4 * self.rows.capacity() + 8 * (self.values.capacity() + self.slots.capacity()) + chains
    }

    /// The bytes that one more tuple may take at most, by doubling of what there is.
    pub(super) fn bytes_if_grown(&self) -> usize {
        2 * self.bytes()
    }

    /// The columns by place, and the values, in order of arrival.
    pub(super) fn into_columns(mut self) -> (Vec<Vec<u32>>, Vec<Value>, usize) {
        self.slots = Vec::new();
        self.chains = Vec::new();
        let column = |place| self.rows.iter().skip(place).step_by(self.arity.max(1)).copied().collect();
        let columns = (0..self.arity).map(column).collect();
        (columns, self.values, self.len)
    }
}

impl Heads {
    fn bytes(&self) -> usize {
        match self {
            Heads::Direct(heads) => 4 * heads.capacity(),
            Heads::Hashed(slots, _) => 8 * slots.capacity(),
        }
    }
}

impl Chain {
    /// The slot of a key: its own or a free one.
    #[inline]
    fn slot(&self, slots: &[u64], rows: &[u32], arity: usize, hash: u64, key: impl Fn(usize) -> u32) -> usize {
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        while slots[at] != 0 {
            if slots[at] >> 32 == hash >> 32 {
                let start = ((slots[at] & ROW) as usize - 1) * arity;
                if self.places.iter().enumerate().all(|(i, place)| rows[start + place] == key(i)) {
                    break;
                }
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn push(&mut self, rows: &[u32], arity: usize, row: usize) {
        let tuple = &rows[row * arity..(row + 1) * arity];
        let newest = row as u32 + 1;
        if let Heads::Direct(heads) = &mut self.heads {
            let key = tuple[self.places[0]] as usize;
            if key >= heads.len() {
                heads.resize((key + 1).next_power_of_two(), 0);
            }
            self.next.push(std::mem::replace(&mut heads[key], newest));
            return;
        }
        let Heads::Hashed(slots, taken) = &self.heads else { return };
        let (mut slots, mut taken) = (slots, *taken);
        if taken * 2 >= slots.len() {
            self.rehash(rows, arity);
            let Heads::Hashed(larger, _) = &self.heads else { return };
            slots = larger;
        }
        let hash = hash(self.places.iter().map(|place| tuple[*place]));
        let at = self.slot(slots, rows, arity, hash, |i| tuple[self.places[i]]);
        let older = (slots[at] & ROW) as u32;
        taken += usize::from(older == 0);
        self.next.push(older);
        if let Heads::Hashed(slots, count) = &mut self.heads {
            slots[at] = (hash & !ROW) | u64::from(newest);
            *count = taken;
        }
    }

    fn rehash(&mut self, rows: &[u32], arity: usize) {
        let Heads::Hashed(slots, _) = &mut self.heads else { return };
        let mut larger = vec![0; slots.len() * 2];
        let mask = larger.len() - 1;
        for slot in slots.iter().filter(|slot| **slot != 0) {
            let start = ((slot & ROW) as usize - 1) * arity;
            let hash = hash(self.places.iter().map(|place| rows[start + place]));
            let mut at = hash as usize & mask;
            while larger[at] != 0 {
                at = (at + 1) & mask;
            }
            larger[at] = *slot;
        }
        *slots = larger;
    }
}
