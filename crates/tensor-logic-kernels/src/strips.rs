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
use training::kernels::{Mat, MatMut, product as product_of};

use super::code::Evaluator;
use super::fold::Spaces;
use super::number::{Buffer, Number, Pool, volume};
use super::point::Point;
use super::product::{Matrices, Product, own};
use super::schedule::{Group, Kind, Member, Node, Slots, Way, place, rows_of_strip};
use super::space::{Few, Source, Space, TILE};
use super::tiles::{self, Right, SUMS, Stands, TALL};
use super::values::Each;

/// What a member needs at every strip.
struct Prepared<'a, T: Clone> {
    node: &'a Node,
    /// Whether it is elementwise work, done in place, that makes -0 a 0.
    without_sign: bool,
    /// The numbers that are there before, as they stand.
    given: &'a [Option<Buffer>],
    /// The same of a product, in the type that is computed with.
    factors: Vec<Option<Cow<'a, [T]>>>,
    /// The right factors of a product of rows, packed, at every position of the batch, and how far they are apart.
    packed: Option<(Vec<T>, usize)>,
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
    let prepared: Vec<Prepared<'_, T>> = group
        .members
        .iter()
        .zip(&given)
        .map(|(member, given)| {
            let above = member.inputs.first().and_then(|input| nodes[group.members[(*input)?].node].kind());
            // What softmax makes has no sign.
            let softmax = matches!(above, Some(Kind::Normalise(above)) if above.epsilon.is_none());
            Prepared { without_sign: !softmax, ..prepared(&nodes[member.node], member.way, given, pool) }
        })
        .collect();
    let mut results: Vec<Option<Vec<T>>> = group
        .members
        .iter()
        .map(|member| member.kept.then(|| pool.take::<T>(nodes[member.node].array.len())))
        .collect();
    let rows = rows_of_strip(group).max(1);
    let count = ((group.rows + rows / 2) / rows).max(1);
    // Whole tiles, but for the last strip.
    let bound = |at: usize| if at == count { group.rows } else { group.rows * at / count / TALL * TALL };
    let strips: Vec<Range<usize>> = (0..count).map(|at| bound(at)..bound(at + 1)).collect();
    let sums = group.members.iter().any(|member| matches!(member.way, Way::Sum(_)));
    let slots = Slots::of(group);
    let most = strips.iter().map(Range::len).max().unwrap_or(0);
    // What strips add to sums is packed for each of them.
    let beside = |member: &Member| match nodes[member.node].kind() {
        Some(Kind::Product(product)) if matches!(member.way, Way::Sum(_)) => {
            tiles::packed_len::<T>(most, product.n)
        }
        _ => 0,
    };
    let beside = group.members.iter().map(beside).max().unwrap_or(0);
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
            let len = slots.widths.iter().map(|width| width * most).sum::<usize>();
            let mut scratch = pool.take::<T>(len + beside);
            let (places, panels) = scratch.split_at_mut(len);
            group.task(&prepared, &slots, task, places, panels, &stopped);
            pool.give(scratch);
        };
        if rayon::current_num_threads() > 1 {
            tasks.into_par_iter().with_max_len(1).for_each(work);
        } else {
            tasks.into_iter().for_each(work);
        }
    }
    for prepared in prepared {
        prepared.packed.into_iter().for_each(|(packed, _)| pool.give(packed));
    }
    for (member, result) in group.members.iter().zip(results) {
        if let Some(result) = result {
            nodes[member.node].array.settle(T::buffer(result), pool);
        }
    }
}

fn prepared<'a, T: Number>(
    node: &'a Node,
    way: Way,
    given: &'a [Option<Buffer>],
    pool: &Pool,
) -> Prepared<'a, T> {
    let space = |point: &Point| Space::new(&point.shape, &point.inputs, 0);
    let mut result = Prepared {
        node,
        without_sign: false,
        given,
        factors: Vec::new(),
        packed: None,
        spaces: Vec::new(),
        fold: None,
    };
    match node.kind() {
        Some(Kind::Point(point)) => result.spaces.push(space(point)),
        Some(Kind::Normalise(normalise)) => {
            result.spaces.extend(normalise.points().into_iter().map(space));
        }
        Some(Kind::Fold(fold)) => result.fold = Some(fold.spaces()),
        Some(Kind::Product(product)) => {
            result.factors.extend(given.iter().map(|buffer| buffer.as_ref().map(own)));
            if let (Way::Rows(_), Some(Some(right))) = (way, result.factors.get(1))
                && SUMS.contains(&product.k)
                && tiles::are_fast()
            {
                result.packed = Some(packed(product, right, pool));
            }
        }
        None => {}
    }
    result
}

/// The right factors of a product, packed, and how far they are apart: 0 where all of the batch read the same one.
fn packed<T: Number>(product: &Product, right: &[T], pool: &Pool) -> (Vec<T>, usize) {
    let Product { k, n, b, .. } = product;
    let one = tiles::packed_len::<T>(*k, *n);
    let same = product.batch.iter().zip(&b.batch).all(|(size, step)| *size == 1 || *step == 0);
    let count = if same { 1 } else { volume(&product.batch) };
    let mut result = pool.take::<T>(count * one);
    let pack = |(at, to): (usize, &mut [T])| {
        let values = &right[b.offset + product.offsets(at).1..];
        tiles::pack(values, (b.row, b.column), (*k, *n), to);
    };
    if rayon::current_num_threads() > 1 {
        result.par_chunks_exact_mut(one).enumerate().for_each(pack);
    } else {
        result.chunks_exact_mut(one).enumerate().for_each(pack);
    }
    (result, if same { 0 } else { one })
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
    fn task<T: Number>(
        &self,
        prepared: &[Prepared<'_, T>],
        slots: &Slots,
        mut task: Task<'_, T>,
        scratch: &mut [T],
        panels: &mut [T],
        stopped: &impl Fn() -> bool,
    ) {
        let most = scratch.len() / slots.widths.iter().sum::<usize>().max(1);
        let begin = task.strips.first().map_or(0, |strip| strip.start);
        for (nth, range) in task.strips.iter().enumerate() {
            if stopped() {
                return;
            }
            let strip = Strip {
                batch: task.batch,
                first: task.batch * self.rows + range.start,
                rows: range.len(),
                nth,
            };
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
            let at =
                |member: usize| slots.of[member].unwrap_or_else(|| slots.widths.len() + place(self, member));
            for (own, member) in self.members.iter().enumerate() {
                let len = match member.way {
                    Way::Rows(width) => strip.rows * width,
                    Way::Sum(len) => len,
                };
                let to = std::mem::take(&mut places[at(own)]);
                let read = |input: usize| member.inputs[input].map(|other| &*places[at(other)]);
                self.member(own, &prepared[own], strip, &read, panels, &mut to[..len]);
                places[at(own)] = to;
            }
        }
    }

    fn member<'s, T: Number>(
        &self,
        own: usize,
        prepared: &'s Prepared<'_, T>,
        strip: Strip,
        read: &dyn Fn(usize) -> Option<&'s [T]>,
        panels: &mut [T],
        to: &mut [T],
    ) {
        let member = &self.members[own];
        // Whether what it reads stands where it goes to.
        let in_place = member
            .inputs
            .first()
            .is_some_and(|input| input.is_some_and(|input| place(self, input) == place(self, own)));
        let sources = |point: &'s Point, space: &'s Space, first: usize| -> Few<Source<'s, T>> {
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
            let sources = sources(point, space, inputs);
            let mut evaluator = Evaluator::over(&point.code, space, &sources);
            for (at, tile) in to.chunks_mut(TILE).enumerate() {
                evaluator.evaluate(first + at * TILE, &[], tile);
            }
        };
        match prepared.node.kind() {
            Some(Kind::Point(point)) if in_place && point.code.len() > 1 && prepared.without_sign => {
                to.iter_mut().for_each(|value| *value += T::ZERO);
            }
            Some(Kind::Point(_)) if in_place => {}
            Some(Kind::Point(point)) => evaluate(point, &prepared.spaces[0], 0, to),
            Some(Kind::Fold(fold)) => {
                if let Some(spaces) = &prepared.fold {
                    fold.rows(spaces, &sources(&fold.point, spaces.own(), 0), first, to);
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
                normalise.rows(to, present, more.next().map(Each::Own));
            }
            Some(Kind::Product(product)) => {
                let factor = |at: usize| match (read(at), member.inputs[at]) {
                    (Some(values), Some(input)) => Factor::Strip(values, self.members[input].width()),
                    _ => Factor::All(prepared.factors[at].as_deref().unwrap_or(&[])),
                };
                let packed = prepared.packed.as_ref().map(|(packed, apart)| (packed.as_slice(), *apart));
                let factors = Factors { left: factor(0), right: factor(1), packed, panels };
                let from = strip.first - strip.batch * self.rows;
                match member.way {
                    Way::Rows(_) => factors.rows(product, strip, to),
                    Way::Sum(_) => factors.sum(product, strip, from, to),
                }
            }
            None => {}
        }
    }
}

/// A factor of a product.
#[derive(Clone, Copy)]
enum Factor<'a, T> {
    /// The strip of a member, with rows so many entries apart.
    Strip(&'a [T], usize),
    /// All of it.
    All(&'a [T]),
}

/// What a product reads.
struct Factors<'a, 'p, T> {
    left: Factor<'a, T>,
    right: Factor<'a, T>,
    /// The right factors, packed, and how far they are apart.
    packed: Option<(&'a [T], usize)>,
    /// Space to pack into.
    panels: &'p mut [T],
}

/// A left factor: where it begins, and how it stands, if by steps that tiles know.
type Left<'a, T> = (&'a [T], Option<Stands>);

fn stands(matrices: &Matrices) -> Option<Stands> {
    match (matrices.row, matrices.column) {
        (row, 1) => Some(Stands::ByRows(row)),
        (1, column) => Some(Stands::ByColumns(column)),
        _ => None,
    }
}

impl<T: Number> Factors<'_, '_, T> {
    /// A strip of the rows of a product.
    fn rows(self, product: &Product, strip: Strip, to: &mut [T]) {
        let Product { m, k, n, a, b, scale, .. } = product;
        let (m, k, n, rows, scale) = (*m, *k, *n, strip.rows, T::of(*scale));
        let position = strip.first / m;
        let (from_a, from_b) = product.offsets(position);
        let (values, stands): Left<'_, T> = match self.left {
            Factor::Strip(values, width) => (&values[a.offset..], Some(Stands::ByRows(width))),
            Factor::All(values) => (&values[a.offset + from_a + strip.first % m * a.row..], stands(a)),
        };
        if let (Some((packed, apart)), Some(stands)) = (self.packed, stands)
            && rows >= TALL
        {
            let b = &packed[position * apart..][..tiles::packed_len::<T>(k, n)];
            let b = Right::Packed(b);
            tiles::Strip { a: values, stands, b, sizes: (rows, k, n), scale, adds: false, out: to }
                .multiply();
        } else {
            let left = match self.left {
                Factor::Strip(values, width) => Mat::strided(&values[a.offset..], rows, k, width),
                Factor::All(values) => a.at(values, from_a + strip.first % m * a.row, rows, k),
            };
            let Factor::All(right) = self.right else { return };
            product_of(MatMut::new(to, rows, n), false, scale, left, b.at(right, from_b, k, n), false);
            without_sign(product, to);
        }
    }

    /// What a strip, which begins so many rows behind the first of its batch, adds to a product.
    fn sum(self, product: &Product, strip: Strip, from: usize, to: &mut [T]) {
        let Product { m, n, a, b, scale, .. } = product;
        let (m, n, rows, scale, adds) = (*m, *n, strip.rows, T::of(*scale), strip.nth > 0);
        let (from_a, from_b) = product.offsets(strip.batch);
        let (values, stands): Left<'_, T> = match self.left {
            Factor::Strip(values, width) => (&values[a.offset..], Some(Stands::ByColumns(width))),
            Factor::All(values) => (&values[a.offset + from_a + from * a.column..], stands(a)),
        };
        if let Some(stands) = stands.filter(|_| m >= TALL && tiles::are_fast()) {
            let (right, steps) = match self.right {
                Factor::Strip(values, width) => (&values[b.offset..], (width, 1)),
                Factor::All(values) => (&values[b.offset + from_b + from * b.row..], (b.row, b.column)),
            };
            let packed = &mut self.panels[..tiles::packed_len::<T>(rows, n)];
            tiles::pack(right, steps, (rows, n), packed);
            tiles::Strip {
                a: values,
                stands,
                b: Right::Packed(packed),
                sizes: (m, rows, n),
                scale,
                adds,
                out: to,
            }
            .multiply();
        } else {
            let left = match self.left {
                Factor::Strip(values, width) => Mat::strided(&values[a.offset..], rows, m, width).t(),
                Factor::All(values) => a.at(values, from_a + from * a.column, m, rows),
            };
            let right = match self.right {
                Factor::Strip(values, width) => Mat::strided(&values[b.offset..], rows, n, width),
                Factor::All(values) => b.at(values, from_b + from * b.row, rows, n),
            };
            product_of(MatMut::new(to, m, n), adds, scale, left, right, false);
            without_sign(product, to);
        }
    }
}

/// Nothing times a number below 0 is still nothing.
fn without_sign<T: Number>(product: &Product, to: &mut [T]) {
    if product.scale < 0.0 {
        to.iter_mut().for_each(|value| *value += T::ZERO);
    }
}
