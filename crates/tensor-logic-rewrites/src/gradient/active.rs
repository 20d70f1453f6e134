//! Which tensors have an adjoint.

use std::collections::BTreeSet;

use super::derivative::is_flat;
use crate::program::{AxisFunction, Combine, Expr, Operation, Program, Read, TensorId};
use crate::weighted;

/// The tensors that depend on what is asked for, and on which the goal depends smoothly: not only below a `floor`, a
/// `count` or a guard, through which nothing flows back.
pub(super) fn active(
    program: &Program,
    goal: TensorId,
    needed: &BTreeSet<TensorId>,
    wrt: &[TensorId],
) -> BTreeSet<TensorId> {
    let mut active: BTreeSet<TensorId> = wrt.iter().copied().filter(|id| needed.contains(id)).collect();
    loop {
        let before = active.len();
        for equation in &program.equations {
            let (tensor, mut depends) = (equation.tensor, false);
            equation.visit_reads(&mut |read, _| depends |= active.contains(&read.tensor));
            if depends && needed.contains(&tensor) && is_smooth(program, tensor) {
                active.insert(tensor);
            }
        }
        if active.len() == before {
            break;
        }
    }
    let reached = reached(program, goal);
    active.retain(|id| reached.contains(id));
    active
}

/// Whether values hang on those below, and not only on what there is.
fn is_smooth(program: &Program, id: TensorId) -> bool {
    !matches!(program.tensor(id).combine, Combine::Exists | Combine::Or)
}

/// What the goal's adjoint flows to.
fn reached(program: &Program, goal: TensorId) -> BTreeSet<TensorId> {
    let (mut reached, mut open) = (BTreeSet::from([goal]), vec![goal]);
    while let Some(tensor) = open.pop() {
        let mut found = Vec::new();
        if program.tensor(tensor).is_proved() {
            found.extend(weighted::sources(program, tensor));
        } else if is_smooth(program, tensor) {
            let own = program.equations.iter().filter(|equation| equation.tensor == tensor);
            for term in own.flat_map(|equation| &equation.terms) {
                flows(&term.body, &mut |read| found.push(read.tensor));
            }
        }
        open.extend(found.into_iter().filter(|id| reached.insert(*id)));
    }
    reached
}

/// Visits the reads that the adjoint of an expression flows to.
pub(super) fn flows(expr: &Expr, visit: &mut impl FnMut(&Read)) {
    match expr {
        Expr::Number(_) | Expr::Index(_) | Expr::Missing(_) => {}
        Expr::Read(read) => visit(read),
        Expr::Negate(part) => flows(part, visit),
        Expr::Terms(parts) | Expr::Plus(parts) | Expr::Product(parts) => {
            parts.iter().for_each(|part| flows(part, visit));
        }
        Expr::Quotient(a, b) => [a, b].into_iter().for_each(|part| flows(part, visit)),
        // X^0 is 1.
        Expr::Power(_, exponent) if matches!(**exponent, Expr::Number(0.0)) => {}
        Expr::Power(base, exponent) => [base, exponent].into_iter().for_each(|part| flows(part, visit)),
        Expr::Reduce(reduce) if reduce.operation == Operation::Count => {}
        Expr::Reduce(reduce) => flows(&reduce.body, visit),
        Expr::Call(call) if is_flat(&call.function) => {}
        Expr::Call(call) => call.arguments.iter().for_each(|part| flows(part, visit)),
        Expr::Axis(axis) => {
            flows(&axis.argument, visit);
            if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function {
                flows(epsilon, visit);
            }
        }
    }
}
