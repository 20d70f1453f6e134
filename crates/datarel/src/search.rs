//! One search per value of a carried column: the work of [`super::linear`].
//!
//! Enter at [`Search`]. An accumulator is a set of constants with a list of its members; it is
//! emptied member by member, so that a search costs what it reaches.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::bits::{BitMatrix, BitRows, each_bit, or_into};
use super::limits::{Failure, Limits};
use super::ring::{Combine, Ring, Times, Value};
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
    fn len(&self) -> usize {
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
struct Accumulator {
    words: Vec<u64>,
    /// The members, and room for one more than there can be.
    list: Vec<u32>,
    len: usize,
}

impl Accumulator {
    fn new(size: usize) -> Accumulator {
        Accumulator { words: vec![0; size.div_ceil(64)], list: vec![0; size + 1], len: 0 }
    }

    /// Adds a constant. What is new decides no branch: it cannot be foretold.
    #[inline]
    fn add(&mut self, constant: u32) -> bool {
        let word = &mut self.words[constant as usize / 64];
        let new = !*word >> (constant % 64) & 1;
        *word |= 1 << (constant % 64);
        self.list[self.len] = constant;
        self.len += new as usize;
        new != 0
    }

    fn members(&self) -> &[u32] {
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
    fn drain_into(&mut self, out: &mut Vec<u32>) {
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
    fn size(&self) -> Option<usize> {
        let moving = if self.base.order.len() == 2 { self.base.column(1) } else { &[] };
        let columns = [moving, self.arcs.column(1)];
        let largest = columns.iter().flat_map(|column| column.iter()).max().map_or(0, |c| *c as usize + 1);
        let size = largest.max(self.arcs.first_bound()).max(self.base.first_bound());
        (size <= SPREAD * (self.arcs.len() + self.base.len() + 1024)).then_some(size)
    }

    fn check(&self, found: usize) -> Result<(), Failure> {
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
    fn search(&self, reached: &mut Accumulator) -> Result<(), Failure> {
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
    fn each_source<A: Fresh>(
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
fn ascending(size: usize, constants: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut met = vec![0_u64; size.div_ceil(64)];
    constants.for_each(|constant| met[constant as usize / 64] |= 1 << (constant % 64));
    let mut all = Vec::new();
    each_bit(&met, |constant| all.push(constant as u32));
    all
}

/// Where each constant stands in a list.
fn positions(size: usize, list: &[u32]) -> Vec<u32> {
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
struct Part {
    sources: Vec<u32>,
    ends: Vec<u32>,
    second: Vec<u32>,
    values: Vec<Value>,
}

/// The parts one behind the other.
fn joined(parts: Vec<Part>) -> Sorted {
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

trait Fresh {
    fn fresh(size: usize) -> Self;
}

impl Fresh for Accumulator {
    fn fresh(size: usize) -> Accumulator {
        Accumulator::new(size)
    }
}

/// The values of one search.
struct Values {
    reached: Accumulator,
    value: Vec<Value>,
    /// Those to step from, in this round and in the next; the marks of the latter.
    now: Vec<u32>,
    next: Vec<u32>,
    listed: Vec<bool>,
}

impl Fresh for Values {
    fn fresh(size: usize) -> Values {
        let (now, next) = (Vec::new(), Vec::new());
        Values {
            reached: Accumulator::new(size),
            value: vec![Value(0); size],
            now,
            next,
            listed: vec![false; size],
        }
    }
}

impl Values {
    #[inline]
    fn offer(&mut self, ring: Ring, constant: u32, value: Value) {
        let at = constant as usize;
        if !self.reached.add(constant) && !ring.improves(self.value[at], value) {
            return;
        }
        self.value[at] = value;
        if !std::mem::replace(&mut self.listed[at], true) {
            self.next.push(constant);
        }
    }

    /// Adds to the sum of a constant; false where there is no number.
    fn plus(&mut self, ring: Ring, constant: u32, value: Option<Value>) -> bool {
        let at = constant as usize;
        let old = std::mem::replace(&mut self.listed[at], true).then_some(self.value[at]);
        let sum = value.and_then(|value| old.map_or(Some(value), |old| ring.plus(old, value)));
        self.value[at] = sum.unwrap_or_default();
        sum.is_some()
    }

    fn drain_into(&mut self, second: &mut Vec<u32>, values: &mut Vec<Value>) {
        let from = second.len();
        self.reached.drain_into(second);
        values.extend(second[from..].iter().map(|constant| self.value[*constant as usize]));
    }
}

impl Search<'_> {
    /// Corrects values in rounds; false where they are not at rest in time.
    fn correct(&self, values: &mut Values) -> Result<bool, Failure> {
        // Known rings are compiled for themselves.
        match self.ring {
            Ring::MIN_PLUS => self.correct_by(Ring::MIN_PLUS, values),
            ring => self.correct_by(ring, values),
        }
    }

    #[inline(always)]
    fn correct_by(&self, ring: Ring, values: &mut Values) -> Result<bool, Failure> {
        let (to, weights) = (self.arcs.column(1), self.arcs.values());
        let mut rounds = 0;
        while !values.next.is_empty() {
            rounds += 1;
            if rounds > values.reached.len + 1 {
                values.next.clear();
                return Ok(false);
            }
            self.limits.interrupted()?;
            std::mem::swap(&mut values.now, &mut values.next);
            for at in 0..values.now.len() {
                let from = values.now[at];
                values.listed[from as usize] = false;
                let value = values.value[from as usize];
                let group = self.arcs.group(from);
                for (to, weight) in to[group.clone()].iter().zip(&weights[group]) {
                    if let Some(product) = ring.times(value, *weight) {
                        values.offer(ring, *to, product);
                    }
                }
            }
            values.now.clear();
        }
        Ok(true)
    }

    /// The values of all that is reached from a set; `None` where they are not at rest in time.
    pub(super) fn single_valued(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let mut values = Values::fresh(size);
        for (constant, group) in self.base.groups(0..self.base.len()) {
            if let Some(value) = self.base.value(group.start) {
                values.offer(self.ring, constant, value);
            }
        }
        if !self.correct(&mut values)? {
            self.endless(&values)?;
            return Ok(None);
        }
        self.unary(values)
    }

    fn unary(&self, mut values: Values) -> Result<Option<Found>, Failure> {
        let (mut column, mut result) = (Vec::new(), Vec::new());
        values.drain_into(&mut column, &mut result);
        self.check(column.len())?;
        Ok(Some(Found::Sorted(Sorted::unary(&column, result))))
    }

    /// The values of all pairs; `None` where they are not at rest in time.
    pub(super) fn pairs_valued(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        if let Some(found) = self.triple_loop(size)? {
            return Ok(Some(found));
        }
        self.each_source(size, |search, _, group, values: &mut Values, out| {
            for row in group {
                if let Some(value) = search.base.value(row) {
                    values.offer(search.ring, search.base.column(1)[row], value);
                }
            }
            let rest = search.correct(values)?;
            if !rest {
                search.endless(values)?;
            }
            values.drain_into(&mut out.second, &mut out.values);
            Ok(rest)
        })
    }

    /// Refuses values that are not at rest after as many rounds as there are nodes, if a cycle is found that improves
    /// them by more than all rounding of the rounds that are allowed could take back.
    fn endless(&self, values: &Values) -> Result<(), Failure> {
        if self.ring.times != Times::Plus || !self.ring.idempotent() {
            return Ok(());
        }
        let nodes = values.reached.members();
        let mut value: Vec<f64> = values.value.iter().map(|value| value.as_real()).collect();
        // Which arc has improved each node last, since all of them are watched.
        let mut parent: Vec<Option<(u32, f64)>> = vec![None; value.len()];
        let mut last = None;
        for _ in 0..2 * nodes.len() {
            self.limits.interrupted()?;
            last = None;
            for from in nodes {
                for row in self.arcs.group(*from) {
                    let (to, weight) = (self.arcs.column(1)[row], self.arcs.values()[row].as_real());
                    let sum = value[*from as usize] + weight;
                    if self.ring.improves(Value::real(value[to as usize]), Value::real(sum)) {
                        value[to as usize] = sum;
                        parent[to as usize] = Some((*from, weight));
                        last = Some(to);
                    }
                }
            }
        }
        let before = |node: u32| parent[node as usize];
        let Some(start) = last.and_then(|last| {
            (0..nodes.len()).try_fold(last, |node, _| before(node).map(|(parent, _)| parent))
        }) else {
            return Ok(());
        };
        let (mut at, mut lap, mut length) = (start, 0.0, 0.0);
        while let Some((next, weight)) = before(at) {
            (at, lap, length) = (next, lap + weight, length + 1.0);
            if at == start {
                break;
            }
        }
        let reached = match self.base.order.len() {
            1 => self.single()?,
            _ => self.pairs()?,
        };
        let tuples = reached.map_or(0, |found| found.len()) as u64;
        let largest = |all: &[Value]| all.iter().map(|value| value.as_real().abs()).fold(0.0, f64::max);
        let most = largest(self.base.values()) + (tuples as f64 + 2.0) * largest(self.arcs.values());
        if at == start && lap.abs() > length * most * 2.0 * f64::EPSILON {
            return Err(Failure::Divergence { relation: self.relation, rounds: tuples + 2, tuples });
        }
        Ok(())
    }

    /// The values of all pairs by Floyd's and Warshall's loops, where nearly all pairs have arcs and no cycle improves.
    fn triple_loop(&self, size: usize) -> Result<Option<Found>, Failure> {
        let (absent, relax): (f64, Relax) = match (self.ring.combine, self.ring.times) {
            (Combine::Min, Times::Plus) => (f64::INFINITY, |to, via, from| {
                to.iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = if via + from < *to { via + from } else { *to });
            }),
            (Combine::Max, Times::Plus) => (f64::NEG_INFINITY, |to, via, from| {
                to.iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = if via + from > *to { via + from } else { *to });
            }),
            (Combine::Max, Times::Min) => (f64::NEG_INFINITY, |to, via, from| {
                to.iter_mut().zip(from).for_each(|(to, from)| *to = to.max(via.min(*from)));
            }),
            _ => return Ok(None),
        };
        let arcs = self.arcs.groups(0..self.arcs.len()).map(|(constant, _)| constant);
        let nodes =
            ascending(size, self.base.column(1).iter().chain(self.arcs.column(1)).copied().chain(arcs));
        let count = nodes.len();
        let finite = |sorted: &Sorted| sorted.values().iter().all(|value| value.as_real().is_finite());
        let sources: Vec<(u32, Range<usize>)> = self.base.groups(0..self.base.len()).collect();
        let dense = count >= 16 && 8 * self.arcs.len() >= count * count && sources.len() <= 2 * count;
        let cells = count * (count + sources.len());
        if !dense || 8 * cells as u64 > self.limits.bytes || !finite(self.base) || !finite(self.arcs) {
            return Ok(None);
        }
        let position = positions(size, &nodes);
        let matrix = |sorted: &Sorted,
                      groups: &[(u32, Range<usize>)],
                      row_of: &dyn Fn(usize) -> usize,
                      rows: usize| {
            let mut cells = vec![absent; rows * count];
            for (at, (_, group)) in groups.iter().enumerate() {
                let row = &mut cells[row_of(at) * count..][..count];
                for arc in group.clone() {
                    row[position[sorted.column(1)[arc] as usize] as usize] = sorted.values()[arc].as_real();
                }
            }
            cells
        };
        let groups: Vec<(u32, Range<usize>)> = self.arcs.groups(0..self.arcs.len()).collect();
        let place = |at: usize| position[groups[at].0 as usize] as usize;
        let mut least = matrix(self.arcs, &groups, &place, count);
        let mut via_row = vec![absent; count];
        for via in 0..count {
            self.limits.interrupted()?;
            via_row.copy_from_slice(&least[via * count..][..count]);
            let one = |row: &mut [f64]| {
                if row[via] != absent {
                    relax(row, row[via], &via_row);
                }
            };
            each_chunk(&mut least, count, one);
        }
        let one = self.ring.one();
        if (0..count).any(|at| self.ring.improves(one, Value::real(least[at * count + at]))) {
            return Ok(None);
        }
        let mut found = matrix(self.base, &sources, &|at| at, sources.len());
        let first = found.clone();
        let extend = |(row, first): (&mut [f64], &[f64])| {
            for (via, value) in first.iter().enumerate().filter(|(_, value)| **value != absent) {
                relax(row, *value, &least[via * count..][..count]);
            }
        };
        found.par_chunks_mut(count).zip(first.par_chunks(count)).for_each(extend);
        let mut part = Part::default();
        for ((source, _), row) in sources.iter().zip(found.chunks(count)) {
            let present = || nodes.iter().zip(row).filter(|(_, value)| **value != absent);
            part.second.extend(present().map(|(node, _)| *node));
            part.values.extend(present().map(|(_, value)| Value::real(*value)));
            part.sources.push(*source);
            part.ends.push(part.second.len() as u32);
        }
        self.check(part.second.len())?;
        Ok(Some(Found::Sorted(joined(vec![part]))))
    }

    /// The sums of all that is reached from a set; `None` where a cycle is reached, or a number leaves its type.
    pub(super) fn single_sums(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let mut values = Values::fresh(size);
        let rows = self.base.groups(0..self.base.len()).map(|(constant, group)| (constant, group.start));
        let done = self.sum(&self.order(size), rows, &mut values)?;
        if done { self.unary(values) } else { Ok(None) }
    }

    /// The sums of all pairs; `None` where a cycle is reached, or a number leaves its type.
    pub(super) fn pairs_sums(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let order = self.order(size);
        self.each_source(size, |search, _, group, values: &mut Values, out| {
            let rows = group.map(|row| (search.base.column(1)[row], row));
            let done = search.sum(&order, rows, values)?;
            values.drain_into(&mut out.second, &mut out.values);
            Ok(done)
        })
    }

    /// For each constant a number smaller than those of all from which arcs lead to it; `None` on a cycle.
    fn order(&self, size: usize) -> Vec<Option<usize>> {
        let targets = |from: usize| self.arcs.column(1)[self.arcs.group(from as u32)].iter();
        let successors: Vec<Vec<usize>> =
            (0..size).map(|from| targets(from).map(|to| *to as usize).collect()).collect();
        let component = components(&successors);
        let mut members = vec![0; component.iter().max().map_or(0, |last| last + 1)];
        component.iter().for_each(|at| members[*at] += 1);
        let alone = |node: usize| members[component[node]] == 1 && !successors[node].contains(&node);
        (0..size).map(|node| alone(node).then_some(component[node])).collect()
    }

    /// Sums along arcs from the base, node by node in their order.
    fn sum(
        &self,
        order: &[Option<usize>],
        base: impl Iterator<Item = (u32, usize)>,
        values: &mut Values,
    ) -> Result<bool, Failure> {
        let mut fits = true;
        for (constant, row) in base {
            values.reached.add(constant);
            fits &= values.plus(self.ring, constant, self.base.value(row));
        }
        self.search(&mut values.reached)?;
        let mut nodes = values.reached.members().to_vec();
        nodes.sort_unstable_by_key(|node| std::cmp::Reverse(order[*node as usize]));
        fits &= nodes.iter().all(|node| order[*node as usize].is_some());
        let mut rounds: HashMap<u32, u64> = HashMap::new();
        for node in if fits { nodes.as_slice() } else { &[] } {
            let value = values.value[*node as usize];
            let round = rounds.get(node).map_or(1, |before| before + 1);
            fits &= round < self.limits.rounds;
            for row in self.arcs.group(*node) {
                let to = self.arcs.column(1)[row];
                let product = self.arcs.value(row).and_then(|weight| self.ring.times(value, weight));
                fits &= values.plus(self.ring, to, product);
                let last = rounds.entry(to).or_default();
                *last = round.max(*last);
            }
        }
        let finite = |node: &u32| self.ring.counts() || values.value[*node as usize].as_real().is_finite();
        fits &= nodes.iter().all(finite);
        nodes.iter().for_each(|node| values.listed[*node as usize] = false);
        Ok(fits)
    }
}

/// to ⊕= via ⊗ from
type Relax = fn(&mut [f64], f64, &[f64]);

/// Calls `one` for every row of a matrix, in parallel where that pays.
fn each_chunk(matrix: &mut [f64], width: usize, one: impl Fn(&mut [f64]) + Sync + Send) {
    if width >= 256 {
        matrix.par_chunks_mut(width).with_min_len(64).for_each(one);
    } else {
        matrix.chunks_mut(width).for_each(one);
    }
}
