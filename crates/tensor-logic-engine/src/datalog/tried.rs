//! Which tensors are tried by rules where other equations read them.
//!
//! Enter at [`for_rules`].

use crate::program::{Argument, Class, Component, Equation, IndexFn, Program, Role, Style, TensorId};

/// Whether a tensor that other equations read is tried by rules first: recursive relations, and joins that are too large
/// for tables.
pub(crate) fn for_rules(program: &Program, component: &Component, id: TensorId) -> bool {
    match (program.tensor(id).style, &component.class) {
        (_, Class::Stepped(_)) => false,
        (style, Class::Plain) => joined(program, id) || style == Style::Round && is_part(program, id),
        (style, class) => style == Style::Round || matches!(class, Class::Closure),
    }
}

/// Whether a tensor joins three relations or sums over a closure: tables of all bindings would be large.
pub(super) fn joined(program: &Program, id: TensorId) -> bool {
    let wide = |equation: &Equation| {
        let mut reads = Vec::new();
        equation.visit_reads(&mut |read, _| reads.push(read.tensor));
        let round = |tensor: &TensorId| program.tensor(*tensor).style == Style::Round;
        reads.iter().all(round)
            && (reads.len() > 2 || reads.iter().any(|tensor| super::is_closure(program, *tensor)))
    };
    program.equations.iter().any(|equation| equation.tensor == id && wide(equation))
}

/// Whether a rule reads a relation that rules make with a constant: demand then asks for a part of it.
fn is_part(program: &Program, id: TensorId) -> bool {
    let made = |tensor: TensorId| {
        let read = program.tensor(tensor);
        read.style == Style::Round && read.role == Role::Computed && tensor != id
    };
    let is_constant = |argument: &Argument| matches!(argument, Argument::At(IndexFn::Const(_)));
    let mut found = false;
    for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
        equation.visit_reads(&mut |read, _| {
            found |= made(read.tensor) && read.arguments.iter().any(is_constant);
        });
    }
    found
}
