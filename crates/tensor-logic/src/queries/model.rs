//! Models (N13): evidence restricts an index, a conditional probability is a quotient of two runs.
//!
//! Enter at [`check`] and [`answer`].

mod lost;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::lost::Lost;
use super::eliminated::{Question, eliminated, variables as variables_of_product};
use crate::answer::Content;
use crate::engine::{Engine, Request};
use crate::error::{Code, Refusal, Result, Warning};
use crate::presence::within;
use crate::program::{
    Argument, Combine, Equation, Expr, Given, IndexFn, IndexId, Kind, ModelQuery, Place, Program, Query,
    Range, Role, Style, TensorId, Term,
};
use crate::reference::Reference;
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

/// The ranges of a variable's indices, as far as they are domains.
fn ranges<'a>(program: &'a Program, indices: &[IndexId]) -> impl Iterator<Item = &'a Domain> {
    indices.iter().filter_map(|index| match &program.index(*index).range {
        Range::Domain(domain) => Some(domain),
        Range::Tuples | Range::Computed => None,
    })
}

/// The values of a variable: those of all its indices, which may be of different things (samples of two tasks, say). An index of
/// tuples has the values of the places where it stands alone.
fn domain(program: &Program, goal: TensorId, indices: &[IndexId]) -> Option<Domain> {
    let mut domains: Vec<&Domain> = ranges(program, indices).collect();
    let is_open =
        |index: IndexId| indices.contains(&index) && !matches!(program.index(index).range, Range::Domain(_));
    let needed = program.needs(&[goal]);
    for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
        equation.visit_reads(&mut |read, _| {
            for (place, argument) in program.tensor(read.tensor).places.iter().zip(&read.arguments) {
                if let Argument::At(IndexFn::Index(index)) = argument
                    && is_open(*index)
                {
                    domains.extend(place.limit.as_ref().or(place.domain.as_ref()));
                }
            }
        });
    }
    union(program, domains)
}

/// Of values that lie apart so many are listed; of more, all between the least and the largest are taken.
const LISTED: usize = 1 << 22;

/// The values of any of these domains, in the order of the largest where it has all.
fn union(program: &Program, mut domains: Vec<&Domain>) -> Option<Domain> {
    domains.sort_by_key(|domain| std::cmp::Reverse(domain.len()));
    // Where it is empty all are.
    let mut all = (*domains.first()?).clone();
    for domain in domains.into_iter().skip(1).filter(|domain| !domain.is_empty()) {
        if within(domain, &all) {
            continue;
        }
        if let (Domain::Interval { from, to }, Domain::Interval { from: least, to: most }) = (&all, domain) {
            let meet = *least <= to.saturating_add(1) && *from <= most.saturating_add(1);
            if meet || all.len().saturating_add(domain.len()) > LISTED {
                all = Domain::Interval { from: *from.min(least), to: *to.max(most) };
                continue;
            }
        }
        let mut values: Vec<Const> = all.values().chain(domain.values()).collect();
        values.sort_by(|a, b| program.symbols.compare(*a, *b));
        values.dedup();
        all = Domain::listed(values);
    }
    Some(all)
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
    let names = model.targets.iter().map(|(name, value, span)| (name, *value, *span));
    let given = model.evidence.iter().map(|(name, value, span)| (name, Some(*value), *span));
    for (name, value, span) in names.chain(given) {
        let Some(indices) = variables.get(name.as_str()) else {
            let message = format!("`{}` has no index `{name}`", tensor.name);
            let known: Vec<String> = variables.keys().map(|name| format!("`{name}`")).collect();
            let help = match known.is_empty() {
                true => "no equation below it has one".to_owned(),
                false => format!("the indices there are: {}", known.join(", ")),
            };
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

/// The values of the variable of this name below a goal that something is said of: those that stand in tuples where the variable
/// does, and all of its values where a square tensor, a parameter or something computed at another index has them. `None` where no
/// equation has the variable.
pub fn samples(program: &Program, goal: TensorId, name: &str) -> Option<Vec<Const>> {
    let all_variables = variables(program, &[goal]);
    let indices = all_variables.get(name)?;
    let domain = domain(program, goal, indices);
    let needed = program.needs(&[goal]);
    let is_own = |function: Option<&IndexFn>| {
        function.and_then(IndexFn::alone).is_some_and(|index| indices.contains(&index))
    };
    let mut places: BTreeSet<(TensorId, usize)> = BTreeSet::new();
    let mut whole = false;
    for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
        equation.visit_reads(&mut |read, _| {
            for (at, argument) in read.arguments.iter().enumerate() {
                let function = argument.function();
                // `A(s-1)` and `A(s)` are not of the same samples.
                let mut mentioned = false;
                function.into_iter().for_each(|function| {
                    function.visit(&mut |index| mentioned |= indices.contains(&index));
                });
                match is_own(function) {
                    true => _ = places.insert((read.tensor, at)),
                    false => whole |= mentioned,
                }
            }
        });
    }
    let mut found: BTreeSet<Const> = BTreeSet::new();
    for (id, at) in places {
        let tensor = program.tensor(id);
        let makes = |equation: &&Equation| equation.tensor == id;
        whole |= match (tensor.role, tensor.style) {
            (Role::Computed, _) => program.equations.iter().filter(makes).any(|e| !is_own(e.head.get(at))),
            (Role::Data | Role::Empty, Style::Round) => false,
            _ => true,
        };
        for given in &tensor.given {
            given.each(&tensor.domains(), |tuple, _| found.extend(tuple.get(at)));
        }
    }
    if whole {
        // Of what a square tensor has at an index something is said; where an index of tuples is of something computed, of all values.
        let own = union(program, ranges(program, indices).collect());
        found.extend(own.or_else(|| domain.clone()).iter().flat_map(Domain::values));
    }
    let Some(domain) = domain else {
        let mut found: Vec<Const> = found.into_iter().collect();
        found.sort_by(|a, b| program.symbols.compare(*a, *b));
        return Some(found);
    };
    if found.is_empty() {
        return Some(domain.values().collect());
    }
    let mut found: Vec<Const> = found.into_iter().filter(|value| domain.contains(*value)).collect();
    found.sort_by_key(|value| domain.ordinal(*value));
    Some(found)
}

/// How many values the variable of this name below a goal has, whether anything is said of them or not; `None` where nothing
/// says that.
pub(crate) fn count(program: &Program, goal: TensorId, name: &str) -> Option<usize> {
    let all = variables(program, &[goal]);
    Some(domain(program, goal, all.get(name)?)?.len())
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

/// The indices of a name, in every equation that the goals need.
pub(crate) fn indices_named(program: &Program, goals: &[TensorId], name: &str) -> BTreeSet<IndexId> {
    variables(program, goals).get(name).into_iter().flatten().copied().collect()
}

/// The program in which the indices of a name take the values of a domain only, in every
/// equation that the goals need.
pub fn limited(program: &Program, goals: &[TensorId], name: &str, domain: &Domain) -> Program {
    let indices = indices_named(program, goals, name);
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

/// Whether the equations below a model only pass an index of this name on: to restrict it in them changes nothing that the
/// model reads, if the model's own indices of the name (`all`) are restricted.
fn passes(
    program: &Program,
    below: &[&Equation],
    goal: TensorId,
    name: &str,
    all: &BTreeSet<IndexId>,
) -> bool {
    let named = |index: IndexId| program.index(index).name == name;
    let mut places: BTreeMap<TensorId, BTreeSet<usize>> = BTreeMap::new();
    for equation in below {
        let own: BTreeSet<IndexId> = indices_of(equation).into_iter().filter(|index| named(*index)).collect();
        let axis = equation.terms.iter().any(|term| has_axis(&term.body));
        if equation.tensor == goal {
            if axis || !own.is_subset(all) {
                return false;
            }
            continue;
        }
        for index in own {
            let place = equation.head.iter().position(|function| function.alone() == Some(index));
            let Some(place) = place.filter(|_| !axis && equation.left.contains(&index)) else { return false };
            places.entry(equation.tensor).or_default().insert(place);
        }
    }
    // Whoever reads such a tensor reads it at the index of the name.
    let mut passed = true;
    for equation in below {
        equation.visit_reads(&mut |read, _| {
            for place in places.get(&read.tensor).into_iter().flatten() {
                let index = read.arguments.get(*place).and_then(Argument::function).and_then(IndexFn::alone);
                passed &= index.is_some_and(named);
            }
        });
    }
    passed
}

/// For each term of a model, in order, where among its summed indices each of these variables stands: then the value of
/// the variable is read off a binding, and to restrict it is to leave bindings out. `None` where it is not so: some term
/// has no such index, or an equation below does more with one than to pass it on.
pub(crate) fn read_off(program: &Program, goal: TensorId, names: &[&str]) -> Option<Vec<Vec<usize>>> {
    let needed = program.needs(&[goal]);
    let below: Vec<&Equation> = program.equations.iter().filter(|e| needed.contains(&e.tensor)).collect();
    let terms: Vec<_> = below.iter().filter(|e| e.tensor == goal).flat_map(|e| &e.terms).collect();
    let named = |index: IndexId, name: &str| program.index(index).name == name;
    for name in names {
        let all: BTreeSet<IndexId> =
            terms.iter().flat_map(|term| &term.over).copied().filter(|index| named(*index, name)).collect();
        let computed = |index: &IndexId| matches!(program.index(*index).range, Range::Computed);
        if all.iter().any(computed) || !passes(program, &below, goal, name, &all) {
            return None;
        }
    }
    let place = |term: &&Term, name: &&str| {
        let mut found = (0..).zip(&term.over).filter(|(_, index)| named(**index, name));
        let (place, _) = found.next()?;
        found.next().is_none().then_some(place)
    };
    terms.iter().map(|term| names.iter().map(|name| place(term, name)).collect()).collect()
}

/// Whether an expression runs along an axis.
fn has_axis(expr: &Expr) -> bool {
    matches!(expr, Expr::Axis(_)) || expr.parts().0.into_iter().any(has_axis)
}

/// The program in which a model has a value for each assignment of its targets, so that one evaluation has them all: where
/// each target is an index that all terms of the model sum, it moves to the left side. `None` where it is not so, or where
/// another equation below does more with an index of the name than to have it on its own left side.
fn together(
    request: &Request<'_>,
    goal: TensorId,
    open: &[(&str, Domain)],
    fixed: &[(&str, Const)],
) -> Option<Program> {
    let names = || open.iter().map(|(name, _)| *name);
    let several = names().enumerate().any(|(at, name)| names().take(at).any(|other| other == name));
    let tensor = request.program.tensor(goal);
    if open.is_empty()
        || several
        || names().any(|name| fixed.iter().any(|(other, _)| *other == name))
        || tensor.combine != Combine::Sum
        || tensor.style != Style::Square
        || !tensor.given.is_empty()
        || request.program.reads_of(goal).contains(&goal)
    {
        return None;
    }
    let mut program = restricted(request.program, goal, fixed);
    let mut own: Vec<(usize, usize, Vec<IndexId>)> = Vec::new();
    for (at, equation) in program.equations.iter().enumerate().filter(|(_, e)| e.tensor == goal) {
        for (nth, term) in equation.terms.iter().enumerate() {
            let index = |(name, domain): &(&str, Domain)| {
                let mut named = term.over.iter().filter(|index| program.index(**index).name == **name);
                let (Some(index), None) = (named.next(), named.next()) else { return None };
                let whole = matches!(&program.index(*index).range, Range::Domain(range) if range == domain);
                whole.then_some(*index)
            };
            let indices = open.iter().map(index).collect::<Option<Vec<_>>>()?;
            own.push((at, nth, indices));
        }
    }
    let all: BTreeSet<IndexId> = own.iter().flat_map(|(_, _, indices)| indices).copied().collect();
    let needed = program.needs(&[goal]);
    let below: Vec<&Equation> = program.equations.iter().filter(|e| needed.contains(&e.tensor)).collect();
    // One term for each equation, so that each has its own left side.
    let single = own.iter().all(|(at, ..)| program.equations[*at].terms.len() == 1);
    if own.is_empty() || !single || !names().all(|name| passes(&program, &below, goal, name, &all)) {
        return None;
    }
    for (at, _, indices) in own {
        let equation = program.equations.get_mut(at)?;
        equation.head = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        equation.left.clone_from(&indices);
        for term in &mut equation.terms {
            term.over.retain(|index| !indices.contains(index));
        }
    }
    if let Some(tensor) = program.tensors.get_mut(goal.0 as usize) {
        let place = |(_, domain): &(&str, Domain)| Place {
            domain: Some(domain.clone()),
            limit: Some(domain.clone()),
            star: false,
        };
        tensor.places = open.iter().map(place).collect();
    }
    Some(program)
}

/// The value of a scalar.
///
/// # Errors
/// Refusals of the evaluation.
pub fn scalar(engine: &mut dyn Engine, request: &Request<'_>, goal: TensorId) -> Result<f64> {
    let values = engine.values(request, &[goal])?;
    Ok(values.first().and_then(|value| value.doubles().first().copied()).unwrap_or(0.0))
}

/// The values of a goal of another program.
fn values_of(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    program: &Program,
    goal: TensorId,
) -> Result<Vec<f64>> {
    let values = engine.values(&Request { program, ..request.clone() }, &[goal])?;
    Ok(values.first().map(|value| value.doubles().into_owned()).unwrap_or_default())
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
    if !model.conditional {
        let program = restricted(request.program, goal, &given(model));
        let value = scalar(engine, &Request { program: &program, ..request.clone() }, goal)?;
        return Ok(Content::Scalar(Some(value)));
    }
    let asked = Asked::of(request, query, model)?;
    let evidence = given(model);
    let lost = Lost::of(request, goal);
    if variables_of_product(request.program, goal) >= MANY
        && let Some(values) = by_elimination(engine, request, query, (&asked, &evidence), lost.as_ref())?
    {
        return Ok(asked.content(values));
    }
    if let Some(values) = in_range(engine, request, query, (&asked, &evidence), lost.as_ref())? {
        return Ok(asked.content(values));
    }
    let eliminated = by_elimination(engine, request, query, (&asked, &evidence), lost.as_ref())?;
    let values = match eliminated {
        Some(values) => values,
        None => beyond(engine, request, query, (&asked, &evidence))?,
    };
    Ok(asked.content(values))
}

/// Smaller models, and larger ones than its inverse, are of products of which 64 bits may have lost some, where nothing else
/// is known of these.
const LEAST: f64 = 1e-150;
/// Products over so many variables are eliminated in logarithms at once.
const MANY: usize = 64;

fn zero_evidence(query: &Query) -> Refusal {
    let message = "the evidence has probability 0, and nothing can be conditioned on it";
    Refusal::new(Code::ZeroEvidence, query.span, message)
}

/// The answers in numbers of 64 bits; `None` where these may have lost some of them.
fn in_range(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    (asked, evidence): (&Asked<'_>, &[(&str, Const)]),
    lost: Option<&Lost>,
) -> Result<Option<Vec<f64>>> {
    let goal = query.tensor;
    let keeps = |value: f64| match lost {
        Some(lost) => lost.keeps(goal, value),
        None => (LEAST..=1.0 / LEAST).contains(&value.abs()),
    };
    let under = |evidence: &[(&str, Const)]| restricted(request.program, goal, evidence);
    let evident = under(evidence);
    let whole = values_of(engine, request, &evident, goal)?.first().copied().unwrap_or(0.0);
    if whole == 0.0 {
        let rounded =
            !keeps(whole) && marked(engine, request, &evident, goal)?.iter().any(|mark| *mark != 0.0);
        return if rounded { Ok(None) } else { Err(zero_evidence(query)) };
    }
    if !keeps(whole) {
        return Ok(None);
    }
    let together = together(request, goal, &asked.open, &asked.fixed);
    let values = match &together {
        Some(program) => values_of(engine, request, program, goal)?,
        None => asked.each(|all| {
            let found = values_of(engine, request, &under(all), goal)?;
            Ok(found.first().copied().unwrap_or(0.0))
        })?,
    };
    let fine = |value: f64| match lost {
        Some(lost) => lost.keeps(goal, value),
        None => value.is_finite(),
    };
    if values.iter().any(|value| *value != 0.0 && !fine(*value)) {
        return Ok(None);
    }
    // A value that may have been dropped is 0 all the same, if it is so by the zeros of the data.
    if !fine(0.0) && values.contains(&0.0) {
        let marks = match &together {
            Some(program) => marked(engine, request, program, goal)?,
            None => asked.each(|all| {
                let found = marked(engine, request, &under(all), goal)?;
                Ok(found.first().copied().unwrap_or(0.0))
            })?,
        };
        if values.iter().zip(&marks).any(|(value, mark)| *value == 0.0 && *mark != 0.0) {
            return Ok(None);
        }
    }
    Ok(Some(values.iter().map(|value| value / whole).collect()))
}

/// Rounding leaves this part of a sum open: sums in 32 bits of many terms, some below 0.
const ROUNDED: f64 = 1e-3;

/// Warns of an answer for all values of all targets that does not sum to one: then the goal is no sum of products, or an index
/// of a target's name stands for several variables.
pub(crate) fn warning(
    program: &Program,
    query: &Query,
    model: &ModelQuery,
    values: &[f64],
) -> Option<Warning> {
    let open = |(name, value, _): &(String, Option<Const>, _)| {
        value.is_none() && model.evidence.iter().all(|(other, ..)| other != name)
    };
    let (sum, size) = values.iter().fold((0.0, 0.0), |(sum, size), value| (sum + value, size + value.abs()));
    let gap: f64 = sum - 1.0;
    let targets = &model.targets;
    let all = model.conditional && !targets.is_empty() && targets.iter().all(open);
    if !all || !size.is_finite() || gap.abs() <= ROUNDED * size.max(1.0) {
        return None;
    }
    let name = program.name(query.tensor);
    let targets: Vec<String> = targets.iter().map(|(name, ..)| format!("`{name}`")).collect();
    let message = format!(
        "`{name}` is no model of {}: what it gives to all their values sums to {sum}, and not to 1",
        targets.join(", ")
    );
    let help = "a model is a sum of products of factors, in which an index name stands for one variable";
    Some(Refusal::new(Code::NotAModel, query.span, message).help(help))
}

/// A number in the place of another that is not 0: neither its logarithm is 0, nor do hundreds of them leave the numbers.
const MARK: f64 = 1.25;

fn mark(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { MARK }
}

/// The same value with marks in the place of its numbers, and nothing that cancels.
fn mark_in(expr: &mut Expr) {
    if let Expr::Negate(inner) = expr {
        *expr = std::mem::replace(inner, Expr::Number(0.0));
        return mark_in(expr);
    }
    match expr {
        Expr::Number(value) => *value = mark(*value),
        _ => expr.parts_mut().0.into_iter().for_each(mark_in),
    }
}

/// The values of a goal with marks in the place of all numbers but 0 of the program's data: where they are 0, the goal is 0 by
/// the zeros of the data.
fn marked(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    program: &Program,
    goal: TensorId,
) -> Result<Vec<f64>> {
    let mut program = program.clone();
    for equation in &mut program.equations {
        equation.terms.iter_mut().for_each(|term| mark_in(&mut term.body));
    }
    for tensor in program.tensors.iter_mut().filter(|tensor| tensor.kind == Kind::Real) {
        for given in &mut tensor.given {
            match given {
                Given::Array { values, .. } => *values = values.iter().map(|value| mark(*value)).collect(),
                Given::Facts(facts) => {
                    Arc::make_mut(facts).values.iter_mut().for_each(|value| *value = mark(*value));
                }
                Given::Columns(_) => {}
            }
        }
    }
    let marked = |(id, values): (&TensorId, &Arc<Vec<f64>>)| {
        (*id, Arc::new(values.iter().map(|value| mark(*value)).collect()))
    };
    let parameters = request.parameters.iter().map(marked).collect();
    values_of(engine, &Request { parameters: &parameters, ..request.clone() }, &program, goal)
}

/// The answers by elimination, where the model is one product and each variable is asked for or given once.
fn by_elimination(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    (asked, evidence): (&Asked<'_>, &[(&str, Const)]),
    lost: Option<&Lost>,
) -> Result<Option<Vec<f64>>> {
    let targets = &asked.fixed[evidence.len().min(asked.fixed.len())..];
    let open = asked.open.iter().map(|(name, _)| *name);
    let fixed = targets.iter().chain(evidence).map(|(name, _)| *name);
    let names: Vec<&str> = open.chain(fixed).collect();
    if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        return Ok(None);
    }
    let places = read_off(request.program, query.tensor, &names);
    let Some([places]) = places.as_deref() else { return Ok(None) };
    // A factor that is computed itself may have lost some.
    let whole = |id: &TensorId| lost.is_none_or(|lost| lost.keeps(*id, 0.0));
    if !request.program.reads_of(query.tensor).iter().all(whole) {
        return Ok(None);
    }
    eliminated(engine, request, query, &Question { open: &asked.open, targets, evidence, places })
}

/// The answers where 64 bits do not hold the model, by numbers with exponents of their own.
fn beyond(
    engine: &dyn Engine,
    request: &Request<'_>,
    query: &Query,
    (asked, evidence): (&Asked<'_>, &[(&str, Const)]),
) -> Result<Vec<f64>> {
    let goal = query.tensor;
    let mut reference = Reference::stopping(engine.stop());
    let mut values_of = |program: &Program| {
        let found = reference.wide(&Request { program, ..request.clone() }, &[goal])?;
        Ok(found.into_iter().next().unwrap_or_default())
    };
    let first = |values: &[(f64, i64)]| values.first().copied().unwrap_or((0.0, 0));
    let (whole, exponent) = first(&values_of(&restricted(request.program, goal, evidence))?);
    if whole == 0.0 {
        return Err(zero_evidence(query));
    }
    let parts = match together(request, goal, &asked.open, &asked.fixed) {
        Some(program) => values_of(&program)?,
        None => asked.each(|all| Ok(first(&values_of(&restricted(request.program, goal, all))?)))?,
    };
    let quotient = |(part, own): (f64, i64)| {
        let apart = own.saturating_sub(exponent).clamp(-1100, 1100) as i32;
        part / whole * 2.0_f64.powi(apart / 2) * 2.0_f64.powi(apart - apart / 2)
    };
    Ok(parts.into_iter().map(quotient).collect())
}

/// What a conditional query asks for: one number for each assignment of values to its open targets.
pub(crate) struct Asked<'a> {
    /// Targets whose every value is asked for, in order.
    pub(crate) open: Vec<(&'a str, Domain)>,
    /// The evidence, and behind it the targets of which one value is asked for.
    pub(crate) fixed: Vec<(&'a str, Const)>,
    /// The number of assignments.
    pub(crate) count: usize,
}

impl<'a> Asked<'a> {
    /// # Errors
    /// `too-large`
    pub(crate) fn of(request: &Request<'_>, query: &Query, model: &'a ModelQuery) -> Result<Asked<'a>> {
        let goal = query.tensor;
        let known = variables(request.program, &[goal]);
        let mut open: Vec<(&str, Domain)> = Vec::new();
        let mut fixed = given(model);
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
        Ok(Asked { open, fixed, count })
    }

    /// The evidence and the values of all targets under an assignment; `None` where it gives one variable two values.
    pub(crate) fn assignment(&self, at: usize) -> Option<Vec<(&'a str, Const)>> {
        let mut assignment = self.fixed.clone();
        let mut rest = at;
        for (name, domain) in self.open.iter().rev() {
            let size = domain.len().max(1);
            assignment.extend(domain.value(rest % size).map(|value| (*name, value)));
            rest /= size;
        }
        let agrees = |(name, value): &(&str, Const)| {
            assignment.iter().all(|(other, same)| name != other || value == same)
        };
        assignment.iter().all(agrees).then_some(assignment)
    }

    /// Something for each assignment; the default where it gives one variable two values.
    fn each<T: Default>(&self, mut of: impl FnMut(&[(&str, Const)]) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count)
            .map(|at| self.assignment(at).map_or_else(|| Ok(T::default()), |all| of(&all)))
            .collect()
    }

    /// One number for each assignment, as an answer.
    pub(crate) fn content(self, values: Vec<f64>) -> Content {
        if self.open.is_empty() {
            return Content::Scalar(values.first().copied());
        }
        let (names, domains): (Vec<&str>, Vec<Domain>) = self.open.into_iter().unzip();
        let indices = names.into_iter().map(str::to_owned).collect();
        Content::Tensor { indices, domains, values: values.into() }
    }
}

/// The evidence of a query.
pub(crate) fn given(model: &ModelQuery) -> Vec<(&str, Const)> {
    model.evidence.iter().map(|(name, value, _)| (name.as_str(), *value)).collect()
}
