//! Between which integers an index lies that tuples bind: what each addend's round references say together.

use super::Inference;
use super::interval::Solver;
use crate::presence::extent;
use crate::program::{Argument, Expr, Guard, IndexId, Operation, Otherwise, Read, When};

/// Between which integers an index lies, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Within {
    /// Nothing is said of it.
    Any,
    /// The smallest and the largest; none where the first is larger.
    Between(i64, i64),
}

impl Within {
    /// Where both hold.
    pub(super) fn and(self, other: Within) -> Within {
        match (self, other) {
            (Within::Any, one) | (one, Within::Any) => one,
            (Within::Between(a, b), Within::Between(c, d)) => Within::Between(a.max(c), b.min(d)),
        }
    }

    /// Where one of them holds.
    pub(super) fn or(self, other: Within) -> Within {
        match (self, other) {
            (Within::Any, _) | (_, Within::Any) => Within::Any,
            (Within::Between(a, b), one) if a > b => one,
            (one, Within::Between(c, d)) if c > d => one,
            (Within::Between(a, b), Within::Between(c, d)) => Within::Between(a.min(c), b.max(d)),
        }
    }
}

/// What the tuples that an expression needs say of an index: as [`binds`], with the places' domains.
pub(super) struct Reach<'a> {
    pub(super) inference: &'a Inference<'a>,
    pub(super) index: IndexId,
}

impl Reach<'_> {
    pub(super) fn expr(&self, expr: &Expr) -> Within {
        let all = |parts: &[Expr]| parts.iter().map(|part| self.expr(part)).fold(Within::Any, Within::and);
        match expr {
            Expr::Number(_) | Expr::Index(_) | Expr::Missing(_) => Within::Any,
            Expr::Read(read) => self.read(read),
            Expr::Product(parts) | Expr::Plus(parts) => all(parts),
            Expr::Quotient(a, b) | Expr::Power(a, b) => self.expr(a).and(self.expr(b)),
            Expr::Negate(part) => self.expr(part),
            // A term that is absent is skipped.
            Expr::Terms(parts) => {
                parts.iter().map(|part| self.expr(part)).reduce(Within::or).unwrap_or(Within::Any)
            }
            Expr::Reduce(reduce) => {
                let anyway =
                    matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
                if reduce.explicit && anyway {
                    return Within::Any;
                }
                self.expr(&reduce.body).and(self.when(&reduce.when))
            }
            Expr::Call(call) => all(&call.arguments).and(self.when(&call.when)),
            Expr::Axis(axis) => self.expr(&axis.argument).and(self.when(&axis.when)),
        }
    }

    pub(super) fn when(&self, when: &When) -> Within {
        let guard = |guard: &Guard| match guard {
            Guard::Read(read) => self.read(read),
            Guard::Compare(_, a, b) => self.expr(a).and(self.expr(b)),
            Guard::Not(_) | Guard::CompareIndex(..) | Guard::Bind(..) => Within::Any,
        };
        when.guards.iter().map(guard).fold(Within::Any, Within::and)
    }

    fn read(&self, read: &Read) -> Within {
        let mut within = Within::Any;
        // In square brackets there is a value everywhere.
        if read.otherwise != Otherwise::Absent {
            return within;
        }
        for (place, argument) in read.arguments.iter().enumerate() {
            let Argument::At(function) = argument else { continue };
            let domain = self.inference.place_domain(read.tensor, place);
            let Some((low, high)) = domain.as_ref().and_then(extent) else { continue };
            // Beside another index the function binds neither of them.
            let solver = Solver { index: self.index, range: &|_| None };
            if let Some((from, to)) = solver.solve(function, low, high) {
                within = within.and(Within::Between(from, to));
            }
        }
        within
    }
}
