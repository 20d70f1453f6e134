//! What waits, kept as operations in the order in which they are done, to be done again on other arrays.
//!
//! Enter at [`Tape::of`] and [`Tape::run`]. To find out what waits, in which order it can be done and which of it is done
//! together takes longer than to do some small operations; for the next numbers all of that is the same.

use std::sync::Arc;

use super::array::Array;
use super::force::{awake, is_worth_it};
use super::number::{Buffer, Pool, Precision};
use super::recorded::Recorded;
use super::schedule::{Group, Node, Unit, units, waiting};
use super::strips;

/// What comes to the same each time is kept if it has so many entries at most.
const KEPT: usize = 1 << 18;

/// Where an array is that an operation reads.
#[derive(Debug, Clone)]
enum From {
    /// Made by another operation.
    Made(usize),
    /// Handed over anew each time.
    Given(usize),
    /// Always the same.
    Fixed(Array),
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
#[derive(Debug)]
pub struct Tape {
    operations: Vec<(Recorded, Vec<From>)>,
    parts: Vec<Part>,
    /// Where the arrays are that were asked for.
    asked: Vec<From>,
    /// The number of results of all operations.
    entries: usize,
    nothing: Array,
}

/// What is done at a time, and the operations whose results nobody reads behind it.
#[derive(Debug)]
struct Part {
    work: Work,
    free: Vec<usize>,
}

#[derive(Debug)]
enum Work {
    One(usize),
    /// Members by their numbers here, and those operations.
    Group(Group, Vec<usize>),
}

impl Tape {
    /// What computes those of these arrays that are asked for; the others are handles whose numbers nobody will look at.
    /// What comes to the same each time is computed now. `None`, if something is read whose origin is not known.
    pub fn of(
        arrays: &[(&Array, bool)],
        origin: impl Fn(&Array) -> Option<Origin>,
        (precision, pool): (Precision, &Arc<Pool>),
    ) -> Option<Tape> {
        let same = computed_once(&waiting(arrays), &origin);
        Array::force_all(&same.iter().map(|array| (array, true)).collect::<Vec<_>>(), precision, pool);
        let origin = |array: &Array| match same.iter().any(|other| other.same(array)) {
            true => Some(Origin::Fixed),
            false => origin(array),
        };
        let nodes = waiting(arrays);
        let units = units(&nodes);
        let from = |array: &Array| -> Option<From> {
            match nodes.iter().position(|node| node.array.same(array)) {
                Some(at) => Some(From::Made(at)),
                None if array.is_waiting() => None,
                None => Some(match origin(array)? {
                    Origin::Given(at) => From::Given(at),
                    Origin::Fixed => From::Fixed(array.clone()),
                }),
            }
        };
        let nothing = Array::truths(Vec::new());
        let mut operations = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let mut recorded = Recorded::of(&node.array)?;
            let mut sources = Vec::new();
            recorded.visit(&mut |array, _| sources.push(from(&std::mem::replace(array, nothing.clone()))));
            operations.push((recorded, sources.into_iter().collect::<Option<Vec<From>>>()?));
        }
        let asked: Option<Vec<From>> =
            arrays.iter().filter(|(_, asked)| *asked).map(|(array, _)| from(array)).collect();
        let asked = asked?;
        let entries = nodes.iter().map(|node| node.array.len()).sum();
        let mut parts: Vec<Part> = units.into_iter().map(Part::of).collect();
        // Behind the last reader of a result its memory is free.
        let mut wanted = vec![false; operations.len()];
        let made = |from: &From| match from {
            From::Made(at) => Some(*at),
            From::Given(_) | From::Fixed(_) => None,
        };
        asked.iter().filter_map(made).for_each(|at| wanted[at] = true);
        for part in parts.iter_mut().rev() {
            let own: Vec<usize> = part.work.operations().to_vec();
            for own in own {
                let read = operations[own].1.iter().filter_map(made);
                for at in std::iter::once(own).chain(read) {
                    if !std::mem::replace(&mut wanted[at], true) {
                        part.free.push(at);
                    }
                }
            }
        }
        Some(Tape { operations, parts, asked, entries, nothing })
    }

    /// Does the operations on these arrays, whose numbers are there; returns what was asked for, in order.
    pub fn run(&mut self, given: &[Array], precision: Precision, pool: &Arc<Pool>) -> Vec<Array> {
        let together = is_worth_it(self.parts.len(), self.entries);
        let mut made: Vec<Array> = vec![self.nothing.clone(); self.operations.len()];
        let stopped = pool.stopped();
        let Tape { operations, parts, asked, entries, nothing } = self;
        let mut run = || {
            for part in parts.iter() {
                if stopped() {
                    return;
                }
                match &part.work {
                    Work::One(at) => {
                        let (recorded, sources) = &mut operations[*at];
                        let buffer = done(recorded, sources, given, &made, (precision, pool), nothing);
                        made[*at] = Array::pooled(buffer, pool);
                    }
                    Work::Group(group, own) => {
                        let nodes: Vec<Node> = own
                            .iter()
                            .map(|at| {
                                let (recorded, sources) = &operations[*at];
                                let sources = sources.iter().map(|from| from.array(given, &made));
                                Node::alone(recorded.waiting(sources))
                            })
                            .collect();
                        match precision {
                            Precision::Double => strips::run::<f64>(&nodes, group, pool),
                            Precision::Single => strips::run::<f32>(&nodes, group, pool),
                        }
                        for (node, at) in nodes.into_iter().zip(own) {
                            made[*at] = node.array;
                        }
                    }
                }
                part.free.iter().for_each(|at| made[*at] = nothing.clone());
            }
        };
        match together {
            true => awake(*entries, run),
            false => run(),
        }
        asked.iter().map(|from| from.array(given, &made)).collect()
    }
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

/// Does an operation on the arrays that it reads, and lets go of them.
fn done(
    recorded: &mut Recorded,
    sources: &[From],
    given: &[Array],
    made: &[Array],
    (precision, pool): (Precision, &Arc<Pool>),
    nothing: &Array,
) -> Buffer {
    let mut sources = sources.iter();
    recorded.visit(&mut |array, _| {
        if let Some(from) = sources.next() {
            *array = from.array(given, made);
        }
    });
    let buffer = recorded.run_again(precision, pool);
    recorded.visit(&mut |array, _| *array = nothing.clone());
    buffer
}

impl From {
    fn array(&self, given: &[Array], made: &[Array]) -> Array {
        match self {
            From::Made(at) => made[*at].clone(),
            From::Given(at) => given[*at].clone(),
            From::Fixed(array) => array.clone(),
        }
    }
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
        Part { work, free: Vec::new() }
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
        let (whole, square) = sum(&x, &y);
        let asked = [(&whole, true), (&square, false)];
        let mut tape = Tape::of(&asked, origin, (Precision::Double, &pool)).unwrap();
        assert!(whole.is_waiting() && !square.is_waiting());
        assert_eq!((tape.operations.len(), tape.entries), (1, 2));
        for shift in [0.0, 5.0] {
            let made = tape.run(&[numbers(&[shift, 1.0])], Precision::Double, &pool);
            assert_eq!(made[0].done().unwrap().numbers::<f64>(), [shift + 9.0, 17.0]);
        }
        // What is asked for and comes to the same is handed out like the rest.
        let (whole, square) = sum(&x, &y);
        let asked = [(&square, true), (&whole, true)];
        let mut tape = Tape::of(&asked, origin, (Precision::Double, &pool)).unwrap();
        let made = tape.run(&[numbers(&[1.0, 1.0])], Precision::Double, &pool);
        assert_eq!(made[0].done().unwrap().numbers::<f64>(), [9.0, 16.0]);
        assert_eq!(made[1].done().unwrap().numbers::<f64>(), [10.0, 17.0]);
        let (whole, _) = sum(&numbers(&[0.0, 0.0]), &y);
        assert!(Tape::of(&[(&whole, true)], origin, (Precision::Double, &pool)).is_none());
    }
}
