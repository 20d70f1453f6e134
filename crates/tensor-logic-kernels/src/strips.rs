//! A group of operations ([`super::schedule`]) done for a few rows at a time.
//!
//! A task does some strips of one position of the batch: for each strip every member in turn, on scratch that is used
//! again for the next one. What is kept is written where it belongs. Members that sum rows up have one task for each
//! position of the batch, which adds one strip after the other, so that no bit depends on who does it. Each entry is
//! computed as it would be without strips; sums over rows alone are taken in other parts.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use training::kernels::{Mat, MatMut, product as multiplied};

use super::fold::Spaces;
use super::number::{Buffer, Number, Pool};
use super::point::{Evaluator, Point};
use super::product::{Product, own};
use super::schedule::{Group, Kind, LEAST_ROWS, Node, Way};
use super::space::{Source, Space, TILE};

/// So many bytes of scratch a task works on: what a core has of its second cache holds them beside the factors of products.
const SCRATCH: usize = 1 << 18;
/// Strips have at most so many rows, and mostly at least so many.
const MOST_ROWS: usize = 128;
const FEW_ROWS: usize = 24;

/// Where the strips of members stand while they are worked on.
struct Slots {
    /// The slot of each member that is not kept; members that work in the place of another have its own.
    of: Vec<Option<usize>>,
    /// Entries of one row in each slot.
    widths: Vec<usize>,
}

impl Slots {
    /// A slot is used again behind the last reader of what stands there.
    fn of(group: &Group) -> Slots {
        let members = &group.members;
        let mut last = vec![0; members.len()];
        for (at, member) in members.iter().enumerate() {
            for input in member.inputs.iter().flatten() {
                last[place(group, *input)] = at;
            }
        }
        let mut slots = Slots { of: vec![None; members.len()], widths: Vec::new() };
        let mut free: Vec<usize> = Vec::new();
        for (at, member) in members.iter().enumerate() {
            let own = place(group, at);
            if let (Way::Rows(width), false, None) = (member.way, members[own].kept, slots.of[own]) {
                let fitting = free.iter().position(|slot| slots.widths[*slot] == width);
                let slot = fitting.map(|at| free.swap_remove(at)).unwrap_or_else(|| {
                    slots.widths.push(width);
                    slots.widths.len() - 1
                });
                slots.of[own] = Some(slot);
            }
            slots.of[at] = slots.of[own];
            let ended = (0..=at).filter(|other| place(group, *other) == *other && last[*other] == at);
            free.extend(ended.filter_map(|other| slots.of[other]));
        }
        slots
    }
}

/// The member in whose place another is computed: itself, for most.
fn place(group: &Group, member: usize) -> usize {
    let mut at = member;
    while let Some(next) = group.members[at].within {
        at = next;
    }
    at
}

/// About how many rows a strip of a group has; fewer than are worth it where rows are long.
pub(super) fn rows_of_strip(group: &Group) -> usize {
    let slots = Slots::of(group);
    let kept = |member: &super::schedule::Member| match member.way {
        Way::Rows(width) if member.kept => width,
        _ => 0,
    };
    let width: usize = slots.widths.iter().sum::<usize>() + group.members.iter().map(kept).sum::<usize>();
    let rows = SCRATCH / (size_of::<f32>() * width.max(1));
    if rows < LEAST_ROWS { rows } else { (rows / 8 * 8).clamp(FEW_ROWS, MOST_ROWS) }
}

/// What a member needs at every strip.
struct Prepared<'a, T: Clone> {
    /// The numbers that are there before, as they stand.
    given: &'a [Option<Buffer>],
    /// The same of a product, in the type that is computed with.
    factors: Vec<Option<Cow<'a, [T]>>>,
    /// The spaces of its elementwise work.
    spaces: Vec<Space>,
    /// Those of a fold.
    fold: Option<Spaces>,
}

/// Part of the work: some strips of a position of the batch, and where what is kept of them goes.
struct Task<'r, T> {
    batch: usize,
    strips: Vec<Range<usize>>,
    /// For each member what is kept.
    results: Vec<Option<&'r mut [T]>>,
}

/// Does a group; what its members read of others is there.
pub(super) fn run<T: Number>(nodes: &[Node], group: &Group, pool: &Arc<Pool>) {
    let given: Vec<Vec<Option<Buffer>>> = group
        .members
        .iter()
        .map(|member| {
            let mut given = Vec::new();
            nodes[member.node].operation.inputs(&mut |input| given.push(input.done()));
            given
        })
        .collect();
    let prepared: Vec<Prepared<'_, T>> =
        group.members.iter().zip(&given).map(|(member, given)| prepared(&nodes[member.node], given)).collect();
    let mut results: Vec<Option<Vec<T>>> = group
        .members
        .iter()
        .map(|member| member.kept.then(|| pool.take::<T>(nodes[member.node].array.len())))
        .collect();
    let rows = rows_of_strip(group).max(1);
    let count = ((group.rows + rows / 2) / rows).max(1);
    let strips: Vec<Range<usize>> = (0..count)
        .map(|at| group.rows * at / count..group.rows * (at + 1) / count)
        .collect();
    let sums = group.members.iter().any(|member| matches!(member.way, Way::Sum(_)));
    let slots = Slots::of(group);
    let most = strips.iter().map(Range::len).max().unwrap_or(0);
    {
        // Where strips are not summed up, each is a task.
        let parts: Vec<Vec<Range<usize>>> =
            if sums { vec![strips] } else { strips.into_iter().map(|strip| vec![strip]).collect() };
        let mut rest: Vec<Option<&mut [T]>> = results.iter_mut().map(|r| r.as_deref_mut()).collect();
        let mut tasks = Vec::new();
        for batch in 0..group.batch {
            for strips in &parts {
                let own: usize = strips.iter().map(Range::len).sum();
                let results = rest.iter_mut().zip(&group.members).map(|(rest, member)| {
                    let len = match member.way {
                        Way::Rows(width) => own * width,
                        Way::Sum(len) => len,
                    };
                    let all = rest.take()?;
                    let (own, others) = all.split_at_mut(len.min(all.len()));
                    *rest = Some(others);
                    Some(own)
                });
                tasks.push(Task { batch, strips: strips.clone(), results: results.collect() });
            }
        }
        let stopped = pool.stopped();
        let work = |task: Task<'_, T>| {
            let len = slots.widths.iter().map(|width| width * most).sum();
            let mut scratch = pool.take::<T>(len);
            group.task(nodes, &prepared, &slots, task, &mut scratch, most, &stopped);
            pool.give(scratch);
        };
        if rayon::current_num_threads() > 1 {
            tasks.into_par_iter().with_max_len(1).for_each(work);
        } else {
            tasks.into_iter().for_each(work);
        }
    }
    drop(prepared);
    for (member, result) in group.members.iter().zip(results) {
        if let Some(result) = result {
            nodes[member.node].array.settle(T::buffer(result), pool);
        }
    }
}

fn prepared<'a, T: Number>(node: &'a Node, given: &'a [Option<Buffer>]) -> Prepared<'a, T> {
    let space = |point: &Point| Space::new(&point.shape, &point.inputs, 0);
    let mut result = Prepared { given, factors: Vec::new(), spaces: Vec::new(), fold: None };
    match node.kind() {
        Some(Kind::Point(point)) => result.spaces.push(space(point)),
        Some(Kind::Normalise(normalise)) => {
            result.spaces.extend(normalise.points().into_iter().map(space));
        }
        Some(Kind::Fold(fold)) => result.fold = Some(fold.spaces()),
        Some(Kind::Product(_)) => result.factors.extend(given.iter().map(|buffer| buffer.as_ref().map(own))),
        None => {}
    }
    result
}

/// A strip: the position of the batch, its first row among all rows, its rows, and which of its task's it is.
#[derive(Debug, Clone, Copy)]
struct Strip {
    batch: usize,
    first: usize,
    rows: usize,
    nth: usize,
}

impl Group {
    #[expect(clippy::too_many_arguments, reason = "what all tasks share")]
    fn task<T: Number>(
        &self,
        nodes: &[Node],
        prepared: &[Prepared<'_, T>],
        slots: &Slots,
        mut task: Task<'_, T>,
        scratch: &mut [T],
        most: usize,
        stopped: &impl Fn() -> bool,
    ) {
        let begin = task.strips.first().map_or(0, |strip| strip.start);
        for (nth, range) in task.strips.iter().enumerate() {
            if stopped() {
                return;
            }
            let strip =
                Strip { batch: task.batch, first: task.batch * self.rows + range.start, rows: range.len(), nth };
            let mut rest = &mut *scratch;
            let mut places: Vec<&mut [T]> = Vec::with_capacity(slots.widths.len());
            for width in &slots.widths {
                let (own, others) = rest.split_at_mut(width * most);
                rest = others;
                places.push(own);
            }
            for (result, member) in task.results.iter_mut().zip(&self.members) {
                places.push(match (result, member.way) {
                    (None, _) => &mut [],
                    (Some(result), Way::Sum(_)) => result,
                    (Some(result), Way::Rows(width)) => {
                        let from = (range.start - begin) * width;
                        &mut result[from..from + range.len() * width]
                    }
                });
            }
            let at = |member: usize| {
                slots.of[member].unwrap_or_else(|| slots.widths.len() + place(self, member))
            };
            for (own, member) in self.members.iter().enumerate() {
                let len = match member.way {
                    Way::Rows(width) => strip.rows * width,
                    Way::Sum(len) => len,
                };
                let to = std::mem::take(&mut places[at(own)]);
                let read = |input: usize| member.inputs[input].map(|other| &*places[at(other)]);
                self.member(own, nodes, &prepared[own], strip, &read, &mut to[..len]);
                places[at(own)] = to;
            }
        }
    }

    fn member<'s, T: Number>(
        &self,
        own: usize,
        nodes: &'s [Node],
        prepared: &'s Prepared<'_, T>,
        strip: Strip,
        read: &dyn Fn(usize) -> Option<&'s [T]>,
        to: &mut [T],
    ) {
        let member = &self.members[own];
        // Whether what it reads stands where it goes to.
        let in_place = member.inputs.first().is_some_and(|input| {
            input.is_some_and(|input| place(self, input) == place(self, own))
        });
        let sources = |point: &'s Point, space: &'s Space, first: usize| -> Vec<Source<'s, T>> {
            let views = point.inputs.iter().zip(&space.walks).enumerate();
            let source = |(at, (view, walk)): (usize, (&'s super::array::View, &'s super::space::Walk))| {
                let at = first + at;
                match (read(at), &prepared.given[at]) {
                    (Some(values), _) => {
                        let width = member.inputs[at].map_or(0, |input| self.members[input].width());
                        Some(Source::part(values, strip.first * width, view, walk))
                    }
                    (None, Some(buffer)) => Some(Source::new(buffer, view, walk)),
                    (None, None) => None,
                }
            };
            views.filter_map(source).collect()
        };
        let first = strip.first * member.width();
        let evaluate = |point: &'s Point, space: &'s Space, inputs: usize, to: &mut [T]| {
            let mut evaluator = Evaluator::over(point, space, sources(point, space, inputs));
            for (at, tile) in to.chunks_mut(TILE).enumerate() {
                evaluator.evaluate(first + at * TILE, &[], tile);
            }
        };
        match nodes[member.node].kind() {
            Some(Kind::Point(point)) if in_place => {
                let above = member.inputs[0].and_then(|input| nodes[self.members[input].node].kind());
                // What is added, if anything is, is 0; softmax is never -0.
                let positive = matches!(above, Some(Kind::Normalise(normalise)) if normalise.epsilon.is_none());
                if point.code.len() > 1 && !positive {
                    to.iter_mut().for_each(|value| *value += T::ZERO);
                }
            }
            Some(Kind::Point(point)) => evaluate(point, &prepared.spaces[0], 0, to),
            Some(Kind::Fold(fold)) => {
                if let Some(spaces) = &prepared.fold {
                    fold.rows(spaces, sources(&fold.point, &spaces.dropped, 0), first, to);
                }
            }
            Some(Kind::Normalise(normalise)) => {
                let mut inputs = normalise.values.inputs.len();
                if !in_place {
                    evaluate(&normalise.values, &prepared.spaces[0], 0, to);
                }
                let mut more = Vec::new();
                for (point, space) in normalise.points().into_iter().zip(&prepared.spaces).skip(1) {
                    let mut values = vec![T::ZERO; to.len()];
                    evaluate(point, space, inputs, &mut values);
                    inputs += point.inputs.len();
                    more.push(values);
                }
                let mut more = more.iter().map(Vec::as_slice);
                let present = normalise.present.as_ref().and_then(|_| more.next());
                normalise.rows(to, present, more.next());
            }
            Some(Kind::Product(product)) => {
                let read = |at: usize| Some((read(at)?, self.members[member.inputs[at]?].width()));
                let factor = |at: usize| prepared.factors[at].as_deref().unwrap_or(&[]);
                multiply(product, member.way, strip, self.rows, [read(0), read(1)], [factor(0), factor(1)], to);
            }
            None => {}
        }
    }
}

/// A strip of a product, or what a strip adds to one. Each factor is read where the strips of a member stand, rows of
/// some width, or where all of it stands.
fn multiply<T: Number>(
    product: &Product,
    way: Way,
    strip: Strip,
    rows_of_batch: usize,
    read: [Option<(&[T], usize)>; 2],
    all: [&[T]; 2],
    to: &mut [T],
) {
    let Product { m, k, n, a, b, scale, .. } = product;
    let (m, k, n, rows) = (*m, *k, *n, strip.rows);
    let strided = |at: usize, from: usize, columns: usize| -> Option<Mat<'_, T>> {
        read[at].map(|(values, width)| Mat::strided(&values[from..], rows, columns, width))
    };
    match way {
        Way::Rows(_) => {
            let (from_a, from_b) = product.offsets(strip.first / m);
            let whole = || a.at(all[0], from_a + strip.first % m * a.row, rows, k);
            let left = strided(0, a.offset, k).unwrap_or_else(whole);
            let out = MatMut::new(to, rows, n);
            multiplied(out, false, T::of(*scale), left, b.at(all[1], from_b, k, n), false);
        }
        Way::Sum(_) => {
            let (from_a, from_b) = product.offsets(strip.batch);
            let from = strip.first - strip.batch * rows_of_batch;
            let left = strided(0, a.offset, m).map(Mat::t);
            let left = left.unwrap_or_else(|| a.at(all[0], from_a + from * a.column, m, rows));
            let right = strided(1, b.offset, n);
            let right = right.unwrap_or_else(|| b.at(all[1], from_b + from * b.row, rows, n));
            multiplied(MatMut::new(to, m, n), strip.nth > 0, T::of(*scale), left, right, false);
        }
    }
    if *scale < 0.0 {
        // Nothing times a number below 0 is still nothing.
        to.iter_mut().for_each(|value| *value += T::ZERO);
    }
}
