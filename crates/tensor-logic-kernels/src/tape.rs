//! What waits, kept as operations in the order in which they are done, to be done again on other arrays.
//!
//! Enter at [`Tape::of`] and [`Tape::run`]. To find out what waits, in which order it can be done and which of it is done
//! together takes longer than to do some small operations; for the next numbers all of that is the same. So are equal
//! operations on equal arrays, which are done once, and the room for results that only other operations read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::array::{Array, Known};
use super::number::{Buffer, Number, Pool, Precision, Room};
use super::point::Point;
use super::recorded::Recorded;
use super::schedule::{Group, Node, Unit, units, waiting};
use super::strips;
use super::threads::together;

/// What comes to the same each time is kept if it has so many entries at most.
const KEPT: usize = 1 << 18;
/// What has so many entries or more stays an operation of its own: it may be one of a group that strips go through.
const FUSED: usize = 1 << 14;

/// So much elementwise work is looked for in other such work.
const POINTS: usize = 64;

/// Where an array is that an operation reads.
#[derive(Debug, Clone)]
enum From {
    /// Made by another operation.
    Made(usize),
    /// Handed over anew each time.
    Given(usize),
    /// Always the same: its numbers, where they are there.
    Fixed(Array, Option<Buffer>),
}

/// What a [`Tape`] is told of an array that it reads and does not make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is handed over anew each time, at this place.
    Given(usize),
    /// It is always the same.
    Fixed,
}

/// Operations in the order in which they are done.
///
/// What a run looks at stands one behind the other: where many tapes are run in turn, none of it is in a cache.
#[derive(Debug)]
pub struct Tape {
    operations: Vec<Step>,
    /// What the operations read, those of each one behind the other.
    sources: Vec<From>,
    parts: Vec<Part>,
    /// The operations whose results nobody reads behind a part, those of each part one behind the other.
    done_with: Vec<usize>,
    /// Where the arrays are that were asked for.
    asked: Vec<From>,
    /// The number of results of all operations.
    entries: usize,
    nothing: Array,
}

/// An operation.
#[derive(Debug)]
struct Step {
    recorded: Recorded,
    /// What it reads.
    sources: Range<usize>,
    /// Whether it reads and writes numbers wherever these stand.
    is_free: bool,
    /// Whether none but such operations read what it makes.
    is_passed_on: bool,
}

/// What is done at a time, and the operations whose results nobody reads behind it.
#[derive(Debug)]
struct Part {
    work: Work,
    done_with: Range<usize>,
}

#[derive(Debug)]
enum Work {
    One(usize),
    /// Members by their numbers here, and those operations.
    Group(Group, Vec<usize>),
}

impl Tape {
    /// What computes these arrays. What comes to the same each time is computed now. `None`, if something is read whose origin is
    /// not known.
    pub fn of(
        asked: &[&Array],
        origin: impl Fn(&Array) -> Option<Origin>,
        (precision, pool): (Precision, &Arc<Pool>),
    ) -> Option<Tape> {
        let merged = without_common_subexpressions(asked)?;
        let same = computed_once(&waiting(&all(&merged)), &origin);
        Array::force_all(&all(&same), precision, pool);
        let same: HashSet<usize> = same.iter().map(Array::address).collect();
        let origin = |array: &Array| match same.contains(&array.address()) {
            true => Some(Origin::Fixed),
            false => origin(array),
        };
        let known = |array: &Array, at: usize| match origin(array)? {
            Origin::Fixed => array.done()?.number(at),
            Origin::Given(_) => None,
        };
        let arrays = fused(&merged, &known)?;
        let arrays = all(&arrays);
        let arrays = arrays.as_slice();
        let nodes = waiting(arrays);
        let units = units(&nodes);
        let made: HashMap<usize, usize> =
            nodes.iter().enumerate().map(|(at, node)| (node.array.address(), at)).collect();
        let from = |array: &Array| -> Option<From> {
            match made.get(&array.address()) {
                Some(at) => Some(From::Made(*at)),
                None if array.is_waiting() => None,
                None => Some(match origin(array)? {
                    Origin::Given(at) => From::Given(at),
                    Origin::Fixed => From::Fixed(array.clone(), array.done()),
                }),
            }
        };
        let nothing = Array::truths(Vec::new());
        let mut operations = Vec::with_capacity(nodes.len());
        let mut sources = Vec::new();
        for node in &nodes {
            let mut recorded = Recorded::of(&node.array)?;
            let (first, mut known) = (sources.len(), true);
            recorded.visit(&mut |array, _| match from(&std::mem::replace(array, nothing.clone())) {
                Some(from) => sources.push(from),
                None => known = false,
            });
            let is_free = recorded.is_free();
            let step = Step { recorded, sources: first..sources.len(), is_free, is_passed_on: true };
            operations.push(Some(step).filter(|_| known)?);
        }
        let asked = arrays.iter().map(|(array, _)| from(array)).collect::<Option<Vec<From>>>()?;
        let entries = nodes.iter().map(|node| node.array.len()).sum();
        let mut parts: Vec<Part> = units.into_iter().map(Part::of).collect();
        let made = |from: &From| match from {
            From::Made(at) => Some(*at),
            From::Given(_) | From::Fixed(..) => None,
        };
        asked.iter().filter_map(made).for_each(|at| operations[at].is_passed_on = false);
        for part in &parts {
            let alone = matches!(part.work, Work::One(_));
            for own in part.work.operations() {
                if !(alone && operations[*own].is_free) {
                    let read = sources[operations[*own].sources.clone()].iter().filter_map(made);
                    read.for_each(|at| operations[at].is_passed_on = false);
                }
            }
        }
        // Behind the last reader of a result its memory is free.
        let mut wanted = vec![false; operations.len()];
        asked.iter().filter_map(made).for_each(|at| wanted[at] = true);
        let mut done_with = Vec::new();
        for part in parts.iter_mut().rev() {
            let first = done_with.len();
            for own in part.work.operations() {
                let read = sources[operations[*own].sources.clone()].iter().filter_map(made);
                done_with.extend(
                    std::iter::once(*own).chain(read).filter(|at| !std::mem::replace(&mut wanted[*at], true)),
                );
            }
            part.done_with = first..done_with.len();
        }
        Some(Tape { operations, sources, parts, done_with, asked, entries, nothing })
    }

    /// How many operations there are.
    #[cfg(test)]
    pub(super) fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Does the operations on these arrays, whose numbers are there; returns what was asked for, in order.
    pub fn run(&mut self, given: &[Array], precision: Precision, pool: &Arc<Pool>) -> Vec<Array> {
        let given = given.iter().map(|array| (array.clone(), array.done())).collect();
        self.run_on(given, precision, pool)
    }

    /// The same on arrays with their numbers.
    pub fn run_on(
        &mut self,
        given: Vec<(Array, Option<Buffer>)>,
        precision: Precision,
        pool: &Arc<Pool>,
    ) -> Vec<Array> {
        match precision {
            Precision::Double => self.run_in::<f64>(&given, precision, pool),
            Precision::Single => self.run_in::<f32>(&given, precision, pool),
        }
    }

    fn run_in<T: Number>(
        &mut self,
        given: &[(Array, Option<Buffer>)],
        precision: Precision,
        pool: &Arc<Pool>,
    ) -> Vec<Array> {
        let Tape { operations, sources, parts, done_with, asked, entries, nothing } = self;
        let made = operations.iter().map(|_| Made::<T>::Nothing).collect();
        let mut at_work = AtWork { made, given, room: pool.room(), pool };
        let stopped = pool.stopped();
        together(parts.len(), *entries, || {
            for part in parts.iter() {
                if stopped() {
                    return;
                }
                match &part.work {
                    Work::One(at) => {
                        let step = &mut operations[*at];
                        let sources = &sources[step.sources.clone()];
                        if !(step.is_free && at_work.does(*at, step, sources)) {
                            let buffer = at_work.done(&mut step.recorded, sources, precision, nothing);
                            let array = Array::pooled(buffer.clone(), pool);
                            at_work.made[*at] = Made::Array(Some(buffer), array);
                        }
                    }
                    Work::Group(group, own) => {
                        let nodes: Vec<Node> = own
                            .iter()
                            .map(|at| {
                                let step = &operations[*at];
                                let sources = &sources[step.sources.clone()];
                                let sources = sources.iter().map(|from| at_work.array(from, nothing));
                                Node::alone(step.recorded.waiting(sources))
                            })
                            .collect();
                        strips::run::<T>(&nodes, group, pool);
                        for (node, at) in nodes.into_iter().zip(own) {
                            let buffer = node.array.done();
                            at_work.made[*at] = Made::Array(buffer, node.array);
                        }
                    }
                }
                done_with[part.done_with.clone()].iter().for_each(|at| at_work.free(*at));
            }
        });
        let results = asked.iter().map(|from| at_work.array(from, nothing)).collect();
        pool.keep(at_work.room);
        results
    }
}

/// What an operation has made.
enum Made<T> {
    /// Nothing yet, or nobody reads it any more.
    Nothing,
    /// So many numbers at the beginning of their room.
    Numbers(Vec<T>, usize),
    /// An array behind its numbers, where they are there: these are let go of first, so that its memory is free.
    Array(Option<Buffer>, Array),
}

/// A run at work.
struct AtWork<'a, T> {
    made: Vec<Made<T>>,
    given: &'a [(Array, Option<Buffer>)],
    room: Box<Room<T>>,
    pool: &'a Arc<Pool>,
}

impl<T: Number> AtWork<'_, T> {
    /// Does an operation in the room for its results, if all that it reads are numbers of the type that is computed with.
    fn does(&mut self, at: usize, step: &Step, sources: &[From]) -> bool {
        let len = step.recorded.len();
        let to = {
            let mut slices: SmallVec<[&[T]; 8]> = SmallVec::new();
            for from in sources {
                let slice = match from {
                    From::Made(at) => match &self.made[*at] {
                        Made::Numbers(numbers, len) => Some(&numbers[..*len]),
                        Made::Array(buffer, _) => buffer.as_ref().and_then(T::slice),
                        Made::Nothing => None,
                    },
                    From::Given(at) => self.given[*at].1.as_ref().and_then(T::slice),
                    From::Fixed(_, buffer) => buffer.as_ref().and_then(T::slice),
                };
                let Some(slice) = slice else { return false };
                slices.push(slice);
            }
            // An array has its own length.
            let mut to = match step.is_passed_on {
                true => self.room.take(len, self.pool),
                false => self.pool.take(len),
            };
            step.recorded.run_on_again(&slices, &mut to[..len], self.pool);
            to
        };
        self.made[at] = Made::Numbers(to, len);
        true
    }

    /// Does an operation on the arrays that it reads, and lets go of them.
    fn done(
        &mut self,
        recorded: &mut Recorded,
        sources: &[From],
        precision: Precision,
        nothing: &Array,
    ) -> Buffer {
        let mut sources = sources.iter();
        recorded.visit(&mut |array, _| {
            if let Some(from) = sources.next() {
                *array = self.array(from, nothing);
            }
        });
        let buffer = recorded.run_again(precision, self.pool);
        recorded.visit(&mut |array, _| *array = nothing.clone());
        buffer
    }

    /// An array to be read.
    fn array(&mut self, from: &From, nothing: &Array) -> Array {
        match from {
            From::Made(at) => {
                let (buffer, array) = match std::mem::replace(&mut self.made[*at], Made::Nothing) {
                    Made::Nothing => return nothing.clone(),
                    Made::Numbers(mut numbers, len) => {
                        numbers.truncate(len);
                        let buffer = T::buffer(numbers);
                        (Some(buffer.clone()), Array::pooled(buffer, self.pool))
                    }
                    Made::Array(buffer, array) => (buffer, array),
                };
                self.made[*at] = Made::Array(buffer, array.clone());
                array
            }
            From::Given(at) => self.given[*at].0.clone(),
            From::Fixed(array, _) => array.clone(),
        }
    }

    /// Nobody reads a result any more.
    fn free(&mut self, at: usize) {
        if let Made::Numbers(numbers, _) = std::mem::replace(&mut self.made[at], Made::Nothing) {
            self.room.give(numbers, self.pool);
        }
    }
}

/// All of them are asked for.
fn all(arrays: &[Array]) -> Vec<(&Array, bool)> {
    arrays.iter().map(|array| (array, true)).collect()
}

/// The same arrays with equal operations on equal arrays, and elementwise work within other such work, done once, and without
/// copies; `None`, if an operation cannot be recorded.
fn without_common_subexpressions(arrays: &[&Array]) -> Option<Vec<Array>> {
    let nodes = waiting(&arrays.iter().map(|array| (*array, true)).collect::<Vec<_>>());
    // What stands for each array.
    let mut stands: HashMap<usize, Array> = HashMap::new();
    // What is done with the same arrays, and what stands for each.
    let mut known: HashMap<Vec<usize>, Vec<(Array, Array)>> = HashMap::new();
    let mut points: Vec<(Array, Point)> = Vec::new();
    for node in &nodes {
        let mut sources = Vec::new();
        node.operation.inputs(&mut |read| {
            sources.push(stands.get(&read.name()).unwrap_or(read).clone());
        });
        if node.operation.copies()
            && let [from] = sources.as_slice()
            && from.operation().is_some_and(|operation| !operation.may_be_truths())
        {
            stands.insert(node.array.name(), from.clone());
            continue;
        }
        let names = sources.iter().map(Array::name).collect();
        // Nothing that is left behind is to hold what stands for it.
        let array = Recorded::of(&node.array)?.waiting(sources);
        let operation = array.operation();
        let alike = |(other, _): &&(Array, Array)| match (&operation, other.operation()) {
            (Some(own), Some(other)) => own.is_same(&*other),
            _ => false,
        };
        let before = known.entry(names).or_default();
        let array = match before.iter().find(alike).cloned() {
            Some((_, same)) => same,
            None => {
                let point = operation.and_then(|made| made.any().downcast_ref::<Point>().cloned());
                let shared = point.as_ref().and_then(|point| point.sharing(&points));
                let shares = shared.map(|point| Array::of(node.array.len(), point));
                let own = shares.unwrap_or_else(|| array.clone());
                points.extend(point.filter(Point::is_worth_sharing).map(|point| (own.clone(), point)));
                points.truncate(POINTS);
                before.push((array, own.clone()));
                own
            }
        };
        stands.insert(node.array.name(), array);
    }
    Some(arrays.iter().map(|array| stands.get(&array.name()).unwrap_or(array).clone()).collect())
}

/// The same arrays, where work of few results that one operation reads is part of that one, if it is elementwise or both put
/// sums somewhere, and numbers that stay the same are part of what is done with them: to begin an operation takes as long as
/// some hundred results do. `None`, if an operation cannot be recorded.
fn fused(arrays: &[Array], known: Known<'_>) -> Option<Vec<Array>> {
    let nodes = waiting(&all(arrays));
    // Each reader once, however often it reads.
    let mut readers = vec![0; nodes.len()];
    for node in &nodes {
        let made: BTreeSet<usize> = node.inputs.iter().flatten().copied().collect();
        made.into_iter().for_each(|at| readers[at] += 1);
    }
    let position = |array: &Array| nodes.iter().position(|node| node.array.same(array));
    let asked: Vec<Option<usize>> = arrays.iter().map(position).collect();
    asked.iter().flatten().for_each(|at| readers[*at] = usize::MAX);
    // What stands for each; nobody but its only reader holds what may become part of that.
    let mut stands: Vec<Option<Array>> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let (mut inputs, mut sources) = (node.inputs.iter(), Vec::new());
        node.operation.inputs(&mut |read| {
            let made = inputs.next().copied().flatten();
            sources.push(made.and_then(|at| stands[at].clone()).unwrap_or_else(|| read.clone()));
        });
        let cleans = node.operation.any().downcast_ref::<Point>().is_some_and(Point::only_cleans);
        for at in node.inputs.iter().flatten() {
            if readers[*at] == 1 && (nodes[*at].array.len() < FUSED || cleans) {
                stands[*at] = None;
            }
        }
        stands.push(Some(Recorded::of(&node.array)?.fused(sources, known)));
    }
    let own =
        |(array, at): (&Array, &Option<usize>)| at.and_then(|at| stands[at].clone()).unwrap_or(array.clone());
    Some(arrays.iter().zip(&asked).map(own).collect())
}

/// What reads nothing that is handed over anew, neither itself nor below, and is not too large to be kept.
fn computed_once(nodes: &[Node], origin: &impl Fn(&Array) -> Option<Origin>) -> Vec<Array> {
    let mut same: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut fixed = node.array.len() <= KEPT;
        let mut inputs = node.inputs.iter();
        node.operation.inputs(&mut |array| {
            fixed &= match inputs.next().copied().flatten() {
                Some(input) => same[input],
                None => origin(array) == Some(Origin::Fixed),
            };
        });
        same.push(fixed);
    }
    nodes.iter().zip(same).filter(|(_, same)| *same).map(|(node, _)| node.array.clone()).collect()
}

impl Part {
    fn of(unit: Unit) -> Part {
        let work = match unit {
            Unit::One(at) => Work::One(at),
            Unit::Group(mut group) => {
                let own = group.members.iter().map(|member| member.node).collect();
                group.members.iter_mut().enumerate().for_each(|(at, member)| member.node = at);
                Work::Group(group, own)
            }
        };
        Part { work, done_with: 0..0 }
    }
}

impl Work {
    fn operations(&self) -> &[usize] {
        match self {
            Work::One(at) => std::slice::from_ref(at),
            Work::Group(_, own) => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Code, Point, View};

    /// `f(x) = x + y · y`, where `y` comes to the same each time.
    fn sum(x: &Array, y: &Array) -> (Array, Array) {
        let of = |inputs: &[&Array], binary: Binary| {
            let inputs = inputs.iter().map(|array| View::whole((*array).clone(), &[2])).collect();
            let code = vec![Code::Load(0), Code::Load(1), Code::Binary(binary)];
            Array::of(2, Point { shape: vec![2], inputs, code, truth: false })
        };
        let square = of(&[y, y], Binary::Multiply);
        (of(&[x, &square], Binary::Add), square)
    }

    #[test]
    fn what_comes_to_the_same_is_computed_once_and_unknown_arrays_are_refused() {
        let pool = Arc::new(Pool::default());
        let numbers = |values: &[f64]| Array::doubles(values.to_vec());
        let (x, y) = (numbers(&[1.0, 2.0]), numbers(&[3.0, -4.0]));
        let origin = |array: &Array| {
            if array.same(&x) {
                return Some(Origin::Given(0));
            }
            array.same(&y).then_some(Origin::Fixed)
        };
        let (whole, _) = sum(&x, &y);
        let mut tape = Tape::of(&[&whole], origin, (Precision::Double, &pool)).unwrap();
        assert!(whole.is_waiting());
        assert_eq!((tape.operations.len(), tape.entries), (1, 2));
        assert!(matches!(tape.sources[..], [From::Given(0), From::Fixed(..)]));
        for shift in [0.0, 5.0] {
            let made = tape.run(&[numbers(&[shift, 1.0])], Precision::Double, &pool);
            assert_eq!(made[0].done().unwrap().numbers::<f64>(), [shift + 9.0, 17.0]);
        }
        // What is asked for and comes to the same is handed out like the rest.
        let (whole, square) = sum(&x, &y);
        let mut tape = Tape::of(&[&square, &whole], origin, (Precision::Double, &pool)).unwrap();
        let made = tape.run(&[numbers(&[1.0, 1.0])], Precision::Double, &pool);
        assert_eq!(made[0].done().unwrap().numbers::<f64>(), [9.0, 16.0]);
        assert_eq!(made[1].done().unwrap().numbers::<f64>(), [10.0, 17.0]);
        let (whole, _) = sum(&numbers(&[0.0, 0.0]), &y);
        assert!(Tape::of(&[&whole], origin, (Precision::Double, &pool)).is_none());
    }
}
