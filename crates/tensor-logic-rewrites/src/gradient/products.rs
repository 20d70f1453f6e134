//! The adjoint of a product, and of two of its factors at once.
//!
//! Of `H[x, e] = S(x, y) X[y, d] W[d, e]` both adjoints sum the same over the arcs: with
//!
//! ```text
//! P(y, e) = Σx S(x, y) Grad_H[x, e]       Grad_X[y, d] = Σe P(y, e) W[d, e]       Grad_W[d, e] = Σy P(y, e) X[y, d]
//! ```
//!
//! each is a product of matrices, and the arcs are gone through once. Without the name, the gradient of `W` would sum rows
//! of `X` by arc once more.

use std::collections::BTreeSet;

use super::builder::{Builder, Scope};
use super::expression::free_in;
use crate::ast::Span;
use crate::program::{Expr, IndexId, Range};
use crate::walk::{expr_indices, when_indices};

/// Two factors, by their places in the product, whose adjoints begin with the same sum.
struct Pair {
    places: [usize; 2],
    /// The indices that nothing but the two has.
    own: Vec<IndexId>,
    /// Those of the sum.
    kept: Vec<IndexId>,
}

fn indices_of(expr: &Expr) -> BTreeSet<IndexId> {
    let mut found = BTreeSet::new();
    expr_indices(expr, &mut |index| {
        found.insert(index);
    });
    found
}

impl Builder {
    /// Walks the factors of a product.
    pub(super) fn product(&mut self, parts: &[Expr], scope: &Scope, factors: &[Expr], span: Span) {
        let besides = |apart: &[usize]| {
            let others = parts.iter().enumerate().filter(|(at, _)| !apart.contains(at));
            let mut all = factors.to_vec();
            all.extend(others.map(|(_, part)| part.clone()));
            all
        };
        let pair = self.pair(parts, scope, factors);
        for (at, part) in parts.iter().enumerate() {
            if !pair.as_ref().is_some_and(|pair| pair.places.contains(&at)) {
                self.walk(part, scope, besides(&[at]), span);
            }
        }
        let Some(pair) = pair else { return };
        let mut summed = scope.clone();
        summed.indices.retain(|index| !pair.own.contains(index));
        let collected = self.collected_over(pair.kept.clone(), false, &summed, besides(&pair.places), span);
        let [a, b] = pair.places.map(|at| &parts[at]);
        let indices = pair.kept.iter().chain(&pair.own).copied().collect();
        let inner = Scope { indices, ..Scope::default() };
        for (part, other) in [(a, b), (b, a)] {
            let mut along = collected.clone();
            along.push(other.clone());
            self.walk(part, &inner, along, span);
        }
    }

    /// The first two active elements of square tensors that share a summed index which nothing else has, where tuples
    /// bind what is left of them to an index that they do not have: the sum over that one serves both.
    fn pair(&self, parts: &[Expr], scope: &Scope, factors: &[Expr]) -> Option<Pair> {
        let joins = |at: &usize| match &parts[*at] {
            Expr::Read(read) => self.exists(read) && self.depends(&parts[*at]),
            _ => false,
        };
        let joined: Vec<usize> = (0..parts.len()).filter(joins).collect();
        if joined.len() < 2 || joined.len() == parts.len() {
            return None;
        }
        let all: Vec<BTreeSet<IndexId>> = parts.iter().map(indices_of).collect();
        let mut outside: BTreeSet<IndexId> = factors.iter().flat_map(indices_of).collect();
        when_indices(&scope.when, &mut |index| {
            outside.insert(index);
        });
        let pairs = joined.iter().enumerate().flat_map(|(n, a)| joined[n + 1..].iter().map(|b| [*a, *b]));
        pairs.into_iter().find_map(|places| {
            let [a, b] = places;
            let others = || (0..parts.len()).filter(move |at| !places.contains(at));
            let alone =
                |index: &&IndexId| !outside.contains(index) && !others().any(|at| all[at].contains(index));
            let own: Vec<IndexId> = all[a].intersection(&all[b]).filter(alone).copied().collect();
            let mut kept = free_in(&[&parts[a], &parts[b]], None, scope);
            kept.retain(|index| !own.contains(index));
            let rest: Vec<Expr> = others().map(|at| parts[at].clone()).collect();
            let bound = self.bound_by_tuples(scope, &rest);
            // What is summed by tuple stands together.
            kept.sort_by_key(|index| !bound.contains(index));
            let joins = kept.iter().any(|index| bound.contains(index));
            let sums = bound.iter().any(|index| !kept.contains(index));
            let width = |of: &[IndexId]| {
                let sizes = of.iter().filter(|index| !bound.contains(index)).map(|index| self.len(*index));
                sizes.fold(1, usize::saturating_mul)
            };
            // One sum over this many numbers, or two over those that the adjoints have in common.
            let worth = || width(&kept) <= width(&own).saturating_mul(2);
            (!own.is_empty() && joins && sums && worth()).then_some(Pair { places, own, kept })
        })
    }

    /// How many values an index has, where that is known.
    fn len(&self, index: IndexId) -> usize {
        match &self.program.index(index).range {
            Range::Domain(domain) => domain.len(),
            Range::Tuples | Range::Computed => 1,
        }
    }
}
