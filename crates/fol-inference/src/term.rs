//! Term questions: equations of variables, and which variable stands at the end of a chain.

use fol::ast::Variable;
use fol::task::Task;
use seeded::Stream;

use crate::instance::{Format, Instance, Label};
use crate::space::Space;

/// A chain of `depth` equations `a = b, b = c, …` that is followed to its end, among up to so many others, half of which lead into the
/// chain. No variable stands on the left of two equations, so the end is one.
pub(crate) fn term(depth: usize, space: &Space, draw: &mut Stream) -> Instance {
    let mut fresh = draw.permutation(space.names).into_iter().map(|index| Variable(u64::from(index)));
    let mut next = || fresh.next().unwrap_or(Variable(0));
    let chain: Vec<Variable> = (0..=depth).map(|_| next()).collect();
    let mut equations: Vec<(Variable, Variable)> = chain
        .windows(2)
        .filter_map(|pair| match pair {
            [left, right] => Some((*left, *right)),
            _ => None,
        })
        .collect();
    let count = draw.below(space.distractors + 1);
    for number in 0..count {
        let left = next();
        let at = draw.below(chain.len() as u64) as usize;
        let right = if number.is_multiple_of(2) { chain.get(at).copied() } else { None };
        let right = right.unwrap_or_else(&mut next);
        equations.push((left, right));
    }
    let shuffled = draw.permutation(equations.len() as u32).into_iter();
    let equations = shuffled.filter_map(|at| equations.get(at as usize).copied()).collect();
    let ends = (chain.first().copied(), chain.last().copied());
    let (asked, answer) = (ends.0.unwrap_or(Variable(0)), ends.1.unwrap_or(Variable(0)));
    Instance {
        format: Format::Term,
        order: space.order,
        depth,
        label: Label::Follows,
        task: Task::Term { equations, asked, answer },
        rules: Vec::new(),
        proof: Vec::new(),
        edit: None,
        models: Vec::new(),
    }
}
