//! The small forms that adjoints are put together from.

use crate::ast::Span;
use crate::program::{Expr, Operation, Reduce, When};

/// 1 where guards hold, absent elsewhere.
pub(super) fn only_if(when: When, span: Span) -> Expr {
    under(when, Expr::Number(1.0), span)
}

/// A value under guards.
pub(super) fn under(when: When, body: Expr, span: Span) -> Expr {
    let operation = Operation::Sum;
    Expr::Reduce(Box::new(Reduce { operation, over: Vec::new(), when, body, explicit: false, span }))
}

/// 1 where the value is present, absent elsewhere.
pub(super) fn present(expr: &Expr) -> Expr {
    Expr::Power(Box::new(expr.clone()), Box::new(Expr::Number(0.0)))
}

/// A product of factors, without ceremony where there are fewer than two.
pub(super) fn product(mut factors: Vec<Expr>) -> Expr {
    match (factors.len(), factors.pop()) {
        (_, None) => Expr::Number(1.0),
        (1, Some(only)) => only,
        (_, Some(last)) => {
            factors.push(last);
            Expr::Product(factors)
        }
    }
}
