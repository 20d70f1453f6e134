//! Equations, their terms and expressions.

use crate::ast::{Comparison, Span};
use crate::function::Function;
use crate::value::Const;

use super::{IndexId, Stamp, TensorId};

/// An equation: contributions to one tensor.
#[derive(Debug, Clone)]
pub struct Equation {
    /// The tensor.
    pub tensor: TensorId,
    /// The element that a binding contributes to, one function a place.
    pub head: Vec<IndexFn>,
    /// The indices of the left side: bound once for all terms.
    pub left: Vec<IndexId>,
    /// The terms. Under a sum each is a scope of its own; under other aggregators there is one.
    pub terms: Vec<Term>,
    /// Tells it apart.
    pub node: Stamp,
    /// The statement.
    pub span: Span,
    /// The left side in the text.
    pub head_span: Span,
    /// The sign or arrow.
    pub sign_span: Span,
}

/// A term of an equation: every binding of the equation's `left` and of `over` whose guards
/// hold and whose body is present is one contribution.
#[derive(Debug, Clone)]
pub struct Term {
    /// Summed indices.
    pub over: Vec<IndexId>,
    /// What must hold.
    pub when: When,
    /// The contribution.
    pub body: Expr,
}

/// Guards: some binding of `exists` must satisfy all of them together.
#[derive(Debug, Clone, Default)]
pub struct When {
    /// Indices that occur in the guards only.
    pub exists: Vec<IndexId>,
    /// What must hold.
    pub guards: Vec<Guard>,
    /// Tells it, and what it stands in, apart.
    pub node: Stamp,
}

impl From<Vec<Guard>> for When {
    fn from(guards: Vec<Guard>) -> When {
        When { guards, ..When::default() }
    }
}

/// A value.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// The integer of an index function; absent for a symbol.
    Index(IndexFn),
    /// An element.
    Read(Read),
    /// 1 where the element is missing (no tuple, or outside the domain), absent elsewhere.
    Missing(Read),
    /// A product.
    Product(Vec<Expr>),
    /// A quotient of reals.
    Quotient(Box<Expr>, Box<Expr>),
    /// The negative.
    Negate(Box<Expr>),
    /// A power.
    Power(Box<Expr>, Box<Expr>),
    /// A sum of scopes: absent ones are skipped.
    Terms(Vec<Expr>),
    /// A sum inside one scope: all must be present.
    Plus(Vec<Expr>),
    /// A sum, maximum, … over indices.
    Reduce(Box<Reduce>),
    /// An elementwise function.
    Call(Box<Call>),
    /// softmax or lnorm.
    Axis(Box<Axis>),
}

/// A scope.
#[derive(Debug, Clone)]
pub struct Reduce {
    /// How the contributions are joined.
    pub operation: Operation,
    /// The indices.
    pub over: Vec<IndexId>,
    /// What must hold.
    pub when: When,
    /// The contribution.
    pub body: Expr,
    /// Whether it stands in the text as `sum[j](…)`: then over nothing it is 0 (`sum`, `count`)
    /// or 1 (`prod`), and absent otherwise. A scope that the language supplies is absent.
    pub explicit: bool,
    /// Where it stands.
    pub span: Span,
}

/// The operations of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `sum`
    Sum,
    /// `prod`
    Product,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `avg`
    Avg,
    /// `count`
    Count,
}

/// An elementwise call; absent where its guards fail.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// What must hold.
    pub when: When,
    /// Where the function's name stands.
    pub span: Span,
}

/// softmax or lnorm along indices of the surrounding scope. Its entries are the bindings of
/// `axes` (the other indices as they are) whose guards hold and whose argument is present; its
/// value is that of the entry at hand, absent where that is no entry.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Which of the two.
    pub function: AxisFunction,
    /// The indices that it runs along, all together.
    pub axes: Vec<IndexId>,
    /// The argument.
    pub argument: Expr,
    /// What must hold.
    pub when: When,
    /// Where the function's name stands.
    pub span: Span,
}

/// The functions along an axis.
#[derive(Debug, Clone)]
pub enum AxisFunction {
    /// exp(x - max) / sum
    Softmax,
    /// (x - mean) / sqrt(population variance + eps); `None`: 1e-5.
    Lnorm(Option<Expr>),
}

/// An element of a tensor.
#[derive(Debug, Clone)]
pub struct Read {
    /// The tensor.
    pub tensor: TensorId,
    /// The element, one function a place. Only under `not` may a place be [`Argument::Any`].
    pub arguments: Vec<Argument>,
    /// How a missing element is read.
    pub otherwise: Otherwise,
    /// Where it stands.
    pub span: Span,
    /// Tells it apart.
    pub node: Stamp,
}

impl Read {
    /// A read.
    pub fn new(tensor: TensorId, arguments: Vec<Argument>, otherwise: Otherwise, span: Span) -> Read {
        Read { tensor, arguments, otherwise, span, node: Stamp::default() }
    }
}

/// An argument of a read.
#[derive(Debug, Clone)]
pub enum Argument {
    /// This value.
    At(IndexFn),
    /// Any value (`_` under `not`).
    Any,
}

impl Argument {
    /// The function, unless any value will do.
    pub fn function(&self) -> Option<&IndexFn> {
        match self {
            Argument::At(function) => Some(function),
            Argument::Any => None,
        }
    }
}

/// How a missing element is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Otherwise {
    /// A round reference: absent. An element of a square tensor is present where it is not 0.
    Absent,
    /// A square reference: 0 where a relation has no tuple; absent outside the domain.
    Zero,
    /// The first slice of a virtual index: 0 outside the domain too.
    ZeroOutside,
}

/// A guard.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A round reference: the tuple exists (square tensor: the element is not 0).
    /// A square reference: the value is > 0.
    Read(Read),
    /// The negation of the above. With [`Argument::Any`]: no value satisfies it.
    Not(Read),
    /// A comparison of index functions (symbols only by `==` and `!=`).
    CompareIndex(Comparison, IndexFn, IndexFn),
    /// A comparison of values; fails where a side is absent.
    Compare(Comparison, Expr, Expr),
    /// `y = x + 1`, where nothing else binds `y`.
    Bind(IndexId, IndexFn),
}

/// Arithmetic on indices. It has no value where a symbol meets an operator, on overflow, and at
/// a division by 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IndexFn {
    /// A constant.
    Const(Const),
    /// An index.
    Index(IndexId),
    /// The position of an index's value in its domain, from 0 (for `concat`).
    Ordinal(IndexId),
    /// The negative.
    Negate(Box<IndexFn>),
    /// A sum.
    Add(Box<IndexFn>, Box<IndexFn>),
    /// A difference.
    Subtract(Box<IndexFn>, Box<IndexFn>),
    /// A product.
    Multiply(Box<IndexFn>, Box<IndexFn>),
    /// Floor division.
    Divide(Box<IndexFn>, Box<IndexFn>),
    /// Floor remainder.
    Remainder(Box<IndexFn>, Box<IndexFn>),
}

impl IndexFn {
    /// The value where `index` gives the values of indices and `ordinal` their positions.
    pub fn evaluate(
        &self,
        index: &impl Fn(IndexId) -> Option<Const>,
        ordinal: &impl Fn(IndexId) -> Option<usize>,
    ) -> Option<Const> {
        let int = |part: &IndexFn| part.evaluate(index, ordinal)?.int();
        let value = match self {
            IndexFn::Const(value) => return Some(*value),
            IndexFn::Index(id) => return index(*id),
            IndexFn::Ordinal(id) => i64::try_from(ordinal(*id)?).ok()?,
            IndexFn::Negate(a) => int(a)?.checked_neg()?,
            IndexFn::Add(a, b) => int(a)?.checked_add(int(b)?)?,
            IndexFn::Subtract(a, b) => int(a)?.checked_sub(int(b)?)?,
            IndexFn::Multiply(a, b) => int(a)?.checked_mul(int(b)?)?,
            IndexFn::Divide(a, b) => floor_div(int(a)?, int(b)?)?,
            IndexFn::Remainder(a, b) => floor_rem(int(a)?, int(b)?)?,
        };
        Some(Const::Int(value))
    }

    /// The index, where it stands alone.
    pub fn alone(&self) -> Option<IndexId> {
        match self {
            IndexFn::Index(id) => Some(*id),
            _ => None,
        }
    }

    /// Calls `visit` for every index in it.
    pub fn visit(&self, visit: &mut impl FnMut(IndexId)) {
        match self {
            IndexFn::Const(_) => {}
            IndexFn::Index(id) | IndexFn::Ordinal(id) => visit(*id),
            IndexFn::Negate(a) => a.visit(visit),
            IndexFn::Add(a, b)
            | IndexFn::Subtract(a, b)
            | IndexFn::Multiply(a, b)
            | IndexFn::Divide(a, b)
            | IndexFn::Remainder(a, b) => {
                a.visit(visit);
                b.visit(visit);
            }
        }
    }
}

/// Division that rounds towards -inf.
pub fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// The remainder of [`floor_div`]: it has the sign of the divisor.
pub fn floor_rem(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

/// Whether a read asks for an element or for its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// A value or a guard that must hold.
    Positive,
    /// Under `not`.
    Negative,
}

impl Equation {
    /// Calls `visit` for every read of the right side, in order of the text.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        for term in &self.terms {
            term.body.visit_reads(visit);
            term.when.visit_reads(visit);
        }
    }
}

impl When {
    /// Calls `visit` for every read.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        for guard in &self.guards {
            match guard {
                Guard::Read(read) => visit(read, Sense::Positive),
                Guard::Not(read) => visit(read, Sense::Negative),
                Guard::Compare(_, left, right) => {
                    left.visit_reads(visit);
                    right.visit_reads(visit);
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }

    /// Changes every read.
    pub fn change_reads(&mut self, change: &mut dyn FnMut(&mut Read)) {
        for guard in &mut self.guards {
            match guard {
                Guard::Read(read) | Guard::Not(read) => change(read),
                Guard::Compare(_, left, right) => {
                    left.change_reads(change);
                    right.change_reads(change);
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }
}

impl Expr {
    /// The parts directly below, and the guards of this node.
    pub fn parts(&self) -> (Vec<&Expr>, Option<&When>) {
        match self {
            Expr::Number(_) | Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => (Vec::new(), None),
            Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => (parts.iter().collect(), None),
            Expr::Quotient(a, b) | Expr::Power(a, b) => (vec![a, b], None),
            Expr::Negate(a) => (vec![a], None),
            Expr::Reduce(reduce) => (vec![&reduce.body], Some(&reduce.when)),
            Expr::Call(call) => (call.arguments.iter().collect(), Some(&call.when)),
            Expr::Axis(axis) => {
                let mut parts = vec![&axis.argument];
                if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function {
                    parts.push(epsilon);
                }
                (parts, Some(&axis.when))
            }
        }
    }

    /// The same to be changed.
    pub fn parts_mut(&mut self) -> (Vec<&mut Expr>, Option<&mut When>) {
        match self {
            Expr::Number(_) | Expr::Index(_) | Expr::Read(_) | Expr::Missing(_) => (Vec::new(), None),
            Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
                (parts.iter_mut().collect(), None)
            }
            Expr::Quotient(a, b) | Expr::Power(a, b) => (vec![a, b], None),
            Expr::Negate(a) => (vec![a], None),
            Expr::Reduce(reduce) => (vec![&mut reduce.body], Some(&mut reduce.when)),
            Expr::Call(call) => (call.arguments.iter_mut().collect(), Some(&mut call.when)),
            Expr::Axis(axis) => {
                let mut parts = vec![&mut axis.argument];
                if let AxisFunction::Lnorm(Some(epsilon)) = &mut axis.function {
                    parts.push(epsilon);
                }
                (parts, Some(&mut axis.when))
            }
        }
    }

    /// Changes every read.
    pub fn change_reads(&mut self, change: &mut dyn FnMut(&mut Read)) {
        if let Expr::Read(read) | Expr::Missing(read) = self {
            return change(read);
        }
        let (parts, when) = self.parts_mut();
        parts.into_iter().for_each(|part| part.change_reads(change));
        if let Some(when) = when {
            when.change_reads(change);
        }
    }

    /// Calls `visit` for every read, in order of the text.
    pub fn visit_reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read, Sense)) {
        match self {
            Expr::Read(read) => visit(read, Sense::Positive),
            Expr::Missing(read) => visit(read, Sense::Negative),
            _ => {
                let (parts, when) = self.parts();
                for part in parts {
                    part.visit_reads(visit);
                }
                if let Some(when) = when {
                    when.visit_reads(visit);
                }
            }
        }
    }
}
