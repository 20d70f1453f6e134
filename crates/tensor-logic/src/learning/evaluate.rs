//! The value and the gradients of a scalar: what `tl grad` answers.
//!
//! Enter at [`gradients`].

use std::collections::HashMap;
use std::sync::Arc;

use crate::answer::Content;
use crate::ast::Span;
use crate::engine::{Budget, Engine, Parameters, Request, Value};
use crate::error::{Code, Refusal, Result};
use crate::gradient::{Adjoint, adjoint, guarded_adjoint};
use crate::model;
use crate::program::{Action, Form, Kind, Program, Role, Style, TensorId};
use crate::start::start_values;
use crate::value::{Domain, Tuple, element};

/// The value and the gradients of a scalar.
#[derive(Debug, Clone)]
pub struct Gradients {
    /// The scalar's value.
    pub value: f64,
    /// The gradient of each tensor, by name.
    pub gradients: Vec<(String, Content)>,
    /// The program that computed them.
    pub adjoint: Adjoint,
}

/// The tensors that a goal is differentiated by: those named, in their order, or all parameters
/// that it needs, in byte order of their names.
///
/// # Errors
/// `missing-data` for a name that the program does not have, `nothing-to-learn` where no
/// parameter lies below the goal.
pub fn with_respect_to(program: &Program, goal: TensorId, names: &[String]) -> Result<Vec<TensorId>> {
    let ids = || (0u32..).map(TensorId).zip(&program.tensors).filter(|(_, tensor)| !tensor.hidden);
    if !names.is_empty() {
        let find = |name: &String| {
            let mut versions = ids().filter(|(_, tensor)| tensor.name == *name);
            versions.next().map(|(id, _)| id).ok_or_else(|| {
                let known: Vec<&str> = ids().map(|(_, tensor)| tensor.name.as_str()).collect();
                let report = Refusal::new(
                    Code::MissingData,
                    program.tensor(goal).span,
                    format!("the program has no tensor `{name}` to differentiate by"),
                );
                report.help(format!("its tensors are {}", known.join(", ")))
            })
        };
        return names.iter().map(find).collect();
    }
    let learnable = program.learnable(goal).into_iter();
    let mut parameters: Vec<(&str, TensorId)> = learnable.map(|id| (program.name(id), id)).collect();
    parameters.sort();
    if parameters.is_empty() {
        let message = "the goal depends on no parameter";
        let help = "name what it is differentiated by with --wrt, or give a parameter a start: `W ~ 0`";
        return Err(Refusal::new(Code::NothingToLearn, program.tensor(goal).span, message).help(help));
    }
    Ok(parameters.into_iter().map(|(_, id)| id).collect())
}

/// The scalar that a program's last query asks for, if it has a gradient.
///
/// # Errors
/// `not-scalar`: nothing is asked for, or what is true or false, or a query with evidence, whose answer is no
/// tensor of the program.
pub fn differentiated(program: &Program) -> Result<TensorId> {
    let asked = program.actions.iter().rev().find_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    });
    let Some(query) = asked else {
        return Err(Refusal::new(Code::NotScalar, Span::default(), "nothing is asked for"));
    };
    match &query.form {
        Form::Model(_) => {
            let message = "a query with evidence has no gradient here";
            let help =
                "write it as a quotient of two scalars, each a product of factors with the evidence in it";
            Err(Refusal::new(Code::NotScalar, query.span, message).help(help))
        }
        Form::Holds if program.tensor(query.tensor).kind == Kind::Bool => {
            let message =
                format!("`{}` is true or false, and has no gradient", query.text.trim_end_matches('?'));
            Err(Refusal::new(Code::NotScalar, query.span, message))
        }
        Form::Holds | Form::Values(_) | Form::ValueOrNull => Ok(query.tensor),
    }
}

/// Evaluates a scalar and its gradients at the start values of the parameters.
///
/// # Errors
/// `not-scalar`, and the refusals of the evaluation.
pub fn gradients(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    goal: TensorId,
    wrt: &[TensorId],
) -> Result<Gradients> {
    gradients_at(engine, program, budget, Parameters::new(), goal, wrt)
}

/// The same at these values of parameters; those that are not given are at their start.
///
/// # Errors
/// As [`gradients`].
pub fn gradients_at(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    mut parameters: Parameters,
    goal: TensorId,
    wrt: &[TensorId],
) -> Result<Gradients> {
    let tensor = program.tensor(goal);
    if !tensor.places.is_empty() {
        let rank = tensor.places.len();
        let message = format!("a gradient needs a scalar, and `{}` has rank {rank}", tensor.name);
        return Err(Refusal::new(Code::NotScalar, tensor.span, message));
    }
    let adjoint = adjoint(program, goal, wrt);
    for id in program.needs(&[goal]) {
        if program.tensor(id).role == Role::Parameter {
            parameters.entry(id).or_insert_with(|| start_values(program, id));
        }
    }
    let plain = Request { program, parameters: &parameters, budget };
    if let Some(slopes) = engine.slopes(&plain, goal, wrt) {
        let (value, slopes) = slopes?;
        let shaped = |(id, slopes): (&TensorId, Value)| {
            (program.name(*id).to_owned(), content(program, *id, Some(slopes)))
        };
        return Ok(Gradients { value, gradients: wrt.iter().zip(slopes).map(shaped).collect(), adjoint });
    }
    let value = model::scalar(engine, &plain, goal)?;
    let mut owed = |adjoint: &Adjoint| {
        let goals: Vec<TensorId> = adjoint.gradients.iter().flatten().copied().collect();
        engine.values(&Request { program: &adjoint.program, parameters: &parameters, budget }, &goals)
    };
    let (mut found, mut from) = (owed(&adjoint), &adjoint);
    // What is no number, a way may have brought on which nothing flows.
    let guarded = (value.is_finite() && !is_number(&found)).then(|| guarded_adjoint(program, goal, wrt));
    if let Some(guarded) = &guarded
        && let Ok(values) = owed(guarded)
    {
        (found, from) = (Ok(values), guarded);
    }
    let mut values = found?.into_iter();
    let mut gradients = Vec::new();
    for (id, gradient) in wrt.iter().zip(&from.gradients) {
        let value = gradient.and_then(|_| values.next());
        gradients.push((program.name(*id).to_owned(), content(program, *id, value)));
    }
    Ok(Gradients { value, gradients, adjoint })
}

/// Whether gradients could be evaluated, and are numbers.
fn is_number(found: &Result<Vec<Value>>) -> bool {
    match found {
        Ok(values) => values.iter().all(|value| match value {
            Value::Tuples(tuples) => tuples.values.iter().all(|value| !value.is_nan()),
            value => value.doubles().iter().all(|value| !value.is_nan()),
        }),
        Err(refusal) => refusal.code != Code::Divergence,
    }
}

/// A gradient in the shape of its tensor: zeros where the goal does not depend on it, and for a
/// relation a number for every fact and every tuple that has one.
fn content(program: &Program, id: TensorId, value: Option<Value>) -> Content {
    let tensor = program.tensor(id);
    let domains = || tensor.places.iter().map(|place| place.domain.clone().unwrap_or(Domain::size(0)));
    let labels = || (0..tensor.places.len()).map(|place| place.to_string()).collect();
    match (tensor.style, value) {
        (Style::Square, value) => {
            let count: usize = domains().map(|domain| domain.len()).product();
            let values: Arc<[f64]> = match value {
                Some(Value::Dense(values)) => values.doubles().as_slice().into(),
                Some(Value::Tuples(tuples)) => {
                    let domains: Vec<Domain> = domains().collect();
                    let mut values = vec![0.0; count];
                    for (tuple, value) in tuples.tuples.iter().zip(&tuples.values) {
                        let mut places = domains.iter().zip(tuple);
                        let place = places.try_fold(0, |place, (domain, value)| {
                            Some(place * domain.len() + domain.ordinal(*value)?)
                        });
                        if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
                            *slot = *value;
                        }
                    }
                    values.into()
                }
                _ => vec![0.0; count].into(),
            };
            if tensor.places.is_empty() {
                return Content::Scalar(Some(values.first().copied().unwrap_or(0.0)));
            }
            Content::Tensor { indices: labels(), domains: domains().collect(), values }
        }
        (Style::Round, value) => {
            let mut known: HashMap<Tuple, f64> = HashMap::new();
            let mut tuples: Vec<Tuple> = Vec::new();
            if let Some(Value::Tuples(found)) = value {
                for (tuple, value) in found.tuples.into_iter().zip(found.values) {
                    known.insert(tuple.clone(), value);
                    tuples.push(tuple);
                }
            }
            for given in &tensor.given {
                let Some(facts) = given.facts() else { continue };
                tuples.extend((0..facts.count).map(|at| facts.tuple(at).to_vec()));
            }
            if tensor.role == Role::Parameter {
                // It has every tuple of its domains.
                let domains = tensor.domains();
                let count = domains.iter().map(Domain::len).product::<usize>();
                tuples.extend((0..count).map(|at| element(&domains, at)));
            }
            tuples.sort_by(|a, b| program.symbols.compare_tuples(a, b));
            tuples.dedup();
            let values = tuples.iter().map(|tuple| known.get(tuple).copied().unwrap_or(0.0)).collect();
            Content::Relation { indices: labels(), tuples, values: Some(values) }
        }
    }
}
