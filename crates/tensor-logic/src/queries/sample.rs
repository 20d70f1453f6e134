//! Selective projection (N14): the outermost sum of a model, estimated from some of its bindings.
//!
//! Enter at [`estimate`]; [`conditional`] estimates quotients of two such sums.

use crate::ast::Span;
use crate::engine::{Engine, Request, Stop, Tuples, Value};
use crate::error::{Code, Refusal, Result};
use crate::program::{
    Class, Combine, Component, Equation, EquationId, Given, IndexFn, Kind, Place, Program, Range, Role,
    Style, Tensor, TensorId, Term,
};
use crate::reference::Evaluated;
use crate::value::Const;

mod quotient;

pub use quotient::conditional;

/// An estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Unbiased.
    pub value: f64,
    /// The standard deviation of the mean of the draws, scaled like the estimate; one draw does not say how far draws scatter.
    pub standard_error: Option<f64>,
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
    is_sum(request.program, goal, place)?;
    let family = family(seed);
    if let Some(boxes) = too_many(request, goal) {
        return from_boxes(engine, request, goal, (n, place), family, &boxes);
    }
    let terms: Vec<f64> = listed(engine, request, goal)?.into_iter().flat_map(|part| part.values).collect();
    let count = terms.len() as u64;
    let draw = |at: u64| terms.get(family.stream(at).below(count) as usize).copied().unwrap_or(0.0);
    mean(n, count as f64, (&engine.stop(), place), draw)
}

/// Makes n draws, until somebody asks to stop.
fn each(n: u64, (stop, place): (&Stop, Span), mut draw: impl FnMut(u64)) -> Result<()> {
    for at in 0..n {
        if at.is_multiple_of(1 << 10) {
            stop.check(place)?;
        }
        draw(at);
    }
    Ok(())
}

/// Draw k is item k of this family.
fn family(seed: u64) -> seeded::Family {
    seeded::Family::new("tensor-logic", "sample", seed)
}

/// # Errors
/// `not-a-model` where the goal is no sum of products.
fn is_sum(program: &Program, goal: TensorId, place: Span) -> Result<()> {
    let tensor = program.tensor(goal);
    if !tensor.places.is_empty() || tensor.combine != Combine::Sum {
        let message = format!("`{}` is no scalar sum, of which terms could be drawn", tensor.name);
        return Err(Refusal::new(Code::NotAModel, place, message));
    }
    Ok(())
}

/// Sums of more bindings than these are drawn from without listing them, and of such that have more values together.
const LISTED: u128 = 1 << 20;
const VALUES: u128 = 1 << 22;

/// The terms of a goal with the numbers of their bindings, where these are known and too many to be listed.
fn too_many<'p>(request: &Request<'p>, goal: TensorId) -> Option<Vec<(&'p Term, u128)>> {
    // Lists of values take about so many bytes for each.
    let most = VALUES.min(u128::from(request.budget.bytes) / 64);
    let values = |boxes: &[(&Term, u128)]| {
        let of = |(term, size): &(&Term, u128)| size.saturating_mul(term.over.len() as u128 + 1);
        boxes.iter().map(of).fold(0, u128::saturating_add)
    };
    boxes(request.program, goal).filter(|boxes| total(boxes) > LISTED || values(boxes) > most)
}

fn total(boxes: &[(&Term, u128)]) -> u128 {
    boxes.iter().map(|(_, size)| *size).fold(0u128, u128::saturating_add)
}

/// The bindings of each term that are present, with their values, and last what is given of the goal.
fn listed(engine: &mut dyn Engine, request: &Request<'_>, goal: TensorId) -> Result<Vec<Tuples>> {
    let (program, parts) = opened(request.program, goal);
    let values = engine.values(&Request { program: &program, ..request.clone() }, &parts)?;
    let tuples = |value: Value| match value {
        Value::Tuples(tuples) => tuples,
        Value::Dense(_) | Value::Counts(_) => Tuples::default(),
    };
    let given = given(request.program, goal);
    let given = Tuples { tuples: vec![Vec::new(); given.len()], values: given, counts: Vec::new() };
    Ok(values.into_iter().map(tuples).chain([given]).collect())
}

/// The numbers that are given of a scalar: each is a binding of its own.
fn given(program: &Program, goal: TensorId) -> Vec<f64> {
    let numbers = |given: &Given| match given {
        Given::Facts(facts) => (0..facts.count).map(|at| facts.value(at)).collect::<Vec<f64>>(),
        Given::Columns(columns) => (0..columns.len).map(|at| columns.value(at)).collect(),
        Given::Array { values, .. } => values.to_vec(),
    };
    program.tensor(goal).given.iter().flat_map(numbers).collect()
}

/// The mean of n draws and its standard error, times a scale (Welford's running sums).
fn mean(n: u64, scale: f64, until: (&Stop, Span), mut draw: impl FnMut(u64) -> f64) -> Result<Estimate> {
    if n == 0 || scale == 0.0 {
        return Ok(Estimate { value: 0.0, standard_error: Some(0.0) });
    }
    let (mut mean, mut squares) = (0.0, 0.0);
    each(n, until, |at| {
        let term = draw(at);
        let gap = term - mean;
        mean += gap / (at + 1) as f64;
        squares += gap * (term - mean);
    })?;
    let error = |degrees: u64| scale * (squares / degrees as f64 / n as f64).sqrt();
    Ok(Estimate { value: scale * mean, standard_error: (n > 1).then(|| error(n - 1)) })
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
    (n, place): (u64, Span),
    family: seeded::Family,
    boxes: &[(&Term, u128)],
) -> Result<Estimate> {
    let evaluated = Evaluated::below(request, engine, goal)?;
    let given = given(request.program, goal);
    let all = total(boxes).saturating_add(given.len() as u128);
    let mut values: Vec<Const> = Vec::new();
    let draw = |at: u64| match pick(request.program, boxes, family.stream(at).below_u128(all), &mut values) {
        Ok((_, term)) => evaluated.contribution(term, &values).unwrap_or(0.0),
        Err(beyond) => given.get(beyond as usize).copied().unwrap_or(0.0),
    };
    mean(n, all as f64, (&engine.stop(), place), draw)
}

/// The binding of this number among all combinations of values: the term, its position, and the values of its summed
/// indices; or how far the number lies beyond them.
fn pick<'t>(
    program: &Program,
    boxes: &[(&'t Term, u128)],
    mut number: u128,
    values: &mut Vec<Const>,
) -> std::result::Result<(usize, &'t Term), u128> {
    for (at, (term, size)) in boxes.iter().enumerate() {
        if number >= *size {
            number -= size;
            continue;
        }
        values.clear();
        for index in &term.over {
            if let Range::Domain(domain) = &program.index(*index).range {
                let count = (domain.len() as u128).max(1);
                values.extend(domain.value((number % count) as usize));
                number /= count;
            }
        }
        return Ok((at, term));
    }
    Err(number)
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
