//! Which indices occur in a piece of the core form, and which tensors a goal needs.
//!
//! Enter at [`Program::needs`] and [`expr_indices`].

use std::collections::BTreeSet;

use crate::program::{Argument, Expr, Guard, IndexId, Program, Read, Role, TensorId, When};

/// Visits the indices of a read.
pub fn read_indices(read: &Read, visit: &mut dyn FnMut(IndexId)) {
    for argument in &read.arguments {
        if let Argument::At(function) = argument {
            function.visit(&mut |index| visit(index));
        }
    }
}

/// Visits the indices of a value, also those that its own scopes bind.
pub fn expr_indices(expr: &Expr, visit: &mut dyn FnMut(IndexId)) {
    match expr {
        Expr::Index(function) => function.visit(&mut |index| visit(index)),
        Expr::Read(read) | Expr::Missing(read) => read_indices(read, visit),
        _ => {
            let (parts, when) = expr.parts();
            parts.iter().for_each(|part| expr_indices(part, visit));
            if let Some(when) = when {
                when_indices(when, visit);
            }
        }
    }
}

/// Visits the indices of a guard.
pub fn guard_indices(guard: &Guard, visit: &mut dyn FnMut(IndexId)) {
    match guard {
        Guard::Read(read) | Guard::Not(read) => read_indices(read, visit),
        Guard::CompareIndex(_, a, b) => {
            a.visit(&mut |index| visit(index));
            b.visit(&mut |index| visit(index));
        }
        Guard::Compare(_, a, b) => {
            expr_indices(a, visit);
            expr_indices(b, visit);
        }
        Guard::Bind(index, function) => {
            visit(*index);
            function.visit(&mut |index| visit(index));
        }
    }
}

/// Visits the indices of guards.
pub fn when_indices(when: &When, visit: &mut dyn FnMut(IndexId)) {
    when.guards.iter().for_each(|guard| guard_indices(guard, visit));
}

impl Program {
    /// The parameters that a goal needs and that may change, in order of the program.
    pub fn learnable(&self, goal: TensorId) -> Vec<TensorId> {
        let learned =
            |id: &TensorId| self.tensor(*id).role == Role::Parameter && !self.settings.constant.contains(id);
        self.needs(&[goal]).into_iter().filter(learned).collect()
    }

    /// The goals and every tensor that their values depend on.
    pub fn needs(&self, goals: &[TensorId]) -> BTreeSet<TensorId> {
        let mut direct = vec![BTreeSet::new(); self.tensors.len()];
        for equation in &self.equations {
            if let Some(reads) = direct.get_mut(equation.tensor.0 as usize) {
                equation.visit_reads(&mut |read, _| {
                    reads.insert(read.tensor);
                });
            }
        }
        let mut needed = BTreeSet::new();
        let mut open: Vec<TensorId> = goals.to_vec();
        while let Some(tensor) = open.pop() {
            if needed.insert(tensor) {
                open.extend(direct.get(tensor.0 as usize).into_iter().flatten().copied());
            }
        }
        needed
    }
}
