//! How blocks would evaluate a program: what can be told before anything is computed.
//!
//! Enter at [`planned`]. What is given is loaded, and supports that depend on it alone are found, unless they are large;
//! everything computed has a placeholder that says only how it would be kept. Who evaluates a component is then decided by
//! the same functions as in a run.

use crate::engine::Storage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Fast, Session};
use crate::engine::{Budget, Parameters, Request};
use crate::error::Result;
use crate::kernels::{Array, Precision, volume};
use crate::profile::{self, Executor, Layout, Order, Part, Profile, equation_label, grouped, label, written};
use crate::program::{
    Class, Combine, Component, Equation, IndexId, Operation, Otherwise, Program, Role, Style, TensorId, Term,
};
use crate::room::{MIDDLE, is_by_support};
use crate::store::condition::{Condition, free, scope_reads};
use crate::store::machine::{Context, Machine, Stored};
use crate::store::relation::Relation;
use crate::values::scope::Scope;

/// Supports that would take more are left to the run.
const SUPPORT_BYTES: u64 = 64 << 20;

/// Arrays that are given with more elements are not loaded.
const GIVEN: usize = 1 << 22;

impl Fast {
    /// How a program would be evaluated for goals; what rules derived stands in it as data, and is not there yet.
    pub fn planned(
        &self,
        program: &Program,
        goals: &[TensorId],
        derived: &BTreeSet<TensorId>,
        budget: Budget,
    ) -> Profile {
        let parameters = Parameters::new();
        let request = Request { program, parameters: &parameters, budget };
        let mut session =
            Session::new(&request, goals, (self.storage, self.precision), &self.pool, &self.stop, derived);
        let needs = session.needs(goals);
        let needed = &needs.tensors;
        let inlined = session.inlined.clone();
        let windows = self.taken_apart(&request, goals).map(|(windows, _)| windows);
        let moved = windows.iter().flat_map(|windows| &windows.moved).filter(|moved| !moved.whole);
        let moved: BTreeSet<TensorId> = moved.map(|moved| moved.id).collect();
        let mut planner =
            Planner { machine: &mut session.machine, known: BTreeSet::new(), sizes: BTreeMap::new() };
        let mut profile = Profile::default();
        let program = Arc::clone(&planner.machine.program);
        for component in session.components.iter() {
            if component.tensors.iter().any(|id| derived.contains(id)) {
                component.tensors.iter().for_each(|id| planner.place(&program, *id, false));
            } else if component.tensors.iter().any(|id| needed.contains(id)) {
                let mut planned = planner.component(&program, component, budget);
                if component.tensors.iter().all(|id| moved.contains(id)) {
                    planned.executor = Executor::Windows;
                    planned.stored.clear();
                }
                profile.add(planned);
            }
        }
        for id in inlined {
            let names = vec![label(&program, id)];
            profile.add(profile::Component::new(names, written(&program, id), Executor::Inlined));
        }
        for (id, split) in session.splits.iter().filter(|(id, _)| !needed.contains(id)) {
            if needed.contains(&split.values) || split.tuples.is_some_and(|tuples| needed.contains(&tuples)) {
                let names = vec![label(&program, *id)];
                profile.add(profile::Component::new(names, written(&program, *id), Executor::Apart));
            }
        }
        profile
    }
}

struct Planner<'m> {
    machine: &'m mut Machine,
    /// Tensors that hold what they will hold.
    known: BTreeSet<TensorId>,
    /// About how many tuples or elements others will be listed by.
    sizes: BTreeMap<TensorId, f64>,
}

impl Planner<'_> {
    fn component(&mut self, program: &Program, component: &Component, budget: Budget) -> profile::Component {
        let names = component.tensors.iter().map(|id| label(program, *id)).collect();
        let span = component.tensors.first().and_then(|id| written(program, *id));
        let executor = self.executor(program, component);
        let mut planned = profile::Component::new(names, span, executor);
        for id in &component.tensors {
            planned.stored.push(match executor {
                Executor::Given => self.given(program, component, *id, budget),
                _ => Self::dense(self.machine.precision, program, *id),
            });
        }
        if executor == Executor::Given {
            return planned;
        }
        let mut found: Vec<(TensorId, Bindings)> = Vec::new();
        for at in &component.equations {
            let equation = program.equation(*at);
            let terms: Vec<Bindings> =
                equation.terms.iter().map(|term| self.bindings(equation, term)).collect();
            let orders: Vec<Order> = terms.iter().filter_map(|bindings| bindings.order.clone()).collect();
            if !orders.is_empty() {
                let text = equation_label(program, equation);
                let span = written(program, equation.tensor).map(|_| equation.span);
                let time = std::time::Duration::ZERO;
                planned.parts.push(Part { text, span, calls: 0, rows_in: 0, rows_out: 0, orders, time });
            }
            found.extend(terms.into_iter().map(|bindings| (equation.tensor, bindings)));
        }
        for (id, stored) in component.tensors.iter().zip(&mut planned.stored) {
            let own = found.iter().filter(|(tensor, _)| tensor == id).map(|(_, bindings)| bindings);
            self.kept(program, component, *id, own.collect(), stored);
        }
        planned
    }

    /// Who evaluates a component.
    fn executor(&mut self, program: &Program, component: &Component) -> Executor {
        for id in &component.tensors {
            // Placeholders of what the component makes, so that its reads are known to be of that style.
            self.place(program, *id, false);
        }
        match &component.class {
            Class::Plain if component.equations.is_empty() => Executor::Given,
            Class::Plain => Executor::Whole,
            Class::Stepped(steps) if self.machine.is_small(component, steps) => Executor::Numbers,
            Class::Stepped(steps) if self.machine.is_by_tuples(component, steps) => Executor::Slices,
            Class::Stepped(steps) if self.machine.can_step(component, steps) => Executor::Slices,
            _ if self.machine.levels_of(component).is_some() => Executor::Levels,
            _ => Executor::Rounds,
        }
    }

    /// A placeholder: only its style and the way it is kept are looked at.
    fn place(&mut self, program: &Program, id: TensorId, by_support: bool) {
        let tensor = program.tensor(id);
        let relation = tensor.style == Style::Round || by_support;
        let stored = if relation {
            Stored::Relation(Arc::new(Relation::empty(tensor.places.len())))
        } else {
            Stored::Dense(Array::truths(Vec::new()))
        };
        self.machine.store(id, stored);
    }

    fn dense(precision: Precision, program: &Program, id: TensorId) -> profile::Stored {
        let tensor = label(program, id);
        if program.tensor(id).style == Style::Round {
            return profile::Stored { tensor, layout: Layout::Columns, rows: None, bytes: None };
        }
        let sizes = program.tensor(id).sizes();
        let elements = volume(&sizes) as u64;
        let (layout, width) = match precision {
            Precision::Double => (Layout::Dense64, 8),
            Precision::Single => (Layout::Dense32, 4),
        };
        let bytes = Some(elements.saturating_mul(width));
        profile::Stored { tensor, layout, rows: Some(elements), bytes }
    }

    /// Loads what is given, unless it is large or no data.
    fn given(
        &mut self,
        program: &Program,
        component: &Component,
        id: TensorId,
        budget: Budget,
    ) -> profile::Stored {
        let tensor = program.tensor(id);
        let sizes = program.tensor(id).sizes();
        let fits = tensor.style == Style::Round || volume(&sizes) <= GIVEN;
        if fits && tensor.role != Role::Parameter {
            self.machine.budget = budget;
            if self.machine.component(component, &Parameters::new()).is_ok() {
                self.known.insert(id);
                if let Some(stored) = self.machine.layout(id) {
                    return stored;
                }
            }
        }
        self.place(program, id, false);
        Self::dense(self.machine.precision, program, id)
    }

    /// How a computed tensor will be kept, made of these bindings.
    fn kept(
        &mut self,
        program: &Program,
        component: &Component,
        id: TensorId,
        terms: Vec<&Bindings>,
        stored: &mut profile::Stored,
    ) {
        let tensor = program.tensor(id);
        let rows: Option<f64> = terms.iter().map(|bindings| bindings.entries).sum();
        if tensor.style == Style::Round {
            if let Some(rows) = rows.filter(|_| matches!(component.class, Class::Plain)) {
                stored.rows = Some(rows as u64);
                self.sizes.insert(id, rows);
            }
            return;
        }
        let elements = stored.rows.unwrap_or(0) as f64;
        let listed = self.machine.is_lone(component, id) || self.machine.is_several(component, id);
        let listed = listed && terms.iter().all(|bindings| bindings.listed);
        let worth = match (self.machine.storage, rows) {
            (Storage::Dense, _) => Some(false),
            (Storage::Sparse, _) => Some(true),
            (Storage::Auto, Some(rows)) => Some(is_by_support(elements as usize, rows.ceil() as usize)),
            (Storage::Auto, None) if elements <= MIDDLE as f64 => Some(false),
            (Storage::Auto, None) => None,
        };
        match worth.filter(|_| listed).or((!listed).then_some(false)) {
            Some(false) => {}
            None => (stored.layout, stored.rows, stored.bytes) = (Layout::Open, None, None),
            Some(true) => {
                let rows = rows.unwrap_or(elements);
                let bytes = rows as u64 * (4 * tensor.places.len() as u64 + 8);
                (stored.layout, stored.rows, stored.bytes) =
                    (Layout::Support, Some(rows as u64), Some(bytes));
                self.place(program, id, true);
                self.sizes.insert(id, rows);
            }
        }
    }

    /// The bindings of a term.
    fn bindings(&mut self, equation: &Equation, term: &Term) -> Bindings {
        let program = Arc::clone(&self.machine.program);
        let own = [equation.left.as_slice(), &term.over].concat();
        let scope = self.scope(equation, term, &own);
        let left: f64 = equation.left.iter().map(|index| self.machine.size(*index) as f64).product();
        let Some(listing) = self.unknown(&scope) else {
            let budget = std::mem::replace(&mut self.machine.budget.bytes, SUPPORT_BYTES);
            self.machine.note_from_now(true);
            let found = self.found(equation, term, scope, Vec::new());
            self.machine.budget.bytes = budget;
            self.machine.note_from_now(false);
            return found.unwrap_or(Bindings { order: None, listed: false, entries: None });
        };
        if listing.is_empty() {
            return Bindings { order: None, listed: false, entries: None };
        }
        let step = |id: &TensorId| match self.sizes.get(id) {
            Some(rows) => format!("{} (about {} rows)", label(&program, *id), grouped(*rows)),
            None => label(&program, *id),
        };
        let order = Order { steps: listing.iter().map(step).collect(), rows: None, of: None };
        let sizes: Option<Vec<f64>> = listing.iter().map(|id| self.sizes.get(id).copied()).collect();
        let least = sizes.and_then(|sizes| sizes.into_iter().reduce(f64::min));
        Bindings {
            order: Some(order),
            listed: !equation.left.is_empty(),
            entries: least.map(|rows| rows.min(left)),
        }
    }

    /// Where what decides the support of a term is not there yet: the relations that may list bindings.
    fn unknown(&self, scope: &Scope<'_>) -> Option<Vec<TensorId>> {
        let (mut unknown, mut listing) = (false, Vec::new());
        let relation = |id: TensorId| matches!(self.machine.stored(id), Some(Stored::Relation(_)));
        let mut see = |id: TensorId, decides: bool| {
            if relation(id) && !listing.contains(&id) {
                listing.push(id);
            }
            unknown |= (decides || relation(id)) && !self.known.contains(&id);
        };
        for condition in scope.conditions() {
            condition.reads(&mut |read| see(read.tensor, true));
        }
        scope.body.visit_reads(&mut |read, _| see(read.tensor, read.otherwise == Otherwise::Absent));
        unknown.then_some(listing)
    }

    fn scope<'p>(&self, equation: &Equation, term: &'p Term, own: &'p [IndexId]) -> Scope<'p> {
        let tensor = self.machine.program.tensor(equation.tensor);
        let square = tensor.style == Style::Square;
        let (node, when) = (term.when.node.number(), Condition::of_when(&term.when));
        let scope = Scope::new(node, own, when, &term.body, Operation::Sum);
        let operation = match tensor.combine {
            Combine::Max => Operation::Max,
            Combine::Min => Operation::Min,
            _ => Operation::Sum,
        };
        let picking = Scope { operation, ..scope.clone() };
        if square && picking.picks_one() {
            return Scope { over: &term.over, zero: true, ..picking };
        }
        let zero = square && tensor.combine == Combine::Sum;
        Scope { over: &term.over, zero, fill: zero, whole: tensor.combine == Combine::Avg, ..scope }
    }

    /// Finds the support of a term for good, if it is not large; `inside` are sums that are taken inside of it.
    fn found(
        &mut self,
        equation: &Equation,
        term: &Term,
        scope: Scope<'_>,
        mut inside: Vec<IndexId>,
    ) -> Result<Bindings> {
        let context = Context::default();
        if let Some(factored) = self.machine.factored(&scope, &context) {
            inside.push(factored.index);
            return self.found(equation, term, scope.nested(&factored), inside);
        }
        let mut conditions = scope.conditions();
        let reads = scope_reads(&conditions, scope.body);
        self.machine.set_tuple_ranges(scope.own, &reads, scope.nearby);
        if scope.zero {
            let listed = self.machine.zero_reads(&scope, &context)?;
            conditions.extend(listed.into_iter().map(Condition::Listed));
        }
        let free = free(scope.body);
        let support = self.machine.support(scope.node, &context, scope.own, &conditions, &free);
        self.machine.note_inside(scope.node, inside);
        let left = |machine: &Machine, kept: &dyn Fn(&IndexId) -> bool| {
            let sizes =
                equation.left.iter().filter(|index| kept(index)).map(|index| machine.size(*index) as f64);
            sizes.product::<f64>()
        };
        let Some(rows) = support?.rows else {
            return Ok(Bindings { order: None, listed: false, entries: Some(left(self.machine, &|_| true)) });
        };
        let of = rows.indices.iter().map(|index| self.machine.size(*index) as f64).product();
        let steps = self.machine.noted_steps(scope.node);
        let order = Order { steps, rows: Some(rows.len as f64), of: Some(of) };
        let kept: Vec<IndexId> =
            rows.indices.iter().copied().filter(|index| !term.over.contains(index)).collect();
        let groups = if kept.len() == rows.indices.len() {
            rows.len
        } else if kept.is_empty() {
            1
        } else {
            self.machine.grouped(&rows, &kept).0.len
        };
        if scope.picks_one() {
            // Zeros stand beside what is listed.
            return Ok(Bindings {
                order: Some(order),
                listed: false,
                entries: Some(left(self.machine, &|_| true)),
            });
        }
        let entries = groups as f64 * left(self.machine, &|index| !rows.binds(*index));
        Ok(Bindings { order: Some(order), listed: !kept.is_empty(), entries: Some(entries) })
    }
}

/// The bindings of a term.
struct Bindings {
    /// How they are listed, if they are.
    order: Option<Order>,
    /// Whether those of the left side are listed too, once what is summed is gone.
    listed: bool,
    /// How many of the left side there are; `None` where that is not known yet.
    entries: Option<f64>,
}
