//! The adjoint of a program is a program (reverse mode on equations).
//!
//! Enter at [`adjoint`]. For every occurrence of a tensor on a right side there is one adjoint
//! equation. With `Y[α] = f(U)`, `U = Σ T ∏ X`:
//!
//! ```text
//! Grad_U = Grad_Y f'(U)          Grad_T[…] = Σ over the other indices of  Grad_U ∏ X
//! ```
//!
//! The result goes through the same planner as every program. Recursion needs no case of its own:
//! the adjoint of a stepped component steps the other way, that of a numeric fixpoint
//! `X = F(X)` is the fixpoint `Λ = Grad + (∂F/∂X)ᵀΛ`, that of a closure runs along the
//! derivations that attain the value.
//!
//! `expression` walks a right side from the root to each occurrence and keeps the factor that
//! the path has collected; `combine` says what an element owes to each of its contributions.

use std::collections::HashMap;

use crate::ast::Span;
use crate::program::{
    Action, Argument, Combine, Equation, Expr, Facts, Given, Kind, Otherwise, Program, Read, Role, Style,
    TensorId, Term, When,
};

mod active;
mod axis;
mod builder;
mod chosen;
mod combine;
mod derivative;
mod expression;
mod forms;
mod parted;
mod products;
mod proofs;
mod text;

pub use chosen::are_all_listed;

use active::active;
use builder::{Builder, Scope};

/// A program that computes gradients beside what it computed before.
#[derive(Debug, Clone)]
pub struct Adjoint {
    /// The program: the original tensors keep their ids.
    pub program: Program,
    /// The tensors asked for.
    pub wrt: Vec<TensorId>,
    /// The gradient of each of them; `None` where the goal does not depend on it.
    pub gradients: Vec<Option<TensorId>>,
    /// The first equation that was added.
    pub first_equation: usize,
    /// The first tensor that was added.
    pub first_tensor: usize,
}

/// The gradients of a scalar with respect to tensors.
pub fn adjoint(program: &Program, goal: TensorId, wrt: &[TensorId]) -> Adjoint {
    build(program, goal, wrt, false)
}

/// The same gradients where an adjoint has entries only where something is owed, and nothing is on a way with a factor that
/// stays 0, however steep another one is: the root of 0 under a mask, a logarithm of 0 that loses a maximum. All adjoints
/// are relations and the factors are looked at twice, which costs time: to be asked where [`adjoint`] gives no number.
pub fn guarded_adjoint(program: &Program, goal: TensorId, wrt: &[TensorId]) -> Adjoint {
    build(program, goal, wrt, true)
}

fn build(program: &Program, goal: TensorId, wrt: &[TensorId], guarded: bool) -> Adjoint {
    let (first_equation, first_tensor) = (program.equations.len(), program.tensors.len());
    if let Some((mut parted, places)) = parted::parted(program) {
        settle(&mut parted);
        let goal = places.get(&goal).copied().unwrap_or(goal);
        return Adjoint { first_equation, first_tensor, ..build(&parted, goal, wrt, guarded) };
    }
    let needed = program.needs(&[goal]);
    let active = active(program, goal, &needed, wrt);
    let mut builder = Builder {
        program: program.clone(),
        active,
        adjoints: HashMap::new(),
        weights: HashMap::new(),
        contributions: HashMap::new(),
        entries: HashMap::new(),
        made: 0,
        stored: None,
        guarded,
        own: first_tensor,
    };
    if builder.active.contains(&goal) {
        let seed = builder.adjoint_of(goal);
        builder.seed(seed);
        for at in 0..first_equation {
            let equation = program.equations[at].clone();
            let proved = program.tensor(equation.tensor).is_proved();
            if builder.active.contains(&equation.tensor) && !equation.terms.is_empty() && !proved {
                builder.equation(&equation);
            }
        }
        for relation in builder.valued(goal, &needed) {
            builder.proofs(relation, wrt);
        }
    }
    let gradient = |id: &TensorId| match program.tensor(*id).is_proved() {
        true => builder.weights.get(id).copied(),
        false => builder.adjoints.get(id).copied(),
    };
    let gradients = wrt.iter().map(gradient).collect();
    let mut program = builder.program;
    settle(&mut program);
    Adjoint { program, wrt: wrt.to_vec(), gradients, first_equation, first_tensor }
}

/// Components of the grown program. Its recursion was legal, so its adjoint's is.
fn settle(program: &mut Program) {
    let tree = crate::ast::Program::default();
    if let Ok(components) = crate::recursion::analyse(program, &tree) {
        program.components = components;
    }
    program.actions.retain(|action| matches!(action, Action::Query(_)));
}

impl Builder {
    /// dGoal/dGoal = 1.
    fn seed(&mut self, seed: TensorId) {
        let mut facts = Facts::default();
        facts.push(&[], 1.0, Some(Span::default()));
        if let Some(tensor) = self.program.tensors.get_mut(seed.0 as usize) {
            tensor.given.push(Given::Facts(std::sync::Arc::new(facts)));
            if tensor.role == Role::Computed {
                tensor.style = Style::Square;
            }
        }
    }

    /// The adjoint equations of one equation.
    fn equation(&mut self, equation: &Equation) {
        let adjoint = self.adjoint_of(equation.tensor);
        let round = self.program.tensor(adjoint).style == Style::Round;
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let arguments: Vec<Argument> = equation.head.iter().cloned().map(Argument::At).collect();
        let incoming = Read::new(adjoint, arguments.clone(), otherwise, equation.head_span);
        for (nth, term) in equation.terms.iter().enumerate() {
            if !self.depends(&term.body) {
                continue;
            }
            let mut indices = equation.left.clone();
            indices.extend(&term.over);
            let mut factors = vec![Expr::Read(incoming.clone())];
            let scope = Scope { indices, when: When::default() };
            let scope = scope.opened(&[], &term.when, &mut factors, equation.span);
            self.stored = self.own_value(equation, term, arguments.clone());
            self.contribution(equation, nth, term, &scope, factors);
            self.stored = None;
        }
    }

    /// The function that alone makes all elements of a square tensor, or all tuples of a round one, and the read of it.
    fn own_value(&self, equation: &Equation, term: &Term, arguments: Vec<Argument>) -> Option<(u64, Expr)> {
        let tensor = self.program.tensor(equation.tensor);
        let others = self.program.equations.iter().filter(|other| other.tensor == equation.tensor).count();
        let round = tensor.style == Style::Round;
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let read = Read::new(equation.tensor, arguments, otherwise, equation.head_span);
        // A tuple is there where its contribution is, and each binding has a tuple of its own.
        let exists = match round {
            true => equation.head.iter().all(|place| place.alone().is_some()),
            false => self.exists(&read),
        };
        let alone = others == 1
            && equation.terms.len() == 1
            && term.over.is_empty()
            && term.when.guards.is_empty()
            && tensor.combine == Combine::Sum
            && tensor.kind == Kind::Real
            && tensor.given.is_empty();
        let body = match &term.body {
            Expr::Terms(parts) if parts.len() == 1 => parts.first()?,
            body => body,
        };
        let (_, Some(when)) = body.parts() else { return None };
        (alone && exists).then(|| (when.node.number(), Expr::Read(read)))
    }
}
