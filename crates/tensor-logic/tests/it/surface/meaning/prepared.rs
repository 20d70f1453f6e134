//! The tree with names for what has none.

use std::collections::BTreeMap;

use tensor_logic::ast::{
    self, Expr, ExprKind, IndexExpr, IndexKind, Literal, LiteralKind, PlaceKind, Reference, RightSide, Sign,
    StatementKind,
};

use super::Slices;

/// The tree with a fresh index for every wildcard and slice that is not denied.
pub(in crate::surface) fn prepared(tree: &ast::Program) -> (ast::Program, Slices) {
    let mut fresh = Fresh::default();
    let mut tree = tree.clone();
    for statement in &mut tree.statements {
        match &mut statement.kind {
            StatementKind::Equation { head, sign, right: RightSide::Expr { expr, guards }, .. }
                if *sign == Sign::Redefine =>
            {
                fresh.expr(expr);
                guards.iter_mut().for_each(|literal| fresh.literal(literal));
                fresh.versions.entry(head.name.text.clone()).or_default().push('~');
                fresh.named(&mut head.name.text);
                *sign = Sign::Equal;
            }
            StatementKind::Rule { body, .. } => body.iter_mut().for_each(|literal| fresh.literal(literal)),
            StatementKind::Query { goal: ast::Goal::Literals(literals), .. } => {
                literals.iter_mut().for_each(|literal| fresh.literal(literal));
            }
            StatementKind::Equation { right: RightSide::Expr { expr, guards }, .. } => {
                fresh.expr(expr);
                guards.iter_mut().for_each(|literal| fresh.literal(literal));
            }
            _ => {}
        }
    }
    (tree, fresh.slices)
}

#[derive(Default)]
struct Fresh {
    slices: Slices,
    /// What stands behind the names of tensors that were redefined above.
    versions: BTreeMap<String, String>,
}

impl Fresh {
    fn named(&self, name: &mut String) {
        if let Some(marks) = self.versions.get(name) {
            name.push_str(marks);
        }
    }

    fn reference(&mut self, reference: &mut Reference) {
        self.named(&mut reference.name.text);
        for place in &mut reference.places {
            let bound = |bound: &Option<IndexExpr>| match bound.as_ref().map(|bound| &bound.kind) {
                Some(IndexKind::Integer(value)) => Some(*value),
                _ => None,
            };
            let interval = match &place.kind {
                PlaceKind::Index(_) => continue,
                PlaceKind::Wildcard => (None, None),
                PlaceKind::Slice(from, to) => (bound(from), bound(to)),
            };
            // Who asks with a slice wants to see where; a wildcard is nobody's to see.
            let mark = if matches!(place.kind, PlaceKind::Wildcard) { '_' } else { '#' };
            let name = format!("{mark}{}", self.slices.len());
            self.slices.insert(name.clone(), interval);
            place.kind = PlaceKind::Index(IndexExpr { kind: IndexKind::Index(name), span: place.span });
        }
    }

    fn literal(&mut self, literal: &mut Literal) {
        match &mut literal.kind {
            LiteralKind::Positive(reference) => self.reference(reference),
            LiteralKind::Negative(reference) => self.named(&mut reference.name.text),
            LiteralKind::Assign { .. } => {}
            LiteralKind::Compare { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Sum(terms) => terms.iter_mut().for_each(|(_, term)| self.expr(term)),
            ExprKind::Product(factors) => factors.iter_mut().for_each(|(_, factor)| self.expr(factor)),
            ExprKind::Negate(inner) => self.expr(inner),
            ExprKind::Power(base, exponent, _) => {
                self.expr(base);
                self.expr(exponent);
            }
            ExprKind::Reference(reference) => self.reference(reference),
            ExprKind::Not(reference) => self.named(&mut reference.name.text),
            ExprKind::Number(_) | ExprKind::Index(_) | ExprKind::Text(_) => {}
            ExprKind::Call { arguments, guards, .. } => {
                arguments.iter_mut().for_each(|argument| self.expr(argument));
                guards.iter_mut().for_each(|literal| self.literal(literal));
            }
            ExprKind::Group { expr, guards } => {
                self.expr(expr);
                guards.iter_mut().for_each(|literal| self.literal(literal));
            }
        }
    }
}
