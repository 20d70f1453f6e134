//! Sums, and what is largest or smallest, that are taken before a join: `R(x, y) S(y, z) F[z, d]`, summed over y and z, is
//! `R(x, y) Σz S(y, z) F[z, d]`.
//!
//! Enter at [`Machine::factored`]. The bindings of the whole body may be many more than those of its relations (every arc
//! into y with every arc out of it); those of the parts are not. An index leaves first if what is left of the factors that
//! hold it is no larger than one relation among them, and a relation outside would have repeated them, whether it shares an
//! index with them or not (`R(x, y) F[y, u] S(u, z)`).

use std::sync::Arc;

use super::scope::Scope;
use crate::presence::{bounds_with, extent};
use crate::program::{
    Expr, Given, IndexFn, IndexId, Kind, Operation, Otherwise, Read, Reduce, Role, Stamp, When,
};
use crate::store::condition::{distinct, free, scope_reads};
use crate::store::machine::{Context, Factored, Machine, Stored};

/// The factors of a product.
fn product<'e>(expr: &'e Expr, into: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Product(parts) => parts.iter().for_each(|part| product(part, into)),
        Expr::Terms(parts) if parts.len() == 1 => parts.iter().for_each(|part| product(part, into)),
        _ => into.push(expr),
    }
}

fn factors(expr: &Expr) -> Vec<&Expr> {
    let mut factors = Vec::new();
    product(expr, &mut factors);
    factors
}

/// The indices of a factor, and whether it is a relation.
struct Part<'e> {
    expr: &'e Expr,
    indices: Vec<IndexId>,
    relation: bool,
}

impl<'e> Part<'e> {
    fn of(expr: &'e Expr, machine: &Machine, context: &Context) -> Part<'e> {
        let mut indices = free(expr);
        indices.retain(|index| context.fixed(*index).is_none());
        let listed = |read: &Read| matches!(machine.stored(read.tensor), Some(Stored::Relation(_)));
        let relation = matches!(expr, Expr::Read(read) if listed(read));
        Part { expr, indices, relation }
    }
}

/// What an index leaves behind: the other indices of relations, and of the rest.
fn left(held: &[&Part<'_>], index: IndexId) -> (Vec<IndexId>, Vec<IndexId>) {
    let of = |relation: bool| {
        let parts = held.iter().filter(|part| !relation || part.relation);
        let all = parts.flat_map(|part| part.indices.iter().copied()).filter(|other| *other != index);
        distinct(all.collect())
    };
    let (relations, mut others) = (of(true), of(false));
    others.retain(|other| !relations.contains(other));
    (relations, others)
}

/// Whether an index is worth summing first, given the factors that hold it and the others.
fn worth(held: &[&Part<'_>], others: &[&Part<'_>], index: IndexId) -> bool {
    let (relations, dense) = left(held, index);
    let covers = |part: &&&Part<'_>, all: &[IndexId]| all.iter().all(|other| part.indices.contains(other));
    let covered = held.iter().filter(|part| part.relation).any(|part| covers(&part, &relations));
    let one_axis = held.iter().any(|part| covers(&part, &dense));
    let repeats = |part: &&&Part<'_>| part.relation && part.indices.iter().any(|i| !relations.contains(i));
    covered && one_axis && others.iter().any(|part| repeats(&part))
}

impl Machine {
    /// The scope's body with a sum inside that is better taken first, if there is one.
    pub(crate) fn factored(&mut self, scope: &Scope<'_>, context: &Context) -> Option<Arc<Factored>> {
        let moves =
            matches!(scope.operation, Operation::Sum | Operation::Count | Operation::Max | Operation::Min);
        if !moves || scope.truth || scope.whole || self.exact.contains(&scope.node) {
            return None;
        }
        // Whether all values are 1 is a matter of data.
        let truths = match scope.operation {
            Operation::Count => Some(self.truths(scope)?),
            _ => None,
        };
        let key = (scope.node, scope.own.to_vec());
        if let Some(known) = self.factored.get(&key) {
            return known.clone();
        }
        let found = match (scope.operation, truths) {
            // Of tuples that are 1 there are as many as their sum.
            (_, Some(truths)) => find(scope, truths, self, context, Operation::Sum),
            (Operation::Sum, None) => find(scope, factors(scope.body), self, context, Operation::Sum),
            _ => best(scope, self, context).or_else(|| {
                self.see_ranges(scope);
                find_best(scope, self, context)
            }),
        };
        let found = found.map(Arc::new);
        self.factored.insert(key, found.clone());
        found
    }
}

fn find(
    scope: &Scope<'_>,
    factors: Vec<&Expr>,
    machine: &Machine,
    context: &Context,
    operation: Operation,
) -> Option<Factored> {
    let parts: Vec<Part<'_>> = factors.into_iter().map(|expr| Part::of(expr, machine, context)).collect();
    if parts.iter().filter(|part| part.relation).count() < 2 {
        return None;
    }
    let free_in_guards: Vec<IndexId> = scope.when.iter().flat_map(|guard| guard.indices()).collect();
    let index = scope.over.iter().copied().find(|index| {
        let (held, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.indices.contains(index));
        !free_in_guards.contains(index) && worth(&held, &others, *index)
    })?;
    taken_first(scope, &parts, index, operation, Expr::Product)
}

/// The same of the largest or the smallest product of tuples' values, none of which is below 0.
fn find_best(scope: &Scope<'_>, machine: &Machine, context: &Context) -> Option<Factored> {
    let factors = factors(scope.body);
    let plain = |factor: &&Expr| match factor {
        Expr::Read(_) | Expr::Number(_) | Expr::Index(_) => true,
        Expr::Reduce(reduce) => reduce.operation == scope.operation && reduce.when.guards.is_empty(),
        _ => false,
    };
    let fine = factors.iter().all(plain) && factors.iter().all(|factor| machine.is_never_below_0(factor));
    if fine { find(scope, factors, machine, context, scope.operation) } else { None }
}

/// The scope's body with what the parts that hold an index are joined to over it inside.
fn taken_first(
    scope: &Scope<'_>,
    parts: &[Part<'_>],
    index: IndexId,
    operation: Operation,
    join: fn(Vec<Expr>) -> Expr,
) -> Option<Factored> {
    let (held, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.indices.contains(&index));
    let body = |parts: &[&Part<'_>]| parts.iter().map(|part| part.expr.clone()).collect::<Vec<Expr>>();
    let span = held.iter().find_map(|part| match part.expr {
        Expr::Read(read) => Some(read.span),
        _ => None,
    })?;
    let (over, when) = (vec![index], When::default());
    let inner = Reduce { operation, over, when, body: join(body(&held)), explicit: false, span };
    let mut rest = body(&others);
    rest.push(Expr::Reduce(Box::new(inner)));
    let without = |indices: &[IndexId]| indices.iter().copied().filter(|other| *other != index).collect();
    let (own, over) = (without(scope.own), without(scope.over));
    Some(Factored { node: Stamp::default(), operation, body: join(rest), index, own, over })
}

/// So many bindings are gone through: a sum or a product that is taken in another order may have other last digits.
const FEW: usize = 1 << 20;
/// The fewest bindings for each one that is left.
const FEWER: usize = 16;

/// The same of the largest or the smallest product, or sum, of elements: of an index that few of them have, what is best for it
/// comes first. Where they are multiplied, no other one may be below 0: it would turn the order round.
fn best(scope: &Scope<'_>, machine: &Machine, context: &Context) -> Option<Factored> {
    let adds = matches!(scope.body, Expr::Plus(_));
    let factors = joined(scope.body);
    let plain = |factor: &&Expr| machine.is_element(factor, scope.operation);
    if factors.len() < 3 || !scope.when.is_empty() || !factors.iter().all(plain) {
        return None;
    }
    let parts: Vec<Part<'_>> = factors.into_iter().map(|expr| Part::of(expr, machine, context)).collect();
    let bindings = |of: &[&Part<'_>]| {
        let all = distinct(of.iter().flat_map(|part| part.indices.iter().copied()).collect());
        all.iter().map(|index| machine.size(*index)).fold(1, usize::saturating_mul)
    };
    let all = bindings(&parts.iter().collect::<Vec<_>>());
    if all <= FEW || parts.iter().any(|part| part.relation) {
        return None;
    }
    let of = |index: &IndexId| -> (Vec<&Part<'_>>, Vec<&Part<'_>>) {
        parts.iter().partition(|part| part.indices.contains(index))
    };
    let keeps = |part: &&Part<'_>| adds || machine.is_never_below_0(part.expr);
    let leaves = |index: &&IndexId| {
        let (held, others) = of(index);
        !held.is_empty() && !others.is_empty() && others.iter().all(keeps)
    };
    let index = *scope.over.iter().filter(leaves).min_by_key(|index| bindings(&of(index).0))?;
    if bindings(&of(&index).0) > all / FEWER {
        return None;
    }
    taken_first(scope, &parts, index, scope.operation, if adds { Expr::Plus } else { Expr::Product })
}

/// The factors of a product, or what is added.
fn joined(expr: &Expr) -> Vec<&Expr> {
    let mut parts = Vec::new();
    match expr {
        Expr::Plus(all) => parts.extend(all),
        expr => product(expr, &mut parts),
    }
    parts
}

impl Machine {
    /// Whether an expression is an element that is there, or the best of such.
    fn is_element(&self, expr: &Expr, operation: Operation) -> bool {
        match expr {
            Expr::Read(_) => self.total(expr),
            Expr::Reduce(reduce) => {
                reduce.operation == operation
                    && reduce.when.guards.is_empty()
                    && joined(&reduce.body).iter().all(|part| self.is_element(part, operation))
            }
            _ => false,
        }
    }

    /// The tuples of a product of such that have no other value than 1, and of elements that are there wherever these are.
    fn truths<'p>(&mut self, scope: &Scope<'p>) -> Option<Vec<&'p Expr>> {
        let parts = factors(scope.body);
        let is_tuple = |part: &&Expr| matches!(part, Expr::Read(read) if read.otherwise == Otherwise::Absent);
        let (tuples, others): (Vec<&Expr>, Vec<&Expr>) = parts.into_iter().partition(is_tuple);
        let is_one = |part: &&Expr| match part {
            Expr::Read(read) => match self.stored(read.tensor) {
                Some(Stored::Relation(relation)) => relation.doubles().is_none(),
                _ => false,
            },
            _ => false,
        };
        if tuples.len() < 2 || !tuples.iter().all(is_one) {
            return None;
        }
        if !others.is_empty() {
            self.see_ranges(scope);
        }
        others.iter().all(|part| self.is_there(part)).then_some(tuples)
    }

    /// What the indices of a scope range over.
    fn see_ranges(&mut self, scope: &Scope<'_>) {
        let conditions = scope.conditions();
        let reads = scope_reads(&conditions, scope.body);
        self.set_tuple_ranges(scope.own, &reads, scope.nearby);
    }

    /// Whether a factor has a value wherever its indices have.
    fn is_there(&self, factor: &Expr) -> bool {
        match factor {
            Expr::Read(read) => read.otherwise != Otherwise::Absent && self.in_domain(read),
            Expr::Index(function) => self.integers(function).is_some(),
            other => self.total(other),
        }
    }

    /// Between which integers an index function lies; `None` where it may have no value.
    fn integers(&self, function: &IndexFn) -> Option<(i64, i64)> {
        bounds_with(function, &|index| extent(self.range(index)?))
    }

    /// Whether no number of it is below 0: data, and what is best of it.
    fn is_never_below_0(&self, expr: &Expr) -> bool {
        let read = match expr {
            Expr::Read(read) => read,
            Expr::Number(number) => return *number >= 0.0,
            Expr::Index(function) => return self.integers(function).is_some_and(|(low, _)| low >= 0),
            Expr::Reduce(reduce) => {
                return joined(&reduce.body).iter().all(|part| self.is_never_below_0(part));
            }
            _ => return false,
        };
        let tensor = self.program.tensor(read.tensor);
        if tensor.kind == Kind::Bool {
            return true;
        }
        let fine = |given: &Given| given.numbers().iter().all(|value| *value >= 0.0);
        tensor.role == Role::Data && tensor.combine.default_value() >= 0.0 && tensor.given.iter().all(fine)
    }
}

impl<'p> Scope<'p> {
    /// The scope with the sum inside.
    pub(crate) fn nested(&self, factored: &'p Factored) -> Scope<'p> {
        Scope {
            node: factored.node.number(),
            operation: factored.operation,
            own: &factored.own,
            over: &factored.over,
            body: &factored.body,
            ..self.clone()
        }
    }
}
