//! Long stepped recursion of which only some slices are asked for: window after window, in memory that does not grow.
//!
//! Enter at [`Fast::windowed`]. Where all that reads a stepped component from outside reads constants, as in `X[1000000, i]?`,
//! its tensors are evaluated over some steps at a time, each window a program of its own that is given the last slices of
//! the window before, as many as its reads go back. What is asked for is kept and becomes data. The steps are those of an
//! evaluation as a whole, and so are the bits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::machine::indices_of;
use super::{Fast, Storage};
use crate::auto::with_data;
use crate::datalog::data;
use crate::engine::{Engine, Request};
use crate::error::Result;
use crate::linear::linear;
use crate::program::{
    Action, Argument, Class, Component, Expr, Given, IndexFn, IndexId, Kind, Program, Range, Read, Role,
    Style, TensorId,
};
use crate::value::{Const, Domain};

/// Components with fewer elements are kept whole.
const LARGE: u128 = 1 << 17;
/// A window has about so many elements, and at least so many steps.
const ELEMENTS: usize = 1 << 15;
const STEPS: i64 = 256;
/// What is asked for may have so many elements.
const ASKED: usize = 1 << 20;

/// Steps and constants beyond this are not computed with: sums of some of them do not overflow.
const FAR: u64 = 1 << 40;

/// How a component is taken apart.
#[derive(Debug)]
struct Windows {
    component: Component,
    tensors: Vec<Moved>,
    /// Steps, from the first to the last as they are taken, and whether they go up.
    steps: (i64, i64),
    up: bool,
    /// So many steps back its reads go.
    back: i64,
    /// The index whose value says the step in each equation, with its coefficient and constant.
    moving: Vec<(IndexId, i64, i64)>,
    /// Elements of a step.
    slice: usize,
}

/// A tensor of it.
#[derive(Debug)]
struct Moved {
    id: TensorId,
    place: usize,
    shift: i64,
    /// The values at the moving place that are asked for.
    asked: BTreeSet<i64>,
    /// What is given, by its value there.
    given: BTreeMap<i64, Vec<Given>>,
    domain: (i64, i64),
}

impl Fast {
    /// The program in which long recursions of which little is asked for are data; `None`: there is none.
    pub(super) fn windowed(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
    ) -> Result<Option<Arc<Program>>> {
        let of = |component| Windows::of(request.program, component, goals, self.storage);
        let long: Vec<Windows> = request.program.components.iter().filter_map(of).collect();
        if long.is_empty() {
            return Ok(None);
        }
        let key: Vec<TensorId> =
            long.iter().flat_map(|windows| &windows.component.tensors).copied().collect();
        let stamp = request.program.stamp.number();
        let known = self.windows.iter().find(|(known, tensors, _)| *known == stamp && *tensors == key);
        if let Some((.., known)) = known {
            return Ok(Some(Arc::clone(known)));
        }
        let mut program = request.program.clone();
        for windows in &long {
            program = self.through(&Request { program: &program, ..request.clone() }, windows)?;
        }
        let program = Arc::new(program);
        self.windows.truncate(KEPT);
        self.windows.insert(0, (stamp, key, Arc::clone(&program)));
        Ok(Some(program))
    }

    /// Goes through all windows.
    fn through(&mut self, request: &Request<'_>, windows: &Windows) -> Result<Program> {
        let program = request.program;
        let own = |id: &TensorId| windows.component.tensors.contains(id);
        let mut inputs: Vec<TensorId> =
            windows.component.tensors.iter().flat_map(|id| program.reads_of(*id)).collect();
        inputs.retain(|id| !own(id) && program.tensor(*id).role == Role::Computed);
        inputs.sort_unstable();
        inputs.dedup();
        let mut inner = Fast {
            storage: self.storage,
            precision: self.precision,
            pool: Arc::clone(&self.pool),
            ..Fast::default()
        };
        inner.stop = self.stop.clone();
        inner.observe(self.observed.is_some());
        let values = inner.values(request, &inputs)?;
        let fed = if inputs.is_empty() {
            program.clone()
        } else {
            let given = |(id, value)| (id, data(program.tensor(id), value));
            with_data(program, inputs.into_iter().zip(values).map(given).collect())
        };
        let length = match self.storage {
            Storage::Sparse => 3,
            _ => ((ELEMENTS / windows.slice.max(1)) as i64).max(STEPS),
        };
        let (first, last) = windows.steps;
        let mut kept: Vec<BTreeMap<i64, Given>> = windows.tensors.iter().map(|_| BTreeMap::new()).collect();
        let mut asked: Vec<Vec<Given>> = windows.tensors.iter().map(|_| Vec::new()).collect();
        let mut from = first;
        while from <= last {
            let to = from.saturating_add(length - 1).min(last);
            let window = windows.window(&fed, (from, to), &kept);
            let request = Request { program: &window, ..request.clone() };
            let values = inner.values(&request, &windows.component.tensors)?;
            for (at, value) in values.iter().enumerate() {
                let (Some(moved), Some(kept), Some(asked)) =
                    (windows.tensors.get(at), kept.get_mut(at), asked.get_mut(at))
                else {
                    continue;
                };
                kept.retain(|step, _| *step > to - windows.back);
                let all = value.doubles();
                for step in
                    (from..=to).filter(|step| *step > to - windows.back || windows.is_asked(moved, *step))
                {
                    let Some(slice) = moved.slice(&window, windows.value(moved, step), &all) else {
                        continue;
                    };
                    if windows.is_asked(moved, step) {
                        asked.push(slice.clone());
                    }
                    if step > to - windows.back {
                        kept.insert(step, slice);
                    }
                }
            }
            // The window goes, and what was planned for it.
            if let (Some(observed), Some(more)) = (&mut self.observed, inner.observed()) {
                observed.append(more);
                inner.observe(true);
            }
            inner.sessions.clear();
            from = to + 1;
        }
        Ok(windows.closed(&fed, asked))
    }
}

/// So many programs' windows are remembered.
const KEPT: usize = 7;

impl Windows {
    /// How a component is taken apart, if it is long and little of it is asked for.
    fn of(program: &Program, component: &Component, goals: &[TensorId], storage: Storage) -> Option<Windows> {
        let Class::Stepped(steps) = &component.class else { return None };
        let own = |id: &TensorId| component.tensors.contains(id);
        let mut up = None;
        let mut tensors = Vec::new();
        let mut slice = 0_usize;
        for id in &component.tensors {
            let (_, moving) = steps.places.iter().find(|(other, _)| other == id)?;
            let [moving] = moving.as_slice() else { return None };
            let tensor = program.tensor(*id);
            if tensor.style != Style::Square
                || tensor.kind == Kind::Count
                || *up.get_or_insert(moving.up) != moving.up
            {
                return None;
            }
            let mut elements = 1_usize;
            for (_, each) in tensor.places.iter().enumerate().filter(|(place, _)| *place != moving.place) {
                elements = elements.checked_mul(each.domain.as_ref()?.len())?;
            }
            slice = slice.checked_add(elements)?;
            let Some(Domain::Interval { from, to }) = tensor.places.get(moving.place)?.domain else {
                return None;
            };
            if from > to || from.unsigned_abs() > FAR || to.unsigned_abs() > FAR {
                return None;
            }
            let given = by_value(program, *id, moving.place)?;
            let asked = BTreeSet::new();
            tensors.push(Moved {
                id: *id,
                place: moving.place,
                shift: moving.shift,
                asked,
                given,
                domain: (from, to),
            });
        }
        let up = up?;
        let mut windows = Windows {
            component: component.clone(),
            tensors,
            steps: (0, 0),
            up,
            back: 0,
            moving: Vec::new(),
            slice,
        };
        let ends = |moved: &Moved| [windows.step(moved, moved.domain.0), windows.step(moved, moved.domain.1)];
        let all: Vec<i64> = windows.tensors.iter().flat_map(ends).collect();
        windows.steps = (*all.iter().min()?, *all.iter().max()?);
        let large = if storage == Storage::Sparse { 8 } else { LARGE };
        if (windows.steps.1 - windows.steps.0) as u128 * (slice as u128) < large {
            return None;
        }
        let needed = program.needs(goals);
        let whole = |action: &Action| match action {
            Action::Query(query) => own(&query.tensor),
            Action::Write { tensor, .. } => own(tensor),
        };
        let changes = |id: &TensorId| program.tensor(*id).role == Role::Parameter;
        if component.tensors.iter().any(|id| !needed.contains(id) || goals.contains(id))
            || program.actions.iter().any(whole)
            || program.needs(&component.tensors).iter().any(changes)
        {
            return None;
        }
        windows.read_inside(program)?;
        if (windows.steps.1 - windows.steps.0) / 4 <= windows.back {
            return None;
        }
        // What reads it from outside, in whatever query: one evaluation answers them all.
        let mut fine = true;
        let others = program.equations.iter().filter(|equation| !own(&equation.tensor));
        let mut asked: Vec<(TensorId, i64)> = Vec::new();
        for equation in others {
            equation.visit_reads(&mut |read, _| {
                if let Some(moved) = windows.tensors.iter().find(|moved| moved.id == read.tensor) {
                    match read.arguments.get(moved.place).and_then(Argument::function) {
                        Some(IndexFn::Const(Const::Int(value))) => asked.push((read.tensor, *value)),
                        _ => fine = false,
                    }
                }
            });
        }
        if !fine {
            return None;
        }
        for (id, value) in asked {
            let moved = windows.tensors.iter_mut().find(|moved| moved.id == id)?;
            if moved.domain.0 <= value && value <= moved.domain.1 {
                moved.asked.insert(value);
            }
        }
        let span = |moved: &Moved| match (moved.asked.first(), moved.asked.last()) {
            (Some(first), Some(last)) => (last - first + 1) as u128,
            _ => 0,
        };
        let most = if storage == Storage::Sparse { u128::MAX } else { ASKED as u128 };
        windows.tensors.iter().all(|moved| span(moved) * (slice as u128) <= most).then_some(windows)
    }

    /// Which index moves each equation, and how far its reads go back.
    fn read_inside(&mut self, program: &Program) -> Option<()> {
        for at in &self.component.equations {
            let equation = program.equation(*at);
            let moved = self.tensors.iter().find(|moved| moved.id == equation.tensor)?;
            let (terms, constant) = near(linear(equation.head.get(moved.place)?)?)?;
            let moving = match terms.as_slice() {
                [(index, coefficient @ (1 | -1))] => Some((*index, *coefficient)),
                [] => None,
                _ => return None,
            };
            if let Some((index, coefficient)) = moving {
                let Range::Domain(Domain::Interval { .. }) = &program.index(index).range else { return None };
                if !equation.left.contains(&index)
                    || equation.terms.iter().any(|t| has_ordinal(&t.body, index))
                {
                    return None;
                }
                let elsewhere = equation.head.iter().enumerate().filter(|(place, _)| *place != moved.place);
                let ordinal = |function: &IndexFn| {
                    matches!(function, IndexFn::Ordinal(_)) || linear(function).is_none()
                };
                if elsewhere.into_iter().any(|(_, f)| indices_of(f).contains(&index) && ordinal(f)) {
                    return None;
                }
                let (constant, coefficient) = self.in_steps(moved, constant, coefficient);
                self.moving.push((index, coefficient, constant));
            }
            let (mut back, mut fine) = (0, true);
            equation.visit_reads(&mut |read: &Read, _| {
                let Some(other) = self.tensors.iter().find(|moved| moved.id == read.tensor) else { return };
                let lag = || {
                    let (index, coefficient) = moving?;
                    let (terms, from) = near(linear(read.arguments.get(other.place)?.function()?)?)?;
                    let same = terms.as_slice() == [(index, coefficient)];
                    let (head, _) = self.in_steps(moved, constant, coefficient);
                    let (from, _) = self.in_steps(other, from, coefficient);
                    same.then(|| head - from)
                };
                match lag() {
                    Some(lag) if (0..1 << 20).contains(&lag) => back = back.max(lag),
                    _ => fine = false,
                }
            });
            if !fine {
                return None;
            }
            self.back = self.back.max(back);
        }
        Some(())
    }

    /// A function of a place's value as one of steps.
    fn in_steps(&self, moved: &Moved, constant: i64, coefficient: i64) -> (i64, i64) {
        let constant = constant + moved.shift;
        if self.up { (constant, coefficient) } else { (-constant, -coefficient) }
    }

    /// The step of a value at the moving place.
    fn step(&self, moved: &Moved, value: i64) -> i64 {
        if self.up { value + moved.shift } else { -(value + moved.shift) }
    }

    /// The value at the moving place in a step.
    fn value(&self, moved: &Moved, step: i64) -> i64 {
        if self.up { step - moved.shift } else { -step - moved.shift }
    }

    fn is_asked(&self, moved: &Moved, step: i64) -> bool {
        moved.asked.contains(&self.value(moved, step))
    }

    /// The program over some steps, with what was kept of those before.
    fn window(&self, program: &Program, (from, to): (i64, i64), kept: &[BTreeMap<i64, Given>]) -> Program {
        let mut window = program.clone();
        for (moved, kept) in self.tensors.iter().zip(kept) {
            let Some(tensor) = window.tensors.get_mut(moved.id.0 as usize) else { continue };
            let ends = [self.value(moved, from - self.back), self.value(moved, to)];
            let (low, high) =
                (ends[0].min(ends[1]).max(moved.domain.0), ends[0].max(ends[1]).min(moved.domain.1));
            if let Some(place) = tensor.places.get_mut(moved.place) {
                place.domain = Some(Domain::Interval { from: low, to: high });
                place.limit.clone_from(&place.domain);
            }
            let new = (from..=to).filter_map(|step| moved.given.get(&self.value(moved, step))).flatten();
            tensor.given = kept.values().chain(new).cloned().collect();
        }
        for (index, coefficient, constant) in &self.moving {
            let Some(entry) = window.indices.get_mut(index.0 as usize) else { continue };
            if let Range::Domain(Domain::Interval { from: low, to: high }) = &entry.range {
                // coefficient · value + constant is the step.
                let ends = [(from - constant) * coefficient, (to - constant) * coefficient];
                let range = Domain::Interval {
                    from: ends[0].min(ends[1]).max(*low),
                    to: ends[0].max(ends[1]).min(*high),
                };
                entry.range = Range::Domain(range);
            }
        }
        // Left sides without a moving index stand in one step.
        for at in &self.component.equations {
            let equation = program.equation(*at);
            let Some(moved) = self.tensors.iter().find(|moved| moved.id == equation.tensor) else { continue };
            let place = equation.head.get(moved.place).and_then(linear);
            if let Some((terms, value)) = place
                && terms.is_empty()
                && !(from..=to).contains(&self.step(moved, value))
                && let Some(equation) = window.equations.get_mut(at.0 as usize)
            {
                equation.terms.clear();
            }
        }
        window
    }

    /// The program in which what is asked for is data.
    fn closed(&self, program: &Program, asked: Vec<Vec<Given>>) -> Program {
        let mut closed = program.clone();
        for (moved, given) in self.tensors.iter().zip(asked) {
            let Some(tensor) = closed.tensors.get_mut(moved.id.0 as usize) else { continue };
            let ends = moved.asked.first().zip(moved.asked.last());
            let (from, to) = ends.map_or((0, -1), |(first, last)| (*first, *last));
            if let Some(place) = tensor.places.get_mut(moved.place) {
                place.domain = Some(Domain::Interval { from, to });
                place.limit.clone_from(&place.domain);
            }
            tensor.given = given;
            tensor.role = Role::Data;
            for equation in closed.equations.iter_mut().filter(|equation| equation.tensor == moved.id) {
                equation.terms.clear();
            }
        }
        for component in &mut closed.components {
            component.tensors.retain(|id| !self.component.tensors.contains(id));
        }
        closed.components.retain(|component| !component.tensors.is_empty());
        closed
    }
}

/// A linear function whose constant is not far from 0.
fn near(function: (Vec<(IndexId, i64)>, i64)) -> Option<(Vec<(IndexId, i64)>, i64)> {
    (function.1.unsigned_abs() <= FAR).then_some(function)
}

impl Moved {
    /// One slice of the values over a window, as what is given.
    fn slice(&self, window: &Program, value: i64, values: &[f64]) -> Option<Given> {
        let tensor = window.tensor(self.id);
        let sizes = tensor.sizes();
        let at = tensor.places.get(self.place)?.domain.as_ref()?.ordinal(Const::Int(value))?;
        let inner: usize = sizes.get(self.place + 1..)?.iter().product();
        let outer: usize = sizes.get(..self.place)?.iter().product();
        let size = *sizes.get(self.place)?;
        let mut slice = Vec::with_capacity(inner * outer);
        for block in 0..outer {
            let start = (block * size + at) * inner;
            slice.extend_from_slice(values.get(start..start + inner)?);
        }
        let mut fixed = vec![None; sizes.len()];
        *fixed.get_mut(self.place)? = Some(Const::Int(value));
        let mut shape = sizes;
        shape.remove(self.place);
        Some(Given::Array { fixed, shape, values: slice.into(), span: tensor.span })
    }
}

/// What is given of a tensor by its value at a place; `None` where something runs along it.
fn by_value(program: &Program, id: TensorId, place: usize) -> Option<BTreeMap<i64, Vec<Given>>> {
    let mut found: BTreeMap<i64, Vec<Given>> = BTreeMap::new();
    for given in &program.tensor(id).given {
        match given {
            Given::Array { fixed, .. } => {
                found.entry(fixed.get(place).copied()??.int()?).or_default().push(given.clone());
            }
            Given::Facts(facts) => {
                for at in 0..facts.count {
                    let tuple = facts.tuple(at);
                    let mut one = crate::program::Facts { arity: facts.arity, ..Default::default() };
                    one.push(tuple, facts.value(at), None);
                    found.entry(tuple.get(place)?.int()?).or_default().push(Given::Facts(Arc::new(one)));
                }
            }
        }
    }
    Some(found)
}

/// Whether the position of an index is asked for.
fn has_ordinal(expr: &Expr, index: IndexId) -> bool {
    fn in_function(function: &IndexFn, index: IndexId) -> bool {
        match function {
            IndexFn::Ordinal(id) => *id == index,
            IndexFn::Const(_) | IndexFn::Index(_) => false,
            IndexFn::Negate(a) => in_function(a, index),
            IndexFn::Add(a, b)
            | IndexFn::Subtract(a, b)
            | IndexFn::Multiply(a, b)
            | IndexFn::Divide(a, b)
            | IndexFn::Remainder(a, b) => in_function(a, index) || in_function(b, index),
        }
    }
    match expr {
        Expr::Index(function) => in_function(function, index),
        Expr::Read(read) | Expr::Missing(read) => {
            read.arguments.iter().filter_map(Argument::function).any(|function| in_function(function, index))
        }
        _ => expr.parts().0.into_iter().any(|part| has_ordinal(part, index)),
    }
}
