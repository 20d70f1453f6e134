//! The scopes of N3 on the tree: where each index that is not on the left is summed.
//!
//! Enter at [`of`]. A [`Scope`] holds the occurrences that stand directly in it and its
//! [`Unit`]s: arguments of calls, products in parentheses, sides of comparisons. The terms of a
//! unit are scopes of their own, with separate indices. An index is bound in a scope if it
//! stands there directly or in two units; if only one unit holds it, each term of that unit
//! binds its own ([`Scope::bind`]).

use crate::ast::{
    Expr, ExprKind, IndexExpr, Joint, Literal, LiteralKind, Reference, RightSide, Sign, Span, Statement,
    StatementKind,
};
use crate::names::known::Names;
use crate::names::walk;
use crate::names::walk::is_index_side;

/// An occurrence of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occurrence<'a> {
    pub(super) name: &'a str,
    pub(super) span: Span,
    /// The divisor that it stands in, of the scope or of one inside it.
    pub(super) divisor: Option<Span>,
}

/// A scope.
#[derive(Debug, Default)]
pub(super) struct Scope<'a> {
    /// The term, group or body.
    pub(super) span: Span,
    direct: Vec<Occurrence<'a>>,
    units: Vec<Unit<'a>>,
}

/// A part of a scope whose terms are scopes.
#[derive(Debug, Default)]
struct Unit<'a> {
    terms: Vec<Scope<'a>>,
    /// Indices of an explicit scope.
    local: Vec<&'a str>,
    divisor: Option<Span>,
}

/// The functions that are explicit scopes.
pub(super) const EXPLICIT: &[&str] = &["sum", "max", "min", "avg", "prod", "count"];

/// The outermost scopes of a statement and the indices of its left side.
pub(super) fn of<'a>(statement: &'a Statement, names: &'a Names) -> (Vec<Scope<'a>>, Vec<&'a str>) {
    let builder = Builder { names };
    match &statement.kind {
        StatementKind::Rule { head, body, .. } => {
            let mut scope = Scope { span: statement.span, ..Scope::default() };
            body.iter().for_each(|literal| builder.literal(literal, &mut scope));
            (vec![scope], left(head))
        }
        StatementKind::Equation { head, sign, right: RightSide::Expr { expr, guards }, .. } => {
            let split = matches!(sign, Sign::Equal | Sign::Plus | Sign::Redefine);
            let mut terms = if split { builder.terms(expr) } else { vec![builder.scope(expr)] };
            for term in &mut terms {
                guards.iter().for_each(|guard| builder.literal(guard, term));
            }
            (terms, left(head))
        }
        _ => (Vec::new(), Vec::new()),
    }
}

/// The scope of the literals that are asked for.
pub(super) fn of_literals<'a>(span: Span, literals: &'a [Literal], names: &'a Names) -> Scope<'a> {
    let mut scope = Scope { span, ..Scope::default() };
    literals.iter().for_each(|literal| Builder { names }.literal(literal, &mut scope));
    scope
}

/// The indices that occur in the arguments or guards of a call, those of explicit scopes inside
/// left out.
pub(super) fn argument_indices<'a>(call: &'a Expr, names: &'a Names) -> Vec<&'a str> {
    let ExprKind::Call { name, arguments, guards, .. } = &call.kind else { return Vec::new() };
    let mut scope = Scope::default();
    Builder { names }.call(&name.text, None, arguments, guards, None, &mut scope);
    scope.free().into_iter().map(|occurrence| occurrence.name).collect()
}

fn left(head: &Reference) -> Vec<&str> {
    head.places.iter().flat_map(walk::place_indices).map(|(name, _)| name).collect()
}

struct Builder<'a> {
    names: &'a Names,
}

impl<'a> Builder<'a> {
    fn terms(&self, expr: &'a Expr) -> Vec<Scope<'a>> {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().map(|(_, term)| self.scope(term)).collect(),
            _ => vec![self.scope(expr)],
        }
    }

    fn scope(&self, expr: &'a Expr) -> Scope<'a> {
        let mut scope = Scope { span: expr.span, ..Scope::default() };
        self.expr(expr, None, &mut scope);
        scope
    }

    fn expr(&self, expr: &'a Expr, divisor: Option<Span>, scope: &mut Scope<'a>) {
        match &expr.kind {
            ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.expr(term, divisor, scope)),
            ExprKind::Product(factors) => {
                for (joint, factor) in factors {
                    let own = (*joint == Joint::Over).then_some(factor.span);
                    self.expr(factor, own.or(divisor), scope);
                }
            }
            ExprKind::Negate(inner) => self.expr(inner, divisor, scope),
            ExprKind::Power(base, exponent, _) => {
                self.expr(base, divisor, scope);
                self.expr(exponent, divisor, scope);
            }
            ExprKind::Reference(reference) | ExprKind::Not(reference) => {
                reference_indices(reference, divisor, scope);
            }
            ExprKind::Index(name) => {
                scope.direct.push(Occurrence { name: &name.text, span: name.span, divisor });
            }
            ExprKind::Call { name, axes, arguments, guards } => {
                self.call(&name.text, axes.as_deref(), arguments, guards, divisor, scope);
            }
            ExprKind::Group { expr: inner, guards } if is_product(inner) => {
                let mut term = self.scope(inner);
                guards.iter().for_each(|guard| self.literal(guard, &mut term));
                scope.units.push(Unit { terms: vec![term], local: Vec::new(), divisor });
            }
            ExprKind::Group { expr: inner, guards } => {
                self.expr(inner, divisor, scope);
                guards.iter().for_each(|guard| self.literal(guard, scope));
            }
        }
    }

    fn call(
        &self,
        name: &str,
        axes: Option<&'a [crate::ast::Name]>,
        arguments: &'a [Expr],
        guards: &'a [Literal],
        divisor: Option<Span>,
        scope: &mut Scope<'a>,
    ) {
        if name == "concat" {
            arguments.iter().for_each(|argument| self.expr(argument, divisor, scope));
            guards.iter().for_each(|guard| self.literal(guard, scope));
            return;
        }
        let axes = axes.unwrap_or(&[]);
        let explicit = !axes.is_empty() && EXPLICIT.contains(&name);
        let local = if explicit { axes.iter().map(|axis| axis.text.as_str()).collect() } else { Vec::new() };
        if !explicit {
            let named = axes.iter().map(|axis| Occurrence { name: &axis.text, span: axis.span, divisor });
            scope.direct.extend(named);
        }
        for (at, argument) in arguments.iter().enumerate() {
            let mut terms = self.terms(argument);
            if at == 0 {
                for term in &mut terms {
                    guards.iter().for_each(|guard| self.literal(guard, term));
                }
            }
            scope.units.push(Unit { terms, local: local.clone(), divisor });
        }
    }

    fn literal(&self, literal: &'a Literal, scope: &mut Scope<'a>) {
        match &literal.kind {
            LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => {
                reference_indices(reference, None, scope);
            }
            LiteralKind::Compare { left, right, .. } => {
                for side in [left, right] {
                    let defined = |name: &str| self.names.is_defined(name);
                    if is_index_side(side, &defined, &self.names.constants) {
                        let mut inner = Scope::default();
                        self.expr(side, None, &mut inner);
                        let plain = inner.free().into_iter().map(|at| Occurrence { divisor: None, ..at });
                        scope.direct.extend(plain);
                    } else {
                        let terms = self.terms(side);
                        scope.units.push(Unit { terms, ..Unit::default() });
                    }
                }
            }
            LiteralKind::Assign { index, value } => {
                scope.direct.push(Occurrence { name: &index.text, span: index.span, divisor: None });
                index_expression(value, scope);
            }
        }
    }
}

fn index_expression<'a>(value: &'a IndexExpr, scope: &mut Scope<'a>) {
    let inside = walk::indices_of(value).into_iter();
    scope.direct.extend(inside.map(|(name, span)| Occurrence { name, span, divisor: None }));
}

fn reference_indices<'a>(reference: &'a Reference, divisor: Option<Span>, scope: &mut Scope<'a>) {
    let inside = reference.places.iter().flat_map(walk::place_indices);
    scope.direct.extend(inside.map(|(name, span)| Occurrence { name, span, divisor }));
}

/// A product of two or more factors, signed or not (N3c).
pub(super) fn is_product(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Product(factors) => factors.len() > 1,
        ExprKind::Negate(inner) => matches!(&inner.kind, ExprKind::Product(factors) if factors.len() > 1),
        _ => false,
    }
}

impl<'a> Scope<'a> {
    /// Every occurrence inside, those of explicit scopes' own indices left out.
    pub(super) fn free(&self) -> Vec<Occurrence<'a>> {
        let mut all = self.direct.clone();
        for unit in &self.units {
            all.extend(unit.free());
        }
        all
    }

    /// Calls `visit` for every index that is summed in this scope or in one inside it, with all
    /// its occurrences there, in order of the text.
    pub(super) fn bind(
        &self,
        bound: &[&'a str],
        visit: &mut impl FnMut(&Scope<'a>, &'a str, &[Occurrence<'a>]),
    ) {
        let inside: Vec<Vec<Occurrence<'a>>> = self.units.iter().map(Unit::free).collect();
        let mut all: Vec<Occurrence<'a>> =
            self.direct.iter().chain(inside.iter().flatten()).copied().collect();
        all.sort_by_key(|occurrence| occurrence.span.start);
        let mut known = bound.to_vec();
        for occurrence in &all {
            let name = occurrence.name;
            if known.contains(&name) {
                continue;
            }
            let direct = self.direct.iter().any(|other| other.name == name);
            let holding = inside.iter().filter(|unit| unit.iter().any(|other| other.name == name)).count();
            if direct || holding > 1 {
                known.push(name);
                let own: Vec<Occurrence<'a>> =
                    all.iter().filter(|other| other.name == name).copied().collect();
                visit(self, name, &own);
            }
        }
        for unit in &self.units {
            let mut known = known.clone();
            known.extend(&unit.local);
            unit.terms.iter().for_each(|term| term.bind(&known, visit));
        }
    }
}

impl<'a> Unit<'a> {
    fn free(&self) -> Vec<Occurrence<'a>> {
        let all = self.terms.iter().flat_map(Scope::free);
        let all = all.filter(|occurrence| !self.local.contains(&occurrence.name));
        all.map(|occurrence| Occurrence { divisor: occurrence.divisor.or(self.divisor), ..occurrence })
            .collect()
    }
}
