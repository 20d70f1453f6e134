//! What tensors and equations are called in a profile.

use crate::ast::Span;
use crate::program::{Action, Equation, Program, Role, TensorId};
use crate::show;

/// The name of a tensor; of a query without one its text.
pub fn label(program: &Program, id: TensorId) -> String {
    let Some(tensor) = program.tensors.get(id.0 as usize) else { return "?".to_owned() };
    if tensor.hidden {
        let asked = program.actions.iter().find_map(|action| match action {
            Action::Query(query) if query.tensor == id => Some(query.text.clone()),
            Action::Write { file, tensor, .. } if *tensor == id => Some(format!("\"{file}\"")),
            _ => None,
        });
        return asked.unwrap_or_else(|| "what a query asks for".to_owned());
    }
    if tensor.version > 0 {
        return format!("{}, version {}", tensor.name, tensor.version + 1);
    }
    tensor.name.clone()
}

/// An equation as legal text; of a query its text.
pub fn equation(program: &Program, equation: &Equation) -> String {
    match program.tensors.get(equation.tensor.0 as usize) {
        Some(tensor) if tensor.hidden => label(program, equation.tensor),
        _ => show::equation(program, equation),
    }
}

/// Where a tensor is written, if the program does.
pub fn written(program: &Program, id: TensorId) -> Option<Span> {
    let tensor = program.tensor(id);
    let first = program.equations.iter().find(|equation| equation.tensor == id);
    let span = first.map_or(tensor.span, |equation| equation.span);
    (span != Span::default() && tensor.role != Role::Empty).then_some(span)
}
