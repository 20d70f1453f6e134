//! A program that is gone through window after window of the steps of its recursions.
//!
//! Enter at [`Windows::of`]. The tensors of a long stepped component, and those that have a slice for each of its steps,
//! *move* with the steps. What reads them from outside reads single slices, as `X[1000000, i]`, or sums over the
//! steps, as `Loss = (X[t, i] - Y[t, i])^2`. Then some steps at a time suffice: each window is a program of its own that
//! is given the last slices of the window before, as many as its reads go back, and the sums of all windows are added.
//!
//! The adjoint of such a program moves the other way and reads all slices. It is a second pass, from the last window to
//! the first: each of its windows computes the slices of the first pass anew, from those that were kept where one of the
//! windows of that pass began. So memory grows with the steps of a window and with the number of windows.
//!
//! `along` says where a read stands, `spread` which tensors move with others, `sums` makes tensors of their own of sums
//! over the steps, and `find` says in which pass each moves and how their steps lie to each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{EquationId, Given, IndexId, Program, Range, TensorId, floor_div};
use crate::value::{Const, Domain};

mod along;
mod find;
mod spread;
mod sums;

/// How a program is gone through.
#[derive(Debug)]
pub struct Windows {
    /// The program, in which sums over the steps and single slices are tensors of their own.
    pub program: Program,
    /// What moves.
    pub moved: Vec<Moved>,
    /// Sums over the steps, with their passes.
    pub sums: Vec<(TensorId, usize)>,
    /// What is computed or learned and evaluated as a whole before each pass.
    pub inputs: Vec<Vec<TensorId>>,
    /// The first and the last step of each pass.
    passes: Vec<(i64, i64)>,
    /// Whether the first pass goes up.
    up: bool,
    /// Which values of an index belong to which steps.
    timings: Vec<Timing>,
    /// Left sides that stand in one step, with their pass.
    standing: Vec<(EquationId, usize, i64)>,
    /// For a step of the second pass the first and the last step of the first pass that it reads, less the negative
    /// step.
    reach: Option<(i64, i64)>,
}

/// A tensor with a slice for each step.
#[derive(Debug)]
pub struct Moved {
    /// Which.
    pub id: TensorId,
    /// The place that moves.
    pub place: usize,
    /// The pass in which it is evaluated first.
    pub pass: usize,
    /// So many slices of it are read by later steps.
    pub back: i64,
    /// Whether all of it is asked for.
    pub whole: bool,
    /// The tensors that stand for single slices, by their values at the moving place.
    pub slices: BTreeMap<i64, TensorId>,
    /// Elements of a slice; 0 of a relation.
    pub size: usize,
    /// What is added to the value at the moving place, in the direction of the pass, to say the step.
    shift: i64,
    /// The values at that place, of a square tensor.
    domain: Option<(i64, i64)>,
    /// What is given, by its value there.
    given: BTreeMap<i64, Vec<Given>>,
}

/// Which values of an index belong to which steps: `by · value + from` is the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timing {
    index: IndexId,
    pass: usize,
    by: i64,
    from: i64,
}

/// Some steps of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Which pass.
    pub pass: usize,
    /// The steps.
    pub steps: (i64, i64),
    /// In a second pass, the steps of the first that are gone through again.
    pub again: Option<(i64, i64)>,
}

/// The slices of each moving tensor that were kept, by their steps.
pub type Kept = Vec<BTreeMap<i64, Given>>;

impl Windows {
    /// The number of steps of the longest pass.
    pub fn len(&self) -> usize {
        let steps = |(from, to): &(i64, i64)| usize::try_from(to - from + 1).unwrap_or(0);
        self.passes.iter().map(steps).max().unwrap_or(0)
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements that need not be there at a time.
    pub fn elements(&self) -> u128 {
        let of = |moved: &Moved| {
            let all = moved.domain.map_or(0, |(from, to)| (to - from + 1).max(0) as u128);
            let rest = if moved.whole { 0 } else { all.saturating_sub(moved.slices.len() as u128) };
            rest * moved.size as u128
        };
        self.moved.iter().map(of).sum()
    }

    /// Elements of a step of all that moves.
    pub fn step_size(&self) -> usize {
        self.moved.iter().map(|moved| moved.size).sum::<usize>().max(1)
    }

    /// All windows, in the order in which they are gone through. Where a second pass will begin again, there
    /// a window of the first begins.
    pub fn windows(&self, length: i64) -> Vec<Window> {
        let parts = |(first, last): (i64, i64)| {
            let begins = (0..).map(move |at| first + at * length).take_while(move |from| *from <= last);
            begins.map(move |from| (from, (from + length - 1).min(last)))
        };
        let [first, second] = self.passes.as_slice() else {
            let steps = self.passes.iter().copied().flat_map(parts);
            return steps.map(|steps| Window { pass: 0, steps, again: None }).collect();
        };
        let behind: Vec<Window> = parts(*second)
            .map(|(from, to)| {
                let again = |(low, high): (i64, i64)| {
                    let again = ((low - to).max(first.0), (high - from).min(first.1));
                    if again.0 <= again.1 { again } else { (first.0, first.0 - 1) }
                };
                Window { pass: 1, steps: (from, to), again: self.reach.map(again) }
            })
            .collect();
        let mut begins: BTreeSet<i64> = behind.iter().filter_map(|window| Some(window.again?.0)).collect();
        if self.reach.is_none() {
            begins.extend(parts(*first).map(|(from, _)| from));
        }
        begins.insert(first.0);
        let ends = begins.iter().skip(1).map(|next| next - 1).chain([first.1]);
        let before = begins.iter().zip(ends);
        let before = before.map(|(from, to)| Window { pass: 0, steps: (*from, to), again: None });
        before.chain(behind).collect()
    }

    /// The program of a window, with the slices of earlier windows that its reads go back to; `again` are those before
    /// what is gone through again.
    pub fn part(&self, program: &Program, window: &Window, kept: &Kept, again: Option<&Kept>) -> Program {
        let mut part = program.clone();
        let steps = |pass: usize| match (pass == window.pass, window.again) {
            (true, _) => Some(window.steps),
            (false, again) => again,
        };
        for (at, moved) in self.moved.iter().enumerate() {
            let Some(tensor) = part.tensors.get_mut(moved.id.0 as usize) else { continue };
            let Some((from, to)) = steps(moved.pass) else { continue };
            if let Some(domain) = moved.domain {
                let ends = [self.value(moved, from - moved.back), self.value(moved, to)];
                let range = Domain::Interval {
                    from: ends[0].min(ends[1]).max(domain.0),
                    to: ends[0].max(ends[1]).min(domain.1),
                };
                if let Some(place) = tensor.places.get_mut(moved.place) {
                    place.domain = Some(range);
                    place.limit.clone_from(&place.domain);
                }
            }
            let kept = if moved.pass == window.pass { Some(kept) } else { again };
            let kept = kept.and_then(|kept| kept.get(at)).into_iter().flatten();
            let kept = kept.filter(|(step, _)| (from - moved.back..from).contains(*step));
            let values = [self.value(moved, from), self.value(moved, to)];
            let new = moved.given.range(values[0].min(values[1])..=values[0].max(values[1]));
            let new = new.flat_map(|(_, given)| given);
            tensor.given = kept.map(|(_, given)| given).chain(new).cloned().collect();
        }
        for timing in &self.timings {
            let Some((from, to)) = steps(timing.pass) else { continue };
            let Some(entry) = part.indices.get_mut(timing.index.0 as usize) else { continue };
            if let Range::Domain(Domain::Interval { from: low, to: high }) = &entry.range {
                let ends = [from - timing.from, to - timing.from];
                let [a, b] = if timing.by > 0 { ends } else { [ends[1], ends[0]] };
                let range = Domain::Interval {
                    from: floor_div(-a, timing.by).map_or(*low, |least| (*low).max(-least)),
                    to: floor_div(b, timing.by).map_or(*high, |most| (*high).min(most)),
                };
                entry.range = Range::Domain(range);
            }
        }
        for (equation, pass, step) in &self.standing {
            if steps(*pass).is_some_and(|(from, to)| !(from..=to).contains(step))
                && let Some(equation) = part.equations.get_mut(equation.0 as usize)
            {
                equation.terms.clear();
            }
        }
        part
    }

    /// What is asked of a window: the sums of its pass, and tensors of which slices are kept.
    pub fn goals(&self, window: &Window) -> Vec<TensorId> {
        let own = self.sums.iter().filter(|(_, pass)| *pass == window.pass).map(|(id, _)| *id);
        let moved = self.moved.iter().filter(|moved| {
            let asked = || (window.steps.0..=window.steps.1).any(|step| self.slice_at(moved, step).is_some());
            moved.pass == window.pass && (moved.whole || moved.back > 0 || asked())
        });
        own.chain(moved.map(|moved| moved.id)).collect()
    }

    /// The tensor that stands for the slice of a step, if it is asked for.
    pub fn slice_at(&self, moved: &Moved, step: i64) -> Option<TensorId> {
        moved.slices.get(&self.value(moved, step)).copied()
    }

    /// The slice of a step in the values of a tensor over a window, as what is given.
    pub fn slice(&self, part: &Program, moved: &Moved, step: i64, values: &[f64]) -> Option<Given> {
        let value = self.value(moved, step);
        let tensor = part.tensor(moved.id);
        let sizes = tensor.sizes();
        let at = tensor.places.get(moved.place)?.domain.as_ref()?.ordinal(Const::Int(value))?;
        let inner: usize = sizes.get(moved.place + 1..)?.iter().product();
        let outer: usize = sizes.get(..moved.place)?.iter().product();
        let size = *sizes.get(moved.place)?;
        let mut slice = Vec::with_capacity(inner * outer);
        for block in 0..outer {
            let start = (block * size + at) * inner;
            slice.extend_from_slice(values.get(start..start + inner)?);
        }
        let mut fixed = vec![None; sizes.len()];
        *fixed.get_mut(moved.place)? = Some(Const::Int(value));
        let mut shape = sizes;
        shape.remove(moved.place);
        Some(Given::Array { fixed, shape, values: slice.into(), span: tensor.span })
    }

    /// Puts a slice of a step to its place among all elements of a tensor.
    pub fn put(&self, moved: &Moved, step: i64, slice: &Given, into: &mut [f64]) {
        let (Given::Array { values, .. }, Some((low, high))) = (slice, moved.domain) else { return };
        let inner: usize = self.program.tensor(moved.id).sizes().iter().skip(moved.place + 1).product();
        let (at, size) = ((self.value(moved, step) - low) as usize, (high - low + 1) as usize);
        for (block, values) in values.chunks(inner.max(1)).enumerate() {
            let start = (block * size + at) * inner;
            if let Some(place) = into.get_mut(start..start + inner) {
                place.copy_from_slice(values);
            }
        }
    }

    /// The value at the moving place in a step.
    fn value(&self, moved: &Moved, step: i64) -> i64 {
        self.sign(moved.pass) * (step - moved.shift)
    }

    /// 1 where a pass goes up, -1 where it goes down.
    fn sign(&self, pass: usize) -> i64 {
        if self.up == (pass == 0) { 1 } else { -1 }
    }
}
