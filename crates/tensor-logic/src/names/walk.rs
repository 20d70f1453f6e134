//! Walks over the tree: which references an expression reads, which indices it holds, what a
//! constant place says.
//!
//! Expressions are as deep as the parser lets them be (256) and are walked by recursion. Index
//! expressions lean to the left (`x + 1 + 1 + …` is as deep as it is long), so they are walked
//! with a stack of their own.

use std::collections::HashMap;

use crate::ast::{
    Expr, ExprKind, Goal, IndexExpr, IndexKind, Literal, LiteralKind, Place, PlaceKind, Reference, RightSide,
    Statement, StatementKind,
};
use crate::names::Numeric;

/// The number that an expression is, with its sign.
pub(super) fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Number(number) => Some(number.value),
        ExprKind::Negate(inner) => match &inner.kind {
            ExprKind::Number(number) => Some(-number.value),
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
            reference.brackets == crate::ast::Brackets::None
                && match constants.get(name) {
                    Some(constant) => constant.value.fract() == 0.0,
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
pub(super) trait Visitor<'a> {
    /// A reference, positive or under `not`.
    fn reference(&mut self, reference: &'a Reference);
    /// A call, before its parts.
    fn call(&mut self, _call: &'a Expr) {}
    /// An index that stands as a value.
    fn index(&mut self, _index: &'a crate::ast::Name) {}
    /// Whether a side of a comparison is to be entered.
    fn enters(&self, _side: &'a Expr) -> bool {
        true
    }
    /// `y = x + 1`
    fn assign(&mut self, _index: &'a crate::ast::Name, _value: &'a IndexExpr) {}
}

/// Walks an expression.
pub(super) fn expr<'a>(expr_: &'a Expr, visitor: &mut impl Visitor<'a>) {
    match &expr_.kind {
        ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| expr(term, visitor)),
        ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| expr(factor, visitor)),
        ExprKind::Negate(inner) => expr(inner, visitor),
        ExprKind::Power(base, exponent, _) => {
            expr(base, visitor);
            expr(exponent, visitor);
        }
        ExprKind::Number(_) | ExprKind::Text(_) => {}
        ExprKind::Reference(reference) | ExprKind::Not(reference) => visitor.reference(reference),
        ExprKind::Index(name) => visitor.index(name),
        ExprKind::Call { arguments, guards, .. } => {
            visitor.call(expr_);
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
pub(super) fn reads<'a>(statement: &'a Statement, visitor: &mut impl Visitor<'a>) {
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
pub(super) fn indices_of(root: &IndexExpr) -> Vec<(&str, crate::ast::Span)> {
    leaves(root)
        .filter_map(|leaf| match &leaf.kind {
            IndexKind::Index(name) => Some((name.as_str(), leaf.span)),
            _ => None,
        })
        .collect()
}

/// Integers, indices, names and texts of an index expression, from left to right.
pub(super) fn leaves(root: &IndexExpr) -> impl Iterator<Item = &IndexExpr> {
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
pub(super) fn parts(place: &Place) -> impl Iterator<Item = &IndexExpr> {
    let (first, second) = match &place.kind {
        PlaceKind::Index(index) => (Some(index), None),
        PlaceKind::Slice(from, to) => (from.as_ref(), to.as_ref()),
        PlaceKind::Wildcard => (None, None),
    };
    first.into_iter().chain(second)
}

/// The small names in the places of a reference.
pub(super) fn place_indices(place: &Place) -> impl Iterator<Item = (&str, crate::ast::Span)> {
    parts(place).flat_map(indices_of)
}

/// Whether a place is an index expression without indices.
pub(super) fn is_constant(place: &Place) -> bool {
    match &place.kind {
        PlaceKind::Index(index) => leaves(index).all(|leaf| !matches!(leaf.kind, IndexKind::Index(_))),
        PlaceKind::Slice(..) | PlaceKind::Wildcard => false,
    }
}
