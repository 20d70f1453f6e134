//! What occurs in a piece of the core form, and which tensors a goal needs.
//!
//! Enter at [`Program::needs`] and [`expr`]. Every reader of the core form that only asks "what
//! occurs in there" uses these visitors, so that a new form of expression is added in one place.

use std::collections::BTreeSet;

use crate::program::{
    Argument, Axis, AxisFunction, Equation, EquationId, Expr, Guard, IndexFn, IndexId, Program, Read,
    TensorId, Term, When,
};

/// An occurrence.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// A positive read.
    Read(&'a Read),
    /// A read under `not`.
    Not(&'a Read),
    /// An index function outside of reads.
    Index(&'a IndexFn),
    /// An index that a guard computes.
    Bound(IndexId),
}

/// Visits all occurrences in a value.
pub fn expr<'a>(value: &'a Expr, visit: &mut dyn FnMut(Seen<'a>)) {
    match value {
        Expr::Number(_) => {}
        Expr::Index(function) => visit(Seen::Index(function)),
        Expr::Read(read) => visit(Seen::Read(read)),
        Expr::Missing(read) => visit(Seen::Not(read)),
        Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
            parts.iter().for_each(|part| expr(part, visit));
        }
        Expr::Quotient(a, b) | Expr::Power(a, b) => {
            expr(a, visit);
            expr(b, visit);
        }
        Expr::Negate(a) => expr(a, visit),
        Expr::Reduce(reduce) => {
            when(&reduce.when, visit);
            expr(&reduce.body, visit);
        }
        Expr::Call(call) => {
            when(&call.when, visit);
            call.arguments.iter().for_each(|argument| expr(argument, visit));
        }
        Expr::Axis(along) => axis(along, visit),
    }
}

/// Visits all occurrences in softmax or lnorm.
pub fn axis<'a>(axis: &'a Axis, visit: &mut dyn FnMut(Seen<'a>)) {
    when(&axis.when, visit);
    expr(&axis.argument, visit);
    if let AxisFunction::Lnorm(Some(eps)) = &axis.function {
        expr(eps, visit);
    }
}

/// Visits all occurrences in a guard.
pub fn guard<'a>(guard: &'a Guard, visit: &mut dyn FnMut(Seen<'a>)) {
    match guard {
        Guard::Read(read) => visit(Seen::Read(read)),
        Guard::Not(read) => visit(Seen::Not(read)),
        Guard::CompareIndex(_, a, b) => {
            visit(Seen::Index(a));
            visit(Seen::Index(b));
        }
        Guard::Compare(_, a, b) => {
            expr(a, visit);
            expr(b, visit);
        }
        Guard::Bind(index, function) => {
            visit(Seen::Bound(*index));
            visit(Seen::Index(function));
        }
    }
}

/// Visits all occurrences in guards.
pub fn when<'a>(when: &'a When, visit: &mut dyn FnMut(Seen<'a>)) {
    when.guards.iter().for_each(|each| guard(each, visit));
}

/// Visits all occurrences in a term.
pub fn term<'a>(term: &'a Term, visit: &mut dyn FnMut(Seen<'a>)) {
    when(&term.when, visit);
    expr(&term.body, visit);
}

/// Calls `visit` for every index of an occurrence.
pub fn indices(seen: Seen<'_>, visit: &mut dyn FnMut(IndexId)) {
    match seen {
        Seen::Read(read) | Seen::Not(read) => {
            for argument in &read.arguments {
                if let Argument::At(function) = argument {
                    function.visit(&mut |index| visit(index));
                }
            }
        }
        Seen::Index(function) => function.visit(&mut |index| visit(index)),
        Seen::Bound(index) => visit(index),
    }
}

impl Equation {
    /// Calls `visit` for every read on the right side, also for those under `not`.
    pub fn reads<'a>(&'a self, visit: &mut dyn FnMut(&'a Read)) {
        for each in &self.terms {
            term(each, &mut |seen| {
                if let Seen::Read(read) | Seen::Not(read) = seen {
                    visit(read);
                }
            });
        }
    }
}

impl Program {
    /// The equations of every tensor.
    pub fn equations_of(&self, tensor: TensorId) -> impl Iterator<Item = (EquationId, &Equation)> {
        let numbered = (0u32..).map(EquationId).zip(&self.equations);
        numbered.filter(move |(_, equation)| equation.tensor == tensor)
    }

    /// The goals and every tensor that their values depend on.
    pub fn needs(&self, goals: &[TensorId]) -> BTreeSet<TensorId> {
        let mut direct = vec![BTreeSet::new(); self.tensors.len()];
        for equation in &self.equations {
            if let Some(reads) = direct.get_mut(equation.tensor.0 as usize) {
                equation.reads(&mut |read| {
                    reads.insert(read.tensor);
                });
            }
        }
        let mut needed = BTreeSet::new();
        let mut open: Vec<TensorId> = goals.to_vec();
        while let Some(tensor) = open.pop() {
            if needed.insert(tensor) {
                open.extend(direct.get(tensor.0 as usize).into_iter().flatten().copied());
            }
        }
        needed
    }
}
