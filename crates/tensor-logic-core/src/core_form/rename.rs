//! Fresh indices for a piece of the core form, so that a copy may stand beside its original.
//!
//! Enter at [`Renaming`]. Indices that the piece binds itself (scopes inside it) always get fresh
//! ones; its free indices only where the caller says so.

use std::collections::HashMap;

use crate::program::{
    Argument, Axis, AxisFunction, Call, Equation, Expr, Guard, Index, IndexFn, IndexId, Program, Read,
    Reduce, Term, When,
};

/// A renaming of indices within a program that grows by the fresh ones.
pub struct Renaming<'a> {
    program: &'a mut Program,
    map: HashMap<IndexId, IndexId>,
}

impl<'a> Renaming<'a> {
    /// Renames nothing yet.
    pub fn new(program: &'a mut Program) -> Renaming<'a> {
        Renaming { program, map: HashMap::new() }
    }

    /// Gives an index a fresh one of the same name and range.
    pub fn fresh(&mut self, index: IndexId) -> IndexId {
        let copy: Index = self.program.index(index).clone();
        let id = IndexId(u32::try_from(self.program.indices.len()).unwrap_or(u32::MAX));
        self.program.indices.push(copy);
        self.map.insert(index, id);
        id
    }

    /// Takes another index in the place of a free one.
    pub fn to(&mut self, index: IndexId, other: IndexId) {
        self.map.insert(index, other);
    }

    fn of(&self, index: IndexId) -> IndexId {
        self.map.get(&index).copied().unwrap_or(index)
    }

    fn all(&mut self, indices: &[IndexId]) -> Vec<IndexId> {
        indices.iter().map(|index| self.fresh(*index)).collect()
    }

    /// An index function.
    pub fn function(&self, function: &IndexFn) -> IndexFn {
        let both = |a: &IndexFn, b: &IndexFn| (Box::new(self.function(a)), Box::new(self.function(b)));
        match function {
            IndexFn::Const(value) => IndexFn::Const(*value),
            IndexFn::Index(id) => IndexFn::Index(self.of(*id)),
            IndexFn::Ordinal(id) => IndexFn::Ordinal(self.of(*id)),
            IndexFn::Negate(a) => IndexFn::Negate(Box::new(self.function(a))),
            IndexFn::Add(a, b) => {
                let (a, b) = both(a, b);
                IndexFn::Add(a, b)
            }
            IndexFn::Subtract(a, b) => {
                let (a, b) = both(a, b);
                IndexFn::Subtract(a, b)
            }
            IndexFn::Multiply(a, b) => {
                let (a, b) = both(a, b);
                IndexFn::Multiply(a, b)
            }
            IndexFn::Divide(a, b) => {
                let (a, b) = both(a, b);
                IndexFn::Divide(a, b)
            }
            IndexFn::Remainder(a, b) => {
                let (a, b) = both(a, b);
                IndexFn::Remainder(a, b)
            }
        }
    }

    /// An element.
    pub fn read(&self, read: &Read) -> Read {
        let argument = |argument: &Argument| match argument {
            Argument::At(function) => Argument::At(self.function(function)),
            Argument::Any => Argument::Any,
        };
        Read { arguments: read.arguments.iter().map(argument).collect(), ..read.clone() }
    }

    /// Guards, with fresh indices for those of their own.
    pub fn when(&mut self, when: &When) -> When {
        let exists = self.all(&when.exists);
        let guards: Vec<Guard> = when.guards.iter().map(|guard| self.guard(guard)).collect();
        When { exists, ..guards.into() }
    }

    fn guard(&mut self, guard: &Guard) -> Guard {
        match guard {
            Guard::Read(read) => Guard::Read(self.read(read)),
            Guard::Not(read) => Guard::Not(self.read(read)),
            Guard::CompareIndex(sign, a, b) => Guard::CompareIndex(*sign, self.function(a), self.function(b)),
            Guard::Compare(sign, a, b) => Guard::Compare(*sign, self.expr(a), self.expr(b)),
            Guard::Bind(id, function) => Guard::Bind(self.of(*id), self.function(function)),
        }
    }

    /// A value, with fresh indices for those that its scopes bind.
    pub fn expr(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::Number(value) => Expr::Number(*value),
            Expr::Index(function) => Expr::Index(self.function(function)),
            Expr::Read(read) => Expr::Read(self.read(read)),
            Expr::Missing(read) => Expr::Missing(self.read(read)),
            Expr::Product(parts) => Expr::Product(self.exprs(parts)),
            Expr::Terms(parts) => Expr::Terms(self.exprs(parts)),
            Expr::Plus(parts) => Expr::Plus(self.exprs(parts)),
            Expr::Quotient(a, b) => Expr::Quotient(Box::new(self.expr(a)), Box::new(self.expr(b))),
            Expr::Power(a, b) => Expr::Power(Box::new(self.expr(a)), Box::new(self.expr(b))),
            Expr::Negate(a) => Expr::Negate(Box::new(self.expr(a))),
            Expr::Reduce(reduce) => {
                let over = self.all(&reduce.over);
                let when = self.when(&reduce.when);
                let body = self.expr(&reduce.body);
                Expr::Reduce(Box::new(Reduce { over, when, body, ..(**reduce).clone() }))
            }
            Expr::Call(call) => {
                let when = self.when(&call.when);
                let arguments = self.exprs(&call.arguments);
                Expr::Call(Box::new(Call { arguments, when, ..(**call).clone() }))
            }
            Expr::Axis(axis) => {
                let axes = axis.axes.iter().map(|index| self.of(*index)).collect();
                let when = self.when(&axis.when);
                let argument = self.expr(&axis.argument);
                let function = match &axis.function {
                    AxisFunction::Lnorm(Some(epsilon)) => AxisFunction::Lnorm(Some(self.expr(epsilon))),
                    other => other.clone(),
                };
                Expr::Axis(Box::new(Axis { function, axes, argument, when, span: axis.span }))
            }
        }
    }

    fn exprs(&mut self, parts: &[Expr]) -> Vec<Expr> {
        parts.iter().map(|part| self.expr(part)).collect()
    }

    /// A whole equation with indices of its own.
    pub fn equation(&mut self, equation: &Equation) -> Equation {
        let left = self.all(&equation.left);
        let head = equation.head.iter().map(|function| self.function(function)).collect();
        let terms = equation
            .terms
            .iter()
            .map(|term| {
                let over = self.all(&term.over);
                let when = self.when(&term.when);
                Term { over, when, body: self.expr(&term.body) }
            })
            .collect();
        Equation { head, left, terms, ..equation.clone() }
    }
}
