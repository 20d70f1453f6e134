//! Sums that are taken before a join: `R(x, y) S(y, z) F[z, d]`, summed over y and z, is `R(x, y) Σz S(y, z) F[z, d]`.
//!
//! Enter at [`Machine::factored`]. The bindings of the whole body may be many more than those of its relations (every arc
//! into y with every arc out of it); those of the parts are not. An index leaves first if what is left of the factors that
//! hold it is no larger than one relation among them, and a relation outside would have repeated them.

use std::sync::Arc;

use super::condition::{distinct, free};
use super::machine::{Context, Factored, Machine, Stored};
use super::scope::Scope;
use crate::program::{Expr, IndexId, Operation, Read, Reduce, Stamp, When};

/// The factors of a product.
fn product<'e>(expr: &'e Expr, into: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Product(parts) => parts.iter().for_each(|part| product(part, into)),
        Expr::Terms(parts) if parts.len() == 1 => parts.iter().for_each(|part| product(part, into)),
        _ => into.push(expr),
    }
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
    let joins = |part: &&&Part<'_>| part.indices.iter().any(|i| relations.contains(i));
    covered && one_axis && others.iter().any(|part| repeats(&part) && joins(&part))
}

impl Machine {
    /// The scope's body with a sum inside that is better taken first, if there is one.
    pub(super) fn factored(&mut self, scope: &Scope<'_>, context: &Context) -> Option<Arc<Factored>> {
        if scope.operation != Operation::Sum || scope.truth || scope.whole || self.exact.contains(&scope.node)
        {
            return None;
        }
        let key = (scope.node, scope.own.to_vec());
        if let Some(known) = self.factored.get(&key) {
            return known.clone();
        }
        let found = find(scope, self, context).map(Arc::new);
        self.factored.insert(key, found.clone());
        found
    }
}

fn find(scope: &Scope<'_>, machine: &Machine, context: &Context) -> Option<Factored> {
    let mut factors = Vec::new();
    product(scope.body, &mut factors);
    let parts: Vec<Part<'_>> = factors.into_iter().map(|expr| Part::of(expr, machine, context)).collect();
    if parts.iter().filter(|part| part.relation).count() < 2 {
        return None;
    }
    let free_in_guards: Vec<IndexId> = scope.when.iter().flat_map(|guard| guard.indices()).collect();
    let index = scope.over.iter().copied().find(|index| {
        let (held, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.indices.contains(index));
        !free_in_guards.contains(index) && worth(&held, &others, *index)
    })?;
    let (held, others): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.indices.contains(&index));
    let body = |parts: Vec<&Part<'_>>| parts.into_iter().map(|part| part.expr.clone()).collect();
    let span = held.iter().find_map(|part| match part.expr {
        Expr::Read(read) => Some(read.span),
        _ => None,
    })?;
    let inner = Reduce {
        operation: Operation::Sum,
        over: vec![index],
        when: When::default(),
        body: Expr::Product(body(held)),
        explicit: false,
        span,
    };
    let mut factors: Vec<Expr> = body(others);
    factors.push(Expr::Reduce(Box::new(inner)));
    let without = |indices: &[IndexId]| indices.iter().copied().filter(|other| *other != index).collect();
    let (own, over) = (without(scope.own), without(scope.over));
    Some(Factored { node: Stamp::default(), body: Expr::Product(factors), index, own, over })
}

impl<'p> Scope<'p> {
    /// The scope with the sum inside.
    pub(super) fn nested(&self, factored: &'p Factored) -> Scope<'p> {
        Scope {
            node: factored.node.number(),
            own: &factored.own,
            over: &factored.over,
            body: &factored.body,
            ..self.clone()
        }
    }
}
