//! The interpreter's state, and how components come to rest: data, rounds, refusals.
//!
//! Enter at [`Machine::evaluate`]. A plain component takes one round; every other one is iterated
//! by Jacobi rounds, each computing all equations anew from the state before it (N5), until it
//! rests as its class says (N7).

use std::cell::{Cell as Slot, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use super::bind::{Lookup, Plan, Scope, round_reads};
use super::number::Number;
use super::store::{Cell, Entries, Proofs, Store, position};
use tensor_logic_core::ast::Span;
use tensor_logic_core::engine::{Request, Stop, Tuples, Value, too_wide};
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{
    Class, Combine, Component, Equation, Given, IndexId, Kind, Place, Program, Role, Style, Tensor, TensorId,
    Term,
};
use tensor_logic_core::start::start_values;
use tensor_logic_core::value::{Const, Domain, Tuple, element};

/// Everything that an evaluation knows.
pub(super) struct Machine<'p, N> {
    pub(super) program: &'p Program,
    pub(super) request: &'p Request<'p>,
    /// The given element by which derivatives are taken.
    variable: Option<(TensorId, Tuple)>,
    stores: Vec<Option<Store<N>>>,
    /// The binding at hand, by index.
    pub(super) env: Vec<Slot<Option<Const>>>,
    /// Plans of scopes, by the number of their guards.
    pub(super) plans: RefCell<HashMap<u64, Rc<Plan<'p>>>>,
    /// Tuples by some of their places.
    pub(super) lookups: RefCell<HashMap<(TensorId, u64, bool), Rc<Lookup>>>,
    /// Entries along axes, by the number of the function and the binding of its other indices.
    pub(super) axes: RefCell<HashMap<AxisKey, Rc<Entries<N>>>>,
    /// Whether the variable was met among what is given.
    varied: Slot<bool>,
    /// Tuples of finished components.
    tuples: u64,
    /// Bytes of square tensors.
    pub(super) bytes: u64,
    /// Of relations of the type `topk` the proofs of each tuple that are kept.
    pub(super) proofs: BTreeMap<TensorId, Proofs>,
    /// What ends it; bindings so far, and whether it was asked to end.
    pub(super) stop: Stop,
    ticks: Slot<u32>,
    stopped: Slot<bool>,
    /// An index with more values than are gone through, which ends it too.
    pub(super) wide: Slot<Option<IndexId>>,
    /// Whether stepped components are gone through step by step, where that can be, instead of by rounds.
    pub(super) stepwise: bool,
    /// After so many rounds a recursion is left as it is, whether it rests or not.
    pub(super) cut: Option<u64>,
}

/// The number of a function along an axis, and the binding of its other indices.
type AxisKey = (u64, Vec<Option<Const>>);

/// Contributions to a tensor.
pub(super) enum Cells<N> {
    Dense(Vec<Option<Cell<N>>>),
    Sparse(BTreeMap<Tuple, Cell<N>>),
}

impl<'p, N: Number> Machine<'p, N> {
    pub(super) fn new(request: &'p Request<'p>, variable: Option<(TensorId, Tuple)>) -> Machine<'p, N> {
        let program = request.program;
        Machine {
            program,
            request,
            variable,
            stores: program.tensors.iter().map(|_| None).collect(),
            env: program.indices.iter().map(|_| Slot::new(None)).collect(),
            plans: RefCell::default(),
            lookups: RefCell::default(),
            axes: RefCell::default(),
            varied: Slot::new(false),
            tuples: 0,
            bytes: 0,
            proofs: BTreeMap::new(),
            stop: Stop::default(),
            ticks: Slot::new(0),
            stopped: Slot::new(false),
            wide: Slot::new(None),
            stepwise: false,
            cut: None,
        }
    }

    /// Whether somebody has asked to end; looked at now and then.
    pub(super) fn stopped(&self) -> bool {
        self.ticks.set(self.ticks.get().wrapping_add(1));
        if self.ticks.get().is_multiple_of(1 << 10) && self.stop.asked() {
            self.stopped.set(true);
        }
        self.stopped.get() || self.wide.get().is_some()
    }

    /// Refuses what met an index that is not gone through.
    fn gone_through(&self, left: Span) -> Result<()> {
        self.wide.get().map_or(Ok(()), |index| Err(too_wide(self.program, index, left)))
    }

    /// A machine whose tensors have been evaluated by some engine.
    pub(super) fn with_values(request: &'p Request<'p>, values: Vec<(TensorId, Value)>) -> Machine<'p, N> {
        let mut machine = Machine::new(request, None);
        for (id, value) in values {
            let store = match value {
                value @ (Value::Dense(_) | Value::Counts(_)) => {
                    let values = value.doubles().iter().map(|value| N::new(*value)).collect();
                    Store::Dense(request.program.tensor(id).domains(), values)
                }
                Value::Tuples(Tuples { tuples, values, .. }) => {
                    Store::Sparse(tuples.into_iter().zip(values.into_iter().map(N::new)).collect())
                }
            };
            machine.set(id, store);
        }
        machine
    }

    /// The state of a tensor, if it was evaluated.
    pub(super) fn store(&self, tensor: TensorId) -> Option<&Store<N>> {
        self.stores.get(tensor.0 as usize)?.as_ref()
    }

    /// The value of an element, if it is there.
    pub(super) fn element(&self, (tensor, tuple): &(TensorId, Tuple)) -> Option<N> {
        match self.store(*tensor)? {
            Store::Dense(domains, values) => {
                position(domains.iter().map(Some), tuple).and_then(|at| values.get(at)).copied()
            }
            Store::Sparse(tuples) => tuples.get(tuple).copied(),
        }
    }

    pub(super) fn set(&mut self, tensor: TensorId, store: Store<N>) {
        if let Some(slot) = self.stores.get_mut(tensor.0 as usize) {
            *slot = Some(store);
        }
    }

    /// Sets an element of a square tensor.
    pub(super) fn put(&mut self, tensor: TensorId, at: usize, value: N) {
        if let Some(Some(Store::Dense(_, values))) = self.stores.get_mut(tensor.0 as usize)
            && let Some(slot) = values.get_mut(at)
        {
            *slot = value;
        }
    }

    /// Evaluates what the goals need.
    pub(super) fn evaluate(&mut self, goals: &[TensorId]) -> Result<()> {
        let needed = self.program.needs(goals);
        let listed: Vec<TensorId> =
            self.program.components.iter().flat_map(|component| component.tensors.iter().copied()).collect();
        for tensor in needed.iter().copied().filter(|tensor| !listed.contains(tensor)) {
            let alone = Component { tensors: vec![tensor], equations: Vec::new(), class: Class::Plain };
            self.component(&alone)?;
        }
        for component in &self.program.components {
            if component.tensors.iter().any(|tensor| needed.contains(tensor)) {
                self.component(component)?;
            }
        }
        Ok(())
    }

    pub(super) fn component(&mut self, component: &Component) -> Result<()> {
        if component.tensors.iter().any(|id| self.program.tensor(*id).is_proved()) {
            self.by_worlds(component)?;
            return component
                .tensors
                .iter()
                .try_for_each(|id| self.gone_through(self.program.left_side(*id)));
        }
        if let [id] = component.tensors.as_slice()
            && self.program.tensor(*id).combine == Combine::Slopes
        {
            return self.slopes(*id);
        }
        for tensor in &component.tensors {
            self.reserve(*tensor)?;
        }
        match &component.class {
            Class::Plain => {
                let states = self.round(component)?;
                states.into_iter().for_each(|(tensor, state)| self.set(tensor, state));
            }
            Class::Stepped(steps) if self.stepwise && self.by_steps(component, steps)? => {}
            _ => self.iterate(component)?,
        }
        self.forget();
        for id in &component.tensors {
            if let Some(Store::Sparse(tuples)) = self.store(*id) {
                self.tuples += tuples.len() as u64;
            }
            self.counts_fit(*id)?;
        }
        Ok(())
    }

    /// Rounds from nothing until the component rests.
    fn iterate(&mut self, component: &Component) -> Result<()> {
        let numeric = matches!(component.class, Class::Numeric);
        for id in &component.tensors {
            let tensor = self.program.tensor(*id);
            let start = if numeric { 0.0 } else { tensor.combine.default_value() };
            self.set(*id, Store::nothing(tensor, start));
        }
        let counts = component.tensors.iter().any(|id| self.program.tensor(*id).kind == Kind::Count);
        let tolerance = if numeric && !counts { self.program.settings.tolerance } else { 0.0 };
        for rounds in 1.. {
            let before = self.reached(component);
            let states = self.round(component)?;
            let change =
                |(id, new): &(TensorId, Store<N>)| self.store(*id).map_or(0.0, |old| new.change(old));
            let changes: Vec<f64> = states.iter().map(change).collect();
            states.into_iter().for_each(|(tensor, state)| self.set(tensor, state));
            let rests = changes.iter().all(|change| *change <= tolerance);
            if rests && !(numeric && self.exploded(component)) {
                break;
            }
            if self.cut == Some(rounds) {
                return Ok(());
            }
            if self.cut.is_none() {
                self.may_go_on(component, (rounds, before), &changes)?;
            }
        }
        if matches!(component.class, Class::Closure) { self.nothing_falls(component) } else { Ok(()) }
    }

    /// Forgets what was derived from the state before.
    pub(super) fn forget(&self) {
        self.plans.borrow_mut().clear();
        self.lookups.borrow_mut().clear();
        self.axes.borrow_mut().clear();
    }

    /// Forgets what was derived from values; the plans stay.
    pub(super) fn forget_state(&self) {
        self.lookups.borrow_mut().clear();
        self.axes.borrow_mut().clear();
    }

    /// Forgets the entries along axes, of which there may be as many as bindings.
    pub(super) fn forget_entries(&self) {
        self.axes.borrow_mut().clear();
    }

    /// All equations of a component, once, from the state at hand.
    fn round(&self, component: &Component) -> Result<Vec<(TensorId, Store<N>)>> {
        self.forget();
        N::begin_round(component.tensors.first().map_or(0, |id| u64::from(id.0)));
        let mut others = self.tuples;
        let mut states = Vec::new();
        for id in &component.tensors {
            let tensor = self.program.tensor(*id);
            let mut cells = self.given(*id, others)?;
            for equation in component.equations.iter().map(|equation| self.program.equation(*equation)) {
                if equation.tensor == *id {
                    self.equation(equation, &mut |element, value| {
                        self.contribute(tensor, &mut cells, element, value);
                        self.within_budget(others, &cells, equation.head_span)
                    })?;
                }
            }
            others += cells.tuples();
            states.push((*id, self.finish(*id, cells)));
        }
        Ok(states)
    }

    /// Calls `visit` with every contribution of an equation.
    pub(super) fn equation(
        &self,
        equation: &'p Equation,
        visit: &mut dyn FnMut(Tuple, N) -> Result<()>,
    ) -> Result<()> {
        let nearby: Vec<_> =
            equation.terms.iter().flat_map(|term| round_reads(&term.when, Some(&term.body))).collect();
        for term in &equation.terms {
            let indices: Vec<_> = equation.left.iter().chain(&term.over).copied().collect();
            self.term(
                equation,
                term,
                Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &nearby },
                visit,
            )?;
        }
        Ok(())
    }

    pub(super) fn term(
        &self,
        equation: &'p Equation,
        term: &'p Term,
        scope: Scope<'p, '_>,
        visit: &mut dyn FnMut(Tuple, N) -> Result<()>,
    ) -> Result<()> {
        let mut refused = None;
        let _ = self.each(scope, &mut || {
            let Some(value) = self.expr(&term.body) else { return ControlFlow::Continue(()) };
            let element: Option<Tuple> = equation.head.iter().map(|place| self.index(place)).collect();
            match element.map(|element| visit(element, value)) {
                Some(Err(report)) => {
                    refused = Some(report);
                    ControlFlow::Break(())
                }
                Some(Ok(())) | None => ControlFlow::Continue(()),
            }
        });
        self.stop.check(equation.head_span)?;
        self.gone_through(equation.head_span)?;
        refused.map_or(Ok(()), Err)
    }

    pub(super) fn contribute(&self, tensor: &Tensor, cells: &mut Cells<N>, element: Tuple, value: N) {
        let join = |cell: &mut Cell<N>| cell.add(tensor.combine, value);
        match cells {
            Cells::Dense(cells) => {
                let domains = tensor.places.iter().map(|place| place.domain.as_ref());
                match position(domains, &element).and_then(|at| cells.get_mut(at)) {
                    Some(Some(cell)) => join(cell),
                    Some(empty) => *empty = Some(Cell::first(tensor.combine, value)),
                    None => {}
                }
            }
            Cells::Sparse(cells) => {
                let outside = |(place, value): (&Place, &Const)| {
                    place.limit.as_ref().is_some_and(|domain| !domain.contains(*value))
                };
                if !tensor.places.iter().zip(&element).any(outside) {
                    let first = || Cell::first(tensor.combine, value);
                    cells.entry(element).and_modify(join).or_insert_with(first);
                }
            }
        }
    }

    fn finish(&self, id: TensorId, cells: Cells<N>) -> Store<N> {
        let tensor = self.program.tensor(id);
        let mut store = match cells {
            Cells::Dense(cells) => {
                let default = N::new(tensor.combine.default_value());
                let value = |cell: Option<Cell<N>>| cell.and_then(|cell| cell.finish(tensor.combine));
                let values = cells.into_iter().map(|cell| value(cell).unwrap_or(default)).collect();
                Store::Dense(tensor.domains(), values)
            }
            Cells::Sparse(cells) => {
                let value = |(tuple, cell): (Tuple, Cell<N>)| Some((tuple, cell.finish(tensor.combine)?));
                Store::Sparse(cells.into_iter().filter_map(value).collect())
            }
        };
        if let Some((by, element)) = &self.variable
            && *by == id
            && (is_computed_only(tensor) || tensor.combine == Combine::Exists)
            && let Some(value) = store.at_mut(element)
        {
            *value = value.plus(N::variable(0.0));
        }
        store
    }

    /// A given number: the variable, if derivatives are taken by it.
    fn number(&self, tensor: TensorId, element: &[Const], value: f64) -> N {
        match &self.variable {
            Some((by, at)) if *by == tensor && at == element && !self.varied.replace(true) => {
                N::variable(value)
            }
            _ => N::new(value),
        }
    }

    /// What is given of a tensor: facts, arrays, the values of a parameter.
    pub(super) fn given(&self, id: TensorId, others: u64) -> Result<Cells<N>> {
        let tensor = self.program.tensor(id);
        let domains = tensor.domains();
        let mut cells = match tensor.style {
            Style::Round => Cells::Sparse(BTreeMap::new()),
            Style::Square => Cells::Dense(vec![None; domains.iter().map(Domain::len).product()]),
        };
        self.each_given(id, &mut |element, value| {
            self.contribute(tensor, &mut cells, element, value);
            self.within_budget(others, &cells, tensor.span)
        })?;
        Ok(cells)
    }

    /// Calls `visit` for every given element of a tensor.
    pub(super) fn each_given(
        &self,
        id: TensorId,
        visit: &mut dyn FnMut(Tuple, N) -> Result<()>,
    ) -> Result<()> {
        let tensor = self.program.tensor(id);
        let domains = tensor.domains();
        self.varied.set(false);
        if tensor.role == Role::Parameter {
            let started = || start_values(self.program, id);
            let values = self.request.parameters.get(&id).map_or_else(started, Arc::clone);
            for (at, value) in values.iter().enumerate() {
                let element = element(&domains, at);
                let value = self.number(id, &element, *value);
                visit(element, value)?;
            }
        }
        for given in &tensor.given {
            match given {
                Given::Facts(_) | Given::Columns(_) => {
                    let Some(facts) = given.facts() else { continue };
                    for at in 0..facts.count {
                        let element = facts.tuple(at).to_vec();
                        let value = self.number(id, &element, facts.value(at));
                        visit(element, value)?;
                    }
                }
                Given::Array { fixed, shape, values, .. } => {
                    let placed = (0..values.len()).map(|at| array_element(&domains, fixed, shape, at));
                    for (element, value) in placed.zip(values.iter()) {
                        if let Some(element) = element {
                            let value = self.number(id, &element, *value);
                            visit(element, value)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl<N> Cells<N> {
    /// The tuples stored.
    pub(super) fn tuples(&self) -> u64 {
        match self {
            Cells::Dense(_) => 0,
            Cells::Sparse(tuples) => tuples.len() as u64,
        }
    }
}

/// Whether nothing of a tensor is given, so that derivatives by it are by its computed values.
pub(super) fn is_computed_only(tensor: &Tensor) -> bool {
    tensor.given.is_empty() && tensor.role == Role::Computed
}

/// The element that an entry of an array over the open places of a tensor stands for.
fn array_element(
    domains: &[Domain],
    fixed: &[Option<Const>],
    shape: &[usize],
    mut at: usize,
) -> Option<Tuple> {
    let mut sizes = shape.iter().rev();
    let mut element: Tuple = Vec::with_capacity(fixed.len());
    for (domain, fixed) in domains.iter().zip(fixed).rev() {
        element.push(match fixed {
            Some(value) => *value,
            None => {
                let size = (*sizes.next()?).max(1);
                let ordinal = at % size;
                at /= size;
                domain.value(ordinal)?
            }
        });
    }
    element.reverse();
    Some(element)
}
