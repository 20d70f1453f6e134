//! Which index belongs to which scope (N3), from the tree alone.

use std::collections::BTreeSet;

use tensor_logic::ast::{Expr, ExprKind, IndexExpr, IndexKind, Literal, LiteralKind, PlaceKind, Reference};

pub(super) type Names = BTreeSet<String>;

/// The functions that are scopes of their own.
pub(super) const EXPLICIT: [&str; 6] = ["sum", "max", "min", "avg", "prod", "count"];

pub(super) fn of_index(expr: &IndexExpr, into: &mut Names) {
    match &expr.kind {
        IndexKind::Index(name) => {
            into.insert(name.clone());
        }
        IndexKind::Integer(_) | IndexKind::Name(_) | IndexKind::Text(_) => {}
        IndexKind::Negate(inner) | IndexKind::Group(inner) => of_index(inner, into),
        IndexKind::Binary(_, a, b) => {
            of_index(a, into);
            of_index(b, into);
        }
    }
}

pub(super) fn of_reference(reference: &Reference, into: &mut Names) {
    for place in &reference.places {
        if let PlaceKind::Index(expr) = &place.kind {
            of_index(expr, into);
        }
    }
}

pub(super) fn of_literal(literal: &Literal, into: &mut Names) {
    match &literal.kind {
        LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => of_reference(reference, into),
        LiteralKind::Compare { left, right, .. } => {
            of_expr(left, into);
            of_expr(right, into);
        }
        LiteralKind::Assign { index, value } => {
            into.insert(index.text.clone());
            of_index(value, into);
        }
    }
}

pub(super) fn of_literals(literals: &[Literal]) -> Names {
    let mut names = Names::new();
    literals.iter().for_each(|literal| of_literal(literal, &mut names));
    names
}

/// Every index of an expression, but those that are local in it.
pub(super) fn of_expr(expr: &Expr, into: &mut Names) {
    let parts = Parts::of(expr);
    into.extend(parts.direct);
    into.extend(parts.inside.into_iter().flatten());
    into.extend(parts.guards.into_iter().flatten());
}

pub(super) fn all(expr: &Expr) -> Names {
    let mut names = Names::new();
    of_expr(expr, &mut names);
    names
}

/// The additive terms of an expression, with whether they are subtracted.
pub(super) fn terms(expr: &Expr) -> Vec<(bool, &Expr)> {
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().map(|(minus, term)| (*minus, term)).collect(),
        _ => vec![(false, expr)],
    }
}

/// Whether what stands in parentheses is a product of two or more factors, signed or not.
pub(super) fn is_product(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Product(factors) => factors.len() > 1,
        ExprKind::Negate(inner) => is_product(inner),
        ExprKind::Sum(terms) => terms.len() == 1 && is_product(&terms[0].1),
        _ => false,
    }
}

/// The indices of an expression outside of its guards, but those that are local in it.
fn valued(expr: &Expr, into: &mut Names) {
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| valued(term, into)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| valued(factor, into)),
        ExprKind::Negate(inner) | ExprKind::Group { expr: inner, .. } => valued(inner, into),
        ExprKind::Power(base, exponent, _) => {
            valued(base, into);
            valued(exponent, into);
        }
        ExprKind::Number(_) | ExprKind::Text(_) => {}
        ExprKind::Reference(reference) | ExprKind::Not(reference) => of_reference(reference, into),
        ExprKind::Index(name) => {
            into.insert(name.text.clone());
        }
        ExprKind::Call { name, axes, arguments, .. } => {
            let mut own = Names::new();
            arguments.iter().for_each(|argument| valued(argument, &mut own));
            let names = axes.iter().flatten().map(|name| name.text.clone());
            if EXPLICIT.contains(&name.text.as_str()) {
                names.for_each(|name| {
                    own.remove(&name);
                });
            } else {
                own.extend(names);
            }
            into.append(&mut own);
        }
    }
}

/// Where indices occur in a body that is not entered where other scopes are.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) direct: Names,
    /// One for each scope within, or argument of a call.
    pub(super) inside: Vec<Names>,
    /// What occurs otherwise than in guards.
    pub(super) valued: Names,
    /// One for each list of guards of what is no scope.
    pub(super) guards: Vec<Names>,
}

impl Parts {
    pub(super) fn of(expr: &Expr) -> Parts {
        let mut parts = Parts::default();
        parts.add(expr);
        valued(expr, &mut parts.valued);
        parts
    }

    fn add(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.add(term)),
            ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| self.add(factor)),
            ExprKind::Negate(inner) => self.add(inner),
            ExprKind::Power(base, exponent, _) => {
                self.add(base);
                self.add(exponent);
            }
            ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Reference(reference) | ExprKind::Not(reference) => {
                of_reference(reference, &mut self.direct);
            }
            ExprKind::Index(name) => {
                self.direct.insert(name.text.clone());
            }
            ExprKind::Call { name, axes, arguments, guards } => {
                let mut lists: Vec<Names> = arguments.iter().map(all).collect();
                let guarded = of_literals(guards);
                match (axes, EXPLICIT.contains(&name.text.as_str())) {
                    (Some(local), true) => {
                        let mut own = guarded;
                        own.extend(lists.into_iter().flatten());
                        local.iter().for_each(|name| {
                            own.remove(&name.text);
                        });
                        self.inside.push(own);
                    }
                    (axes, _) => {
                        self.direct.extend(axes.iter().flatten().map(|name| name.text.clone()));
                        if let [own] = lists.as_mut_slice() {
                            own.extend(guarded);
                        } else if !guarded.is_empty() {
                            self.guards.push(guarded);
                        }
                        self.inside.append(&mut lists);
                    }
                }
            }
            ExprKind::Group { expr, guards } if is_product(expr) => {
                let mut own = of_literals(guards);
                of_expr(expr, &mut own);
                self.inside.push(own);
            }
            ExprKind::Group { expr, guards } => {
                self.add(expr);
                if !guards.is_empty() {
                    self.guards.push(of_literals(guards));
                }
            }
        }
    }

    /// The indices that are summed here: those whose smallest scope this is; `None` where guards alone share one.
    pub(super) fn own(&self, bound: &dyn Fn(&str) -> bool) -> Option<Names> {
        let mut own = self.direct.clone();
        let lists = || self.inside.iter().chain(&self.guards);
        for name in lists().flatten() {
            let times = lists().filter(|list| list.contains(name)).count();
            if times > 1 {
                if !self.valued.contains(name) && !bound(name) && !own.contains(name) {
                    return None;
                }
                own.insert(name.clone());
            }
        }
        own.retain(|name| !bound(name));
        Some(own)
    }
}
