//! Walks over the tree: which references an expression reads, which indices it holds, what a
//! constant place says.
//!
//! Expressions are as deep as the parser lets them be (256) and are walked by recursion. Index
//! expressions lean to the left (`x + 1 + 1 + …` is as deep as it is long), so they are walked
//! with a stack of their own.

use std::collections::HashMap;

use crate::ast::{
    Brackets, Expr, ExprKind, Goal, IndexExpr, IndexKind, Literal, LiteralKind, Name, Place, PlaceKind,
    Program, Reference, RightSide, Span, Statement, StatementKind,
};
use crate::names::known::Numeric;

/// The number that an expression is, with its sign.
pub(crate) fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Number(number) => Some(number.value),
        ExprKind::Negate(inner) => match &inner.kind {
            ExprKind::Number(number) => Some(-number.value),
            _ => None,
        },
        _ => None,
    }
}

/// The same as a whole number.
pub(crate) fn whole(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Number(number) => number.integer(),
        ExprKind::Negate(inner) => match &inner.kind {
            ExprKind::Number(number) => number.integer()?.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether one side of a comparison is an index expression (section 2): made only of indices,
/// integers, integer constants and symbols.
pub fn is_index_side(
    expr: &Expr,
    defined: &dyn Fn(&str) -> bool,
    constants: &HashMap<String, Numeric>,
) -> bool {
    match &expr.kind {
        ExprKind::Index(_) | ExprKind::Text(_) => true,
        ExprKind::Number(number) => number.text.trim_start_matches(['-', '−']).parse::<i64>().is_ok(),
        ExprKind::Reference(reference) => {
            let name = reference.name.text.as_str();
            reference.brackets == Brackets::None
                && match constants.get(name) {
                    Some(constant) => constant.whole.is_some(),
                    None => !defined(name),
                }
        }
        ExprKind::Sum(terms) => terms.iter().all(|(_, term)| is_index_side(term, defined, constants)),
        ExprKind::Product(factors) => {
            factors.iter().all(|(_, factor)| is_index_side(factor, defined, constants))
        }
        ExprKind::Negate(inner) => is_index_side(inner, defined, constants),
        ExprKind::Group { expr, guards } => guards.is_empty() && is_index_side(expr, defined, constants),
        ExprKind::Power(..) | ExprKind::Not(_) | ExprKind::Call { .. } => false,
    }
}

/// What a walk over expressions meets, in order of the text.
pub(crate) trait Visitor<'a> {
    /// A reference, positive or under `not`.
    fn reference(&mut self, reference: &'a Reference);
    /// A reference under `not` as a factor, and the whole factor.
    fn not(&mut self, _factor: Span, reference: &'a Reference) {
        self.reference(reference);
    }
    /// A literal, before its parts.
    fn literal(&mut self, _literal: &'a Literal) {}
    /// A call, before its parts.
    fn call(&mut self, _call: &'a Expr) {}
    /// An index that stands as a value.
    fn index(&mut self, _index: &'a Name) {}
    /// Whether a side of a comparison is to be entered.
    fn enters(&self, _side: &'a Expr) -> bool {
        true
    }
    /// `y = x + 1`
    fn assign(&mut self, _index: &'a Name, _value: &'a IndexExpr) {}
}

/// Walks an expression.
pub(crate) fn expr<'a>(root: &'a Expr, visitor: &mut impl Visitor<'a>) {
    match &root.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| expr(term, visitor)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| expr(factor, visitor)),
        ExprKind::Negate(inner) => expr(inner, visitor),
        ExprKind::Power(base, exponent, _) => {
            expr(base, visitor);
            expr(exponent, visitor);
        }
        ExprKind::Number(_) | ExprKind::Text(_) => {}
        ExprKind::Reference(reference) => visitor.reference(reference),
        ExprKind::Not(reference) => visitor.not(root.span, reference),
        ExprKind::Index(name) => visitor.index(name),
        ExprKind::Call { arguments, guards, .. } => {
            visitor.call(root);
            arguments.iter().for_each(|argument| expr(argument, visitor));
            guards.iter().for_each(|guard| literal(guard, visitor));
        }
        ExprKind::Group { expr: inner, guards } => {
            expr(inner, visitor);
            guards.iter().for_each(|guard| literal(guard, visitor));
        }
    }
}

/// Walks a literal.
pub(super) fn literal<'a>(literal: &'a Literal, visitor: &mut impl Visitor<'a>) {
    visitor.literal(literal);
    match &literal.kind {
        LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => visitor.reference(reference),
        LiteralKind::Compare { left, right, .. } => {
            for side in [left, right] {
                if visitor.enters(side) {
                    expr(side, visitor);
                }
            }
        }
        LiteralKind::Assign { index, value } => visitor.assign(index, value),
    }
}

/// Walks what a statement reads: right sides, bodies, goals. Left sides and bare references are
/// not read.
pub(crate) fn reads<'a>(statement: &'a Statement, visitor: &mut impl Visitor<'a>) {
    match &statement.kind {
        StatementKind::Rule { body, .. } => body.iter().for_each(|part| literal(part, visitor)),
        StatementKind::Equation { right: RightSide::Expr { expr: right, guards }, .. } => {
            expr(right, visitor);
            guards.iter().for_each(|guard| literal(guard, visitor));
        }
        StatementKind::Write { reference, .. } => visitor.reference(reference),
        StatementKind::Query { goal: Goal::Literals(literals), .. } => {
            literals.iter().for_each(|part| literal(part, visitor));
        }
        _ => {}
    }
}

/// The small names in an index expression, from left to right, each occurrence.
pub(crate) fn indices_of(root: &IndexExpr) -> Vec<(&str, Span)> {
    leaves(root)
        .filter_map(|leaf| match &leaf.kind {
            IndexKind::Index(name) => Some((name.as_str(), leaf.span)),
            _ => None,
        })
        .collect()
}

/// Integers, indices, names and texts of an index expression, from left to right.
pub(crate) fn leaves(root: &IndexExpr) -> impl Iterator<Item = &IndexExpr> {
    let mut stack = vec![root];
    std::iter::from_fn(move || {
        loop {
            let next = stack.pop()?;
            match &next.kind {
                IndexKind::Negate(inner) | IndexKind::Group(inner) => stack.push(inner),
                IndexKind::Binary(_, left, right) => {
                    stack.push(right);
                    stack.push(left);
                }
                _ => return Some(next),
            }
        }
    })
}

/// The index expressions of a place.
pub(crate) fn parts(place: &Place) -> impl Iterator<Item = &IndexExpr> {
    let (first, second) = match &place.kind {
        PlaceKind::Index(index) => (Some(index), None),
        PlaceKind::Slice(from, to) => (from.as_ref(), to.as_ref()),
        PlaceKind::Wildcard => (None, None),
    };
    first.into_iter().chain(second)
}

/// The small names in the places of a reference.
pub(crate) fn place_indices(place: &Place) -> impl Iterator<Item = (&str, Span)> {
    parts(place).flat_map(indices_of)
}

/// Whether a place is an index expression without indices.
pub(crate) fn is_constant(place: &Place) -> bool {
    match &place.kind {
        PlaceKind::Index(index) => leaves(index).all(|leaf| !matches!(leaf.kind, IndexKind::Index(_))),
        PlaceKind::Slice(..) | PlaceKind::Wildcard => false,
    }
}

/// For every reference under `not` or in a comparison, by its first byte: the literal or factor
/// that a refusal points at.
pub fn literals_of_references(program: &Program) -> HashMap<usize, Span> {
    let mut literals = Literals::default();
    program.statements.iter().for_each(|statement| reads(statement, &mut literals));
    literals.places
}

#[derive(Default)]
struct Literals {
    places: HashMap<usize, Span>,
    /// The comparison at hand.
    compared: Option<Span>,
}

impl<'a> Visitor<'a> for Literals {
    fn reference(&mut self, reference: &'a Reference) {
        if let Some(span) = self.compared {
            self.places.entry(reference.span.start).or_insert(span);
        }
    }

    fn not(&mut self, factor: Span, reference: &'a Reference) {
        self.places.entry(reference.span.start).or_insert(self.compared.unwrap_or(factor));
    }

    fn literal(&mut self, literal: &'a Literal) {
        match &literal.kind {
            LiteralKind::Negative(reference) => {
                self.places.entry(reference.span.start).or_insert(literal.span);
            }
            LiteralKind::Compare { left, right, .. } if self.compared.is_none() => {
                self.compared = Some(literal.span);
                expr(left, self);
                expr(right, self);
                self.compared = None;
            }
            _ => {}
        }
    }
}
