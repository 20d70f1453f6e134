//! Recursive relations without values whose equations add numbers up: a number below 0 would take a tuple away that
//! others rest on, and is refused (N7).
//!
//! Enter at [`watch`]. The least number that a binding contributes is a hidden relation under `min=`.

use std::collections::BTreeMap;

use crate::program::{
    Class, Combine, Component, EquationId, Expr, Given, Kind, Program, Role, Style, TensorId,
};

/// Adds a relation of the least contributions for every relation that may meet one below 0: which, for which.
pub fn watch(program: &mut Program) -> BTreeMap<TensorId, TensorId> {
    let mut watches = BTreeMap::new();
    let closures: Vec<Component> =
        program.components.iter().filter(|c| matches!(c.class, Class::Closure)).cloned().collect();
    for component in closures {
        for id in &component.tensors {
            let tensor = program.tensor(*id);
            if tensor.combine != Combine::Exists || tensor.style != Style::Round {
                continue;
            }
            let doubtful: Vec<EquationId> = component
                .equations
                .iter()
                .copied()
                .filter(|at| program.equation(*at).tensor == *id && is_doubtful(program, &component, *at))
                .collect();
            if doubtful.is_empty() {
                continue;
            }
            let mut least = tensor.clone();
            (least.hidden, least.kind, least.combine) = (true, Kind::Real, Combine::Min);
            least.given.clear();
            let watch = TensorId(program.tensors.len() as u32);
            program.tensors.push(least);
            let mut equations = Vec::new();
            for at in doubtful {
                let mut equation = program.equation(at).clone();
                equation.tensor = watch;
                equations.push(EquationId(program.equations.len() as u32));
                program.equations.push(equation);
            }
            program.components.push(Component { tensors: vec![watch], equations, class: Class::Plain });
            watches.insert(*id, watch);
        }
    }
    watches
}

/// Whether an equation of a component reads the component, and may add a number below 0.
fn is_doubtful(program: &Program, component: &Component, at: EquationId) -> bool {
    let equation = program.equation(at);
    let mut recursive = false;
    equation.visit_reads(&mut |read, _| recursive |= component.tensors.contains(&read.tensor));
    recursive && equation.terms.iter().any(|term| may_be_negative(program, component, &term.body))
}

fn may_be_negative(program: &Program, component: &Component, expr: &Expr) -> bool {
    match expr {
        Expr::Number(value) => *value < 0.0,
        Expr::Missing(_) => false,
        Expr::Read(read) => {
            let tensor = program.tensor(read.tensor);
            let counted = tensor.kind == Kind::Bool || component.tensors.contains(&read.tensor);
            let fine = |given: &Given| match given {
                Given::Facts(facts) => facts.values.iter().all(|value| *value >= 0.0),
                Given::Columns(columns) => {
                    columns.values.iter().flat_map(|values| values.iter()).all(|value| *value >= 0.0)
                }
                Given::Array { values, .. } => values.iter().all(|value| *value >= 0.0),
            };
            let given = tensor.role == Role::Data && tensor.given.iter().all(fine);
            !counted && !given
        }
        Expr::Index(_) | Expr::Negate(_) | Expr::Call(_) | Expr::Axis(_) => true,
        _ => expr.parts().0.iter().any(|part| may_be_negative(program, component, part)),
    }
}
