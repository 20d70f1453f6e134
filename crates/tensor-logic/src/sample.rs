//! Selective projection (N14): the outermost sum of a model, estimated from some of its bindings.
//!
//! Enter at [`estimate`].

use crate::ast::Span;
use crate::engine::{Engine, Request, Value};
use crate::error::{Code, Report, Result};
use crate::program::{
    Class, Combine, Component, Equation, EquationId, IndexFn, Kind, Place, Program, Role, Style, Tensor,
    TensorId, Term,
};

/// An estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Unbiased.
    pub value: f64,
    /// The standard deviation of the mean of the draws, scaled like the estimate.
    pub standard_error: f64,
}

/// The mean of `n` bindings, drawn uniformly with replacement from those that are present, times
/// their number. Draw k is item k of the seed's family, so that threads cannot matter.
///
/// # Errors
/// `not-a-model` where the goal is no sum of products, and refusals of the evaluation.
pub fn estimate(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    goal: TensorId,
    (n, seed): (u64, u64),
    place: Span,
) -> Result<Estimate> {
    let tensor = request.program.tensor(goal);
    if !tensor.places.is_empty() || tensor.combine != Combine::Sum {
        let message = format!("`{}` is no scalar sum, of which terms could be drawn", tensor.name);
        return Err(Report::new(Code::NotAModel, place, message));
    }
    let (program, parts) = opened(request.program, goal);
    let mut terms: Vec<f64> = Vec::new();
    for value in engine.values(&Request { program: &program, ..request.clone() }, &parts)? {
        if let Value::Tuples(tuples) = value {
            terms.extend(tuples.values);
        }
    }
    let family = seeded::Family::new("tensor-logic", "sample", seed);
    let count = terms.len() as u64;
    if count == 0 || n == 0 {
        return Ok(Estimate { value: 0.0, standard_error: 0.0 });
    }
    // Welford's running mean and sum of squared deviations.
    let (mut mean, mut squares) = (0.0, 0.0);
    for draw in 0..n {
        let at = family.stream(draw).below(count) as usize;
        let term = terms.get(at).copied().unwrap_or(0.0);
        let gap = term - mean;
        mean += gap / (draw + 1) as f64;
        squares += gap * (term - mean);
    }
    let variance = squares / n.saturating_sub(1).max(1) as f64;
    let scale = count as f64;
    Ok(Estimate { value: scale * mean, standard_error: scale * (variance / n as f64).sqrt() })
}

/// The program with one more relation for every term of the goal's equations: the value of each
/// of its bindings.
fn opened(program: &Program, goal: TensorId) -> (Program, Vec<TensorId>) {
    let mut opened = program.clone();
    let mut parts = Vec::new();
    for equation in program.equations.iter().filter(|equation| equation.tensor == goal) {
        for term in &equation.terms {
            let id = TensorId(u32::try_from(opened.tensors.len()).unwrap_or(u32::MAX));
            let place = Place { domain: None, limit: None, star: false };
            opened.tensors.push(Tensor {
                name: program.name(goal).to_owned(),
                version: 0,
                hidden: true,
                style: Style::Round,
                kind: Kind::Real,
                combine: Combine::Sum,
                places: vec![place; term.over.len()],
                role: Role::Computed,
                given: Vec::new(),
                start: None,
                span: program.tensor(goal).span,
            });
            let number = EquationId(u32::try_from(opened.equations.len()).unwrap_or(u32::MAX));
            opened.equations.push(Equation {
                tensor: id,
                head: term.over.iter().map(|index| IndexFn::Index(*index)).collect(),
                left: term.over.clone(),
                terms: vec![Term { over: Vec::new(), when: term.when.clone(), body: term.body.clone() }],
                ..equation.clone()
            });
            opened.components.push(Component {
                tensors: vec![id],
                equations: vec![number],
                class: Class::Plain,
            });
            parts.push(id);
        }
    }
    (opened, parts)
}
