//! Selective projection (N14): the outermost sum of a model, estimated from some of its bindings.
//!
//! Enter at [`estimate`].

use crate::ast::Span;
use crate::engine::{Engine, Request, Value};
use crate::error::{Code, Refusal, Result};
use crate::program::{
    Class, Combine, Component, Equation, EquationId, IndexFn, Kind, Place, Program, Range, Role, Style,
    Tensor, TensorId, Term,
};
use crate::reference::Evaluated;
use crate::value::Const;

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
        return Err(Refusal::new(Code::NotAModel, place, message));
    }
    let family = seeded::Family::new("tensor-logic", "sample", seed);
    if let Some(boxes) = boxes(request.program, goal)
        && boxes.iter().map(|(_, size)| *size).fold(0u128, u128::saturating_add) > LISTED
    {
        return from_boxes(engine, request, goal, n, family, &boxes);
    }
    let (program, parts) = opened(request.program, goal);
    let mut terms: Vec<f64> = Vec::new();
    for value in engine.values(&Request { program: &program, ..request.clone() }, &parts)? {
        if let Value::Tuples(tuples) = value {
            terms.extend(tuples.values);
        }
    }
    let count = terms.len() as u64;
    let draw = |at: u64| terms.get(family.stream(at).below(count) as usize).copied().unwrap_or(0.0);
    Ok(mean(n, count as f64, draw))
}

/// Sums of more bindings than these are drawn from without listing them.
const LISTED: u128 = 1 << 20;

/// The mean of n draws and its standard error, times a scale (Welford's running sums).
fn mean(n: u64, scale: f64, mut draw: impl FnMut(u64) -> f64) -> Estimate {
    if n == 0 || scale == 0.0 {
        return Estimate { value: 0.0, standard_error: 0.0 };
    }
    let (mut mean, mut squares) = (0.0, 0.0);
    for at in 0..n {
        let term = draw(at);
        let gap = term - mean;
        mean += gap / (at + 1) as f64;
        squares += gap * (term - mean);
    }
    let variance = squares / n.saturating_sub(1).max(1) as f64;
    Estimate { value: scale * mean, standard_error: scale * (variance / n as f64).sqrt() }
}

/// The terms of a goal with the numbers of their bindings, where all ranges are known.
fn boxes(program: &Program, goal: TensorId) -> Option<Vec<(&Term, u128)>> {
    let equations = program.equations.iter().filter(|equation| equation.tensor == goal);
    let size = |term: &Term| {
        term.over.iter().try_fold(1u128, |size, index| match &program.index(*index).range {
            Range::Domain(domain) => size.checked_mul(domain.len() as u128),
            Range::Tuples | Range::Computed => None,
        })
    };
    equations.flat_map(|equation| &equation.terms).map(|term| Some((term, size(term)?))).collect()
}

/// Draws from all combinations of values; one that is not present counts as 0, which leaves the
/// estimate unbiased.
fn from_boxes(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    goal: TensorId,
    n: u64,
    family: seeded::Family,
    boxes: &[(&Term, u128)],
) -> Result<Estimate> {
    let evaluated = Evaluated::below(request, engine, goal)?;
    let all = boxes.iter().map(|(_, size)| *size).fold(0u128, u128::saturating_add);
    let mut values: Vec<Const> = Vec::new();
    let draw = |at: u64| {
        let mut number = family.stream(at).below_u128(all);
        for (term, size) in boxes {
            if number >= *size {
                number -= size;
                continue;
            }
            values.clear();
            for index in &term.over {
                if let Range::Domain(domain) = &request.program.index(*index).range {
                    let count = (domain.len() as u128).max(1);
                    values.extend(domain.value((number % count) as usize));
                    number /= count;
                }
            }
            return evaluated.contribution(term, &values).unwrap_or(0.0);
        }
        0.0
    };
    Ok(mean(n, all as f64, draw))
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
