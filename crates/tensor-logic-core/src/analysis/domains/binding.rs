//! Which round reads bind an index: those whose absence makes the whole contribution absent.

use crate::program::{Argument, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Read, When};

/// Whether some round reference of a scope binds the index: wherever the body and the guards
/// are present, the index has a value that a tuple gives.
pub fn binds(index: IndexId, body: &Expr, when: &When) -> bool {
    in_expr(index, body) || in_when(index, when)
}

fn in_expr(index: IndexId, expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::Index(_) | Expr::Missing(_) => false,
        Expr::Read(read) => in_read(index, read),
        Expr::Product(parts) | Expr::Plus(parts) => parts.iter().any(|part| in_expr(index, part)),
        Expr::Quotient(a, b) | Expr::Power(a, b) => in_expr(index, a) || in_expr(index, b),
        Expr::Negate(a) => in_expr(index, a),
        // A term that is absent is skipped, so all of them must bind.
        Expr::Terms(parts) => !parts.is_empty() && parts.iter().all(|part| in_expr(index, part)),
        Expr::Reduce(reduce) => {
            let over_nothing =
                matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
            let present_anyway = reduce.explicit && over_nothing;
            !present_anyway && binds(index, &reduce.body, &reduce.when)
        }
        Expr::Call(call) => {
            call.arguments.iter().any(|part| in_expr(index, part)) || in_when(index, &call.when)
        }
        Expr::Axis(axis) => binds(index, &axis.argument, &axis.when),
    }
}

fn in_when(index: IndexId, when: &When) -> bool {
    when.guards.iter().any(|guard| match guard {
        Guard::Read(read) => in_read(index, read),
        Guard::Compare(_, left, right) => in_expr(index, left) || in_expr(index, right),
        Guard::Not(_) | Guard::CompareIndex(..) | Guard::Bind(..) => false,
    })
}

fn in_read(index: IndexId, read: &Read) -> bool {
    let round = read.otherwise == Otherwise::Absent;
    round && read.arguments.iter().any(|argument| matches!(argument, Argument::At(f) if solves(f, index)))
}

/// Whether a function gives the index back: it stands alone, or as `x + c`, `x - c`, `c - x`.
fn solves(function: &IndexFn, index: IndexId) -> bool {
    let is = |part: &IndexFn| part.alone() == Some(index);
    let constant = |part: &IndexFn| matches!(part, IndexFn::Const(_));
    match function {
        IndexFn::Index(id) => *id == index,
        IndexFn::Add(a, b) => (is(a) && constant(b)) || (is(b) && constant(a)),
        IndexFn::Subtract(a, b) => (is(a) && constant(b)) || (is(b) && constant(a)),
        _ => false,
    }
}
