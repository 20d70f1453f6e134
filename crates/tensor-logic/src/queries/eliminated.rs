//! Conditional queries of a model that is one product: its variables are eliminated one after the other, in logarithms.
//!
//! Enter at [`eliminated`]. A sum over hundreds of variables may be a number that 64 bits do not hold, and its quotients are
//! numbers all the same. And to plan such a sum anew takes longer than to find one distribution of it.

use graphical_models::{Factor, Failure, Limits, Model, Variable, VariableId};

use crate::engine::{Engine, Request, Value};
use crate::error::{Code, Refusal, Result};
use crate::program::{
    Argument, Combine, Expr, IndexFn, IndexId, Program, Query, Range, Read, Style, TensorId, Term,
};
use crate::value::{Const, Domain};

/// A factor has so many numbers at most.
const TABLE: usize = 1 << 22;

/// The elements that a product is of; numbers among them are above 0, and change no quotient.
fn factors<'e>(expr: &'e Expr, into: &mut Vec<&'e Read>) -> Option<()> {
    match expr {
        Expr::Number(number) => (*number > 0.0 && number.is_finite()).then_some(()),
        Expr::Read(read) => {
            into.push(read);
            Some(())
        }
        Expr::Product(parts) => parts.iter().try_for_each(|part| factors(part, into)),
        Expr::Terms(parts) if parts.len() == 1 => parts.iter().try_for_each(|part| factors(part, into)),
        _ => None,
    }
}

/// The one product that a model is the sum of.
fn only_term(program: &Program, goal: TensorId) -> Option<&Term> {
    let tensor = program.tensor(goal);
    let mut equations = program.equations.iter().filter(|equation| equation.tensor == goal);
    let (equation, None) = (equations.next()?, equations.next()) else { return None };
    let [term] = equation.terms.as_slice() else { return None };
    let sums = tensor.combine == Combine::Sum && tensor.style == Style::Square && tensor.given.is_empty();
    (sums && term.when.guards.is_empty()).then_some(term)
}

/// How many variables a model that is one product sums over.
pub(super) fn variables(program: &Program, goal: TensorId) -> usize {
    only_term(program, goal).map_or(0, |term| term.over.len())
}

/// A factor over the variables of a term, from the elements of its tensor.
fn factor(program: &Program, read: &Read, over: &[(IndexId, Domain)], values: &[f64]) -> Option<Factor> {
    let mut scope: Vec<usize> = Vec::new();
    let mut places = Vec::new();
    for (argument, place) in read.arguments.iter().zip(&program.tensor(read.tensor).places) {
        let domain = place.domain.as_ref()?;
        let Argument::At(function) = argument else { return None };
        match function {
            IndexFn::Index(index) => {
                let at = over.iter().position(|(other, _)| other == index)?;
                if !scope.contains(&at) {
                    scope.push(at);
                }
                places.push((Some(at), None, domain));
            }
            IndexFn::Const(value) => places.push((None, Some(*value), domain)),
            _ => return None,
        }
    }
    let sizes: Vec<usize> = scope.iter().map(|at| over[*at].1.len()).collect();
    let cells = sizes.iter().try_fold(1, |cells: usize, size| cells.checked_mul(*size))?;
    if cells > TABLE {
        return None;
    }
    let mut table = Vec::with_capacity(cells);
    for cell in 0..cells {
        let mut rest = cell;
        let mut states = vec![0; scope.len()];
        for (state, size) in states.iter_mut().zip(&sizes).rev() {
            (*state, rest) = (rest % size, rest / size);
        }
        // What lies outside of a tensor is 0.
        let element = places.iter().try_fold(0, |element: usize, (at, value, domain)| {
            let value: Const = match at {
                Some(at) => over[*at].1.value(states[scope.iter().position(|own| own == at)?])?,
                None => (*value)?,
            };
            element.checked_mul(domain.len())?.checked_add(domain.ordinal(value)?)
        });
        table.push(element.and_then(|element| values.get(element).copied()).unwrap_or(0.0));
    }
    let fine = table.iter().all(|value| value.is_finite() && *value >= 0.0);
    fine.then(|| Factor { scope: scope.into_iter().map(VariableId).collect(), values: table })
}

/// What is asked of a model: for each variable where it stands among the indices that its one term sums.
pub(super) struct Question<'a> {
    /// Variables whose every value is asked for, in order.
    pub(super) open: &'a [(&'a str, Domain)],
    /// Those of which one value is asked for.
    pub(super) targets: &'a [(&'a str, Const)],
    /// Those that have a value.
    pub(super) evidence: &'a [(&'a str, Const)],
    /// The places of all of them, in this order, each once.
    pub(super) places: &'a [usize],
}

/// One number for each assignment; `None` where the model is no single product of elements that are not below 0, or
/// the evidence seems to have no probability.
///
/// # Errors
/// `too-large`, and refusals of the evaluation.
pub(super) fn eliminated(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    question: &Question<'_>,
) -> Result<Option<Vec<f64>>> {
    let (program, goal) = (request.program, query.tensor);
    let Some(term) = only_term(program, goal) else { return Ok(None) };
    let mut reads = Vec::new();
    let range = |index: &IndexId| match &program.index(*index).range {
        Range::Domain(domain) if !domain.is_empty() => Some((*index, domain.clone())),
        _ => None,
    };
    let over: Option<Vec<(IndexId, Domain)>> = term.over.iter().map(range).collect();
    let (Some(()), Some(over)) = (factors(&term.body, &mut reads), over) else { return Ok(None) };
    let &Question { open, targets, evidence, places } = question;
    let state = |at: usize, value: Const| over[at].1.ordinal(value);

    let variable = |(at, (_, domain)): (usize, &(IndexId, Domain))| Variable {
        name: format!("v{at}"),
        states: (0..domain.len()).map(|state| state.to_string()).collect(),
    };
    let Ok(mut model) = Model::new(over.iter().enumerate().map(variable).collect()) else { return Ok(None) };
    let mut tensors: Vec<TensorId> = reads.iter().map(|read| read.tensor).collect();
    tensors.sort_unstable();
    tensors.dedup();
    let values = engine.values(request, &tensors)?;
    for read in reads {
        let at = tensors.binary_search(&read.tensor).unwrap_or(0);
        let Some(Value::Dense(values)) = values.get(at) else { return Ok(None) };
        let Some(factor) = factor(program, read, &over, &values.doubles()) else { return Ok(None) };
        if model.multiply(factor).is_err() {
            return Ok(None);
        }
    }
    let (of, given) = places.split_at((open.len() + targets.len()).min(places.len()));
    let given: Option<Vec<(VariableId, usize)>> = given
        .iter()
        .zip(evidence)
        .map(|(at, (_, value))| Some((VariableId(*at), state(*at, *value)?)))
        .collect();
    let Some(given) = given else { return Ok(None) };
    let of_variables: Vec<VariableId> = of.iter().map(|at| VariableId(*at)).collect();
    let limits = Limits { bytes: request.budget.bytes as f64, ..Limits::default() };
    let joint = match model.joint(&of_variables, &given, &limits) {
        Ok(joint) => joint,
        // It may be so by rounding: numbers with exponents of their own say.
        Err(Failure::Evidence(_)) => return Ok(None),
        Err(failure) => return Err(Refusal::new(Code::TooLarge, query.span, failure.to_string())),
    };
    let count = open.iter().map(|(_, domain)| domain.len()).product();
    let mut found = Vec::with_capacity(count);
    for nth in 0..count {
        let mut rest = nth;
        let mut wanted: Vec<Option<Const>> = vec![None; open.len()];
        for (value, (_, domain)) in wanted.iter_mut().zip(open).rev() {
            let size = domain.len().max(1);
            (*value, rest) = (domain.value(rest % size), rest / size);
        }
        wanted.extend(targets.iter().map(|(_, value)| Some(*value)));
        let cell = of
            .iter()
            .zip(wanted)
            .try_fold(0, |cell, (at, value)| Some(cell * over[*at].1.len() + state(*at, value?)?));
        found.push(cell.and_then(|cell| joint.probabilities.get(cell).copied()).unwrap_or(0.0));
    }
    Ok(Some(found))
}
