//! Components: what depends on each other is evaluated together, as its class says (N7).
//!
//! Plain tensors take one pass. Stepped ones are looped over step by step, each step writing one
//! slice. Everything else is iterated in rounds from nothing, each round computing all equations
//! anew from the state before it, or from what changed in it (`deltas`).

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digits::EXACT_LIMIT;
use crate::divergence::diverges;
use crate::engine::{Numbers, Parameters};
use crate::error::Result;
use crate::head::{Accumulator, Slice};
use crate::kernels::{Array, Buffer, Precision, together_here, volume};
use crate::profile::Executor;
use crate::program::{
    Class, Combine, Component, Equation, EquationId, IndexFn, IndexId, Kind, Moving, Range, Role, Steps,
    Style, TensorId,
};
use crate::store::machine::{Levels, Machine, Stored, indices_of, product_columns};
use crate::store::records::{ByValue, Fixed};
use crate::store::relation::Relation;
use crate::value::Const;

/// So often it is tried to go through steps together: the first may have equations of their own.
const TRIES: usize = 3;

/// The bindings of so many steps are remembered.
const REMEMBERED: usize = 1 << 10;

impl Machine {
    /// Evaluates a component.
    pub(crate) fn component(&mut self, component: &Component, parameters: &Parameters) -> Result<()> {
        self.stop.check(self.head)?;
        let since = self.now();
        if !component.equations.is_empty() {
            self.starts = self.starts_of(component, parameters);
        }
        let executor = self.evaluated(component, parameters)?;
        self.note_component(component, executor, since);
        Ok(())
    }

    /// What its parameters are, where it has some: steps and rounds begin with them.
    fn starts_of(&self, component: &Component, parameters: &Parameters) -> BTreeMap<TensorId, Arc<Vec<f64>>> {
        let own = component.tensors.iter().filter(|id| self.program.tensor(**id).role == Role::Parameter);
        let value = |id: &TensorId| match parameters.get(id) {
            Some(values) => Arc::clone(values),
            None => crate::start::start_values(&self.program, *id),
        };
        own.map(|id| (*id, value(id))).collect()
    }

    /// Evaluates a component, and says how.
    fn evaluated(&mut self, component: &Component, parameters: &Parameters) -> Result<Executor> {
        if !matches!(component.class, Class::Plain) {
            self.memory.is_used();
        } else if component.tensors.iter().any(|id| self.is_seen(*id)) {
            self.memory.is_repeated();
        }
        for id in &component.tensors {
            if !self.may_be_listed(component, *id) {
                self.reserve_tensor(*id)?;
            }
        }
        let executor = match &component.class {
            Class::Plain => {
                for id in &component.tensors {
                    // Who takes notes wants to know what each of them takes.
                    self.defers = self.notes.is_none();
                    let stored = self.plain(component, *id, parameters);
                    self.defers = false;
                    let stored = stored?;
                    if let Stored::Dense(array) = &stored {
                        self.deferred += usize::from(array.is_waiting());
                    }
                    self.store(*id, stored);
                }
                if component.equations.is_empty() { Executor::Given } else { Executor::Whole }
            }
            Class::Stepped(steps) if self.small_steps(component, steps)? => Executor::Numbers,
            Class::Stepped(steps) if self.sums_by_tuples(component, steps, parameters)? => Executor::Slices,
            Class::Stepped(steps) if self.can_step(component, steps) => {
                self.stepped(component, steps)?;
                Executor::Slices
            }
            _ if let Some(levels) = self.levels_of(component) => {
                self.leveled(component, &levels)?;
                Executor::Levels
            }
            _ => {
                self.iterate(component, parameters)?;
                Executor::Rounds
            }
        };
        for id in &component.tensors {
            let tuples = self.tuples_of(*id);
            if tuples > 0 {
                self.tuples = self.tuples.saturating_add(tuples);
                self.head = self.program.left_side(*id);
                self.within_tuples(*id, 0)?;
            }
        }
        Ok(executor)
    }

    /// Refuses a square tensor that does not fit.
    pub(crate) fn reserve_tensor(&mut self, id: TensorId) -> Result<()> {
        if self.program.tensor(id).style == Style::Square {
            self.bytes += self.fits(id)?;
        }
        Ok(())
    }

    /// The bytes that all elements of a tensor need.
    ///
    /// # Errors
    /// `too-large` where they do not fit beside what there is.
    pub(crate) fn fits(&self, id: TensorId) -> Result<u64> {
        crate::room::whole(&self.program, id, self.bytes, self.budget.bytes)
    }

    /// A parameter whose values are used where they lie.
    fn shared(&self, id: TensorId, values: &Arc<Vec<f64>>) -> Option<Stored> {
        let tensor = self.program.tensor(id);
        let as_they_are = self.precision == Precision::Double
            && tensor.style == Style::Square
            && tensor.combine == Combine::Sum
            && tensor.given.is_empty()
            && values.len() == tensor.all_sizes().fold(1, usize::saturating_mul);
        as_they_are.then(|| Stored::Dense(Array::given(Buffer::Numbers(Numbers::Double(Arc::clone(values))))))
    }

    /// Stores a parameter whose values are used where they lie; says whether they are, and fit.
    pub(super) fn took_parameter(&mut self, id: TensorId, values: &Arc<Vec<f64>>) -> bool {
        let bytes = 8 * values.len() as u64;
        if self.notes.is_some() || bytes.saturating_add(self.bytes) > self.budget.bytes {
            return false;
        }
        let shared = self.shared(id, values);
        let taken = shared.is_some();
        if let Some(stored) = shared {
            self.bytes += bytes;
            self.store(id, stored);
        }
        taken
    }

    /// All contributions to a tensor from the state at hand.
    pub(super) fn plain(
        &mut self,
        component: &Component,
        id: TensorId,
        parameters: &Parameters,
    ) -> Result<Stored> {
        if let Some(stored) = self.again(id) {
            return Ok(stored);
        }
        let program = Arc::clone(&self.program);
        self.head = self.program.left_side(id);
        let parameter = match parameters.get(&id) {
            None if program.tensor(id).role == Role::Parameter => {
                Some(crate::start::start_values(&program, id))
            }
            values => values.cloned(),
        };
        // What equations add to it stands in an array of its own.
        if component.equations.is_empty()
            && let Some(values) = &parameter
            && let Some(stored) = self.shared(id, values)
        {
            return Ok(stored);
        }
        let parameter = parameter.as_deref().map(Vec::as_slice);
        loop {
            let mut accumulator = match self.is_lone(component, id) {
                true => Accumulator::Lone,
                false if self.is_several(component, id) => Accumulator::Several(Vec::new()),
                false => self.given(id, parameter)?,
            };
            self.watch(id);
            for equation in own_equations(&program.equations, component, id) {
                self.contribute(equation, &[], &mut accumulator)?;
            }
            let accumulator = self.averaged(accumulator);
            let accumulator = self.united(id, accumulator);
            self.remember(id, &accumulator);
            let stored = self.finish(id, accumulator);
            if !self.must_repeat() {
                return Ok(stored);
            }
        }
    }

    pub(crate) fn levels_of(&self, component: &Component) -> Option<Arc<Levels>> {
        self.levels.get(component.tensors.first()?).cloned()
    }

    /// Computes blocks level by level: those of a level hang on lower ones only.
    fn leveled(&mut self, component: &Component, levels: &Levels) -> Result<()> {
        let program = Arc::clone(&self.program);
        for id in &component.tensors {
            if let Some(nothing) = self.nothing(*id, false) {
                self.store(*id, nothing);
            }
        }
        for level in 0..levels.count {
            for id in &component.tensors {
                // Small operations do not ask.
                self.stop.check(self.head)?;
                let slices = loop {
                    let mut accumulator = Accumulator::Slices(Vec::new());
                    for equation in own_equations(&program.equations, component, *id) {
                        if let Some(index) = levels.index(equation) {
                            self.contribute(equation, &[(index, level)], &mut accumulator)?;
                        }
                    }
                    if !self.must_repeat() {
                        break accumulator;
                    }
                };
                if let Accumulator::Slices(parts) = slices {
                    self.write_slices(*id, &parts, false);
                }
            }
        }
        self.note_rounds(component, u64::from(levels.count), 0.0);
        if self.exploded(component) {
            let first = component.tensors.first().copied();
            return Err(diverges(&program, component, u64::from(levels.count), first));
        }
        Ok(())
    }

    /// Rounds from nothing until the component rests.
    fn iterate(&mut self, component: &Component, parameters: &Parameters) -> Result<()> {
        if self.rests_by_deltas(component, parameters)? {
            return Ok(());
        }
        let program = Arc::clone(&self.program);
        let numeric = matches!(component.class, Class::Numeric);
        for id in &component.tensors {
            let tensor = program.tensor(*id);
            let start = if numeric { 0.0 } else { tensor.combine.default_value() };
            let nothing = match tensor.style {
                Style::Round => Stored::Relation(Arc::new(Relation::empty(tensor.places.len()))),
                Style::Square => {
                    let sizes = program.tensor(*id).sizes();
                    Stored::Dense(self.given_array(&vec![start; volume(&sizes)]))
                }
            };
            self.store(*id, nothing);
        }
        let counts = component.tensors.iter().any(|id| program.tensor(*id).kind == Kind::Count);
        let tolerance = if numeric && !counts { program.settings.tolerance } else { 0.0 };
        // In 32 bits changes stop shrinking where the last digits go to and fro.
        let short = numeric && self.precision == Precision::Single;
        let mut last = f64::INFINITY;
        let mut slow = Slow { linear: numeric, ..Slow::default() };
        let boolean = matches!(component.class, Class::Closure) && self.boolean(component);
        for rounds in 1.. {
            // Small operations do not ask.
            self.stop.check(self.head)?;
            let before = if boolean { self.reached(component) } else { 0 };
            let mut states = Vec::new();
            for id in &component.tensors {
                states.push((*id, self.plain(component, *id, parameters)?));
            }
            let before_last = slow.linear.then(|| self.doubles_of(component)).flatten();
            let mut changes = Vec::new();
            let (mut moved, mut most) = (0.0_f64, 0.0_f64);
            for (id, new) in states {
                if let (true, Some(old)) = (short, self.stored(id)) {
                    let (by, value) = self.moved(old, &new);
                    (moved, most) = (moved.max(by), most.max(value));
                }
                let change = self.stored(id).map_or(0.0, |old| self.change(old, &new));
                changes.push(change);
                if change > 0.0 {
                    self.store(id, new);
                }
            }
            let largest = changes.iter().copied().fold(0.0, f64::max);
            let stalls = short && moved <= LAST_DIGITS * most && moved >= last;
            last = moved;
            let rests = stalls || changes.iter().all(|change| *change <= tolerance);
            if rests && !(numeric && self.exploded(component)) {
                self.note_rounds(component, rounds, largest);
                break;
            }
            if slow.is(rounds, largest, tolerance)
                && let (Some(old), Some(new)) = (before_last, self.doubles_of(component))
            {
                // Proved to contract, so that it does not matter where the rounds go on from.
                if let Some(solved) = self.solved(component, (&old, &new), parameters) {
                    component.tensors.iter().zip(solved).for_each(|(id, stored)| self.store(*id, stored));
                }
            }
            let within = match component.class {
                Class::Plain | Class::Stepped(_) => true,
                Class::Numeric => rounds < program.settings.rounds && !self.exploded(component),
                // Without values tuples are only added, if no number below 0 takes one away.
                Class::Closure if boolean => self.reached(component) > before,
                Class::Closure => rounds <= self.reached(component),
            };
            if !within {
                let largest = |best: Option<(TensorId, f64)>, (id, change): (&TensorId, &f64)| match best {
                    Some((_, most)) if most >= *change => best,
                    _ => Some((*id, *change)),
                };
                let grew = component.tensors.iter().zip(&changes).fold(None, largest).map(|(id, _)| id);
                return Err(diverges(&program, component, rounds, grew));
            }
        }
        Ok(())
    }

    /// The numbers of a component whose tensors are all dense.
    fn doubles_of(&self, component: &Component) -> Option<Vec<Arc<Vec<f64>>>> {
        let of = |id: &TensorId| match self.stored(*id)? {
            Stored::Dense(array) => Some(self.numbers(array).doubles()),
            Stored::Relation(_) => None,
        };
        component.tensors.iter().map(of).collect()
    }

    fn boolean(&self, component: &Component) -> bool {
        let one = |id: &TensorId| matches!(self.program.tensor(*id).combine, Combine::Exists | Combine::Or);
        component.tensors.iter().all(one)
    }

    /// The number of elements of a component that differ from nothing.
    fn reached(&self, component: &Component) -> u64 {
        let of = |id: &TensorId| match self.stored(*id) {
            Some(Stored::Dense(array)) => {
                let default = self.program.tensor(*id).combine.default_value();
                self.numbers(array).doubles().iter().filter(|value| **value != default).count() as u64
            }
            Some(Stored::Relation(relation)) => relation.len as u64,
            None => 0,
        };
        component.tensors.iter().map(of).sum()
    }

    /// Whether a number of the component is none: not a number, or an infinity that no
    /// aggregator puts where nothing contributes.
    fn exploded(&self, component: &Component) -> bool {
        component.tensors.iter().any(|id| {
            let default = self.program.tensor(*id).combine.default_value();
            let wild = |value: f64| !value.is_finite() && value != default;
            match self.stored(*id) {
                Some(Stored::Dense(array)) => self.numbers(array).doubles().iter().any(|value| wild(*value)),
                Some(Stored::Relation(relation)) => (0..relation.len).any(|at| wild(relation.value(at))),
                None => false,
            }
        })
    }

    /// Whether a count is too large for all its digits to be right, or is none: then whatever has all digits says so.
    pub(crate) fn is_doubtful_count(&self, id: TensorId) -> bool {
        let large = |value: &f64| value.abs() >= EXACT_LIMIT || value.fract() != 0.0;
        self.program.tensor(id).kind == Kind::Count
            && match self.stored(id) {
                Some(Stored::Dense(array)) => self.numbers(array).doubles().iter().any(large),
                Some(Stored::Relation(relation)) => {
                    relation.doubles().is_some_and(|values| values.iter().any(large))
                }
                None => false,
            }
    }

    /// Whether the steps can be listed before anything is computed, and every element gets all
    /// its contributions in its step.
    pub(super) fn can_step(&self, component: &Component, steps: &Steps) -> bool {
        let program = &self.program;
        let known = |function: &IndexFn| {
            let indices = indices_of(function);
            let sizes: Vec<usize> = indices.iter().map(|index| self.size(*index)).collect();
            volume(&sizes) <= 1 << 20
                && indices.iter().all(|index| matches!(program.index(*index).range, Range::Domain(_)))
        };
        steps.places.iter().all(|(id, moving)| {
            let tensor = program.tensor(*id);
            let mean = tensor.combine == Combine::Avg;
            !mean
                && own_equations(&program.equations, component, *id)
                    .all(|equation| moving.iter().all(|m| equation.head.get(m.place).is_some_and(&known)))
        })
    }

    fn stepped(&mut self, component: &Component, steps: &Steps) -> Result<()> {
        let program = Arc::clone(&self.program);
        let mut accumulators: BTreeMap<TensorId, Fixings<'_>> = BTreeMap::new();
        for id in &component.tensors {
            self.head = self.program.left_side(*id);
            let moving = steps.places.iter().find(|(other, _)| other == id).map(|(_, moving)| moving.clone());
            let equations: Vec<&Equation> = own_equations(&program.equations, component, *id).collect();
            let mut fixings = self.fixings(equations, moving.unwrap_or_default())?;
            fixings.fresh = self.covers(*id, &fixings);
            let stored = match self.nothing(*id, fixings.fresh) {
                Some(nothing) => nothing,
                None => {
                    let given = self.given(*id, None)?;
                    self.finish(*id, given)
                }
            };
            self.store(*id, stored);
            accumulators.insert(*id, fixings);
        }
        // Whether an equation contributes wherever it can is known once all states are there.
        for (id, fixings) in accumulators.iter_mut().filter(|(_, fixings)| fixings.fresh) {
            let even = fixings.of.iter().all(|(equation, places)| {
                let first = places.first().and_then(|place| place.first_key_value()?.1.first()?.first());
                first.is_some_and(|(index, _)| self.is_even(equation, *index))
            });
            fixings.fresh = even;
            if !even && let Some(nothing) = self.nothing(*id, false) {
                self.store(*id, nothing);
            }
        }
        let group: Vec<TensorId> = steps.places.iter().map(|(id, _)| *id).collect();
        let entries = |id: &TensorId| program.tensor(*id).all_sizes().fold(1, usize::saturating_mul);
        let entries = group.iter().map(entries).fold(0, usize::saturating_add);
        together_here(entries, || self.level(&group, 0, &accumulators))
    }

    /// Whether the steps of a tensor contribute to each of its elements once, if its equation contributes wherever it can:
    /// each term all that there is of a step.
    fn covers(&self, id: TensorId, fixings: &Fixings<'_>) -> bool {
        let tensor = self.program.tensor(id);
        let ([(equation, places)], [moving]) = (fixings.of.as_slice(), fixings.moving.as_slice()) else {
            return false;
        };
        let [place] = places.as_slice() else { return false };
        let index =
            place.first_key_value().and_then(|(_, fixed)| fixed.first()?.first()).map(|(index, _)| *index);
        let one = |fixed: &Vec<Fixed>| matches!(fixed.as_slice(), [fixed] if matches!(fixed.as_slice(), [_]));
        let mut seen: Vec<IndexId> = index.into_iter().collect();
        let mut whole = |at: usize, function: &IndexFn| {
            let domain = tensor.places.get(at).and_then(|place| place.domain.as_ref());
            if at == moving.place {
                let inside = |step: &i64| {
                    domain
                        .is_some_and(|domain| domain.contains(Const::Int(step.saturating_sub(moving.shift))))
                };
                return place.keys().all(inside) && domain.is_some_and(|domain| domain.len() == place.len());
            }
            let Some(index) = function.alone().filter(|index| !seen.contains(index)) else { return false };
            seen.push(index);
            domain.is_some() && domain == self.range(index)
        };
        let computed = tensor.role == Role::Computed && tensor.given.is_empty();
        tensor.style == Style::Square
            && tensor.combine == Combine::Sum
            && computed
            && place.values().all(one)
            && equation.head.iter().enumerate().all(|(at, function)| whole(at, function))
    }

    /// For every equation and every moving place: which values its left side takes there.
    fn fixings<'p>(&mut self, equations: Vec<&'p Equation>, moving: Vec<Moving>) -> Result<Fixings<'p>> {
        let mut of = Vec::new();
        for equation in equations {
            let key =
                (equation.node.number(), moving.iter().map(|place| (place.place, place.shift)).collect());
            let known: Option<Arc<Vec<ByValue>>> = self.records.fixings.get(&key).cloned();
            let places = match known {
                Some(places) => places,
                None => {
                    let places: Arc<Vec<ByValue>> =
                        Arc::new(moving.iter().map(|place| self.by_value(equation, place)).collect());
                    // Those of long recursions take more memory than they spare time.
                    if places.iter().all(|values| values.len() <= REMEMBERED) {
                        self.records.fixings.insert(key, Arc::clone(&places));
                    }
                    places
                }
            };
            of.push((equation, places));
        }
        Ok(Fixings { moving, of, fresh: false, open: Cell::default() })
    }

    /// The bindings of an equation by the values that its left side takes at a moving place.
    fn by_value(&self, equation: &Equation, place: &Moving) -> ByValue {
        let mut values = ByValue::new();
        if let Some(function) = equation.head.get(place.place) {
            let indices = indices_of(function);
            let sizes: Vec<usize> = indices.iter().map(|index| self.size(*index)).collect();
            let columns = product_columns(&sizes);
            for row in 0..volume(&sizes) {
                let fixed: Fixed = indices.iter().zip(&columns).map(|(i, c)| (*i, c[row])).collect();
                let ordinal = |index: IndexId| fixed.iter().find(|(i, _)| *i == index).map(|(_, o)| *o);
                if let Some(Const::Int(value)) = self.function(function, &ordinal) {
                    values.entry(value.saturating_add(place.shift)).or_default().push(fixed);
                }
            }
        }
        values
    }

    /// Loops over the steps of the tensors of a group at a level of nesting.
    fn level(
        &mut self,
        group: &[TensorId],
        level: usize,
        all: &BTreeMap<TensorId, Fixings<'_>>,
    ) -> Result<()> {
        let cycle = |id: &TensorId| all.get(id).and_then(|f| f.moving.get(level)).map(|moving| moving.cycle);
        let mut at = 0;
        while at < group.len() {
            let Some(own) = cycle(&group[at]) else {
                self.slice(group[at], all)?;
                at += 1;
                continue;
            };
            let end = (at..group.len()).find(|end| cycle(&group[*end]) != Some(own)).unwrap_or(group.len());
            let members = &group[at..end];
            let mut steps: Vec<i64> = Vec::new();
            for fixings in members.iter().filter_map(|id| all.get(id)) {
                steps.extend(
                    fixings.of.iter().filter_map(|(_, places)| places.get(level)).flat_map(|v| v.keys()),
                );
            }
            steps.sort_unstable();
            steps.dedup();
            let up = members
                .first()
                .and_then(|id| all.get(id))
                .and_then(|f| f.moving.get(level))
                .is_none_or(|m| m.up);
            if !up {
                steps.reverse();
            }
            let (mut nth, mut tries) = (0, TRIES);
            while nth < steps.len() {
                // A recursion of one level may be recorded.
                let gone = match level == 0 && tries > 0 {
                    true => self.gone_through(members, all, &steps[nth..])?,
                    false => None,
                };
                tries -= usize::from(gone.is_none() && tries > 0);
                nth += gone.as_ref().map_or(0, |gone| gone.steps);
                let Some(step) = steps.get(nth) else { break };
                for fixings in members.iter().filter_map(|id| all.get(id)) {
                    let mut open = fixings.open.take();
                    open.truncate(level);
                    open.push(*step);
                    fixings.open.set(open);
                }
                let rest = members.get(gone.map_or(0, |gone| gone.tensors)..).unwrap_or_default();
                self.level(rest, level + 1, all)?;
                nth += 1;
            }
            at = end;
        }
        Ok(())
    }

    /// Computes the elements of a tensor in the steps that are open.
    fn slice(&mut self, id: TensorId, all: &BTreeMap<TensorId, Fixings<'_>>) -> Result<()> {
        let Some(fixings) = all.get(&id) else { return Ok(()) };
        let open = fixings.open.take();
        let accumulator = loop {
            let mut accumulator: Option<Accumulator> = None;
            for (equation, places) in &fixings.of {
                for fixed in joined(places, &open).iter() {
                    if let ([(index, at)], [place]) = (fixed.as_slice(), places.as_slice())
                        && let Some(range) = range_of(place, *index)
                        && self.program.tensor(id).style == Style::Square
                    {
                        let into = accumulator.get_or_insert_with(|| Accumulator::Slices(Vec::new()));
                        if let Accumulator::Slices(slices) = into {
                            self.stop.check(equation.head_span)?;
                            let (since, before) = (self.now(), slices.len());
                            if self.replayed(equation, (*index, *at), range, fixings.fresh, slices) {
                                self.note_equation(equation, false);
                                self.note_rows(slices[before..].iter().map(Slice::len).sum());
                                self.note_evaluated(equation, since);
                                continue;
                            }
                        }
                    }
                    let into = accumulator.get_or_insert_with(|| match self.program.tensor(id).style {
                        Style::Round => Accumulator::Sparse(Vec::new()),
                        Style::Square => Accumulator::Slices(Vec::new()),
                    });
                    self.contribute(equation, fixed, into)?;
                }
            }
            if !self.must_repeat() {
                break accumulator;
            }
        };
        fixings.open.set(open);
        match accumulator {
            None
            | Some(
                Accumulator::Dense { .. }
                | Accumulator::Lone
                | Accumulator::Several(_)
                | Accumulator::Ready(_)
                | Accumulator::Described(_),
            ) => {}
            Some(Accumulator::Slices(parts)) => self.write_slices(id, &parts, fixings.fresh),
            Some(Accumulator::Sparse(mut pieces)) => {
                if pieces.iter().any(|piece| piece.len > 0) {
                    if let Some(Stored::Relation(relation)) = self.stored(id) {
                        pieces.insert(0, relation.piece());
                    }
                    let stored = self.finish(id, Accumulator::Sparse(pieces));
                    self.store(id, stored);
                }
            }
        }
        Ok(())
    }

    /// The largest change of an element of numbers, and the largest number; infinite where elements differ.
    fn moved(&self, old: &Stored, new: &Stored) -> (f64, f64) {
        let of = |(by, most): (f64, f64), (new, old): (f64, f64)| {
            let change = (new - old).abs();
            (if change.is_nan() { f64::INFINITY } else { by.max(change) }, most.max(new.abs()))
        };
        match (old, new) {
            (Stored::Dense(old), Stored::Dense(new)) if old.len() == new.len() => {
                let (old, new) = (self.numbers(old).doubles(), self.numbers(new).doubles());
                new.iter().copied().zip(old.iter().copied()).fold((0.0, 0.0), of)
            }
            (Stored::Relation(old), Stored::Relation(new)) if old.len == new.len => {
                (0..new.len).map(|at| (new.value(at), old.value(at))).fold((0.0, 0.0), of)
            }
            _ => (f64::INFINITY, 0.0),
        }
    }

    /// The largest change in units of max(1, |value|) where an element is in both; infinite where one
    /// came or went.
    fn change(&self, old: &Stored, new: &Stored) -> f64 {
        match (old, new) {
            (Stored::Dense(old), Stored::Dense(new)) if old.len() == new.len() => {
                let (old, new) = (self.numbers(old).doubles(), self.numbers(new).doubles());
                new.iter().zip(old.iter()).map(|(new, old)| gap(*new, *old)).fold(0.0, f64::max)
            }
            (Stored::Relation(old), Stored::Relation(new))
                if old.len == new.len
                    && old.dictionaries == new.dictionaries
                    && old.columns == new.columns =>
            {
                (0..new.len).map(|at| gap(new.value(at), old.value(at))).fold(0.0, f64::max)
            }
            _ => f64::INFINITY,
        }
    }
}

/// Whether rounds are so slow that a solve is worth a try: looked at now and then, and tried once.
#[derive(Debug, Default)]
struct Slow {
    /// Whether it has yet to be tried.
    linear: bool,
    /// The change a while ago.
    before: f64,
}

/// After so many rounds it is looked at for the first time.
const PATIENCE: u64 = 64;
/// Rounds that are measured.
const MEASURED: u64 = 16;
/// So many further rounds are gone through.
const FEW: f64 = 200.0;

impl Slow {
    fn is(&mut self, rounds: u64, change: f64, tolerance: f64) -> bool {
        let next = rounds.next_power_of_two().max(PATIENCE);
        if rounds + MEASURED == next {
            self.before = change;
        }
        if !self.linear || rounds != next {
            return false;
        }
        let rate = (change / self.before).powf(1.0 / MEASURED as f64);
        // No number says that it is slow.
        self.linear = (tolerance / change).ln() / rate.ln() < FEW && rate < 1.0;
        !self.linear
    }
}

/// For each moving place of a tensor, the bindings of its equations by the value there.
pub(super) struct Fixings<'p> {
    pub(super) moving: Vec<Moving>,
    pub(super) of: Vec<(&'p Equation, Arc<Vec<ByValue>>)>,
    /// Whether every element gets one contribution, which then takes the place of whatever stands there.
    pub(super) fresh: bool,
    /// The steps at hand.
    open: Cell<Vec<i64>>,
}

/// The first and the last position of the only index that the left side has at a moving place, if each step has one.
pub(super) fn range_of(place: &ByValue, index: IndexId) -> Option<(u32, u32)> {
    let (first, last) = (place.first_key_value()?.1, place.last_key_value()?.1);
    let ([first], [last]) = (first.as_slice(), last.as_slice()) else { return None };
    let ([(a, from)], [(b, to)]) = (first.as_slice(), last.as_slice()) else { return None };
    let all = from.abs_diff(*to) as usize + 1 == place.len();
    (*a == index && *b == index && all).then_some((*from.min(to), *from.max(to)))
}

/// The bindings that give the left side these values at its moving places.
fn joined<'p>(places: &'p [ByValue], open: &[i64]) -> Cow<'p, [Fixed]> {
    if let ([values], [step, ..]) = (places, open) {
        return Cow::Borrowed(values.get(step).map_or(&[], Vec::as_slice));
    }
    let mut result: Vec<Fixed> = vec![Vec::new()];
    for (values, step) in places.iter().zip(open) {
        let Some(choices) = values.get(step) else { return Cow::Borrowed(&[]) };
        let mut next = Vec::new();
        for so_far in &result {
            for choice in choices {
                let agrees = choice.iter().all(|(index, ordinal)| {
                    so_far.iter().all(|(other, known)| other != index || known == ordinal)
                });
                if agrees {
                    let mut both = so_far.clone();
                    both.extend(
                        choice.iter().filter(|(index, _)| so_far.iter().all(|(other, _)| other != index)),
                    );
                    next.push(both);
                }
            }
        }
        result = next;
    }
    Cow::Owned(result)
}

/// The equations of a tensor in a component.
pub(super) fn own_equations<'p>(
    equations: &'p [Equation],
    component: &'p Component,
    id: TensorId,
) -> impl Iterator<Item = &'p Equation> {
    let listed = component.equations.iter().filter_map(|EquationId(at)| equations.get(*at as usize));
    listed.filter(move |equation| equation.tensor == id)
}

/// A change of the last bits of a number of 32 bits, as a part of it.
const LAST_DIGITS: f64 = 4.0 * f32::EPSILON as f64;

fn gap(new: f64, old: f64) -> f64 {
    if new == old || (new.is_nan() && old.is_nan()) {
        return 0.0;
    }
    let gap = (new - old).abs() / new.abs().max(1.0);
    if gap.is_nan() { f64::INFINITY } else { gap.max(f64::MIN_POSITIVE) }
}
