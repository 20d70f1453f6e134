//! The adjoints of softmax and lnorm along their axes.
//!
//! With `Q` the adjoint of the result and sums over the present entries along the axes:
//!
//! ```text
//! softmax   Grad = P (Q - Σ P Q)
//! lnorm     Grad = (Q - mean(Q) - y mean(Q y)) / s,   s = sqrt(var + eps)
//! ```

use super::builder::{Builder, Scope};
use super::expression::always_present;
use super::forms::{present, product, under};
use crate::ast::{Comparison, Span};
use crate::function::Function;
use crate::program::{
    Argument, Axis, AxisFunction, Call, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Read, Reduce,
    TensorId, When,
};
use crate::rename::Renaming;

fn minus(expr: Expr) -> Expr {
    Expr::Negate(Box::new(expr))
}

impl Builder {
    /// Walks the argument of `axis`, whose adjoint is stored in `incoming` over `indices`.
    pub(super) fn axis_adjoint(
        &mut self,
        axis: &Axis,
        indices: &[IndexId],
        incoming: TensorId,
        restricted: bool,
    ) {
        let span = axis.span;
        // Entries without an adjoint count with 0.
        let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
        let read = Expr::Read(Read::new(incoming, arguments, Otherwise::Absent, span));
        let adjoint = Expr::Reduce(Box::new(Reduce {
            operation: Operation::Sum,
            over: Vec::new(),
            when: When::default(),
            body: read.clone(),
            explicit: true,
            span,
        }));
        let value = self.stored_value(axis, indices, restricted);
        // An adjoint is looked up everywhere, and so is a stored value: only the argument's tuples say where the entries are.
        let open = !indices.iter().all(|index| self.is_ranged(*index));
        let entries = |mut factors: Vec<Expr>| {
            factors.extend(open.then(|| present(&axis.argument)));
            Expr::Product(factors)
        };
        let body = match &axis.function {
            AxisFunction::Softmax => {
                let weighted = entries(vec![value.clone(), adjoint.clone()]);
                let sum = self.along(axis, Operation::Sum, weighted);
                Expr::Product(vec![value, Expr::Plus(vec![adjoint, minus(sum)])])
            }
            AxisFunction::Lnorm(epsilon) => {
                let entry = present(&axis.argument);
                let mean = self.along(axis, Operation::Avg, Expr::Product(vec![adjoint.clone(), entry]));
                let mut along = vec![adjoint.clone(), value.clone()];
                // A stored value is 0 where there is no entry, which counts as none.
                if open || !always_present(&self.program, &axis.argument) {
                    along.push(present(&axis.argument));
                }
                let along = Expr::Product(along);
                let along = self.along(axis, Operation::Avg, along);
                let centred = Expr::Plus(vec![
                    adjoint.clone(),
                    minus(mean),
                    minus(Expr::Product(vec![value.clone(), along])),
                ]);
                let spread = self.spread(axis, epsilon.as_ref());
                if let Some(epsilon) = epsilon {
                    // d y / d eps = -y / (2 s²)
                    let squared = Expr::Product(vec![spread.clone(), spread.clone()]);
                    let slope = Expr::Quotient(
                        Box::new(Expr::Product(vec![Expr::Number(-0.5), adjoint.clone(), value.clone()])),
                        Box::new(squared),
                    );
                    let scope = Scope { indices: indices.to_vec(), when: When::default() };
                    self.walk(epsilon, &scope, vec![slope], span);
                }
                Expr::Quotient(Box::new(centred), Box::new(spread))
            }
        };
        if !self.depends(&axis.argument) {
            return;
        }
        let body = if open { entries(vec![body]) } else { body };
        let body = match self.guarded {
            // Along an axis no entry of which has an adjoint nothing is owed.
            true => {
                let count = self.along(axis, Operation::Count, read);
                let some = Guard::Compare(Comparison::Greater, count, Expr::Number(0.0));
                under(vec![some].into(), body, span)
            }
            false => body,
        };
        let helper = self.helper("Grad_Part", indices, restricted, span);
        let head = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        let scope = Scope { indices: indices.to_vec(), when: When::default() };
        let when = axis.when.clone();
        let body = if when.guards.is_empty() { body } else { under(when, body, span) };
        self.owe(helper, head, &scope, body, span);
        let below = self.read_of(helper, indices, span);
        self.walk(&axis.argument, &scope, vec![below], span);
    }

    /// The result of the function, as a stored tensor where that is one: the equation's own, or a
    /// helper that is computed once.
    fn stored_value(&mut self, axis: &Axis, indices: &[IndexId], restricted: bool) -> Expr {
        if let Some((whole, stored)) = &self.stored
            && *whole == axis.when.node.number()
            && is_over(stored, indices)
        {
            return stored.clone();
        }
        let value = Expr::Axis(Box::new(axis.clone()));
        if restricted || !indices.iter().all(|index| self.is_ranged(*index)) {
            return value;
        }
        let helper = self.helper("Value", indices, false, axis.span);
        let head = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        let scope = Scope { indices: indices.to_vec(), when: When::default() };
        self.push(helper, head, &scope, value, axis.span);
        self.read_of(helper, indices, axis.span)
    }

    /// A sum or mean over the entries along the axes.
    fn along(&mut self, axis: &Axis, operation: Operation, body: Expr) -> Expr {
        let mut renaming = Renaming::new(&mut self.program);
        let over: Vec<IndexId> = axis.axes.iter().map(|index| renaming.fresh(*index)).collect();
        let when = renaming.when(&axis.when);
        let body = renaming.expr(&body);
        Expr::Reduce(Box::new(Reduce { operation, over, when, body, explicit: true, span: axis.span }))
    }

    /// sqrt(mean((x - mean(x))²) + eps)
    fn spread(&mut self, axis: &Axis, epsilon: Option<&Expr>) -> Expr {
        let span = axis.span;
        let mean = self.along(axis, Operation::Avg, axis.argument.clone());
        let distance = Expr::Plus(vec![axis.argument.clone(), minus(mean)]);
        let square = Expr::Power(Box::new(distance), Box::new(Expr::Number(2.0)));
        let variance = self.along(axis, Operation::Avg, square);
        let epsilon = epsilon.cloned().unwrap_or(Expr::Number(1e-5));
        sqrt(Expr::Plus(vec![variance, epsilon]), span)
    }
}

/// Whether a read has places for none but these indices: along further ones the same values stand again.
fn is_over(stored: &Expr, indices: &[IndexId]) -> bool {
    let Expr::Read(read) = stored else { return false };
    let own = |argument: &Argument| {
        let function = Argument::function(argument);
        function.and_then(IndexFn::alone).is_some_and(|index| indices.contains(&index))
    };
    read.arguments.iter().all(own)
}

fn sqrt(expr: Expr, span: Span) -> Expr {
    let arguments = vec![product(vec![expr])];
    Expr::Call(Box::new(Call { function: Function::Sqrt, arguments, when: When::default(), span }))
}
