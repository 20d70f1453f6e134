//! Where an index is summed (N3): the smallest scope that holds all its occurrences.
//!
//! Enter at [`placed_here`]. Inside one scope an index name occurs *directly*, or in *units*
//! that are scopes of their own: the arguments of calls, products in parentheses, sides of
//! comparisons. A name that occurs directly, or in more than one unit, is bound in the scope; a
//! name that occurs in one unit only is bound deeper. The additive terms of an argument are
//! scopes side by side: a name that several of them share, and that occurs nowhere else, is bound
//! in each of them separately.

use std::collections::BTreeMap;

use crate::ast::{
    Expr, ExprKind, IndexExpr, IndexKind, Joint, Literal, LiteralKind, PlaceKind, Reference, Span,
};

/// The names of explicit scopes, whose bracketed indices are local.
pub(super) const EXPLICIT: &[&str] = &["sum", "prod", "max", "min", "avg", "count"];

/// Whether a call is an explicit scope: `sum[j](…)`, also `sum(…)` without brackets.
pub(super) fn is_explicit(name: &str, axes: bool, arguments: usize) -> bool {
    EXPLICIT.contains(&name) && (axes || !(matches!(name, "max" | "min") && arguments == 2))
}

/// Whether a group is a scope: a product of two or more factors, signed or not.
pub(super) fn is_product(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Product(factors) => factors.len() > 1,
        ExprKind::Negate(inner) => is_product(inner),
        _ => false,
    }
}

/// A name's occurrences inside one scope.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    /// The first.
    pub(super) first: Span,
    /// `None`: directly; otherwise the unit. Stops growing at two different ones.
    units: Vec<Option<usize>>,
    /// Whether it occurs outside guards.
    pub(super) outside_guards: bool,
    /// Whether it occurs in guards of this very scope, not only in those of calls and groups
    /// inside, where it is a name of theirs.
    pub(super) own_guard: bool,
}

impl Occurrence {
    fn direct(&self) -> bool {
        self.units.len() > 1 || self.units.first() == Some(&None)
    }
}

/// The occurrences of small names in a scope, in order of the text.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    names: BTreeMap<String, Occurrence>,
    order: Vec<String>,
    next_unit: usize,
    unit: Option<usize>,
    in_guard: bool,
    /// How many calls and groups whose guards are visited stand around.
    nested: usize,
    /// Names that an explicit scope around makes local.
    local: Vec<String>,
}

impl Occurrences {
    /// Of an expression.
    pub(super) fn expression(&mut self, expr: &Expr) -> &mut Occurrences {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| {
                self.expression(term);
            }),
            ExprKind::Product(factors) => factors.iter().for_each(|(_, factor): &(Joint, Expr)| {
                self.expression(factor);
            }),
            ExprKind::Negate(inner) => {
                self.expression(inner);
            }
            ExprKind::Power(base, exponent, _) => {
                self.expression(base);
                self.expression(exponent);
            }
            ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Reference(reference) | ExprKind::Not(reference) => self.reference(reference),
            ExprKind::Index(name) => self.note(&name.text, name.span),
            ExprKind::Call { name, axes, arguments, guards } => {
                self.call(&name.text, axes.as_deref(), arguments, guards);
            }
            ExprKind::Group { expr, guards } => {
                let outer = self.unit;
                if is_product(expr) {
                    self.enter_unit();
                }
                self.expression(expr);
                // A name that the guards alone hold is asked for there: some value must do.
                self.enter_unit();
                self.literals(guards);
                self.unit = outer;
            }
        }
        self
    }

    fn call(
        &mut self,
        name: &str,
        axes: Option<&[crate::ast::Name]>,
        arguments: &[Expr],
        guards: &[Literal],
    ) {
        let outer = self.unit;
        let depth = self.local.len();
        let explicit = is_explicit(name, axes.is_some(), arguments.len());
        for axis in axes.unwrap_or(&[]) {
            if explicit {
                self.local.push(axis.text.clone());
            } else {
                self.note(&axis.text, axis.span);
            }
        }
        for (at, argument) in arguments.iter().enumerate() {
            self.unit = outer;
            self.enter_unit();
            self.expression(argument);
            // The guards of a call restrict the support of its argument.
            if at == 0 {
                self.nested += 1;
                self.literals(guards);
                self.nested -= 1;
            }
        }
        self.local.truncate(depth);
        self.unit = outer;
    }

    /// Of guards or a rule's body.
    pub(super) fn literals(&mut self, literals: &[Literal]) -> &mut Occurrences {
        for literal in literals {
            let outer = self.in_guard;
            match &literal.kind {
                LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => {
                    self.in_guard = true;
                    self.reference(reference);
                }
                LiteralKind::Compare { left, right, .. } => {
                    self.in_guard = true;
                    self.side(left);
                    self.side(right);
                }
                LiteralKind::Assign { index, value } => {
                    self.in_guard = true;
                    self.note(&index.text, index.span);
                    self.index(value);
                }
            }
            self.in_guard = outer;
        }
        self
    }

    /// A side of a comparison: a value is a unit, an index expression is not.
    fn side(&mut self, side: &Expr) {
        let outer = self.unit;
        if !index_only(side) {
            self.enter_unit();
        }
        self.expression(side);
        self.unit = outer;
    }

    fn enter_unit(&mut self) {
        if self.unit.is_none() {
            self.unit = Some(self.next_unit);
            self.next_unit += 1;
        }
    }

    /// Of a reference.
    pub(super) fn reference(&mut self, reference: &Reference) {
        for place in &reference.places {
            match &place.kind {
                PlaceKind::Index(expr) => self.index(expr),
                PlaceKind::Slice(from, to) => {
                    from.iter().chain(to).for_each(|expr| self.index(expr));
                }
                PlaceKind::Wildcard => {}
            }
        }
    }

    fn index(&mut self, expr: &IndexExpr) {
        match &expr.kind {
            IndexKind::Index(name) => self.note(name, expr.span),
            IndexKind::Negate(inner) | IndexKind::Group(inner) => self.index(inner),
            IndexKind::Binary(_, left, right) => {
                self.index(left);
                self.index(right);
            }
            IndexKind::Integer(_) | IndexKind::Name(_) | IndexKind::Text(_) => {}
        }
    }

    fn note(&mut self, name: &str, span: Span) {
        if self.local.iter().any(|local| local == name) {
            return;
        }
        let entry = self.names.entry(name.to_owned()).or_insert_with(|| {
            self.order.push(name.to_owned());
            Occurrence { first: span, units: Vec::new(), outside_guards: false, own_guard: false }
        });
        if !entry.units.contains(&self.unit) {
            entry.units.push(self.unit);
        }
        entry.outside_guards |= !self.in_guard;
        entry.own_guard |= self.in_guard && self.nested == 0;
    }

    /// All names in order of first occurrence.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Occurrence)> {
        self.order.iter().filter_map(|name| self.names.get(name).map(|o| (name.as_str(), o)))
    }

    /// The names to bind in this scope, in order of first occurrence.
    pub(super) fn placed_here(&self) -> impl Iterator<Item = (&str, &Occurrence)> {
        self.all().filter(|(_, occurrence)| occurrence.direct())
    }

    /// Whether the name occurs at all.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }
}

/// Whether a side of a comparison is made of indices, numbers and bare names only. Whether the
/// names are numbers or symbols is seen when it is lowered.
pub(super) fn index_only(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Index(_) | ExprKind::Text(_) => true,
        ExprKind::Number(number) => number.text.chars().all(|c| c.is_ascii_digit()),
        ExprKind::Reference(reference) => reference.places.is_empty(),
        ExprKind::Sum(terms) => terms.iter().all(|(_, term)| index_only(term)),
        ExprKind::Product(factors) => factors.iter().all(|(_, factor)| index_only(factor)),
        ExprKind::Negate(inner) => index_only(inner),
        ExprKind::Group { expr, guards } => guards.is_empty() && index_only(expr),
        ExprKind::Power(..) | ExprKind::Not(_) | ExprKind::Call { .. } => false,
    }
}
