//! Linear recursion that carries a column unchanged: one search per value of that column.
//!
//! In `tc(x, z) <- tc(x, y), arc(y, z)` the tuples of one `x` depend on each other only. Each
//! value is searched by itself, with one accumulator that stays in the cache: no tuple is
//! looked up in what has been found. Where the result fills more than 1/64 of all pairs, whole
//! rows of bits are joined instead, one for each strong component of the graph that is walked
//! (Purdom 1970). Values (shortest paths and their like) are corrected in rounds.
//!
//! Enter at [`Linear::recognise`] and [`Linear::close`]. The relation holds its base when the
//! search begins: what is given, and what its other rules derive. The odd case: values that are
//! not at rest after so many rounds as there are tuples may still saturate; then the general
//! method decides ([`Closed::Undecided`]).

use rayon::prelude::*;

use super::bits::{BitMatrix, BitRows, each_bit, or_into};
use super::database::{Database, IndexId};
use super::limits::{Failure, Limits};
use super::plan::terms;
use super::ring::{Ring, Value};
use super::rule::{Literal, RelationId, Rule, Term};
use super::sorted::Sorted;
use super::strata::components;

/// A recursion of this shape.
#[derive(Debug)]
pub(super) struct Linear {
    /// The relation.
    relation: RelationId,
    /// The place that is carried; `None` for a relation with one place, which has one search.
    carried: Option<usize>,
    /// The steps from the other place to itself: rules with the heads (from, to).
    steps: Vec<Rule>,
}

/// Whether a search came to an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The relation holds the fixpoint.
    Done,
    /// Values were not at rest, or constants are too large; the relation holds its base.
    Undecided,
}

/// Constants are positions of an accumulator, which may have so many places for each tuple.
const SPREAD: usize = 64;

/// Rows of bits for so many constants at most (2 GiB of bits).
const MOST_BITS: usize = 1 << 17;

impl Linear {
    /// The recursion of a relation, if all its recursive rules carry the same place. The steps
    /// have the head `step`.
    pub(super) fn recognise(
        database: &Database,
        relation: RelationId,
        rules: &[&Rule],
        step: RelationId,
    ) -> Option<Linear> {
        let stored = database.relation(relation);
        if !stored.ring().idempotent() {
            return None;
        }
        let carried: &[Option<usize>] = match stored.arity() {
            1 => &[None],
            2 => &[Some(0), Some(1)],
            _ => return None,
        };
        carried.iter().find_map(|carried| {
            let steps = rules.iter().map(|rule| step_of(rule, relation, *carried, step, stored.ring()));
            let steps = steps.collect::<Option<Vec<Rule>>>()?;
            Some(Linear { relation, carried: *carried, steps })
        })
    }

    /// The rules of the steps, where they are not simply another relation: that relation with
    /// the places from and to.
    pub(super) fn steps(&self, database: &Database) -> Result<(RelationId, usize, usize), &[Rule]> {
        let [rule] = self.steps.as_slice() else { return Err(&self.steps) };
        let [Literal::Atom(atom)] = rule.body.as_slice() else { return Err(&self.steps) };
        let ring = database.relation(self.relation).ring();
        let same = !ring.valued() || (atom.factor && database.relation(atom.relation).ring().valued());
        match (atom.terms.as_slice(), rule.head_terms.as_slice()) {
            ([a, b], [from, to]) if same && rule.weight.is_none() && a != b => {
                if a == from && b == to {
                    Ok((atom.relation, 0, 1))
                } else if a == to && b == from {
                    Ok((atom.relation, 1, 0))
                } else {
                    Err(&self.steps)
                }
            }
            _ => Err(&self.steps),
        }
    }

    /// Closes the relation under steps along `graph`, from its place `from` to its place `to`.
    pub(super) fn close(
        &self,
        database: &mut Database,
        (graph, from, to): (RelationId, usize, usize),
        limits: &Limits,
    ) -> Result<Closed, Failure> {
        let arcs = database.relation_mut(graph).index(&[from], &[to]);
        let base = match self.carried {
            Some(carried) => database.relation_mut(self.relation).index(&[carried], &[1 - carried]),
            None => database.relation_mut(self.relation).index(&[], &[0]),
        };
        let others = database.tuples() - database.relation(self.relation).len() as u64;
        let search = Search {
            relation: self.relation,
            ring: database.relation(self.relation).ring(),
            base: database.relation(self.relation).sorted(base),
            arcs: database.relation(graph).sorted(arcs),
            same_arcs: self.is_closure_of(database, graph, (from, to), (base, arcs)),
            tuples: limits.tuples.saturating_sub(others),
            limits,
        };
        let result = match (self.carried, search.ring.valued()) {
            (None, false) => search.single()?,
            (None, true) => search.single_valued()?,
            (Some(_), false) => search.pairs()?,
            (Some(_), true) => search.pairs_valued()?,
        };
        let relation = database.relation_mut(self.relation);
        match result {
            None => return Ok(Closed::Undecided),
            Some(Found::Bits(bits)) if self.carried == Some(0) => relation.rest_bits(self.relation, bits)?,
            Some(Found::Bits(bits)) => {
                let [left, right] = bits.columns();
                relation.rest(self.relation, &[right, left], &[], bits.len())?;
            }
            Some(Found::Sorted(sorted)) if self.carried == Some(1) => relation.replace(sorted.transposed()),
            Some(Found::Sorted(sorted)) => relation.replace(sorted),
        }
        Ok(Closed::Done)
    }

    /// Whether base and steps are the same arcs: then the relation is their transitive closure.
    fn is_closure_of(
        &self,
        database: &Database,
        graph: RelationId,
        (from, to): (usize, usize),
        (base, arcs): (IndexId, IndexId),
    ) -> bool {
        let (own, other) = (database.relation(self.relation), database.relation(graph));
        self.carried == Some(0)
            && (from, to) == (0, 1)
            && own.len() == other.len()
            && own.sorted(base).same_rows(other.sorted(arcs))
    }
}

/// The step of a rule, if the rule carries the place: the body without the relation itself, from
/// the relation's argument to the head's.
pub(super) fn step_of(
    rule: &Rule,
    relation: RelationId,
    carried: Option<usize>,
    step: RelationId,
    ring: Ring,
) -> Option<Rule> {
    let own = |literal: &&Literal| matches!(literal, Literal::Atom(atom) if atom.relation == relation);
    let mut recursive = rule.body.iter().filter(own);
    let (Some(Literal::Atom(atom)), None) = (recursive.next(), recursive.next()) else { return None };
    let body: Vec<Literal> = rule.body.iter().filter(|literal| !own(literal)).cloned().collect();
    let occurs = |term: Term| body.iter().flat_map(terms).any(|other| other == term);
    if let Some(place) = carried {
        let variable = rule.head_terms[place];
        let moving = [rule.head_terms[1 - place], atom.terms[1 - place]];
        let unchanged = variable.as_variable().is_some() && atom.terms[place] == variable;
        if !unchanged || moving.contains(&variable) || occurs(variable) {
            return None;
        }
    }
    let place = carried.map_or(0, |carried| 1 - carried);
    let (from, to) = (atom.terms[place], rule.head_terms[place]);
    let in_atoms = body.iter().any(|literal| matches!(literal, Literal::Atom(a) if a.terms.contains(&from)));
    if from == Term::Any || (from.as_variable().is_some() && !in_atoms) {
        return None;
    }
    if ring.valued() {
        // The same products in the same order: one factor and nothing else.
        let [Literal::Atom(_)] = body.as_slice() else { return None };
        if !atom.factor || rule.weight.is_some() || !rule.computed.is_empty() {
            return None;
        }
    }
    let mut step = Rule::new(step, [from, to], body);
    step.weight = None;
    Some(step)
}

enum Found {
    Sorted(Sorted),
    Bits(BitRows),
}

struct Search<'a> {
    relation: RelationId,
    ring: Ring,
    /// By the carried place; for a relation with one place, by itself.
    base: &'a Sorted,
    arcs: &'a Sorted,
    same_arcs: bool,
    /// The most tuples that may be found.
    tuples: u64,
    limits: &'a Limits,
}

/// A set of constants with a list of its members.
struct Accumulator {
    words: Vec<u64>,
    list: Vec<u32>,
}

impl Accumulator {
    fn new(size: usize) -> Accumulator {
        Accumulator { words: vec![0; size.div_ceil(64)], list: Vec::new() }
    }

    #[inline]
    fn add(&mut self, constant: u32) {
        let word = &mut self.words[constant as usize / 64];
        let bit = 1 << (constant % 64);
        if *word & bit == 0 {
            *word |= bit;
            self.list.push(constant);
        }
    }

    /// Appends the members in ascending order and becomes empty.
    fn drain_into(&mut self, out: &mut Vec<u32>) {
        if self.list.len() > self.words.len() / 8 {
            each_bit(&self.words, |constant| out.push(constant as u32));
            self.words.fill(0);
        } else {
            self.list.sort_unstable();
            out.extend_from_slice(&self.list);
            for constant in &self.list {
                self.words[*constant as usize / 64] = 0;
            }
        }
        self.list.clear();
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
        while let Some(from) = reached.list.get(at).copied() {
            at += 1;
            for to in &self.arcs.column(1)[self.arcs.group(from)] {
                reached.add(*to);
            }
            if at.is_multiple_of(1 << 14) {
                self.check(reached.list.len())?;
            }
        }
        Ok(())
    }

    fn single(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let mut reached = Accumulator::new(size);
        for (constant, _) in self.base.groups(0..self.base.len()) {
            reached.add(constant);
        }
        self.search(&mut reached)?;
        let mut column = Vec::with_capacity(reached.list.len());
        reached.drain_into(&mut column);
        self.check(column.len())?;
        Ok(Some(Found::Sorted(Sorted::unary(&column, Vec::new()))))
    }

    fn pairs(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        if let Some(nodes) = self.dense(size)? {
            return self.bit_rows(size, nodes).map(Some);
        }
        self.each_source(size, |search, row, reached: &mut Accumulator, out| {
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
        let mut met = vec![0_u64; size.div_ceil(64)];
        let mut meet = |constant: u32| met[constant as usize / 64] |= 1 << (constant % 64);
        self.base.column(1).iter().for_each(|constant| meet(*constant));
        self.arcs.column(1).iter().for_each(|constant| meet(*constant));
        self.arcs.groups(0..self.arcs.len()).for_each(|(constant, _)| meet(constant));
        let mut nodes = Vec::new();
        each_bit(&met, |constant| nodes.push(constant as u32));
        if nodes.len() > MOST_BITS || nodes.len() as u64 * nodes.len() as u64 / 8 > self.limits.bytes {
            return Ok(None);
        }
        let sources: Vec<(u32, std::ops::Range<usize>)> = self.base.groups(0..self.base.len()).collect();
        let tried = sources.len().min(16);
        let mut reached = Accumulator::new(size);
        let (mut found, mut bin) = (0, Vec::new());
        for at in 0..tried {
            for constant in &self.base.column(1)[sources[at * sources.len() / tried].1.clone()] {
                reached.add(*constant);
            }
            self.search(&mut reached)?;
            found += reached.list.len();
            bin.clear();
            reached.drain_into(&mut bin);
        }
        Ok((64 * found > tried * nodes.len()).then_some(nodes))
    }

    /// The closure by rows of bits, one for each strong component.
    fn bit_rows(&self, size: usize, nodes: Vec<u32>) -> Result<Found, Failure> {
        let mut position = vec![0_u32; size];
        for (at, constant) in (0..).zip(&nodes) {
            position[*constant as usize] = at;
        }
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
        let sources: Vec<(u32, std::ops::Range<usize>)> = self.base.groups(0..self.base.len()).collect();
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
        one: impl Fn(&Self, std::ops::Range<usize>, &mut A, &mut Part) -> Result<bool, Failure> + Sync,
    ) -> Result<Option<Found>, Failure> {
        let rows = self.base.len();
        let threads = rayon::current_num_threads();
        let count = if threads == 1 { 1 } else { (threads * 8).min(rows / 16 + 1) };
        let parts: Vec<_> = (0..count).map(|at| at * rows / count..(at + 1) * rows / count).collect();
        let total = std::sync::atomic::AtomicUsize::new(0);
        let search = |part: std::ops::Range<usize>| -> Result<Option<Part>, Failure> {
            let mut accumulator = A::fresh(size);
            let mut out = Part::default();
            let mut reported = 0;
            for (source, _) in self.base.groups(part.clone()) {
                // A group belongs to the part in which it starts.
                let group = self.base.group(source);
                if group.start < part.start {
                    continue;
                }
                if !one(self, group, &mut accumulator, &mut out)? {
                    return Ok(None);
                }
                out.sources.push(source);
                out.ends.push(out.second.len() as u32);
                if out.second.len() - reported > 1 << 16 {
                    let more = out.second.len() - reported;
                    reported = out.second.len();
                    self.check(total.fetch_add(more, std::sync::atomic::Ordering::Relaxed) + more)?;
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
        let before = self.reached.list.len();
        self.reached.add(constant);
        if self.reached.list.len() == before && !ring.improves(self.value[at], value) {
            return;
        }
        self.value[at] = value;
        if !std::mem::replace(&mut self.listed[at], true) {
            self.next.push(constant);
        }
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
            if rounds > values.reached.list.len() + 1 {
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

    fn single_valued(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        let mut values = Values::fresh(size);
        for (constant, group) in self.base.groups(0..self.base.len()) {
            if let Some(value) = self.base.value(group.start) {
                values.offer(self.ring, constant, value);
            }
        }
        if !self.correct(&mut values)? {
            return Ok(None);
        }
        let (mut column, mut result) = (Vec::new(), Vec::new());
        values.drain_into(&mut column, &mut result);
        self.check(column.len())?;
        Ok(Some(Found::Sorted(Sorted::unary(&column, result))))
    }

    fn pairs_valued(&self) -> Result<Option<Found>, Failure> {
        let Some(size) = self.size() else { return Ok(None) };
        self.each_source(size, |search, group, values: &mut Values, out| {
            for row in group {
                if let Some(value) = search.base.value(row) {
                    values.offer(search.ring, search.base.column(1)[row], value);
                }
            }
            let rest = search.correct(values)?;
            values.drain_into(&mut out.second, &mut out.values);
            Ok(rest)
        })
    }
}
