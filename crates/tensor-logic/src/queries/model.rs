//! Models (N13): evidence restricts an index, a conditional probability is a quotient of two runs.
//!
//! Enter at [`check`] and [`answer`].

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Content;
use crate::engine::{Engine, Request};
use crate::error::{Code, Refusal, Result};
use crate::program::{Equation, IndexFn, IndexId, ModelQuery, Program, Query, Range, TensorId};
use crate::value::{Const, Domain};
use crate::walk;

/// The indices of an equation, in order of their first occurrence.
fn indices_of(equation: &Equation) -> Vec<IndexId> {
    let mut found = Vec::new();
    let mut visit = |index| {
        if !found.contains(&index) {
            found.push(index);
        }
    };
    equation.left.iter().for_each(|index| visit(*index));
    for term in &equation.terms {
        term.over.iter().chain(&term.when.exists).for_each(|index| visit(*index));
        walk::expr_indices(&term.body, &mut visit);
        walk::when_indices(&term.when, &mut visit);
    }
    found
}

/// The indices of the equations that a tensor needs, by name.
fn variables<'a>(program: &'a Program, goals: &[TensorId]) -> BTreeMap<&'a str, Vec<IndexId>> {
    let needed = program.needs(goals);
    let mut variables: BTreeMap<&str, Vec<IndexId>> = BTreeMap::new();
    for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
        for index in indices_of(equation) {
            variables.entry(&program.index(index).name).or_default().push(index);
        }
    }
    variables.remove("_");
    variables
}

/// The values of a variable: the largest range that one of its indices has, else the domain of a
/// place where it stands alone.
fn domain(program: &Program, goal: TensorId, indices: &[IndexId]) -> Option<Domain> {
    let ranges = indices.iter().filter_map(|index| match &program.index(*index).range {
        Range::Domain(domain) => Some(domain.clone()),
        Range::Tuples | Range::Computed => None,
    });
    ranges.max_by_key(Domain::len).or_else(|| {
        let needed = program.needs(&[goal]);
        let mut found = None;
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            equation.visit_reads(&mut |read, _| {
                for (place, argument) in program.tensor(read.tensor).places.iter().zip(&read.arguments) {
                    if let crate::program::Argument::At(IndexFn::Index(index)) = argument
                        && indices.contains(index)
                    {
                        found = found.take().or_else(|| place.limit.clone()).or_else(|| place.domain.clone());
                    }
                }
            });
        }
        found
    })
}

/// What is refused without evaluation: `not-a-model`, `unknown-evidence`.
///
/// # Errors
/// The first of these refusals, in order of place.
pub fn check(program: &Program, query: &Query, model: &ModelQuery) -> Result<()> {
    let tensor = program.tensor(query.tensor);
    let refuse = |why: String| Err(Refusal::new(Code::NotAModel, model.name, why));
    if !tensor.places.is_empty() {
        let rank = tensor.places.len();
        return refuse(format!(
            "`{}` is no model: it has {rank} indices, and a model is a scalar",
            tensor.name
        ));
    }
    if !program.equations.iter().any(|equation| equation.tensor == query.tensor) {
        return refuse(format!("`{}` is no model: no equation makes it a sum of products", tensor.name));
    }
    let variables = variables(program, &[query.tensor]);
    let names = model.targets.iter().map(|(name, _, span)| (name, None, *span));
    let given = model.evidence.iter().map(|(name, value, span)| (name, Some(*value), *span));
    for (name, value, span) in names.chain(given) {
        let Some(indices) = variables.get(name.as_str()) else {
            let message = format!("`{}` has no index `{name}`", tensor.name);
            let known: Vec<String> = variables.keys().map(|name| format!("`{name}`")).collect();
            let help = format!("the indices there are: {}", known.join(", "));
            return Err(Refusal::new(Code::UnknownEvidence, span, message).help(help));
        };
        let domain = domain(program, query.tensor, indices);
        if let (Some(value), Some(domain)) = (value, domain)
            && !domain.contains(value)
        {
            let shown = program.symbols.show(value);
            let message = format!("`{name}` takes no value `{shown}`");
            let values: Vec<String> =
                domain.values().take(20).map(|value| program.symbols.show(value)).collect();
            let help = format!("its values are: {}", values.join(", "));
            return Err(Refusal::new(Code::UnknownEvidence, span, message).help(help));
        }
    }
    Ok(())
}

/// The values of the variable of this name below a goal.
pub fn variable(program: &Program, goal: TensorId, name: &str) -> Option<Domain> {
    let variables = variables(program, &[goal]);
    domain(program, goal, variables.get(name)?)
}

/// The program in which the indices of these names take these values only, in every equation
/// that the goal needs: the paper's Prog(E).
pub fn restricted(program: &Program, goal: TensorId, evidence: &[(&str, Const)]) -> Program {
    let mut restricted = program.clone();
    for (name, value) in evidence {
        restricted = limited(&restricted, &[goal], name, &Domain::listed([*value]));
    }
    restricted
}

/// The program in which the indices of a name take the values of a domain only, in every
/// equation that the goals need.
pub fn limited(program: &Program, goals: &[TensorId], name: &str, domain: &Domain) -> Program {
    let indices: BTreeSet<IndexId> =
        variables(program, goals).get(name).into_iter().flatten().copied().collect();
    let mut limited = program.clone();
    for index in indices {
        if let Some(index) = limited.indices.get_mut(index.0 as usize) {
            index.range = Range::Domain(match &index.range {
                Range::Domain(range) => {
                    Domain::listed(domain.values().filter(|value| range.contains(*value)))
                }
                Range::Tuples | Range::Computed => domain.clone(),
            });
        }
    }
    limited
}

/// The value of a scalar.
///
/// # Errors
/// Refusals of the evaluation.
pub fn scalar(engine: &mut dyn Engine, request: &Request<'_>, goal: TensorId) -> Result<f64> {
    let values = engine.values(request, &[goal])?;
    Ok(values.first().and_then(|value| value.doubles().first().copied()).unwrap_or(0.0))
}

/// The answer of a query of a model that [`check`] has let pass.
///
/// # Errors
/// `zero-evidence`, and refusals of the evaluation.
pub fn answer(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    model: &ModelQuery,
) -> Result<Content> {
    let goal = query.tensor;
    let mut value_under = |evidence: &[(&str, Const)]| {
        let program = restricted(request.program, goal, evidence);
        scalar(engine, &Request { program: &program, ..request.clone() }, goal)
    };
    let given: Vec<(&str, Const)> =
        model.evidence.iter().map(|(name, value, _)| (name.as_str(), *value)).collect();
    let whole = value_under(&given)?;
    if !model.conditional {
        return Ok(Content::Scalar(Some(whole)));
    }
    if whole == 0.0 {
        let message = "the evidence has probability 0, and nothing can be conditioned on it";
        return Err(Refusal::new(Code::ZeroEvidence, query.span, message));
    }
    let known = variables(request.program, &[goal]);
    let mut open: Vec<(&str, Domain)> = Vec::new();
    let mut fixed = given.clone();
    for (name, value, _) in &model.targets {
        match value {
            Some(value) => fixed.push((name, *value)),
            None => {
                let indices = known.get(name.as_str()).map_or(&[] as &[IndexId], Vec::as_slice);
                let domain = domain(request.program, goal, indices).unwrap_or(Domain::size(0));
                open.push((name, domain));
            }
        }
    }
    let count = open.iter().try_fold(1usize, |count, (_, domain)| count.checked_mul(domain.len()));
    let Some(count) = count.filter(|count| *count as u64 <= request.budget.bytes / 8) else {
        let message = "the table of all values of the targets does not fit";
        return Err(Refusal::new(Code::TooLarge, query.span, message));
    };
    let mut values = Vec::with_capacity(count);
    for at in 0..count {
        let mut assignment = fixed.clone();
        let mut rest = at;
        for (name, domain) in open.iter().rev() {
            let size = domain.len().max(1);
            assignment.extend(domain.value(rest % size).map(|value| (*name, value)));
            rest /= size;
        }
        let consistent = assignment
            .iter()
            .all(|(name, value)| assignment.iter().all(|(other, same)| name != other || value == same));
        values.push(if consistent { value_under(&assignment)? / whole } else { 0.0 });
    }
    if open.is_empty() {
        return Ok(Content::Scalar(values.first().copied()));
    }
    let (names, domains): (Vec<&str>, Vec<Domain>) = open.into_iter().unzip();
    let indices = names.into_iter().map(str::to_owned).collect();
    Ok(Content::Tensor { indices, domains, values: values.into() })
}
