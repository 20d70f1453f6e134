//! A gradient as text.

use super::Adjoint;
use crate::error::{Code, Refusal, Result};
use crate::program::{Combine, Equation, TensorId};
use crate::show;

impl Adjoint {
    /// The gradient program as text: the original statements without queries, the gradient
    /// equations, and one query for each gradient.
    ///
    /// # Errors
    /// `not-yet` where a gradient goes through proofs: between a relation with probabilities and its weights there are no
    /// equations.
    pub fn emit(&self) -> Result<String> {
        let mut program = self.program.clone();
        program.actions.clear();
        if let Some(slopes) = program.equations.iter().find(|equation| self.is_slopes(equation)) {
            let mut relation = None;
            slopes.visit_reads(&mut |read, _| relation = relation.or(Some(read.tensor)));
            let relation = relation.unwrap_or(slopes.tensor);
            let name = program.name(relation);
            let message = format!(
                "the gradient through the proofs of `{name}` is no equation, and no program can be printed"
            );
            let report = Refusal::new(Code::NotYet, program.left_side(relation), message);
            return Err(report.help("`tl grad` without --emit gives its values"));
        }
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
        Ok(text)
    }

    fn is_slopes(&self, equation: &Equation) -> bool {
        self.program.tensor(equation.tensor).combine == Combine::Slopes
    }

    /// The gradient equations, one text each. What comes from circuits is read by them, and has none.
    pub fn equations(&self) -> Vec<String> {
        let added = self.program.equations.iter().skip(self.first_equation);
        added
            .filter(|equation| !self.is_slopes(equation))
            .map(|equation| show::equation(&self.program, equation))
            .collect()
    }
}
