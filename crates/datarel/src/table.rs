//! A relation that grows: tuples in order of arrival, found by hash.
//!
//! Rows are appended and never move, so that "the tuples before this round" is a number of rows.
//! Each index is a chain of rows per key, the newest first.

use std::ops::Range;

use super::pieces::Pieces;
use super::ring::{Ring, Value};

/// A growing relation.
#[derive(Debug, Clone)]
pub(super) struct Table {
    arity: usize,
    ring: Ring,
    rows: Pieces,
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
    next: Pieces,
}

/// The newest row + 1 of each key.
#[derive(Debug, Clone)]
enum Heads {
    /// For keys of one place: by constant.
    Direct(Vec<u32>),
    /// By hash: a name of the key and a row + 1; and how many are taken. Keys of two places have different names; others
    /// are compared in the row.
    Hashed(Vec<(u64, u32)>, usize),
}

/// The set of tuples: a hash table for each constant of the first place. Joins come by that
/// constant more often than not, and its table is then in the cache.
#[derive(Debug, Clone, Default)]
struct Groups {
    groups: Vec<Group>,
    /// Open addressing: a row + 1 in the low half, its hash in the high half. In pieces that never move.
    slots: Vec<Vec<u64>>,
    /// Parts of `slots` that were left, by the logarithm of their size.
    left: Vec<Vec<u32>>,
}

/// Part of one piece of the slots.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The piece in the upper bits, the first slot in the lower `PIECE`.
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

/// The bits of a number mixed.
#[inline]
fn spread(name: u64) -> usize {
    let mixed = name.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32) as usize
}

const ROW: u64 = 0xFFFF_FFFF;

impl Table {
    /// Empty.
    pub(super) fn new(arity: usize, ring: Ring) -> Table {
        let (rows, values, chains) = (Pieces::new(arity), Vec::new(), Vec::new());
        Table { arity, ring, rows, values, set: Groups::default(), chains }
    }

    /// Its ring.
    #[inline]
    pub(super) fn ring(&self) -> Ring {
        self.ring
    }

    /// The number of tuples.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A tuple.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u32] {
        self.rows.get(row)
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
        let heads =
            if direct { Heads::Direct(vec![0; constants]) } else { Heads::Hashed(vec![(0, 0); 16], 0) };
        self.chains.push(Chain { places: places.to_vec(), heads, next: Pieces::new(1) });
        self.link();
        self.chains.len() - 1
    }

    /// The row of a tuple.
    #[inline]
    pub(super) fn find(&self, tuple: impl Iterator<Item = u32> + Clone) -> Option<usize> {
        let same = |row| self.row(row).iter().copied().eq(tuple.clone());
        self.set.find(Groups::place(tuple.clone()), same).ok()
    }

    /// Brings what a few tuples will be looked up in into the cache, for all of them at a time.
    pub(super) fn warm(&self, rows: &[u32]) {
        let mut seen = 0;
        for tuple in rows.chunks_exact(self.arity.max(1)) {
            seen ^= self.set.near(Groups::place(tuple.iter().copied()));
        }
        std::hint::black_box(seen);
    }

    /// Adds the rows that are new to all indexes.
    pub(super) fn link(&mut self) {
        for chain in &mut self.chains {
            for row in chain.next.len()..self.rows.len() {
                chain.push(&self.rows, row);
            }
        }
    }

    /// Adds a tuple. Indexes find it after [`Table::link`].
    pub(super) fn insert(&mut self, tuple: &[u32], value: Value) -> Arrival {
        let (place, row) = (Groups::place(tuple.iter().copied()), self.len());
        match self.set.find(place, |row| self.row(row) == tuple) {
            Ok(row) => return self.join(row, value),
            Err(free) => self.set.insert(place, row, free),
        }
        self.rows.push(tuple);
        if self.ring.valued() {
            self.values.push(value);
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

    /// The newest row of a key + 1, or 0. The key is in the order of the index's places.
    #[inline]
    pub(super) fn newest(&self, index: usize, mut key: impl Iterator<Item = u32> + Clone) -> u32 {
        let chain = &self.chains[index];
        match &chain.heads {
            Heads::Direct(heads) => key.next().and_then(|key| heads.get(key as usize)).copied().unwrap_or(0),
            Heads::Hashed(slots, _) => slots[Chain::slot(&chain.places, slots, &self.rows, key)].1,
        }
    }

    /// The next older row + 1 of the same key, or 0.
    #[inline]
    pub(super) fn older(&self, index: usize, row: usize) -> u32 {
        self.chains[index].next.get(row)[0]
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let chains: usize = self.chains.iter().map(|chain| chain.next.bytes() + chain.heads.bytes()).sum();
        self.rows.bytes() + 8 * self.values.capacity() + self.set.bytes() + chains
    }

    /// The rows and the values.
    pub(super) fn into_rows(self) -> (Pieces, Vec<Value>) {
        (self.rows, self.values)
    }
}

/// The smallest group has 2^SMALL slots.
const SMALL: u32 = 2;

/// A piece has 2^PIECE slots, or those of one group.
const PIECE: u32 = 16;

impl Group {
    fn piece(self) -> usize {
        (self.start >> PIECE) as usize
    }

    fn slots(self) -> Range<usize> {
        let first = self.start as usize & ((1 << PIECE) - 1);
        first..first + (1 << self.bits)
    }
}

impl Groups {
    /// The group of a tuple, and its hash there.
    #[inline]
    fn place(mut tuple: impl Iterator<Item = u32>) -> (usize, u32) {
        let Some(first) = tuple.next() else { return (0, 0) };
        let (first, hash) = (first as usize, hash(tuple));
        // Constants beyond the direct ones share the groups.
        if first < DIRECT {
            return (first, (hash >> 32) as u32);
        }
        let mixed = (hash >> 32) as u32 ^ (first as u32).wrapping_mul(0x9E37_79B9);
        (first % DIRECT, mixed)
    }

    /// The row, or the slot of its group where it belongs.
    #[inline]
    fn find(&self, (group, hash): (usize, u32), same: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let Some(group) = self.groups.get(group).filter(|group| group.bits > 0) else { return Err(0) };
        let slots = &self.slots[group.piece()][group.slots()];
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at];
            if slot == 0 {
                return Err(at);
            }
            let row = (slot & ROW) as usize;
            if (slot >> 32) as u32 == hash && same(row.wrapping_sub(1)) {
                return Ok(row - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// What stands where the search for a tuple begins.
    #[inline]
    fn near(&self, (group, hash): (usize, u32)) -> u64 {
        let group = self.groups.get(group).copied().unwrap_or_default();
        let at = group.slots().start + (hash as usize & (group.slots().len() - 1));
        self.slots.get(group.piece()).and_then(|slots| slots.get(at)).copied().unwrap_or(0)
    }

    /// Adds a row that is not there, in the free slot that was found.
    #[inline]
    fn insert(&mut self, (number, hash): (usize, u32), row: usize, free: usize) {
        if number >= self.groups.len() {
            self.groups.resize((number + 1).next_power_of_two(), Group::default());
        }
        let slot = u64::from(hash) << 32 | (row as u64 + 1);
        let group = &mut self.groups[number];
        group.taken += 1;
        if group.bits > 0 && group.taken * 4 <= 3 << group.bits {
            let group = *group;
            self.slots[group.piece()][group.slots()][free] = slot;
            return;
        }
        let group = self.grow(self.groups[number]);
        self.groups[number] = group;
        self.put(group, slot);
    }

    #[inline]
    fn put(&mut self, group: Group, slot: u64) {
        let slots = &mut self.slots[group.piece()][group.slots()];
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
        let start = self.left[bits as usize].pop().unwrap_or_else(|| self.room(1 << bits));
        let grown = Group { start, taken: group.taken, bits };
        if group.bits > 0 {
            for at in group.slots() {
                let slot = std::mem::take(&mut self.slots[group.piece()][at]);
                if slot != 0 {
                    self.put(grown, slot);
                }
            }
            self.left[group.bits as usize].push(group.start);
        }
        grown
    }

    /// Where there are so many further slots.
    fn room(&mut self, slots: usize) -> u32 {
        let full = |piece: &Vec<u64>| piece.len() + slots > 1 << PIECE;
        if self.slots.last().is_none_or(full) {
            // The first piece grows: most relations are small.
            let room = if self.slots.is_empty() { slots } else { slots.max(1 << PIECE) };
            self.slots.push(Vec::with_capacity(room));
        }
        let number = self.slots.len() - 1;
        let piece = &mut self.slots[number];
        let start = number << PIECE | piece.len();
        piece.resize(piece.len() + slots, 0);
        start as u32
    }

    fn bytes(&self) -> usize {
        12 * self.groups.capacity() + self.slots.iter().map(|piece| 8 * piece.capacity()).sum::<usize>()
    }
}

impl Heads {
    fn bytes(&self) -> usize {
        match self {
            Heads::Direct(heads) => 4 * heads.capacity(),
            Heads::Hashed(slots, _) => 16 * slots.capacity(),
        }
    }
}

impl Chain {
    /// The name of a key.
    #[inline]
    fn name(mut key: impl Iterator<Item = u32>, places: usize) -> u64 {
        if places == 2 {
            let mut next = || u64::from(key.next().unwrap_or(0));
            return next() << 32 | next();
        }
        hash(key)
    }

    /// The slot of a key: its own or a free one.
    #[inline]
    fn slot(
        places: &[usize],
        slots: &[(u64, u32)],
        rows: &Pieces,
        key: impl Iterator<Item = u32> + Clone,
    ) -> usize {
        let (name, mask) = (Chain::name(key.clone(), places.len()), slots.len() - 1);
        let mut at = spread(name) & mask;
        while slots[at].1 != 0 {
            let same = || {
                let row = rows.get(slots[at].1 as usize - 1);
                places.iter().map(|place| row[*place]).eq(key.clone())
            };
            if slots[at].0 == name && (places.len() == 2 || same()) {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn push(&mut self, rows: &Pieces, row: usize) {
        let tuple = rows.get(row);
        let newest = row as u32 + 1;
        let older = match &mut self.heads {
            Heads::Direct(heads) => {
                let key = tuple[self.places[0]] as usize;
                if key >= heads.len() {
                    heads.resize((key + 1).next_power_of_two(), 0);
                }
                std::mem::replace(&mut heads[key], newest)
            }
            Heads::Hashed(slots, taken) => {
                if (*taken + 1) * 4 > slots.len() * 3 {
                    Chain::rehash(slots);
                }
                let key = self.places.iter().map(|place| tuple[*place]);
                let at = Chain::slot(&self.places, slots, rows, key.clone());
                let name = Chain::name(key, self.places.len());
                let older = std::mem::replace(&mut slots[at], (name, newest)).1;
                *taken += usize::from(older == 0);
                older
            }
        };
        self.next.push(&[older]);
    }

    fn rehash(slots: &mut Vec<(u64, u32)>) {
        let mut larger = vec![(0, 0); slots.len() * 2];
        let mask = larger.len() - 1;
        for slot in slots.iter().filter(|slot| slot.1 != 0) {
            let mut at = spread(slot.0) & mask;
            while larger[at].1 != 0 {
                at = (at + 1) & mask;
            }
            larger[at] = *slot;
        }
        *slots = larger;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Tuples of few and many constants, of constants far apart, and with one in the first place, beside hash maps.
    #[test]
    fn tuples_are_found_alone_and_by_keys() {
        for round in 0..60 {
            let mut stream = seeded::Family::new("datarel", "table", 0).stream(round);
            let arity = stream.below(5) as usize;
            let bounds: Vec<u64> =
                (0..arity).map(|_| [1, 5, 900, 1 << 32][stream.below(4) as usize]).collect();
            let draws = [0, 1, 300, 70_000][stream.below(4) as usize];
            let constants = if bounds.iter().all(|bound| *bound < 1000) { 10 } else { 1 << 30 };
            let mut table = Table::new(arity, Ring::BOOLEAN);
            let keys: Vec<Vec<usize>> = (1..1 << arity)
                .map(|set: usize| (0..arity).filter(|place| set >> place & 1 != 0).collect())
                .collect();
            let (early, late) = keys.split_at(keys.len() / 2);
            let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
            let index =
                |table: &mut Table, places: &Vec<usize>| (table.index(places, constants), places.clone());
            let mut chains: Vec<_> = early.iter().map(|places| index(&mut table, places)).collect();
            for draw in 0..draws {
                if draw == draws / 2 {
                    chains.extend(late.iter().map(|places| index(&mut table, places)));
                }
                let tuple: Vec<u32> = bounds.iter().map(|bound| stream.below(*bound) as u32).collect();
                table.warm(&tuple);
                let new = known.len();
                let arrived = if known.contains_key(&tuple) { Arrival::Known } else { Arrival::New };
                known.entry(tuple.clone()).or_insert(new);
                assert_eq!(table.insert(&tuple, Value::default()), arrived);
            }
            table.link();
            assert_eq!(table.len(), known.len());
            for (at, places) in chains {
                let mut groups: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
                for row in 0..table.len() {
                    let key = places.iter().map(|place| table.row(row)[*place]).collect();
                    groups.entry(key).or_default().push(row);
                }
                for (tuple, row) in known.iter().take(200) {
                    assert_eq!(table.find(tuple.iter().copied()), Some(*row));
                    let key: Vec<u32> = places.iter().map(|place| tuple[*place]).collect();
                    let (mut rows, mut next) = (Vec::new(), table.newest(at, key.iter().copied()));
                    while next > 0 {
                        rows.push(next as usize - 1);
                        next = table.older(at, next as usize - 1);
                    }
                    rows.reverse();
                    assert_eq!(rows, groups[&key]);
                    let other: Vec<u32> = key.iter().map(|constant| constant.wrapping_add(77)).collect();
                    let found = table.newest(at, other.iter().copied()) > 0;
                    assert_eq!(found, groups.contains_key(&other));
                }
            }
            assert_eq!(table.into_rows().0.iter().count(), if arity == 0 { 0 } else { known.len() });
        }
    }
}
