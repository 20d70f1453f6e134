//! Whether a gradient names every element of a parameter that the loss looks at.

use std::collections::BTreeSet;

use crate::function::Function;
use crate::program::{Class, Combine, Equation, Expr, Guard, Operation, Program, TensorId, When};

/// Whether every element of `parameter` that the goal's value hangs on gets an entry in a gradient that lists
/// elements. It does where nothing chooses by a value: the gradient of a maximum visits the winners only, that
/// of a guard or of `step` nothing.
pub fn are_all_listed(program: &Program, goal: TensorId, parameter: TensorId) -> bool {
    let needed = program.needs(&[goal]);
    let mut depends = BTreeSet::from([parameter]);
    loop {
        let before = depends.len();
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            let mut reads = false;
            equation.visit_reads(&mut |read, _| reads |= depends.contains(&read.tensor));
            if reads {
                depends.insert(equation.tensor);
            }
        }
        if depends.len() == before {
            break;
        }
    }
    let adds = |id: &TensorId| {
        *id == parameter || matches!(program.tensor(*id).combine, Combine::Sum | Combine::Avg)
    };
    let once = |id: &TensorId| {
        let own = program.components.iter().find(|component| component.tensors.contains(id));
        own.is_none_or(|component| matches!(component.class, Class::Plain | Class::Stepped(_)))
    };
    let smooth = |equation: &Equation| {
        equation.terms.iter().all(|term| when(&term.when, &depends) && expression(&term.body, &depends))
    };
    let own = program.equations.iter().filter(|equation| depends.contains(&equation.tensor));
    depends.iter().all(|id| adds(id) && once(id)) && own.into_iter().all(smooth)
}

/// Whether no guard hangs on one of these.
fn when(when: &When, depends: &BTreeSet<TensorId>) -> bool {
    when.guards.iter().all(|guard| match guard {
        Guard::Read(read) | Guard::Not(read) => !depends.contains(&read.tensor),
        Guard::Compare(_, a, b) => !hangs(a, depends) && !hangs(b, depends),
        Guard::CompareIndex(..) | Guard::Bind(..) => true,
    })
}

/// Whether a value hangs on one of these.
fn hangs(expr: &Expr, depends: &BTreeSet<TensorId>) -> bool {
    match expr {
        Expr::Read(read) | Expr::Missing(read) => depends.contains(&read.tensor),
        _ => {
            let (parts, guards) = expr.parts();
            parts.iter().any(|part| hangs(part, depends))
                || guards.is_some_and(|guards| !when(guards, depends))
        }
    }
}

/// Whether a value hangs smoothly on them.
fn expression(expr: &Expr, depends: &BTreeSet<TensorId>) -> bool {
    if !hangs(expr, depends) {
        return true;
    }
    let chooses = match expr {
        Expr::Missing(_) => true,
        Expr::Reduce(reduce) => !matches!(reduce.operation, Operation::Sum | Operation::Avg),
        Expr::Call(call) => matches!(
            call.function,
            Function::Step
                | Function::Sign
                | Function::Floor
                | Function::Max
                | Function::Min
                | Function::User(_)
        ),
        _ => false,
    };
    let (parts, guards) = expr.parts();
    !chooses
        && guards.is_none_or(|guards| when(guards, depends))
        && parts.iter().all(|part| expression(part, depends))
}
