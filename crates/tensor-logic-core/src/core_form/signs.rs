//! Where numbers may be below 0. Recursive relations without values whose equations add numbers up: one would take a tuple
//! away that others rest on, and is refused (N7). And the best of products: one turns the order round.
//!
//! Enter at [`watch`]: the least number that a binding contributes is a hidden relation under `min=`. And at [`keep_order`].

use std::collections::{BTreeMap, BTreeSet};

use crate::function::Function;
use crate::program::{
    AxisFunction, Class, Combine, Component, EquationId, Expr, Given, Kind, Operation, Program, Role, Style,
    TensorId,
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

/// Whether a number that a component adds up may be below 0: what else it reads of itself counts 1.
pub fn may_be_negative(program: &Program, component: &Component, expr: &Expr) -> bool {
    match expr {
        Expr::Number(value) => *value < 0.0,
        Expr::Missing(_) => false,
        Expr::Read(read) => {
            let tensor = program.tensor(read.tensor);
            let counted = tensor.kind == Kind::Bool || component.tensors.contains(&read.tensor);
            let fine = |given: &Given| given.numbers().iter().all(|value| *value >= 0.0);
            let given = tensor.role == Role::Data && tensor.given.iter().all(fine);
            !counted && !given
        }
        Expr::Index(_) | Expr::Negate(_) | Expr::Call(_) | Expr::Axis(_) => true,
        _ => expr.parts().0.iter().any(|part| may_be_negative(program, component, part)),
    }
}

/// Whether the products that a recursive tensor is the best of grow with what they read of their component: no other factor is
/// below 0, and of two factors of the component neither is. Where that is not so, the best of all that was ever derived need
/// be no fixpoint.
pub fn keep_order(program: &Program, component: &Component) -> bool {
    let below = below_zero(program, &component.tensors);
    let others: BTreeSet<TensorId> =
        below.iter().copied().filter(|id| !component.tensors.contains(id)).collect();
    component.equations.iter().map(|at| program.equation(*at)).all(|equation| {
        equation.terms.iter().all(|term| {
            let (mut own, mut negative) = (0, false);
            term.body.visit_reads(&mut |read, _| {
                own += usize::from(component.tensors.contains(&read.tensor));
                negative |= component.tensors.contains(&read.tensor) && below.contains(&read.tensor);
            });
            own == 0 || (!is_below_zero(&others, &term.body) && (own == 1 || !negative))
        })
    })
}

/// The tensors among those that some need that may hold a number below 0.
fn below_zero(program: &Program, goals: &[TensorId]) -> BTreeSet<TensorId> {
    let needed = program.needs(goals);
    let negative = |given: &Given| given.numbers().iter().any(|value| *value < 0.0);
    let start = needed.iter().copied().filter(|id| {
        let tensor = program.tensor(*id);
        // Where nothing contributes, a square element of a maximum is the least number there is.
        let least = tensor.style == Style::Square && tensor.combine.default_value() < 0.0;
        tensor.kind != Kind::Bool
            && (tensor.role == Role::Parameter || least || tensor.given.iter().any(negative))
    });
    let mut below: BTreeSet<TensorId> = start.collect();
    loop {
        let before = below.len();
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            let counts = program.tensor(equation.tensor).kind != Kind::Bool;
            if counts && equation.terms.iter().any(|term| is_below_zero(&below, &term.body)) {
                below.insert(equation.tensor);
            }
        }
        if below.len() == before {
            return below;
        }
    }
}

/// Whether a value may be below 0, where the tensors that may hold such numbers are these.
fn is_below_zero(below: &BTreeSet<TensorId>, expr: &Expr) -> bool {
    let any = |parts: &[Expr]| parts.iter().any(|part| is_below_zero(below, part));
    match expr {
        Expr::Number(value) => *value < 0.0,
        Expr::Missing(_) => false,
        Expr::Read(read) => below.contains(&read.tensor),
        Expr::Index(_) | Expr::Negate(_) => true,
        Expr::Product(parts) | Expr::Plus(parts) | Expr::Terms(parts) => any(parts),
        Expr::Quotient(a, b) => is_below_zero(below, a) || is_below_zero(below, b),
        Expr::Power(base, exponent) => {
            let even = matches!(**exponent, Expr::Number(n) if n % 2.0 == 0.0);
            !even && is_below_zero(below, base)
        }
        Expr::Reduce(reduce) => reduce.operation != Operation::Count && is_below_zero(below, &reduce.body),
        Expr::Call(call) => match call.function {
            Function::Step | Function::Sig | Function::Relu | Function::Exp | Function::Abs => false,
            Function::Softplus | Function::Sqrt => false,
            Function::Max | Function::Min | Function::Tanh | Function::Sign | Function::Floor => {
                any(&call.arguments)
            }
            _ => true,
        },
        Expr::Axis(axis) => !matches!(axis.function, AxisFunction::Softmax),
    }
}
