//! One search per value of a carried column: the work of [`super::linear`].
//!
//! Enter at [`Search`]. An accumulator is a set of constants with a list of its members; it is
//! emptied member by member, so that a search costs what it reaches.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::bits::{BitMatrix, BitRows, each_bit, or_into};
use super::limits::{Failure, Limits};
use super::ring::{Ring, Value};
use super::rule::RelationId;
use super::sorted::Sorted;
use super::strata::components;

/// Constants are positions of an accumulator, which may have so many places for each tuple.
const SPREAD: usize = 64;

/// Rows of bits for so many constants at most (2 GiB of bits).
const MOST_BITS: usize = 1 << 17;

/// A closure.
pub(super) enum Found {
    /// As columns.
    Sorted(Sorted),
    /// As rows of bits.
    Bits(BitRows),
}

impl Found {
    pub(super) fn len(&self) -> usize {
        match self {
            Found::Sorted(sorted) => sorted.len(),
            Found::Bits(bits) => bits.len(),
        }
    }
}

/// What is searched.
pub(super) struct Search<'a> {
    /// The relation, for failures.
    pub(super) relation: RelationId,
    /// Its ring.
    pub(super) ring: Ring,
    /// By the carried place; for a relation with one place, by itself.
    pub(super) base: &'a Sorted,
    /// The steps.
    pub(super) arcs: &'a Sorted,
    /// Whether the base is the steps.
    pub(super) same_arcs: bool,
    /// The most tuples that may be found.
    pub(super) tuples: u64,
    /// All limits.
    pub(super) limits: &'a Limits,
}

/// A set of constants with a list of its members.
pub(super) struct Accumulator {
    words: Vec<u64>,
    /// The members, and room for one more than there can be.
    list: Vec<u32>,
    pub(super) len: usize,
}

impl Accumulator {
    pub(super) fn new(size: usize) -> Accumulator {
        Accumulator { words: vec![0; size.div_ceil(64)], list: vec![0; size + 1], len: 0 }
    }

    /// Adds a constant. What is new decides no branch: it cannot be foretold.
    #[inline]
    pub(super) fn add(&mut self, constant: u32) -> bool {
        let word = &mut self.words[constant as usize / 64];
        let new = !*word >> (constant % 64) & 1;
        *word |= 1 << (constant % 64);
        self.list[self.len] = constant;
        self.len += new as usize;
        new != 0
    }

    pub(super) fn members(&self) -> &[u32] {
        &self.list[..self.len]
    }

    /// Appends the members in the order in which they came and becomes empty.
    fn empty_into(&mut self, out: &mut Vec<u32>) {
        out.extend_from_slice(self.members());
        for constant in &self.list[..self.len] {
            self.words[*constant as usize / 64] = 0;
        }
        self.len = 0;
    }

    /// Appends the members in ascending order and becomes empty.
    pub(super) fn drain_into(&mut self, out: &mut Vec<u32>) {
        if self.len > self.words.len() / 8 {
            each_bit(&self.words, |constant| out.push(constant as u32));
            self.words.fill(0);
        } else {
            let members = &mut self.list[..self.len];
            members.sort_unstable();
            out.extend_from_slice(members);
            for constant in members {
                self.words[*constant as usize / 64] = 0;
            }
        }
        self.len = 0;
    }
}

impl Search<'_> {
    /// One more than the largest constant that a search may meet.
    pub(super) fn size(&self) -> Option<usize> {
        let moving = if self.base.order.len() == 2 { self.base.column(1) } else { &[] };
        let columns = [moving, self.arcs.column(1)];
        let largest = columns.iter().flat_map(|column| column.iter()).max().map_or(0, |c| *c as usize + 1);
        let size = largest.max(self.arcs.first_bound()).max(self.base.first_bound());
        (size <= SPREAD * (self.arcs.len() + self.base.len() + 1024)).then_some(size)
    }

    pub(super) fn check(&self, found: usize) -> Result<(), Failure> {
        self.limits.interrupted()?;
        if found as u64 > self.tuples {
            return Err(Failure::Tuples { relation: self.relation, limit: self.limits.tuples });
        }
        let needed = 8 * found as u64;
        if needed > self.limits.bytes {
            return Err(Failure::Bytes { relation: self.relation, needed, limit: self.limits.bytes });
        }
        Ok(())
    }

    /// All that is reached from the members of the accumulator.
    pub(super) fn search(&self, reached: &mut Accumulator) -> Result<(), Failure> {
        let mut at = 0;
        while let Some(from) = reached.members().get(at).copied() {
            at += 1;
            for to in &self.arcs.column(1)[self.arcs.group(from)] {
                reached.add(*to);
            }
            if at.is_multiple_of(1 << 14) {
                self.check(reached.len)?;
            }
        }
        Ok(())
    }

    /// All that is reached from a set.
    pub(super) fn single(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let mut reached = Accumulator::new(size);
        for (constant, _) in self.base.groups(0..self.base.len()) {
            reached.add(constant);
        }
        self.search(&mut reached)?;
        let mut column = Vec::with_capacity(reached.len);
        reached.drain_into(&mut column);
        self.check(column.len())?;
        Ok(Some(Found::Sorted(Sorted::unary(&column, Vec::new()))))
    }

    /// All pairs.
    pub(super) fn pairs(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        if let Some(nodes) = self.dense(size)? {
            return self.bit_rows(size, nodes).map(Some);
        }
        self.each_source(size, |search, _, row, reached: &mut Accumulator, out| {
            for constant in &search.base.column(1)[row] {
                reached.add(*constant);
            }
            search.search(reached)?;
            reached.drain_into(&mut out.second);
            Ok(true)
        })
    }

    /// The constants that searches meet, if the result is likely to fill more than 1/64 of all
    /// pairs: some sources are tried.
    fn dense(&self, size: usize) -> Result<Option<Vec<u32>>, Failure> {
        let arcs = self.arcs.groups(0..self.arcs.len()).map(|(constant, _)| constant);
        let met = self.base.column(1).iter().chain(self.arcs.column(1)).copied().chain(arcs);
        let nodes = ascending(size, met);
        self.fills(size, &nodes, Search::search).map(|fills| fills.then_some(nodes))
    }

    /// Whether what `walk` finds from each source is likely to fill more than 1/64 of all pairs with these constants,
    /// and rows of bits for all of them are allowed.
    fn fills(
        &self,
        size: usize,
        nodes: &[u32],
        walk: impl Fn(&Self, &mut Accumulator) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        if nodes.len() > MOST_BITS || nodes.len() as u64 * nodes.len() as u64 / 8 > self.limits.bytes {
            return Ok(false);
        }
        let sources: Vec<(u32, Range<usize>)> = self.base.groups(0..self.base.len()).collect();
        let tried = sources.len().min(16);
        let mut reached = Accumulator::new(size);
        let (mut found, mut bin) = (0, Vec::new());
        for at in 0..tried {
            for constant in &self.base.column(1)[sources[at * sources.len() / tried].1.clone()] {
                reached.add(*constant);
            }
            walk(self, &mut reached)?;
            found += reached.len;
            bin.clear();
            reached.drain_into(&mut bin);
        }
        Ok(64 * found > tried * nodes.len())
    }

    /// All pairs of one step of the base and one arc; of different constants, if that is asked.
    pub(super) fn product(&self, different: bool) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let targets = ascending(size, self.arcs.column(1).iter().copied());
        let walk = |search: &Self, reached: &mut Accumulator| {
            let mut middle = Vec::new();
            reached.drain_into(&mut middle);
            for to in middle.iter().flat_map(|via| &search.arcs.column(1)[search.arcs.group(*via)]) {
                reached.add(*to);
            }
            Ok(())
        };
        if self.fills(size, &targets, walk)? {
            return self.product_bits(size, targets, different).map(Some);
        }
        let found = self.each_source(size, |search, source, row, reached: &mut Accumulator, out| {
            for via in &search.base.column(1)[row] {
                for to in &search.arcs.column(1)[search.arcs.group(*via)] {
                    reached.add(*to);
                }
            }
            let from = out.second.len();
            reached.empty_into(&mut out.second);
            if different && let Some(at) = out.second[from..].iter().position(|to| *to == source) {
                out.second.swap_remove(from + at);
            }
            Ok(true)
        })?;
        Ok(found.map(|found| match found {
            Found::Sorted(mut sorted) => {
                sorted.loose = true;
                Found::Sorted(sorted)
            }
            bits => bits,
        }))
    }

    /// The product by rows of bits.
    fn product_bits(&self, size: usize, targets: Vec<u32>, different: bool) -> Result<Found, Failure> {
        let position = positions(size, &targets);
        let words = targets.len().div_ceil(64);
        // A row of arcs that is longer than a row of bits is one.
        let mut wide = BitMatrix::of(0, words);
        let mut row_of = vec![u32::MAX; size];
        for (via, group) in self.arcs.groups(0..self.arcs.len()) {
            if group.len() > words {
                row_of[via as usize] = (wide.data.len() / words) as u32;
                let start = wide.data.len();
                wide.data.resize(start + words, 0);
                set_bits(&mut wide.data[start..], &self.arcs.column(1)[group], &position);
            }
        }
        let sources: Vec<(u32, Range<usize>)> = self.base.groups(0..self.base.len()).collect();
        let mut rows = BitMatrix::of(sources.len(), words);
        if words > 0 {
            rows.data.par_chunks_mut(words).zip(&sources).with_min_len(16).for_each(
                |(row, (source, group))| {
                    for via in &self.base.column(1)[group.clone()] {
                        match row_of[*via as usize] {
                            u32::MAX => set_bits(row, &self.arcs.column(1)[self.arcs.group(*via)], &position),
                            at => or_into(row, wide.row(at as usize)),
                        }
                    }
                    if different && let Ok(at) = targets.binary_search(source) {
                        row[at / 64] &= !(1 << (at % 64));
                    }
                },
            );
        }
        let row_of = (0..sources.len() as u32).collect();
        let left = sources.into_iter().map(|(constant, _)| constant).collect();
        let bits = BitRows::shared(left, targets, row_of, rows);
        self.check(bits.len())?;
        Ok(Found::Bits(bits))
    }

    /// The closure by rows of bits, one for each strong component.
    fn bit_rows(&self, size: usize, nodes: Vec<u32>) -> Result<Found, Failure> {
        let position = positions(size, &nodes);
        let successors: Vec<Vec<usize>> = nodes
            .iter()
            .map(|node| {
                let arcs = &self.arcs.column(1)[self.arcs.group(*node)];
                arcs.iter().map(|to| position[*to as usize] as usize).collect()
            })
            .collect();
        let component = components(&successors);
        let count = component.iter().max().map_or(0, |last| last + 1);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, component) in component.iter().enumerate() {
            members[*component].push(node);
        }
        // What each component reaches, itself included: those it reaches have smaller numbers.
        let words = nodes.len().div_ceil(64);
        let mut reached = BitMatrix::of(count, words);
        let mut joined = vec![usize::MAX; count];
        for (at, members) in members.iter().enumerate() {
            self.limits.interrupted()?;
            for node in members {
                reached.set(at, *node);
                for next in &successors[*node] {
                    let other = component[*next];
                    if other != at && std::mem::replace(&mut joined[other], at) != at {
                        let (to, from) = reached.two_rows(at, other);
                        or_into(to, from);
                    }
                }
            }
        }
        if self.same_arcs {
            // A node reaches itself only along an arc.
            for (at, members) in members.iter().enumerate() {
                if let [node] = members[..]
                    && !successors[node].contains(&node)
                {
                    reached.clear(at, node);
                }
            }
            let row_of = component.iter().map(|at| *at as u32).collect();
            let bits = BitRows::shared(nodes.clone(), nodes, row_of, reached);
            self.check(bits.len())?;
            return Ok(Found::Bits(bits));
        }
        let sources: Vec<(u32, Range<usize>)> = self.base.groups(0..self.base.len()).collect();
        let mut rows = BitMatrix::of(sources.len(), words);
        if words > 0 {
            rows.data.par_chunks_mut(words).zip(&sources).for_each(|(row, (_, group))| {
                for to in &self.base.column(1)[group.clone()] {
                    or_into(row, reached.row(component[position[*to as usize] as usize]));
                }
            });
        }
        let row_of = (0..sources.len() as u32).collect();
        let left = sources.into_iter().map(|(constant, _)| constant).collect();
        let bits = BitRows::shared(left, nodes, row_of, rows);
        self.check(bits.len())?;
        Ok(Found::Bits(bits))
    }

    /// Runs `one` for every value of the carried place, in parts that run in parallel.
    pub(super) fn each_source<A: Fresh>(
        &self,
        size: usize,
        one: impl Fn(&Self, u32, Range<usize>, &mut A, &mut Part) -> Result<bool, Failure> + Sync,
    ) -> Result<Option<Found>, Failure> {
        let rows = self.base.len();
        let threads = rayon::current_num_threads();
        let count = if threads == 1 { 1 } else { (threads * 8).min(rows / 16 + 1) };
        let parts: Vec<_> = (0..count).map(|at| at * rows / count..(at + 1) * rows / count).collect();
        let total = AtomicUsize::new(0);
        let search = |part: Range<usize>| -> Result<Option<Part>, Failure> {
            let mut accumulator = A::fresh(size);
            let mut out = Part::default();
            let mut reported = 0;
            for (source, _) in self.base.groups(part.clone()) {
                // A group belongs to the part in which it starts.
                let group = self.base.group(source);
                if group.start < part.start {
                    continue;
                }
                if !one(self, source, group, &mut accumulator, &mut out)? {
                    return Ok(None);
                }
                out.sources.push(source);
                out.ends.push(out.second.len() as u32);
                if out.second.len() - reported > 1 << 16 {
                    let more = out.second.len() - reported;
                    reported = out.second.len();
                    self.check(total.fetch_add(more, Ordering::Relaxed) + more)?;
                }
            }
            Ok(Some(out))
        };
        let parts: Result<Option<Vec<Part>>, Failure> = if count == 1 {
            parts.into_iter().map(search).collect::<Result<_, _>>()
        } else {
            parts.into_par_iter().map(search).collect::<Result<_, _>>()
        };
        let Some(parts) = parts? else { return Ok(None) };
        self.check(parts.iter().map(|part| part.second.len()).sum())?;
        Ok(Some(Found::Sorted(joined(parts))))
    }
}

/// Constants in ascending order, each once.
pub(super) fn ascending(size: usize, constants: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut met = vec![0_u64; size.div_ceil(64)];
    constants.for_each(|constant| met[constant as usize / 64] |= 1 << (constant % 64));
    let mut all = Vec::new();
    each_bit(&met, |constant| all.push(constant as u32));
    all
}

/// Where each constant stands in a list.
pub(super) fn positions(size: usize, list: &[u32]) -> Vec<u32> {
    let mut position = vec![0; size];
    for (at, constant) in (0..).zip(list) {
        position[*constant as usize] = at;
    }
    position
}

fn set_bits(row: &mut [u64], constants: &[u32], position: &[u32]) {
    for constant in constants {
        let at = position[*constant as usize];
        row[at as usize / 64] |= 1 << (at % 64);
    }
}

/// What a part of the sources found.
#[derive(Default)]
pub(super) struct Part {
    pub(super) sources: Vec<u32>,
    pub(super) ends: Vec<u32>,
    pub(super) second: Vec<u32>,
    pub(super) values: Vec<Value>,
}

/// The parts one behind the other.
pub(super) fn joined(parts: Vec<Part>) -> Sorted {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    all.second.reserve_exact(parts.as_slice().iter().map(|part| part.second.len()).sum());
    for part in parts {
        let before = all.second.len() as u32;
        all.sources.extend(part.sources);
        all.ends.extend(part.ends.iter().map(|end| end + before));
        all.second.extend(part.second);
        all.values.extend(part.values);
    }
    Sorted::from_groups(&all.sources, &all.ends, all.second, all.values)
}

pub(super) trait Fresh {
    fn fresh(size: usize) -> Self;
}

impl Fresh for Accumulator {
    fn fresh(size: usize) -> Accumulator {
        Accumulator::new(size)
    }
}
