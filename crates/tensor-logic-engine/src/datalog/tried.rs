//! Which tensors are tried by rules where other equations read them.
//!
//! Enter at [`for_rules`].

use crate::program::{Argument, Class, Component, Equation, IndexFn, Program, Role, Style, TensorId};

/// Whether a tensor that other equations read is tried by rules first: recursive relations, joins that are too large for tables, and
/// what reads a part of a relation that rules make.
pub(crate) fn for_rules(program: &Program, component: &Component, id: TensorId) -> bool {
    let equations =
        || component.equations.iter().map(|at| program.equation(*at)).filter(|own| own.tensor == id);
    match (program.tensor(id).style, &component.class) {
        (_, Class::Stepped(_)) => false,
        (style, Class::Plain) => {
            equations().any(|equation| is_wide(program, equation))
                || style == Style::Round && equations().any(|equation| is_part(program, equation))
        }
        (style, class) => style == Style::Round || matches!(class, Class::Closure),
    }
}

/// Whether a tensor joins three relations or sums over a closure: tables of all bindings would be large.
pub(super) fn joined(program: &Program, id: TensorId) -> bool {
    program.equations.iter().any(|equation| equation.tensor == id && is_wide(program, equation))
}

fn is_wide(program: &Program, equation: &Equation) -> bool {
    let mut reads = Vec::new();
    equation.visit_reads(&mut |read, _| reads.push(read.tensor));
    let round = |tensor: &TensorId| program.tensor(*tensor).style == Style::Round;
    reads.iter().all(round)
        && (reads.len() > 2 || reads.iter().any(|tensor| super::is_closure(program, *tensor)))
}

/// Whether a rule reads a relation that rules make with a constant: demand then asks for a part of it.
fn is_part(program: &Program, equation: &Equation) -> bool {
    let made = |tensor: TensorId| {
        let read = program.tensor(tensor);
        read.style == Style::Round && read.role == Role::Computed && tensor != equation.tensor
    };
    let is_constant = |argument: &Argument| matches!(argument, Argument::At(IndexFn::Const(_)));
    let mut found = false;
    equation.visit_reads(&mut |read, _| {
        found |= made(read.tensor) && read.arguments.iter().any(is_constant);
    });
    found
}
