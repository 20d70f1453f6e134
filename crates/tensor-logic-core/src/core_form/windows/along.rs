//! Where reads stand along the steps.

use std::collections::BTreeMap;

use crate::linear::linear;
use crate::program::{Argument, Equation, Expr, Guard, IndexFn, IndexId, Read, Sense, TensorId, Term, When};

/// The places of what moves.
pub(super) type Places = BTreeMap<TensorId, usize>;

/// Steps and constants beyond this are not computed with: sums of some of them do not overflow.
pub(super) const FAR: u64 = 1 << 40;
/// Reads do not go further back, and indices do not move faster.
pub(super) const NEAR: u64 = 1 << 20;

/// Where a read stands along the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    /// At one value.
    Fixed(i64),
    /// At `by · index + from`.
    Steps { index: IndexId, by: i64, from: i64 },
    /// Somewhere else.
    Elsewhere,
}

impl Along {
    pub(super) fn of(function: &IndexFn) -> Along {
        match linear(function) {
            Some((terms, from)) if from.unsigned_abs() <= FAR => match terms.as_slice() {
                [] => Along::Fixed(from),
                [(index, by)] if *by != 0 && by.unsigned_abs() <= NEAR => {
                    Along::Steps { index: *index, by: *by, from }
                }
                _ => Along::Elsewhere,
            },
            _ => Along::Elsewhere,
        }
    }
}

/// Where the read of a tensor that moves stands; `None` of others.
pub(super) fn along(places: &Places, read: &Read) -> Option<Along> {
    let place = places.get(&read.tensor)?;
    Some(read.arguments.get(*place).and_then(Argument::function).map_or(Along::Elsewhere, Along::of))
}

/// Whether a term reads what moves along an index that it sums over.
pub(super) fn is_summed(term: &Term, places: &Places) -> bool {
    let mut summed = false;
    let mut look = |read: &Read, _: Sense| {
        let along = along(places, read);
        summed |= matches!(along, Some(Along::Steps { index, .. }) if term.over.contains(&index));
    };
    term.body.visit_reads(&mut look);
    term.when.visit_reads(&mut look);
    summed
}

/// Whether the position of an index is asked for, or something runs along it.
pub(super) fn is_looked_at(equation: &Equation, index: IndexId) -> bool {
    equation.head.iter().any(|function| has_ordinal(function, index))
        || equation.terms.iter().any(|term| in_expr(&term.body, index) || in_when(&term.when, index))
}

fn has_ordinal(function: &IndexFn, index: IndexId) -> bool {
    match function {
        IndexFn::Ordinal(id) => *id == index,
        IndexFn::Const(_) | IndexFn::Index(_) => false,
        IndexFn::Negate(a) => has_ordinal(a, index),
        IndexFn::Add(a, b)
        | IndexFn::Subtract(a, b)
        | IndexFn::Multiply(a, b)
        | IndexFn::Divide(a, b)
        | IndexFn::Remainder(a, b) => has_ordinal(a, index) || has_ordinal(b, index),
    }
}

fn in_read(read: &Read, index: IndexId) -> bool {
    read.arguments.iter().filter_map(Argument::function).any(|function| has_ordinal(function, index))
}

fn in_when(when: &When, index: IndexId) -> bool {
    when.guards.iter().any(|guard| match guard {
        Guard::Read(read) | Guard::Not(read) => in_read(read, index),
        Guard::CompareIndex(_, a, b) => has_ordinal(a, index) || has_ordinal(b, index),
        Guard::Compare(_, a, b) => in_expr(a, index) || in_expr(b, index),
        Guard::Bind(_, function) => has_ordinal(function, index),
    })
}

fn in_expr(expr: &Expr, index: IndexId) -> bool {
    let here = match expr {
        Expr::Index(function) => has_ordinal(function, index),
        Expr::Read(read) | Expr::Missing(read) => in_read(read, index),
        Expr::Axis(axis) => axis.axes.contains(&index),
        _ => false,
    };
    let (parts, when) = expr.parts();
    here || parts.into_iter().any(|part| in_expr(part, index))
        || when.is_some_and(|when| in_when(when, index))
}
