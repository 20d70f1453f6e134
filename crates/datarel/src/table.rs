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
    set: Groups,
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

/// The set of tuples: a hash table for each constant of the first place. Joins come by that
/// constant more often than not, and its table is then in the cache.
#[derive(Debug, Clone, Default)]
struct Groups {
    groups: Vec<Group>,
    /// Open addressing: a row + 1 in the low half, its hash in the high half.
    slots: Vec<u64>,
    /// Parts of `slots` that were left, by the logarithm of their size.
    left: Vec<Vec<u32>>,
}

/// A part of the slots.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    start: u32,
    taken: u32,
    /// The number of slots is 2^bits; 0 for none.
    bits: u32,
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
        Table { arity, ring, len: 0, rows, values, set: Groups::default(), chains }
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

    /// The row of a tuple.
    #[inline]
    pub(super) fn find(&self, tuple: &[u32]) -> Option<usize> {
        self.set.find(tuple, |row| self.row(row) == tuple)
    }

    /// Adds a tuple.
    pub(super) fn insert(&mut self, tuple: &[u32], value: Value) -> Arrival {
        if let Some(row) = self.find(tuple) {
            return self.join(row, value);
        }
        self.set.insert(tuple, self.len);
        self.rows.extend_from_slice(tuple);
        if self.ring.valued() {
            self.values.push(value);
        }
        for chain in &mut self.chains {
            chain.push(&self.rows, self.arity, self.len);
        }
        self.len += 1;
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

    /// The newest row of a key + 1, or 0. The key is in the order of the index's places.
    #[inline]
    pub(super) fn newest(&self, index: usize, key: &[u32]) -> u32 {
        let chain = &self.chains[index];
        match &chain.heads {
            Heads::Direct(heads) => {
                key.first().and_then(|key| heads.get(*key as usize)).copied().unwrap_or(0)
            }
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
        let chains: usize =
            self.chains.iter().map(|chain| 4 * chain.next.capacity() + chain.heads.bytes()).sum();
        4 * self.rows.capacity() + 8 * self.values.capacity() + self.set.bytes() + chains
    }

    /// The rows, one behind the other, the values, and the number of rows.
    pub(super) fn into_rows(self) -> (Vec<u32>, Vec<Value>, usize) {
        (self.rows, self.values, self.len)
    }
}

/// The smallest group has 2^SMALL slots.
const SMALL: u32 = 2;

impl Groups {
    /// The group of a tuple, and its hash there.
    #[inline]
    fn place(tuple: &[u32]) -> (usize, u32) {
        let Some((first, rest)) = tuple.split_first() else { return (0, 0) };
        let hash = hash(rest.iter().copied());
        let first = *first as usize;
        // Constants beyond the direct ones share the groups.
        if first < DIRECT {
            return (first, (hash >> 32) as u32);
        }
        let mixed = (hash >> 32) as u32 ^ (first as u32).wrapping_mul(0x9E37_79B9);
        (first % DIRECT, mixed)
    }

    #[inline]
    fn find(&self, tuple: &[u32], same: impl Fn(usize) -> bool) -> Option<usize> {
        let (group, hash) = Groups::place(tuple);
        let group = self.groups.get(group)?;
        if group.bits == 0 {
            return None;
        }
        let slots = &self.slots[group.start as usize..][..1 << group.bits];
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at];
            if slot == 0 {
                return None;
            }
            let row = (slot & ROW) as usize;
            if (slot >> 32) as u32 == hash && same(row.wrapping_sub(1)) {
                return Some(row - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a row that is not there.
    fn insert(&mut self, tuple: &[u32], row: usize) {
        let (number, hash) = Groups::place(tuple);
        if number >= self.groups.len() {
            self.groups.resize((number + 1).next_power_of_two(), Group::default());
        }
        let mut group = self.groups[number];
        if group.bits == 0 || (group.taken + 1) * 4 > 3 << group.bits {
            group = self.grow(group);
        }
        group.taken += 1;
        self.groups[number] = group;
        self.put(group, u64::from(hash) << 32 | (row as u64 + 1));
    }

    #[inline]
    fn put(&mut self, group: Group, slot: u64) {
        let slots = &mut self.slots[group.start as usize..][..1 << group.bits];
        let mask = slots.len() - 1;
        let mut at = (slot >> 32) as usize & mask;
        while slots[at] != 0 {
            at = (at + 1) & mask;
        }
        slots[at] = slot;
    }

    /// Moves a group to a part of twice the size.
    fn grow(&mut self, group: Group) -> Group {
        let bits = if group.bits == 0 { SMALL } else { group.bits + 1 };
        let needed = bits as usize + 1;
        if self.left.len() < needed {
            self.left.resize(needed, Vec::new());
        }
        let start = self.left[bits as usize].pop().unwrap_or_else(|| {
            let start = self.slots.len() as u32;
            self.slots.resize(self.slots.len() + (1 << bits), 0);
            start
        });
        let grown = Group { start, taken: group.taken, bits };
        if group.bits > 0 {
            for at in group.start..group.start + (1 << group.bits) {
                let slot = std::mem::take(&mut self.slots[at as usize]);
                if slot != 0 {
                    self.put(grown, slot);
                }
            }
            self.left[group.bits as usize].push(group.start);
        }
        grown
    }

    fn bytes(&self) -> usize {
        12 * self.groups.capacity() + 8 * self.slots.capacity()
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
    fn slot(
        &self,
        slots: &[u64],
        rows: &[u32],
        arity: usize,
        hash: u64,
        key: impl Fn(usize) -> u32,
    ) -> usize {
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
