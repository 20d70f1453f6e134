//! Values under a binding: reads, guards, expressions, and the loop over the bindings of a scope.
//!
//! Enter at [`Machine::expr`] and [`Machine::each`]. The binding is `env`: a loop sets an index
//! and takes it back.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::bind::{Binding, Filter, Lookup, Plan, Scope, Supply, invert};
use super::machine::Machine;
use super::number::{Number, added};
use super::store::{self, Entries, Store};
use tensor_logic_core::ast::Comparison;
use tensor_logic_core::engine::WIDEST;
use tensor_logic_core::function::Function;
use tensor_logic_core::program::{
    Argument, Axis, AxisFunction, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Place, Range, Read,
    Reduce, When,
};
use tensor_logic_core::value::{Const, Tuple};
use tensor_logic_core::walk;

impl<'p, N: Number> Machine<'p, N> {
    pub(super) fn bound(&self, index: IndexId) -> Option<Const> {
        self.env.get(index.0 as usize)?.get()
    }

    pub(super) fn bind(&self, index: IndexId, value: Option<Const>) {
        if let Some(slot) = self.env.get(index.0 as usize) {
            slot.set(value);
        }
    }

    /// The value of an index function, if its indices are bound.
    pub(super) fn index(&self, function: &IndexFn) -> Option<Const> {
        function.evaluate(&|index| self.bound(index), &|index| {
            let Range::Domain(domain) = &self.program.index(index).range else { return None };
            domain.ordinal(self.bound(index)?)
        })
    }

    pub(super) fn arguments(&self, read: &Read) -> Option<Tuple> {
        let place = |argument: &Argument| match argument {
            Argument::At(function) => self.index(function),
            Argument::Any => None,
        };
        read.arguments.iter().map(place).collect()
    }

    /// An element as the reference reads it.
    fn read(&self, read: &Read) -> Option<N> {
        let tuple = self.arguments(read)?;
        let found = match self.store(read.tensor)? {
            Store::Dense(domains, values) => {
                let value =
                    store::position(domains.iter().map(Some), &tuple).and_then(|at| values.get(at)).copied();
                value.filter(|value| read.otherwise != Otherwise::Absent || value.value() != 0.0)
            }
            Store::Sparse(tuples) => tuples.get(&tuple).copied().or_else(|| {
                let places = self.program.tensor(read.tensor).places.iter().zip(&tuple);
                let inside = |(place, value): (&Place, &Const)| {
                    place.domain.as_ref().is_none_or(|domain| domain.contains(*value))
                };
                let zero = read.otherwise == Otherwise::Zero && places.into_iter().all(inside);
                zero.then(|| N::new(0.0))
            }),
        };
        match read.otherwise {
            Otherwise::ZeroOutside => Some(found.unwrap_or(N::new(0.0))),
            Otherwise::Absent | Otherwise::Zero => found,
        }
    }

    /// Whether a read holds as a guard.
    pub(super) fn holds(&self, read: &Read) -> bool {
        if !read.arguments.iter().any(|argument| matches!(argument, Argument::Any)) {
            let value = self.read(read);
            return match read.otherwise {
                Otherwise::Absent => value.is_some(),
                Otherwise::Zero | Otherwise::ZeroOutside => value.is_some_and(|value| value.value() > 0.0),
            };
        }
        let (mask, key) = self.known_places(read);
        let known = read.arguments.iter().filter(|argument| matches!(argument, Argument::At(_))).count();
        known == key.len() && self.lookup(read, mask).get(&key).is_some_and(|rows| !rows.is_empty())
    }

    /// Whether what is read is the case in every world: a tuple of the weight 1.
    pub(super) fn is_certain(&self, read: &Read) -> bool {
        let is_one = |value: N| value.value() >= 1.0;
        if !read.arguments.iter().any(|argument| matches!(argument, Argument::Any)) {
            return self.read(read).is_some_and(is_one);
        }
        let fits = |(argument, value): (&Argument, &Const)| match argument {
            Argument::At(function) => self.index(function) == Some(*value),
            Argument::Any => true,
        };
        let Some(Store::Sparse(tuples)) = self.store(read.tensor) else { return false };
        tuples.iter().any(|(tuple, value)| is_one(*value) && read.arguments.iter().zip(tuple).all(fits))
    }

    /// The places whose values are known, as a bit mask, and these values.
    fn known_places(&self, read: &Read) -> (u64, Vec<Const>) {
        let (mut mask, mut key) = (0, Vec::new());
        for (place, argument) in read.arguments.iter().enumerate().take(64) {
            if let Argument::At(function) = argument
                && let Some(value) = self.index(function)
            {
                mask |= 1 << place;
                key.push(value);
            }
        }
        (mask, key)
    }

    /// The tuples that exist by their constants at the places of `mask`. A square tensor's
    /// elements exist where they are not 0; read as a number, where they are above 0.
    fn lookup(&self, read: &Read, mask: u64) -> Rc<Lookup> {
        let number = read.otherwise != Otherwise::Absent;
        let made = self.lookups.borrow().get(&(read.tensor, mask, number)).map(Rc::clone);
        if let Some(lookup) = made {
            return lookup;
        }
        let mut lookup = Lookup::new();
        let store = self.store(read.tensor);
        for (tuple, value) in store.into_iter().flat_map(|store| store.entries()) {
            let square = matches!(store, Some(Store::Dense(..)));
            let there = if number { value.value() > 0.0 } else { !square || value.value() != 0.0 };
            if there {
                let chosen =
                    tuple.iter().enumerate().filter(|(place, _)| *place < 64 && mask >> place & 1 == 1);
                let key = chosen.map(|(_, value)| *value).collect();
                lookup.entry(key).or_default().push(tuple);
            }
        }
        let lookup = Rc::new(lookup);
        self.lookups.borrow_mut().insert((read.tensor, mask, number), Rc::clone(&lookup));
        lookup
    }

    /// The values of `index` in the tuples of a read that agree with what is bound.
    fn values_in_tuples(&self, read: &Read, index: IndexId, into: &mut BTreeSet<Const>) {
        let (mask, key) = self.known_places(read);
        for row in self.lookup(read, mask).get(&key).into_iter().flatten() {
            let places = read.arguments.iter().zip(row);
            let value = places.into_iter().find_map(|(argument, value)| match argument {
                Argument::At(function) => invert(function, index, *value, &|part| self.index(part)),
                Argument::Any => None,
            });
            into.extend(value);
        }
    }

    fn guard(&self, guard: &'p Guard) -> bool {
        match guard {
            Guard::Read(read) => self.holds(read),
            Guard::Not(read) => !self.holds(read),
            Guard::Bind(index, function) => {
                let value = self.index(function);
                value.is_some() && value == self.bound(*index)
            }
            Guard::CompareIndex(sign, a, b) => match (self.index(a), self.index(b)) {
                (Some(Const::Int(a)), Some(Const::Int(b))) => compare(*sign, a.cmp(&b).into()),
                (Some(a), Some(b)) => match sign {
                    Comparison::Equal => a == b,
                    Comparison::NotEqual => a != b,
                    _ => false,
                },
                _ => false,
            },
            Guard::Compare(sign, a, b) => match (self.expr(a), self.expr(b)) {
                (Some(a), Some(b)) => compare(*sign, a.order(b)),
                _ => false,
            },
        }
    }

    fn check(&self, filters: &[Filter<'p>]) -> bool {
        filters.iter().all(|filter| match filter {
            Filter::Guard(guard) => self.guard(guard),
            Filter::Present(read) => self.read(read).is_some(),
        })
    }

    /// Whether guards hold under the binding at hand.
    pub(super) fn when(&self, when: &'p When) -> bool {
        let scope = Scope { indices: &[], when, body: None, nearby: &[] };
        when.guards.is_empty() || self.each(scope, &mut || ControlFlow::Break(())).is_break()
    }

    /// Calls `visit` once for every binding of the scope's indices whose guards hold and whose
    /// required round reads are present; `visit` may find the body absent nevertheless.
    pub(super) fn each(
        &self,
        scope: Scope<'p, '_>,
        visit: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if scope.when.exists.is_empty() {
            return self.witnesses(scope, visit);
        }
        if scope.indices.is_empty() {
            // However many bindings satisfy the guards, there is one contribution.
            let some = self.witnesses(scope, &mut || ControlFlow::Break(()));
            return if some.is_break() { visit() } else { ControlFlow::Continue(()) };
        }
        // Several bindings of the `exists` may agree on the others: each of those counts once.
        let mut found: BTreeSet<Vec<Option<Const>>> = BTreeSet::new();
        let _ = self.witnesses(scope, &mut || {
            found.insert(scope.indices.iter().map(|index| self.bound(*index)).collect());
            ControlFlow::Continue(())
        });
        let set = |values: &[Option<Const>]| {
            scope.indices.iter().zip(values).for_each(|(index, value)| self.bind(*index, *value));
        };
        let flow = found.iter().try_for_each(|values| {
            set(values);
            visit()
        });
        set(&vec![None; scope.indices.len()]);
        flow
    }

    /// Calls `visit` for every binding of the scope's indices and of the `exists` of its guards.
    pub(super) fn witnesses(
        &self,
        scope: Scope<'p, '_>,
        visit: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let plan = self.plan(scope);
        self.follow(&plan, visit)
    }

    fn plan(&self, scope: Scope<'p, '_>) -> Rc<Plan<'p>> {
        let key = scope.when.node.number();
        let made = self.plans.borrow().get(&key).map(Rc::clone);
        made.unwrap_or_else(|| {
            let plan = Rc::new(self.planned(scope));
            self.plans.borrow_mut().insert(key, Rc::clone(&plan));
            plan
        })
    }

    /// How the indices of a scope are bound.
    pub(super) fn planned(&self, scope: Scope<'p, '_>) -> Plan<'p> {
        scope.plan(self.program, &|tensor| match self.store(tensor)? {
            Store::Sparse(tuples) => Some(tuples.len()),
            Store::Dense(..) => None,
        })
    }

    /// Visits the bindings of a plan, beside what is bound already.
    pub(super) fn follow(
        &self,
        plan: &Plan<'p>,
        visit: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.check(&plan.checks) { self.walk(&plan.steps, visit) } else { ControlFlow::Continue(()) }
    }

    fn walk(&self, steps: &[Binding<'p>], visit: &mut dyn FnMut() -> ControlFlow<()>) -> ControlFlow<()> {
        if self.stopped() {
            return ControlFlow::Break(());
        }
        let Some((step, rest)) = steps.split_first() else { return visit() };
        let mut one = |value: Const| {
            self.bind(step.index, Some(value));
            if self.check(&step.checks) { self.walk(rest, visit) } else { ControlFlow::Continue(()) }
        };
        let mut values = BTreeSet::new();
        let range = &self.program.index(step.index).range;
        let flow = match &step.source {
            Supply::Range => match range {
                Range::Domain(domain) if domain.len() >= WIDEST => {
                    self.wide.set(Some(step.index));
                    ControlFlow::Break(())
                }
                Range::Domain(domain) => domain.values().try_for_each(one),
                Range::Tuples | Range::Computed => ControlFlow::Continue(()),
            },
            source => {
                match source {
                    Supply::Function(function) => values.extend(self.index(function)),
                    Supply::Tuples(read) => self.values_in_tuples(read, step.index, &mut values),
                    Supply::Union(reads) => {
                        reads.iter().for_each(|read| self.values_in_tuples(read, step.index, &mut values));
                    }
                    Supply::Range => {}
                }
                if let Range::Domain(domain) = range {
                    values.retain(|value| domain.contains(*value));
                }
                values.into_iter().try_for_each(&mut one)
            }
        };
        self.bind(step.index, None);
        flow
    }

    /// The value of an expression under the binding at hand; `None`: absent.
    pub(super) fn expr(&self, expr: &'p Expr) -> Option<N> {
        match expr {
            Expr::Number(value) => Some(N::new(*value)),
            Expr::Index(function) => Some(N::new(self.index(function)?.int()? as f64)),
            Expr::Read(read) => self.read(read),
            Expr::Missing(read) => (!self.holds(read)).then(|| N::new(1.0)),
            Expr::Product(parts) => self.all(parts, N::new(1.0), N::times),
            Expr::Plus(parts) => self.all(parts, N::new(0.0), N::plus),
            Expr::Terms(parts) => {
                let present = parts.iter().filter_map(|part| self.expr(part));
                present.reduce(N::plus)
            }
            Expr::Quotient(a, b) => Some(self.expr(a)?.over(self.expr(b)?)),
            Expr::Negate(a) => Some(N::new(-1.0).times(self.expr(a)?)),
            Expr::Power(a, b) => Some(self.expr(a)?.power(self.expr(b)?)),
            Expr::Reduce(reduce) => self.reduce(reduce),
            Expr::Call(call) => {
                if !self.when(&call.when) {
                    return None;
                }
                let arguments: Option<Vec<N>> = call.arguments.iter().map(|part| self.expr(part)).collect();
                Some(N::apply(&call.function, &arguments?))
            }
            Expr::Axis(axis) => {
                let own: Vec<Option<Const>> = axis.axes.iter().map(|index| self.bound(*index)).collect();
                self.entries(axis).get(&own).copied()
            }
        }
    }

    fn all(&self, parts: &'p [Expr], start: N, join: fn(N, N) -> N) -> Option<N> {
        parts.iter().try_fold(start, |joined, part| Some(join(joined, self.expr(part)?)))
    }

    fn reduce(&self, reduce: &'p Reduce) -> Option<N> {
        let mut joined: Option<N> = None;
        let mut count = 0.0;
        let scope =
            Scope { indices: &reduce.over, when: &reduce.when, body: Some(&reduce.body), nearby: &[] };
        let mut attained = 0.0;
        let _ = self.each(scope, &mut || {
            let Some(value) = self.expr(&reduce.body) else { return ControlFlow::Continue(()) };
            count += 1.0;
            let Some(so_far) = joined else {
                joined = Some(value);
                attained = 1.0;
                return ControlFlow::Continue(());
            };
            let order = value.order(so_far);
            joined = Some(match reduce.operation {
                Operation::Sum | Operation::Avg | Operation::Count => so_far.plus(value),
                Operation::Product => so_far.times(value),
                Operation::Max | Operation::Min => match order {
                    _ if so_far.value().is_nan() => so_far,
                    Some(std::cmp::Ordering::Equal) => {
                        attained += 1.0;
                        so_far.sloped(added(so_far.slope(), value.slope()))
                    }
                    Some(order) if order.is_gt() != (reduce.operation == Operation::Max) => so_far,
                    _ => {
                        attained = 1.0;
                        value
                    }
                },
            });
            ControlFlow::Continue(())
        });
        let over_nothing = reduce.explicit.then(|| N::new(0.0));
        match reduce.operation {
            Operation::Sum => joined.or(over_nothing),
            Operation::Count => joined.map(|_| N::new(count)).or(over_nothing),
            Operation::Product => joined.or(over_nothing.map(|_| N::new(1.0))),
            Operation::Avg => joined.map(|joined| joined.over(N::new(count))),
            Operation::Max | Operation::Min => {
                joined.map(|joined| joined.sloped(joined.slope().map(|slope| slope / attained)))
            }
        }
    }

    /// softmax or lnorm of all entries along the axes, kept for the next one who asks.
    pub(super) fn entries(&self, axis: &'p Axis) -> Rc<Entries<N>> {
        let mut others = BTreeSet::new();
        let mut visit = |index| {
            others.insert(index);
        };
        walk::when_indices(&axis.when, &mut visit);
        walk::expr_indices(&axis.argument, &mut visit);
        if let AxisFunction::Lnorm(Some(eps)) = &axis.function {
            walk::expr_indices(eps, &mut visit);
        }
        others.retain(|index| !axis.axes.contains(index));
        let fixed: Vec<Option<Const>> = others.iter().map(|index| self.bound(*index)).collect();
        let key = (axis.when.node.number(), fixed);
        if let Some(entries) = self.axes.borrow().get(&key) {
            return Rc::clone(entries);
        }
        let own: Vec<Option<Const>> = axis.axes.iter().map(|index| self.bound(*index)).collect();
        axis.axes.iter().for_each(|index| self.bind(*index, None));
        let mut entries = Entries::new();
        let scope = Scope { indices: &axis.axes, when: &axis.when, body: Some(&axis.argument), nearby: &[] };
        let _ = self.each(scope, &mut || {
            if let Some(value) = self.expr(&axis.argument) {
                entries.insert(axis.axes.iter().map(|index| self.bound(*index)).collect(), value);
            }
            ControlFlow::Continue(())
        });
        axis.axes.iter().zip(own).for_each(|(index, value)| self.bind(*index, value));
        match &axis.function {
            AxisFunction::Softmax => softmax(&mut entries),
            AxisFunction::Lnorm(eps) => {
                let eps = eps.as_ref().map_or(Some(N::new(1e-5)), |eps| self.expr(eps));
                match eps {
                    Some(eps) => lnorm(&mut entries, eps),
                    None => entries.clear(),
                }
            }
        }
        let entries = Rc::new(entries);
        self.axes.borrow_mut().insert(key, Rc::clone(&entries));
        entries
    }
}

fn compare(sign: Comparison, order: Option<std::cmp::Ordering>) -> bool {
    let Some(order) = order else { return sign == Comparison::NotEqual };
    match sign {
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
    }
}

fn softmax<N: Number>(entries: &mut Entries<N>) {
    if entries.len() == 1 {
        entries.values_mut().for_each(|value| *value = N::new(1.0)); // also for an infinity
        return;
    }
    let largest = entries.values().map(|value| value.value()).fold(f64::NEG_INFINITY, f64::max);
    for value in entries.values_mut() {
        let exponent = value.plus(N::new(-largest));
        *value = N::apply(&Function::Exp, &[exponent]);
    }
    let sum = entries.values().copied().fold(N::new(0.0), N::plus);
    entries.values_mut().for_each(|value| *value = value.over(sum));
}

fn lnorm<N: Number>(entries: &mut Entries<N>, eps: N) {
    let count = N::new(entries.len() as f64);
    let minus = |a: N, b: N| a.plus(N::new(-1.0).times(b));
    let mean = entries.values().copied().fold(N::new(0.0), N::plus).over(count);
    // Equal numbers are their mean, also where the sum is rounded: what is left of each is taken into it.
    let left = entries.values().map(|value| minus(*value, mean)).fold(N::new(0.0), N::plus).over(count);
    let mean = mean.plus(left);
    let square = |value: N| minus(value, mean).times(minus(value, mean));
    let variance = entries.values().map(|value| square(*value)).fold(N::new(0.0), N::plus).over(count);
    let deviation = N::apply(&Function::Sqrt, &[variance.plus(eps)]);
    entries.values_mut().for_each(|value| *value = minus(*value, mean).over(deviation));
}
