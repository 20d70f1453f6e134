//! The order in which a scope binds its indices, where their values come from, and what is
//! checked as soon as it can be.
//!
//! Enter at [`Scope::plan`]. Everything here only saves time: the bindings of a scope are those
//! of its ranges whose guards hold and whose round reads are present, in whatever order they
//! are found.

use std::collections::{BTreeMap, BTreeSet};

use tensor_logic_core::program::{
    Argument, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read, Sense, TensorId,
    When,
};
use tensor_logic_core::value::Const;
use tensor_logic_core::walk;

/// What must hold for a binding.
#[derive(Debug, Clone, Copy)]
pub(super) enum Filter<'p> {
    /// A guard.
    Guard(&'p Guard),
    /// A round read without which the body is absent.
    Present(&'p Read),
}

/// Where the values of an index come from.
#[derive(Debug)]
pub(super) enum Supply<'p> {
    /// Computed.
    Function(&'p IndexFn),
    /// The tuples of one of these reads (any: the body is absent where one of them is).
    Tuples(&'p Read),
    /// The tuples of all of these reads together.
    Union(Vec<&'p Read>),
    /// Its range.
    Range,
}

/// One index to bind.
#[derive(Debug)]
pub(super) struct Binding<'p> {
    /// The index.
    pub(super) index: IndexId,
    /// Where its values come from.
    pub(super) source: Supply<'p>,
    /// What can be checked once it is bound.
    pub(super) checks: Vec<Filter<'p>>,
}

/// A scope: indices, what must hold, and a body that must be present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'p, 's> {
    /// The indices to bind.
    pub(super) indices: &'s [IndexId],
    /// The guards; their `exists` are bound too.
    pub(super) when: &'p When,
    /// The body.
    pub(super) body: Option<&'p Expr>,
    /// Round reads nearby, for indices that nothing in the body binds.
    pub(super) nearby: &'s [&'p Read],
}

/// The plan of a scope.
#[derive(Debug, Default)]
pub(super) struct Plan<'p> {
    /// What can be checked before anything is bound.
    pub(super) checks: Vec<Filter<'p>>,
    /// The indices in order.
    pub(super) steps: Vec<Binding<'p>>,
}

/// What the body and the guards of a scope require.
#[derive(Default)]
struct Required<'p> {
    filters: Vec<Filter<'p>>,
    sources: Vec<&'p Read>,
    /// Indices that scopes inside bind: a place with one of them gives no other index.
    inner: BTreeSet<IndexId>,
}

impl<'p> Required<'p> {
    /// `nested`: inside another scope, so that it cannot be checked here.
    fn when(&mut self, when: &'p When, nested: bool) {
        for guard in &when.guards {
            if let Guard::Read(read) = guard
                && read.otherwise == Otherwise::Absent
            {
                self.sources.push(read);
            }
            if !nested {
                self.filters.push(Filter::Guard(guard));
            }
        }
    }

    fn expr(&mut self, expr: &'p Expr, nested: bool) {
        match expr {
            Expr::Number(_) | Expr::Index(_) | Expr::Missing(_) => {}
            Expr::Read(read) => {
                if read.otherwise == Otherwise::Absent {
                    self.sources.push(read);
                    if !nested {
                        self.filters.push(Filter::Present(read));
                    }
                }
            }
            Expr::Product(parts) | Expr::Plus(parts) => parts.iter().for_each(|part| self.expr(part, nested)),
            Expr::Terms(parts) => {
                if let [part] = parts.as_slice() {
                    self.expr(part, nested);
                }
            }
            Expr::Quotient(a, b) | Expr::Power(a, b) => {
                self.expr(a, nested);
                self.expr(b, nested);
            }
            Expr::Negate(a) => self.expr(a, nested),
            Expr::Reduce(reduce) => {
                let zero = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
                if !(reduce.explicit && zero) {
                    self.inner.extend(reduce.over.iter().chain(&reduce.when.exists));
                    self.when(&reduce.when, true);
                    self.expr(&reduce.body, true);
                }
            }
            Expr::Call(call) => {
                self.inner.extend(&call.when.exists);
                self.when(&call.when, nested || !call.when.exists.is_empty());
                call.arguments.iter().for_each(|argument| self.expr(argument, nested));
            }
            Expr::Axis(axis) => {
                self.inner.extend(&axis.when.exists);
                self.when(&axis.when, nested || !axis.when.exists.is_empty());
                self.expr(&axis.argument, nested);
            }
        }
    }
}

/// Every positive round read in a value and its guards.
pub(super) fn round_reads<'p>(when: &'p When, body: Option<&'p Expr>) -> Vec<&'p Read> {
    let mut reads = Vec::new();
    let mut visit = |read: &'p Read, sense| {
        if sense == Sense::Positive && read.otherwise == Otherwise::Absent {
            reads.push(read);
        }
    };
    when.visit_reads(&mut visit);
    if let Some(body) = body {
        body.visit_reads(&mut visit);
    }
    reads
}

/// The value of `index` for which the function has the value, the other indices being bound:
/// `x`, `x + c`, `c + x`, `x - c`, `c - x`.
pub(super) fn invert(
    function: &IndexFn,
    index: IndexId,
    value: Const,
    known: &dyn Fn(&IndexFn) -> Option<Const>,
) -> Option<Const> {
    let is = |part: &IndexFn| part.alone() == Some(index);
    let int = |part: &IndexFn| known(part)?.int();
    match function {
        IndexFn::Index(own) => (*own == index).then_some(value),
        IndexFn::Add(a, b) if is(a) => Some(Const::Int(value.int()?.checked_sub(int(b)?)?)),
        IndexFn::Add(a, b) if is(b) => Some(Const::Int(value.int()?.checked_sub(int(a)?)?)),
        IndexFn::Subtract(a, b) if is(a) => Some(Const::Int(value.int()?.checked_add(int(b)?)?)),
        IndexFn::Subtract(a, b) if is(b) => Some(Const::Int(int(a)?.checked_sub(value.int()?)?)),
        _ => None,
    }
}

/// Whether a place of the read gives values of `index` once the other indices in it are bound.
fn gives(read: &Read, index: IndexId, unbound: &BTreeSet<IndexId>) -> bool {
    read.arguments.iter().any(|argument| {
        let Argument::At(function) = argument else { return false };
        let alone = |part: &IndexFn| part.alone() == Some(index);
        let mut others = 0;
        function.visit(&mut |other| others += usize::from(other == index || unbound.contains(&other)));
        let shape = match function {
            IndexFn::Index(_) => alone(function),
            IndexFn::Add(a, b) | IndexFn::Subtract(a, b) => alone(a) || alone(b),
            _ => false,
        };
        shape && others == 1
    })
}

fn mentioned(filter: Filter<'_>, own: &BTreeSet<IndexId>) -> BTreeSet<IndexId> {
    let mut found = BTreeSet::new();
    let mut visit = |index| {
        if own.contains(&index) {
            found.insert(index);
        }
    };
    match filter {
        Filter::Guard(guard) => walk::guard_indices(guard, &mut visit),
        Filter::Present(read) => walk::read_indices(read, &mut visit),
    }
    found
}

impl<'p> Scope<'p, '_> {
    /// An order in which computed indices come as soon as they can, then those with the fewest
    /// values expected. `size` is the number of tuples of a relation, `None` for a square tensor.
    pub(super) fn plan(&self, program: &'p Program, size: &dyn Fn(TensorId) -> Option<usize>) -> Plan<'p> {
        let mut required = Required::default();
        required.when(self.when, false);
        if let Some(body) = self.body {
            required.expr(body, false);
        }
        let mut unbound: BTreeSet<IndexId> = self.indices.iter().chain(&self.when.exists).copied().collect();
        let mut filters: Vec<(Filter<'p>, BTreeSet<IndexId>)> =
            required.filters.iter().map(|filter| (*filter, mentioned(*filter, &unbound))).collect();
        let mut ready = |unbound: &BTreeSet<IndexId>| {
            let mut checks = Vec::new();
            filters.retain(|(filter, needs)| {
                let waits = !needs.is_disjoint(unbound);
                if !waits {
                    checks.push(*filter);
                }
                waits
            });
            checks
        };
        let mut plan = Plan { checks: ready(&unbound), steps: Vec::new() };
        while let Some((index, source)) = self.next(program, &required, &unbound, size) {
            unbound.remove(&index);
            plan.steps.push(Binding { index, source, checks: ready(&unbound) });
        }
        plan
    }

    fn next(
        &self,
        program: &'p Program,
        required: &Required<'p>,
        unbound: &BTreeSet<IndexId>,
        size: &dyn Fn(TensorId) -> Option<usize>,
    ) -> Option<(IndexId, Supply<'p>)> {
        let mut best: Option<(f64, IndexId, Supply<'p>)> = None;
        let later: BTreeSet<IndexId> = unbound.union(&required.inner).copied().collect();
        let mut offer = |cost: f64, index: IndexId, source: Supply<'p>| {
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, index, source));
            }
        };
        for index in unbound.iter().copied() {
            for guard in &self.when.guards {
                if let Guard::Bind(own, function) = guard
                    && *own == index
                    && !waits(function, unbound)
                {
                    offer(-1.0, index, Supply::Function(function));
                }
            }
            let mut bound_by_tuples = false;
            for read in &required.sources {
                if let Some(tuples) = size(read.tensor)
                    && gives(read, index, &later)
                {
                    bound_by_tuples = true;
                    offer(expected(read, tuples, unbound), index, Supply::Tuples(read));
                }
            }
            match &program.index(index).range {
                Range::Domain(domain) => offer(domain.len() as f64, index, Supply::Range),
                Range::Tuples if !bound_by_tuples => {
                    let giving = |read: &&Read| gives(read, index, &required.inner);
                    let mut reads = round_reads(self.when, self.body);
                    reads.retain(|read| giving(read));
                    if reads.is_empty() {
                        reads = self.nearby.iter().copied().filter(giving).collect();
                    }
                    let cost = reads.iter().map(|read| size(read.tensor).unwrap_or(0)).sum::<usize>();
                    offer(1e9 + cost as f64, index, Supply::Union(reads));
                }
                Range::Tuples => {}
                Range::Computed => offer(f64::MAX, index, Supply::Union(Vec::new())),
            }
        }
        best.map(|(_, index, source)| (index, source))
    }
}

fn waits(function: &IndexFn, unbound: &BTreeSet<IndexId>) -> bool {
    let mut waits = false;
    function.visit(&mut |index| waits |= unbound.contains(&index));
    waits
}

/// A guess at the number of values: every bound place divides the tuples evenly.
fn expected(read: &Read, tuples: usize, unbound: &BTreeSet<IndexId>) -> f64 {
    let bound =
        |argument: &&Argument| matches!(argument, Argument::At(function) if !waits(function, unbound));
    let bound = read.arguments.iter().filter(bound).count() as f64;
    (tuples as f64).powf(1.0 - bound / read.arguments.len().max(1) as f64)
}

/// Tuples of a relation by the constants at some of its places.
pub(super) type Lookup = BTreeMap<Vec<Const>, Vec<Vec<Const>>>;
