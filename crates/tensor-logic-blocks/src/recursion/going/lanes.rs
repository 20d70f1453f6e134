//! Rows that never meet go through all steps of a recursion one after the other, or on several threads at once.
//!
//! Enter at [`Lanes::of`]. The strings of a batch, say, know nothing of each other: every operation makes each of its rows of
//! the same rows of what the recursion holds. Then some of these rows are a *lane*, which is gone through from the first step
//! to the last by itself: what its operations make stays in the cache of one core, and no thread waits for another within a
//! step. That rows do not meet is read off the recorded operations, from where they read and how far.
//!
//! A tensor that nobody else reads, and the recursion in the step only in which it is made, is *passing*: a lane has room for one
//! step of it, and the memory never sees it. Otherwise most of the time of a recursion over long rows goes there.

use rayon::prelude::*;

use super::{Gone, Member, Numbers, Part, Slot, Sources};
use crate::engine::Stop;
use crate::error::Result;
use crate::kernels::{Along, Number, Places, Pool, Recorded, along};
use crate::program::{Program, Role, TensorId};
use crate::store::records::{Input, Moved, Target};
use tensor_logic_core::ast::Span;

/// The widest rows of a lane hold so many numbers together.
const WIDEST: usize = 1 << 13;
/// A lane has so many rows at least: of fewer, another thread is awake when they are nearly done. Tests have fewer.
const LEAST: usize = if cfg!(test) { 16 } else { 32 };
/// Several threads are worth it from so many results on; tests have fewer.
const SHARED: usize = if cfg!(test) { 1 << 8 } else { 1 << 16 };

#[cfg(test)]
mod tests;

/// How often a recursion was gone through by lanes.
#[cfg(test)]
static TAKEN: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// How a recursion is cut into lanes.
pub(super) struct Lanes {
    /// All rows, and those of each lane but the last.
    rows: usize,
    each: usize,
    /// The numbers of a row of each tensor.
    widths: Vec<usize>,
    /// Which tensors are passing.
    passing: Vec<bool>,
    /// By tensor and part.
    pieces: Vec<Vec<Piece>>,
}

/// What a part does and where it puts that, for the rows of one lane.
#[derive(Default)]
struct Piece {
    cuts: Vec<Cut>,
    /// By slice: where it goes in a row, if that is not all of it; for the last lane, too.
    places: Vec<Option<(Places, Option<Places>)>>,
}

/// An operation for the rows of one lane.
struct Cut {
    whole: Recorded,
    /// For the last lane, if that has fewer rows.
    rest: Option<Recorded>,
    along: Vec<Along>,
}

/// The numbers of one lane.
struct Lane<'a, T> {
    first: usize,
    rows: usize,
    /// By tensor.
    states: Vec<Rows<'a, T>>,
    made: Vec<Vec<T>>,
}

/// The rows of a tensor.
enum Rows<'a, T> {
    /// Those of each step.
    All(Vec<&'a mut [T]>),
    /// Those of the step at hand.
    Passing(Vec<T>),
}

impl<T> Rows<'_, T> {
    fn of(&self, step: usize) -> &[T] {
        match self {
            Rows::All(steps) => steps.get(step).map_or(&[], |rows| &**rows),
            Rows::Passing(rows) => rows,
        }
    }

    fn of_mut(&mut self, step: usize) -> &mut [T] {
        match self {
            Rows::All(steps) => steps.get_mut(step).map_or(&mut [], |rows| &mut **rows),
            Rows::Passing(rows) => rows,
        }
    }
}

impl Lanes {
    /// The lanes of a recursion of so many steps and results, if it has some and it is worth it; `unread` says which tensors
    /// nobody else reads.
    pub(super) fn of(
        program: &Program,
        members: &[Member<'_>],
        (steps, entries): (usize, usize),
        unread: &dyn Fn(TensorId) -> bool,
    ) -> Option<Lanes> {
        // One thread gains nothing: to begin so many more operations takes what the cache spares.
        if rayon::current_num_threads() == 1 || entries < SHARED {
            return None;
        }
        let mut slabs = Vec::with_capacity(members.len());
        let mut rows = None;
        for member in members {
            let tensor = program.tensor(member.id);
            let sizes = tensor.sizes();
            let (&[_, own, ..], 0) = (sizes.as_slice(), member.moving) else { return None };
            // Where it is begun again, nothing stands in it.
            if *rows.get_or_insert(own) != own || tensor.role != Role::Computed || !tensor.given.is_empty() {
                return None;
            }
            slabs.push(sizes[1..].iter().product::<usize>());
        }
        let rows = rows.filter(|rows| *rows >= 2 * LEAST && !slabs.contains(&0))?;
        let records =
            || members.iter().flat_map(|member| &member.parts).filter_map(|part| part.record.as_ref());
        let operations = || records().flat_map(|record| &record.operations);
        let widest = operations().map(|moved| moved.operation.len() / rows).max()?.max(1);
        let each = (WIDEST / widest).clamp(LEAST, rows);
        let each = rows.div_ceil(rows.div_ceil(each).next_multiple_of(2));
        let widths: Vec<usize> = slabs.iter().map(|slab| slab / rows).collect();
        let pieces = members.iter().enumerate().map(|(own, member)| {
            let parts = member.parts.iter().map(|part| piece(part, (own, member), (rows, each), &widths));
            parts.collect::<Option<Vec<_>>>()
        });
        let pieces = pieces.collect::<Option<_>>()?;
        let passing = (0..members.len())
            .map(|at| unread(members[at].id) && is_passing(members, at, slabs[at], steps))
            .collect();
        Some(Lanes { rows, each, pieces, widths, passing })
    }

    /// The tensors that were not written down.
    pub(super) fn passing<'a>(&'a self, members: &'a [Member<'_>]) -> impl Iterator<Item = TensorId> + 'a {
        members.iter().zip(&self.passing).filter(|(_, passing)| **passing).map(|(member, _)| member.id)
    }

    /// Goes through so many steps.
    pub(super) fn go<T: Number>(
        &self,
        numbers: &mut Numbers<T>,
        members: &[Member<'_>],
        steps: usize,
        (stop, head): (&Stop, Span),
        pool: &Pool,
    ) -> Result<Gone> {
        #[cfg(test)]
        TAKEN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let starts = (0..self.rows).step_by(self.each);
        let lane = |first| {
            let rows = self.each.min(self.rows - first);
            let state = |(passing, width): (&bool, &usize)| match passing {
                true => Rows::Passing(pool.take(rows * width)),
                false => Rows::All(Vec::new()),
            };
            let states = self.passing.iter().zip(&self.widths).map(state).collect();
            Lane { first, rows, states, made: Vec::new() }
        };
        let mut lanes: Vec<Lane<'_, T>> = starts.map(lane).collect();
        for (own, state) in numbers.states.iter_mut().enumerate() {
            for slab in state.chunks_mut(self.rows * self.widths[own]) {
                for (lane, rows) in lanes.iter_mut().zip(slab.chunks_mut(self.each * self.widths[own])) {
                    if let Rows::All(steps) = &mut lane.states[own] {
                        steps.push(rows);
                    }
                }
            }
        }
        let around = Around { lanes: self, outer: &numbers.outer, ordered: &numbers.ordered, pool };
        let sizes: Vec<usize> = numbers.made.iter().map(Vec::len).collect();
        let through = |lane: &mut Lane<'_, T>| {
            lane.made = sizes.iter().map(|size| pool.take(size / self.rows * lane.rows)).collect();
            let mut doubted = None;
            'steps: for nth in 0..steps {
                stop.check(head)?;
                for (own, member) in members.iter().enumerate() {
                    if !lane.step(own, member, nth, &around) {
                        doubted = Some((nth, own));
                        break 'steps;
                    }
                }
            }
            std::mem::take(&mut lane.made).into_iter().for_each(|made| pool.give(made));
            Ok(doubted)
        };
        let doubted: Vec<Result<Option<(usize, usize)>>> =
            lanes.par_iter_mut().with_max_len(1).map(through).collect();
        for state in lanes.into_iter().flat_map(|lane| lane.states) {
            if let Rows::Passing(rows) = state {
                pool.give(rows);
            }
        }
        let doubted: Vec<Option<(usize, usize)>> = doubted.into_iter().collect::<Result<_>>()?;
        let Some((nth, tensors)) = doubted.into_iter().flatten().min() else {
            return Ok(Gone { steps, tensors: 0 });
        };
        // Who does the rest of the step reads what passed in it.
        let tensors = if self.passing.contains(&true) { 0 } else { tensors };
        // Others went on: what they added is begun again.
        for (own, member) in members.iter().enumerate().filter(|(_, member)| !member.fresh) {
            for step in nth + usize::from(own < tensors)..steps {
                for part in &member.parts {
                    let Some((record, moved)) = part.moved(step) else { continue };
                    for (_, target) in &record.slices {
                        let from = target.positions.offset.saturating_add_signed(target.step * moved);
                        let slab = self.rows * self.widths[own];
                        numbers.states[own][from / slab * slab..][..slab].fill(T::ZERO);
                    }
                }
            }
        }
        Ok(Gone { steps: nth, tensors })
    }
}

/// What one part does, for the rows of a lane; `None`, if rows meet.
fn piece(
    part: &Part<'_>,
    (own, member): (usize, &Member<'_>),
    (rows, each): (usize, usize),
    widths: &[usize],
) -> Option<Piece> {
    let Some(record) = &part.record else { return Some(Piece::default()) };
    let len = |at: &usize| record.operations.get(*at).map(|moved| moved.operation.len());
    let last = Some(rows % each).filter(|rows| *rows > 0);
    let mut cuts = Vec::with_capacity(record.operations.len());
    for (moved, slots) in record.operations.iter().zip(&part.reads) {
        let (whole, along) = moved.operation.cut(rows, each)?;
        let rest = match last {
            Some(last) => Some(moved.operation.cut(rows, last)?.0),
            None => None,
        };
        for ((slot, along), (begin, step)) in slots.iter().zip(&along).zip(&moved.begins) {
            let slab = match slot {
                Slot::State(at) => rows * widths.get(*at)?,
                Slot::Made(at) => len(at)?,
                // It does not change.
                Slot::Outer(_) => continue,
            };
            stays_within((*begin, *step), *along, (rows, slab)).then_some(())?;
        }
        cuts.push(Cut { whole, rest, along });
    }
    // All that is written was made here, and goes to one slab; and so was what is doubted.
    let slab = rows * widths[own];
    let mut places = Vec::with_capacity(record.slices.len());
    for (source, target) in &record.slices {
        let Input::Made(at) = source else { return None };
        let (len, offset) = (len(at)?, target.positions.offset);
        if target.in_order {
            let along = Along { step: len / rows, reach: (len / rows).saturating_sub(1) };
            (len == slab && stays_within((offset, target.step), along, (rows, slab))).then_some(())?;
            places.push(None);
            continue;
        }
        let within = Places { offset: offset % slab, ..target.positions.clone() };
        let (whole, along) = within.cut(rows, each)?;
        stays_within((offset, target.step), along, (rows, slab)).then_some(())?;
        let rest = match last {
            Some(last) => Some(within.cut(rows, last)?.0),
            None => None,
        };
        places.push(Some((whole, rest)));
    }
    let made = record.suspects.iter().all(|(_, source, _)| matches!(source, Input::Made(_)));
    (made && (!member.direct || record.slices.len() == 1)).then_some(Piece { cuts, places })
}

/// Whether each row of what begins here is one of the same slab, whatever the step.
fn stays_within((begin, step): (usize, isize), along: Along, (rows, slab): (usize, usize)) -> bool {
    let width = slab / rows;
    slab > 0
        && slab == rows * width
        && along.step == width
        && begin % slab + along.reach < width
        && step.unsigned_abs().is_multiple_of(slab)
}

/// Whether a tensor is read in the step only in which it is made, and behind that.
fn is_passing(members: &[Member<'_>], at: usize, slab: usize, steps: usize) -> bool {
    let id = members[at].id;
    let unrecorded = members.iter().flat_map(|member| &member.parts).filter(|part| part.record.is_none());
    let mut read = false;
    unrecorded.for_each(|part| part.equation.visit_reads(&mut |other, _| read |= other.tensor == id));
    let made = |nth: usize| {
        let mut slabs =
            members[at].parts.iter().filter_map(|part| part.moved(nth)).flat_map(|(record, moved)| {
                let from =
                    move |target: &Target| target.positions.offset.saturating_add_signed(target.step * moved);
                record.slices.iter().map(move |(_, target)| from(target) / slab)
            });
        slabs.next().filter(|first| slabs.all(|other| other == *first))
    };
    let made: Vec<Option<usize>> = (0..steps).map(made).collect();
    !read
        && members.iter().enumerate().all(|(reader, member)| {
            member.parts.iter().all(|part| {
                let Some(record) = &part.record else { return true };
                let reads = record.operations.iter().zip(&part.reads);
                let reads = reads.flat_map(|(moved, slots)| slots.iter().zip(&moved.begins));
                let own = reads.filter(|(slot, _)| **slot == Slot::State(at)).map(|(_, begin)| *begin);
                own.into_iter().all(|(begin, step)| {
                    let then = |nth: usize| {
                        let Some((_, moved)) = part.moved(nth) else { return true };
                        made[nth] == Some(begin.saturating_add_signed(step * moved) / slab)
                    };
                    reader > at && (0..steps).all(then)
                })
            })
        })
}

/// What all lanes read.
struct Around<'a, T> {
    lanes: &'a Lanes,
    outer: &'a [std::sync::Arc<Vec<T>>],
    ordered: &'a [Vec<T>],
    pool: &'a Pool,
}

impl<T: Number> Lane<'_, T> {
    /// Does a step of a tensor; says whether its numbers are what they are taken for.
    fn step(&mut self, own: usize, member: &Member<'_>, nth: usize, around: &Around<'_, T>) -> bool {
        let slab = around.lanes.rows * around.lanes.widths[own];
        let mut next = 0;
        for (part, piece) in member.parts.iter().zip(&around.lanes.pieces[own]) {
            let first = next;
            next += part.operations();
            let Some((record, moved)) = part.moved(nth) else { continue };
            let last = record.operations.len().wrapping_sub(1);
            for (at, cut) in piece.cuts.iter().enumerate() {
                let operation = match (&cut.rest, self.rows == around.lanes.each) {
                    (Some(rest), false) => rest,
                    _ => &cut.whole,
                };
                let reads = (&record.operations[at], part.reads[at].as_slice(), part.ordered[at]);
                if member.direct && at == last {
                    let Some((_, target)) = record.slices.first() else { return false };
                    let from = target.positions.offset.saturating_add_signed(target.step * moved) / slab;
                    // It does not read what it writes.
                    let mut state = std::mem::replace(&mut self.states[own], Rows::Passing(Vec::new()));
                    let sources = self.sources(reads, (cut, moved), &self.made[first..], around);
                    operation.run_on(&sources, state.of_mut(from), around.pool);
                    drop(sources);
                    self.states[own] = state;
                } else {
                    let mut to = std::mem::take(&mut self.made[first + at]);
                    let sources = self.sources(reads, (cut, moved), &self.made[first..], around);
                    operation.run_on(&sources, &mut to[..operation.len()], around.pool);
                    drop(sources);
                    self.made[first + at] = to;
                }
            }
            for (_, source, doubt) in &record.suspects {
                let Input::Made(at) = source else { return false };
                let len = record.operations[*at].operation.len() / around.lanes.rows * self.rows;
                if !doubt.dispelled(&self.made[first + at][..len]) {
                    return false;
                }
            }
        }
        if !member.direct {
            self.written(own, member, nth, around.lanes);
        }
        true
    }

    /// Puts what was made where it belongs.
    fn written(&mut self, own: usize, member: &Member<'_>, nth: usize, lanes: &Lanes) {
        let slab = lanes.rows * lanes.widths[own];
        let mut fresh = member.fresh;
        // What passes begins with nothing.
        if let Rows::Passing(rows) = &mut self.states[own] {
            let whole = |piece: &Piece| piece.places.first().is_some_and(Option::is_none);
            let mut parts = member.parts.iter().zip(&lanes.pieces[own]);
            let first = parts.find(|(part, _)| part.moved(nth).is_some());
            fresh = first.is_some_and(|(_, piece)| whole(piece));
            if !fresh {
                rows.fill(T::ZERO);
            }
        }
        let mut next = 0;
        for (part, piece) in member.parts.iter().zip(&lanes.pieces[own]) {
            let first = next;
            next += part.operations();
            let Some((record, moved)) = part.moved(nth) else { continue };
            for ((source, target), places) in record.slices.iter().zip(&piece.places) {
                let Input::Made(at) = source else { continue };
                let from = target.positions.offset.saturating_add_signed(target.step * moved) / slab;
                let to = self.states[own].of_mut(from);
                let len = record.operations[*at].operation.len() / lanes.rows * self.rows;
                let values = &self.made[first + at][..len];
                let places = places.as_ref().map(|(whole, rest)| match rest {
                    Some(rest) if self.rows != lanes.each => rest,
                    _ => whole,
                });
                // 0 added makes -0 a 0.
                match std::mem::take(&mut fresh) {
                    true => joined(places, to, values, |slot, value| *slot = value + T::ZERO),
                    false => joined(places, to, values, |slot, value| *slot += value),
                }
            }
        }
    }

    /// What an operation reads, from where it begins on, and behind it what it is handed over besides.
    #[inline(always)]
    fn sources<'s>(
        &'s self,
        (moved_by, slots, ordered): (&Moved<Recorded>, &[Slot], Option<usize>),
        (cut, moved): (&Cut, isize),
        made: &'s [Vec<T>],
        around: &Around<'s, T>,
    ) -> Sources<'s, T> {
        let mut sources = Sources::new();
        let begins = moved_by.begins.iter().map(|(begin, step)| begin.saturating_add_signed(step * moved));
        for ((slot, begin), along) in slots.iter().zip(begins).zip(&cut.along) {
            let (values, begin): (&'s [T], usize) = match slot {
                Slot::State(at) => {
                    let slab = around.lanes.rows * around.lanes.widths[*at];
                    (self.states[*at].of(begin / slab), begin % slab)
                }
                Slot::Outer(at) => (&around.outer[*at], begin + along.step * self.first),
                Slot::Made(at) => (&made[*at], begin),
            };
            sources.push(values.get(begin..).unwrap_or_default());
        }
        // In order stands all of what is read, and not what belongs to these rows.
        let ordered = ordered.filter(|_| cut.along.get(1).is_some_and(|along| along.step == 0));
        sources.extend(ordered.map(|at| around.ordered[at].as_slice()));
        sources
    }
}

/// Joins values with the slots at their places, or in order.
fn joined<T: Number>(places: Option<&Places>, to: &mut [T], values: &[T], join: impl Fn(&mut T, T) + Sync) {
    match places {
        None => {
            let len = to.len().min(values.len());
            along(&mut to[..len], &values[..len], &join);
        }
        Some(places) => places.join(to, values, join),
    }
}
