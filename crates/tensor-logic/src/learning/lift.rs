//! Structural lifting (`lift=yes` of `@minimize`): constants that are equal for all weights become one, and tuples do.
//!
//! Enter at [`lifted`]; [`tuples`] merges tuples of what is left, here are the constants. What no parameter changes is evaluated first and is data from then on. Constants are coloured by
//! their data, and colours refined by how many constants of which colours they are related to, until every sum over
//! constants only depends on the colours of what stands outside it (an equitable partition; Weisfeiler and Leman 1968).
//! The lifted program has one constant for each colour, and relations between colours that count. No number of a
//! parameter is looked at, so that it stays right when weights change.
//!
//! Places whose constants a parameter, arithmetic, an order or an axis tells apart are left alone, and so are those of
//! relations that an equation reads for pairs of constants that are given ([`places`] says when).

mod colours;
mod places;
mod quotient;
mod tuples;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::Lifting;
use crate::ast;
use crate::engine::{Budget, Engine, Parameters, Request, Value};
use crate::error::Result;
use crate::program::{
    Argument, Combine, Equation, Expr, Facts, Given, Guard, IndexFn, IndexId, Kind, Otherwise, Place,
    Program, Read, Role, Style, Tensor, TensorId, Term,
};
use crate::recursion;
use crate::value::{Const, Domain, Tuple, element};

use places::{Places, Scope};

/// A program that has the same goal and gradients.
pub(super) struct Lifted {
    /// It. Its parameters are those of the other.
    pub(super) program: Program,
    /// What was merged.
    pub(super) merged: Lifting,
}

/// The lifted program of a goal, if anything can be merged; constants of the index `kept`, and tuples with others of them, are
/// not.
///
/// # Errors
/// Those of evaluating what no parameter changes.
pub(super) fn lifted(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    parameters: &Parameters,
    goal: TensorId,
    kept: Option<&str>,
) -> Result<Option<Lifted>> {
    let Some(mut core) = core(engine, program, budget, parameters, goal)? else { return Ok(None) };
    let mut merged = Lifting::default();
    if let Some((program, from, to)) = constants(engine, &core, budget, parameters, kept) {
        (core.program, merged.constants) = (program, Some((from, to)));
    }
    if let Some(tuples) = tuples::merged(engine, &core, budget, parameters, kept) {
        (core.program, merged.tuples) = (tuples.program, Some((tuples.from, tuples.to)));
    }
    Ok((merged != Lifting::default()).then_some(Lifted { program: core.program, merged }))
}

/// The program with equal constants merged, how many there were and how many are left, if any are equal.
fn constants(
    engine: &mut dyn Engine,
    core: &Core,
    budget: Budget,
    parameters: &Parameters,
    kept: Option<&str>,
) -> Option<(Program, usize, usize)> {
    let mut places = Places::of(core, kept);
    if !places.any() {
        return None;
    }
    let scopes = places.scopes(&core.program);
    let counts = counted(engine, &core.program, &scopes, budget, parameters)?;
    let colours = colours::refined(&core.program, &places, &scopes, &counts);
    let (from, to) = colours.sizes();
    let program = || quotient::of(core.program.clone(), &places, &scopes, &counts, &colours);
    (to < from).then(|| (program(), from, to))
}

/// A program of which only what parameters change is computed.
struct Core {
    program: Program,
    /// What parameters change.
    changing: BTreeSet<TensorId>,
}

/// The program with the values of all that no parameter changes as data; `None` where proofs are weighed.
fn core(
    engine: &mut dyn Engine,
    program: &Program,
    budget: Budget,
    parameters: &Parameters,
    goal: TensorId,
) -> Result<Option<Core>> {
    let needed = program.needs(&[goal]);
    let changing = changing(program, &needed);
    let odd = |id: &TensorId| {
        let tensor = program.tensor(*id);
        matches!(tensor.combine, Combine::Proofs | Combine::Slopes) || tensor.role == Role::Missing
    };
    if needed.iter().any(odd) {
        return Ok(None);
    }
    let is_parameter = |id: &TensorId| program.tensor(*id).role == Role::Parameter;
    let still: Vec<TensorId> =
        needed.iter().copied().filter(|id| !changing.contains(id) && !is_parameter(id)).collect();
    let values = engine.values(&Request { program, parameters, budget }, &still)?;
    let mut made = program.clone();
    made.actions.clear();
    made.equations.retain(|equation| changing.contains(&equation.tensor));
    for (id, value) in still.iter().zip(&values) {
        let Some(tensor) = made.tensors.get_mut(id.0 as usize) else { continue };
        let Some(given) = given(tensor, value) else { return Ok(None) };
        tensor.given = vec![given];
        tensor.role = Role::Data;
    }
    settle(&mut made);
    Ok(Some(Core { program: made, changing }))
}

/// The components of a program whose equations are others now.
fn settle(program: &mut Program) {
    if let Ok(components) = recursion::analyse(program, &ast::Program::default()) {
        program.components = components;
    }
}

/// The needed tensors that depend on a parameter.
fn changing(program: &Program, needed: &BTreeSet<TensorId>) -> BTreeSet<TensorId> {
    let mut changing = BTreeSet::new();
    loop {
        let before = changing.len();
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            let mut changes = false;
            equation.visit_reads(&mut |read, _| {
                changes |=
                    program.tensor(read.tensor).role == Role::Parameter || changing.contains(&read.tensor);
            });
            if changes {
                changing.insert(equation.tensor);
            }
        }
        if changing.len() == before {
            return changing;
        }
    }
}

/// A value as data.
fn given(tensor: &Tensor, value: &Value) -> Option<Given> {
    match value {
        Value::Dense(numbers) => Some(array(tensor, Arc::from(numbers.doubles().as_slice()))),
        Value::Counts(counts) => {
            let exact = counts.iter().all(|count| count.unsigned_abs() < 1 << 53);
            exact.then(|| array(tensor, counts.iter().map(|count| *count as f64).collect()))
        }
        Value::Tuples(tuples) => {
            let mut facts = Facts { arity: tensor.places.len(), source: tensor.span, ..Facts::default() };
            for (tuple, value) in tuples.tuples.iter().zip(&tuples.values) {
                facts.push(tuple, *value, None);
            }
            Some(Given::Facts(Arc::new(facts)))
        }
    }
}

fn array(tensor: &Tensor, values: Arc<[f64]>) -> Given {
    Given::Array { fixed: vec![None; tensor.places.len()], shape: tensor.sizes(), values, span: tensor.span }
}

/// What a scope counts: a number for each binding of [`Scope::indices`].
type Counts = BTreeMap<Tuple, f64>;

/// The bindings of the relations of each scope that has some; `None` where there are too many.
fn counted(
    engine: &mut dyn Engine,
    program: &Program,
    scopes: &[Scope],
    budget: Budget,
    parameters: &Parameters,
) -> Option<Vec<Counts>> {
    let mut asked = program.clone();
    let mut goals = Vec::new();
    for scope in scopes.iter().filter(|scope| scope.is_related()) {
        goals.push(TensorId(u32::try_from(asked.tensors.len()).ok()?));
        let (tensor, equation) = question(program, scope, *goals.last()?);
        asked.tensors.push(tensor);
        asked.equations.push(equation);
    }
    settle(&mut asked);
    let values = engine.values(&Request { program: &asked, parameters, budget }, &goals).ok()?;
    let mut values = values.into_iter();
    let counts = |scope: &Scope| {
        let Some(Value::Tuples(found)) = scope.is_related().then(|| values.next()).flatten() else {
            return Counts::new();
        };
        found.tuples.iter().cloned().zip(found.values.iter().copied()).collect()
    };
    Some(scopes.iter().map(counts).collect())
}

/// A relation of all bindings of a scope's relations.
fn question(program: &Program, scope: &Scope, id: TensorId) -> (Tensor, Equation) {
    let tensor = relation(
        format!("bindings {}", id.0),
        scope.indices.iter().map(|index| scope.place(program, *index)),
    );
    let reads = scope.factors.iter().cloned().map(Expr::Read);
    let guards = scope.guards.iter().cloned().map(Guard::Read).collect::<Vec<_>>();
    let body = std::iter::once(Expr::Number(1.0)).chain(reads).collect();
    let equation = Equation {
        tensor: id,
        head: scope.indices.iter().copied().map(IndexFn::Index).collect(),
        left: scope.indices.clone(),
        terms: vec![Term { over: Vec::new(), when: guards.into(), body: Expr::Product(body) }],
        node: crate::program::Stamp::default(),
        span: scope.span,
        head_span: scope.span,
        sign_span: scope.span,
    };
    (tensor, equation)
}

/// A hidden relation with values.
fn relation(name: String, places: impl Iterator<Item = Place>) -> Tensor {
    Tensor {
        name,
        version: 0,
        hidden: true,
        style: Style::Round,
        kind: Kind::Real,
        combine: Combine::Sum,
        places: places.collect(),
        role: Role::Computed,
        given: Vec::new(),
        start: None,
        span: ast::Span::default(),
    }
}

/// A read of a relation at these indices.
fn at(tensor: TensorId, indices: &[IndexId]) -> Read {
    let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
    Read::new(tensor, arguments, Otherwise::Absent, ast::Span::default())
}

/// Every element of a tensor's data.
fn each(tensor: &Tensor, mut visit: impl FnMut(&[Const], f64)) {
    let domains: Vec<Domain> = tensor.domains();
    tensor.given.iter().for_each(|given| given.each(&domains, &mut visit));
}

/// The elements of a square tensor in order.
fn elements(domains: &[Domain]) -> impl Iterator<Item = Tuple> + '_ {
    (0..domains.iter().map(Domain::len).product()).map(|at| element(domains, at))
}
