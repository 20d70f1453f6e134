//! Counts of which digits may be lost on the way: what is large cancels, and the result is small again.
//!
//! Enter at [`Machine::may_cancel`]. Sums of what is not below 0 are at least as large as each of their parts, so that a
//! result below 2⁵³ has all its digits; where something is subtracted, the bounds of the parts must be below 2⁵³ too.

use crate::digits::EXACT_LIMIT;
use crate::function::Function;
use crate::presence::extent;
use crate::program::{Equation, Expr, IndexFn, Kind, Operation, Range, Read, TensorId};
use crate::store::machine::{Machine, Stored};

/// How much an expression may be below 0, and above: what its parts subtract and add.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    below: f64,
    above: f64,
}

impl Bounds {
    const UNKNOWN: Bounds = Bounds { below: f64::INFINITY, above: f64::INFINITY };

    fn hull(values: impl IntoIterator<Item = f64>) -> Bounds {
        let join =
            |all: Bounds, value: f64| Bounds { below: all.below.max(-value), above: all.above.max(value) };
        values.into_iter().fold(Bounds { below: 0.0, above: 0.0 }, join)
    }

    fn plus(self, other: Bounds) -> Bounds {
        Bounds { below: self.below + other.below, above: self.above + other.above }
    }

    fn times(self, other: Bounds) -> Bounds {
        let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        Bounds {
            below: product(self.below, other.above).max(product(self.above, other.below)),
            above: product(self.above, other.above).max(product(self.below, other.below)),
        }
    }

    fn cancels(self) -> bool {
        self.below > 0.0 && self.below.max(self.above) >= EXACT_LIMIT
    }
}

impl Machine {
    /// Whether an equation of a count may subtract numbers that do not have all their digits.
    pub(crate) fn may_cancel(&self, id: TensorId) -> bool {
        let own = |equation: &&Equation| equation.tensor == id;
        self.program.tensor(id).kind == Kind::Count
            && self.program.equations.iter().filter(own).any(|equation| {
                let several = equation.head.iter().any(|place| place.alone().is_none());
                let left = if several { self.bindings(&equation.left) } else { 1 };
                let terms = equation.terms.iter().map(|term| {
                    let bindings = left.saturating_mul(self.bindings(&term.over)) as f64;
                    self.bounds(&term.body).times(Bounds { below: 0.0, above: bindings })
                });
                terms.reduce(Bounds::plus).is_some_and(Bounds::cancels)
            })
    }

    fn bounds(&self, expr: &Expr) -> Bounds {
        let sum =
            |parts: &[Expr]| parts.iter().map(|part| self.bounds(part)).fold(Bounds::hull([]), Bounds::plus);
        match expr {
            Expr::Number(value) => Bounds::hull([*value]),
            Expr::Missing(_) => Bounds::hull([1.0]),
            Expr::Index(function) => self.bounds_of_index(function),
            Expr::Read(read) => self.bounds_of_read(read),
            Expr::Product(parts) => {
                parts.iter().map(|part| self.bounds(part)).fold(Bounds::hull([1.0]), Bounds::times)
            }
            Expr::Plus(parts) | Expr::Terms(parts) => sum(parts),
            Expr::Negate(part) => {
                let Bounds { below, above } = self.bounds(part);
                Bounds { below: above, above: below }
            }
            Expr::Reduce(reduce) => {
                let body = self.bounds(&reduce.body);
                let bindings = Bounds { below: 0.0, above: self.bindings(&reduce.over) as f64 };
                match reduce.operation {
                    Operation::Count => bindings,
                    Operation::Product if body.below > 0.0 => Bounds::UNKNOWN,
                    Operation::Product => Bounds { below: 0.0, above: f64::INFINITY },
                    _ => body.times(bindings),
                }
            }
            Expr::Call(call) => match call.function {
                Function::Relu | Function::Floor | Function::Max | Function::Min => sum(&call.arguments),
                Function::Step | Function::Sign => Bounds { below: 1.0, above: 1.0 },
                _ => Bounds::UNKNOWN,
            },
            Expr::Quotient(a, b) | Expr::Power(a, b) => match self.bounds(a).below + self.bounds(b).below {
                0.0 => Bounds { below: 0.0, above: f64::INFINITY },
                _ => Bounds::UNKNOWN,
            },
            Expr::Axis(_) => Bounds::UNKNOWN,
        }
    }

    fn bounds_of_index(&self, function: &IndexFn) -> Bounds {
        let ends = match function {
            IndexFn::Const(value) => value.int().map(|value| (value, value)),
            _ => function.alone().and_then(|index| match &self.program.index(index).range {
                Range::Domain(domain) => extent(domain),
                Range::Tuples | Range::Computed => None,
            }),
        };
        ends.map_or(Bounds::UNKNOWN, |(from, to)| Bounds::hull([from as f64, to as f64]))
    }

    /// What is not stored belongs to this equation's own work and is a count of few digits, or it is found there.
    fn bounds_of_read(&self, read: &Read) -> Bounds {
        match self.stored(read.tensor) {
            Some(Stored::Dense(array)) => Bounds::hull(self.numbers(array).doubles().iter().copied()),
            Some(Stored::Relation(relation)) => {
                let values = relation.doubles().map(|values| values.iter().copied());
                Bounds::hull(values.into_iter().flatten().chain([1.0]))
            }
            None => Bounds { below: 0.0, above: EXACT_LIMIT },
        }
    }
}
