//! Searches with values: corrected in rounds, by a triple loop, or summed in the order of the arcs.
//!
//! Enter at [`Search::pairs_valued`] and [`Search::pairs_sums`]. A search whose values are not at rest in time is told
//! apart from one that never will be by a cycle that improves.

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;

use super::limits::Failure;
use super::ring::{Combine, Ring, Times, Value};
use super::search::{Accumulator, Found, Fresh, Part, Search, ascending, joined, positions};
use super::sorted::Sorted;
use super::strata::components;

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
