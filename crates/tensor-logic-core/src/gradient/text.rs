//! A gradient as text.

use super::Adjoint;
use crate::program::TensorId;
use crate::show;

impl Adjoint {
    /// The gradient program as text: the original statements without queries, the gradient
    /// equations, and one query for each gradient.
    pub fn emit(&self) -> String {
        let mut program = self.program.clone();
        program.actions.clear();
        let asked: Vec<TensorId> = self.gradients.iter().flatten().copied().collect();
        let needed = program.needs(&asked);
        // What only the queries needed has no name that could be printed.
        let hidden: Vec<bool> = program.tensors.iter().map(|tensor| tensor.hidden).collect();
        let printed =
            |id: TensorId| needed.contains(&id) || !hidden.get(id.0 as usize).is_some_and(|hidden| *hidden);
        program.equations.retain(|equation| printed(equation.tensor));
        let unnamed: Vec<TensorId> = needed.iter().copied().filter(|id| program.tensor(*id).hidden).collect();
        for id in unnamed {
            if let Some(tensor) = program.tensors.get_mut(id.0 as usize) {
                tensor.name = format!("Goal_{}", id.0);
                tensor.hidden = false;
            }
        }
        let mut text = show::program(&program);
        for id in asked {
            text.push_str(program.name(id));
            text.push_str("?\n");
        }
        text
    }

    /// The gradient equations, one text each.
    pub fn equations(&self) -> Vec<String> {
        let added = self.program.equations.iter().skip(self.first_equation);
        added.map(|equation| show::equation(&self.program, equation)).collect()
    }
}
