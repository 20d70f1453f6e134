//! Long stepped recursions, window after window, in memory that hardly grows with their steps.
//!
//! Enter at [`Fast::windowed`]. What [`Windows`] says is done: each window is evaluated as a program of its own, what was
//! asked for of it is kept, and becomes data of the program that is left. A window of a gradient computes the states
//! that it reads once more; so small recursions are kept as they are.
//!
//! Below parameters every evaluation is another. Else what is asked for by any query of the program is
//! found at once, and kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Storage;
use crate::engine::{Engine, Request, Tuples, Value};
use crate::error::Result;
use crate::handed::{data, with_data};
use crate::program::{Action, Given, Program, Role, TensorId};
use crate::windows::{Kept, Window, Windows};
use crate::{Fast, Precision};

/// Recursions of fewer elements are kept whole where single slices of them are asked for.
const LARGE: u128 = 1 << 17;
/// The same of all that moves with them where sums are, or parameters change: 16 MB.
const SUMMED: u128 = 1 << 21;
/// The same of a gradient, which costs a fifth to a quarter more in windows: 64 MB.
const GRADIENT: u128 = 1 << 23;
/// A window has about so many elements, and at least so many steps.
const ELEMENTS: usize = 1 << 15;
const STEPS: usize = 256;
/// What moves with a recursion may begin before it and end behind it: together they are at most so many times as long.
const SHIFTED: usize = 8;
/// What is asked for may have so many elements.
const ASKED: usize = 1 << 20;
/// So many programs' windows are remembered.
const KEPT: usize = 7;
/// So many programs are known to be evaluated as they are: the batches of a training loop take turns.
const WHOLE: usize = 1 << 16;
/// And for so many lists of goals of each.
const GOALS: usize = 255;

/// What is found in windows.
#[derive(Default)]
struct Found {
    /// Single slices.
    slices: BTreeMap<TensorId, Vec<Given>>,
    /// Sums so far.
    sums: BTreeMap<TensorId, Value>,
    /// Tensors of which all is asked for.
    whole: BTreeMap<TensorId, Vec<f64>>,
}

impl Fast {
    /// The program in which long recursions are data, and whether that holds for this evaluation only; `None`: there is
    /// none.
    pub(crate) fn windowed(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
    ) -> Result<Option<(Arc<Program>, bool)>> {
        let program = request.program;
        let stamp = program.stamp.number();
        let known = self
            .windows
            .iter()
            .find(|(known, covered, _)| *known == stamp && goals.iter().all(|goal| covered.contains(goal)));
        if let Some((.., known)) = known {
            return Ok(Some((Arc::clone(known), false)));
        }
        let bytes = request.budget.bytes;
        let mut whole = self.whole.get(&stamp).into_iter().flatten();
        let is_whole = whole.any(|(known, allowed)| known == goals && *allowed == bytes);
        if self.inner || is_whole {
            return Ok(None);
        }
        let Some((windows, covered)) = self.taken_apart(request, goals) else {
            if self.whole.len() > WHOLE {
                self.whole.clear();
            }
            let known = self.whole.entry(stamp).or_default();
            known.truncate(GOALS);
            known.insert(0, (goals.to_vec(), bytes));
            return Ok(None);
        };
        let found = Arc::new(self.through(request, &windows)?);
        let Some(covered) = covered else { return Ok(Some((found, true))) };
        self.windows.truncate(KEPT);
        self.windows.insert(0, (stamp, covered, Arc::clone(&found)));
        Ok(Some((found, false)))
    }

    /// How a program is gone through, if it pays, and for which goals that holds, if not for this evaluation only.
    pub(crate) fn taken_apart(
        &self,
        request: &Request<'_>,
        goals: &[TensorId],
    ) -> Option<(Windows, Option<Vec<TensorId>>)> {
        let program = request.program;
        let sparse = self.storage == Storage::Sparse;
        let few = u128::from(request.budget.bytes) / 32;
        // Of fewer steps than a window has nothing is spared: to find that out takes longer than to ask.
        let (least, long) = if sparse { (8, 1) } else { (LARGE.min(few / 4), STEPS / SHIFTED) };
        // Every query is answered by one evaluation where nothing changes.
        let mut all = goals.to_vec();
        all.extend(program.actions.iter().map(|action| match action {
            Action::Query(query) => query.tensor,
            Action::Write { tensor, .. } => *tensor,
        }));
        let changes = |goals: &[TensorId]| {
            program.needs(goals).iter().any(|id| program.tensor(*id).role == Role::Parameter)
        };
        let windows = Windows::of(program, &all, least, long)?;
        let moved: Vec<TensorId> = windows.moved.iter().map(|moved| moved.id).collect();
        let (windows, covered) = match changes(&moved) {
            true => (Windows::of(program, goals, least, long)?, None),
            false => (windows, Some(all)),
        };
        let single = windows.sums.is_empty();
        let asked = windows.moved.iter().map(|moved| moved.slices.len() * moved.size).sum::<usize>();
        let whole = windows.moved.iter().any(|moved| moved.whole);
        let least = match windows.inputs.len() {
            _ if sparse => least,
            1 if single && !whole && covered.is_some() => least,
            passes => few.min(if passes == 1 { SUMMED } else { GRADIENT }),
        };
        // One window would spare nothing.
        let several = self.steps_of_window(&windows) < windows.len();
        let pays = several && windows.elements() >= least && (sparse || asked <= ASKED);
        pays.then_some((windows, covered))
    }

    fn steps_of_window(&self, windows: &Windows) -> usize {
        match self.storage {
            Storage::Sparse => 3,
            _ => (ELEMENTS / windows.step_size()).max(STEPS).max(windows.len().isqrt()),
        }
    }

    /// Goes through all windows, and gives the program that is left.
    fn through(&mut self, request: &Request<'_>, windows: &Windows) -> Result<Program> {
        let mut inner = Fast {
            storage: self.storage,
            precision: self.precision,
            pool: Arc::clone(&self.pool),
            inner: true,
            ..Fast::default()
        };
        inner.stop = self.stop.clone();
        inner.observe(self.observed.is_some());
        let length = i64::try_from(self.steps_of_window(windows)).unwrap_or(i64::MAX);
        let all = windows.windows(length);
        let mut fed = windows.program.clone();
        // What was kept before windows of the first pass at which the second will begin again.
        let mut before: BTreeMap<i64, Kept> = BTreeMap::new();
        let mut found = Found::default();
        for (pass, inputs) in windows.inputs.iter().enumerate() {
            // Numbers of 64 bits are read where they lie; others are not converted for each window.
            let open = |id: &&TensorId| match fed.tensor(**id).role {
                Role::Parameter => self.precision == Precision::Single,
                role => role == Role::Computed,
            };
            let inputs: Vec<TensorId> = inputs.iter().filter(open).copied().collect();
            let values = inner.values(&Request { program: &fed, ..request.clone() }, &inputs)?;
            let given = |(id, value): (TensorId, Value)| (id, data(fed.tensor(id), value));
            fed = with_data(&fed, inputs.into_iter().zip(values).map(given).collect());
            let mut kept: Kept = windows.moved.iter().map(|_| BTreeMap::new()).collect();
            for window in all.iter().filter(|window| window.pass == pass) {
                if pass == 0 && windows.inputs.len() > 1 {
                    before.insert(window.steps.0, kept.clone());
                }
                let again = window.again.and_then(|(from, _)| before.get(&from));
                let part = windows.part(&fed, window, &kept, again);
                let request = Request { program: &part, ..request.clone() };
                let goals = windows.goals(window);
                let values = inner.values(&request, &goals)?;
                found.take(windows, window, &part, goals.into_iter().zip(values).collect(), &mut kept);
                // The window goes, and what was planned for it.
                if let (Some(observed), Some(more)) = (&mut self.observed, inner.observed()) {
                    observed.append(more);
                    inner.observe(true);
                }
                inner.sessions.clear();
                if let Some((from, to)) = window.again
                    && from <= to
                {
                    before.split_off(&from);
                }
            }
            fed = with_data(&fed, found.given(&fed));
        }
        let whole = |(id, values): (TensorId, Vec<f64>)| {
            (id, data(request.program.tensor(id), Value::Dense(values.into())))
        };
        Ok(with_data(&fed, found.whole.into_iter().map(whole).collect()))
    }
}

impl Found {
    /// Takes what was asked of a window.
    fn take(
        &mut self,
        windows: &Windows,
        window: &Window,
        part: &Program,
        values: BTreeMap<TensorId, Value>,
        kept: &mut Kept,
    ) {
        for (moved, kept) in windows.moved.iter().zip(kept) {
            let Some(value) = values.get(&moved.id) else { continue };
            let (from, to) = window.steps;
            kept.retain(|step, _| *step > to - moved.back);
            let all = value.doubles();
            for step in from..=to {
                let (single, stays) = (windows.slice_at(moved, step), step > to - moved.back);
                if single.is_none() && !stays && !moved.whole {
                    continue;
                }
                let Some(slice) = windows.slice(part, moved, step, &all) else { continue };
                if moved.whole {
                    let size = windows.program.tensor(moved.id).sizes().iter().product();
                    let into = self.whole.entry(moved.id).or_insert_with(|| vec![0.0; size]);
                    windows.put(moved, step, &slice, into);
                }
                if let Some(single) = single {
                    self.slices.insert(single, vec![slice.clone()]);
                }
                if stays {
                    kept.insert(step, slice);
                }
            }
        }
        for (id, value) in values {
            if windows.sums.iter().any(|(sum, _)| *sum == id) {
                match self.sums.remove(&id) {
                    Some(sum) => self.sums.insert(id, added(&sum, &value)),
                    None => self.sums.insert(id, value),
                };
            }
        }
    }

    /// Slices and sums of a pass as what is given.
    fn given(&mut self, program: &Program) -> BTreeMap<TensorId, Vec<Given>> {
        let mut given = std::mem::take(&mut self.slices);
        for (id, value) in std::mem::take(&mut self.sums) {
            given.insert(id, data(program.tensor(id), value));
        }
        given
    }
}

/// The sum of two values of a tensor.
fn added(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Tuples(a), Value::Tuples(b)) => {
            let all = a.tuples.iter().zip(&a.values).chain(b.tuples.iter().zip(&b.values));
            let mut places = std::collections::HashMap::new();
            let mut sum = Tuples::default();
            for (tuple, value) in all {
                let at = *places.entry(tuple).or_insert(sum.tuples.len());
                if at == sum.tuples.len() {
                    sum.tuples.push(tuple.clone());
                    sum.values.push(0.0);
                }
                sum.values[at] += value;
            }
            Value::Tuples(sum)
        }
        _ => Value::Dense(
            a.doubles().iter().zip(b.doubles().iter()).map(|(a, b)| a + b).collect::<Vec<_>>().into(),
        ),
    }
}
