//! The network behind a loss for one sample: what is computed, from what, with which weights.
//!
//! The components of vectors are drawn as one: the places that share an index with a parameter, unless a relation is given there.
//! Weights and facts stand on the arcs.

use std::collections::BTreeMap;

use calculemus_draw::graph::{Direction, Graph, Node, Shape};
use calculemus_draw::html;

use super::{colour, of, shown, template, written};
use crate::engine::{Budget, Engine, Parameters, Request};
use crate::error::Result;
use crate::model;
use crate::program::{Argument, Given, IndexFn, IndexId, Kind, Program, Query, Role, Style, TensorId};
use crate::reference::{Atom, Contribution, Ground, Most, ground};
use crate::value::Domain;

/// What is drawn at most.
const MOST: Most = Most { atoms: 40, contributions: 12 };

/// Lines on an arc.
const LINES: usize = 4;

/// The network of a query's loss, or why there is none.
pub(super) fn drawn(
    program: &Program,
    source: &str,
    (engine, budget): (&mut dyn Engine, Budget),
    parameters: &Parameters,
    query: &Query,
) -> html::Markup {
    let (sample, name) = sample(program, query);
    let request = Request { program: &sample, parameters, budget };
    let found = match network(&request, engine, query.tensor) {
        Ok(found) => found,
        Err(refusal) => return html::left_out(&format!("It cannot be drawn: {}.", refusal.message)),
    };
    let graph = graph(&sample, source, &found);
    let note = format!("what `{}` is made of{name}, with the parameters that are kept", of(query));
    let mut parts = vec![html::figures(&[graph.figure(&note)])];
    if found.left_out > 0 {
        let message = format!("{} elements further from the loss are left out.", found.left_out);
        parts.push(html::left_out(&message));
    }
    let full =
        |at: usize| found.contributions.iter().filter(|made| made.to == at).count() >= MOST.contributions;
    if (0..found.atoms.len()).any(full) {
        let message =
            format!("Of more than {} contributions to one element the first are drawn.", MOST.contributions);
        parts.push(html::left_out(&message));
    }
    html::join(parts)
}

/// The program for the first sample where it learns by samples, and how that is called.
fn sample(program: &Program, query: &Query) -> (Program, String) {
    let batch = query.directives.minimize.as_ref().and_then(|minimize| minimize.batch.as_ref());
    let first = batch.and_then(|batch| {
        let value = model::samples(program, query.tensor, &batch.index)?.into_iter().next()?;
        Some((batch, value))
    });
    match first {
        Some((batch, value)) => {
            let one = Domain::listed([value]);
            let named = format!(" for {} = {}", batch.index, program.symbols.show(value));
            (model::limited(program, &[query.tensor], &batch.index, &one), named)
        }
        None => (program.clone(), String::new()),
    }
}

fn network(request: &Request<'_>, engine: &mut dyn Engine, goal: TensorId) -> Result<Ground> {
    let vectors = Vectors::of(request.program);
    ground(request, engine, goal, &|id, place| vectors.is_component(id, place), MOST)
}

/// Which places are components of vectors.
struct Vectors {
    /// Of each place, the class that it is in.
    classes: BTreeMap<(TensorId, usize), usize>,
    /// Which classes are.
    are: Vec<bool>,
}

impl Vectors {
    fn of(program: &Program) -> Vectors {
        let mut classes: BTreeMap<(TensorId, usize), usize> = BTreeMap::new();
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            for place in 0..tensor.places.len() {
                let next = classes.len();
                classes.insert((id, place), next);
            }
        }
        for equation in &program.equations {
            let mut met: BTreeMap<IndexId, usize> = BTreeMap::new();
            let mut meet = |place: (TensorId, usize), function: Option<&IndexFn>| {
                let (Some(index), Some(class)) =
                    (function.and_then(IndexFn::alone), classes.get(&place).copied())
                else {
                    return;
                };
                let first = *met.entry(index).or_insert(class);
                if first != class {
                    classes.values_mut().filter(|other| **other == class).for_each(|other| *other = first);
                    met.values_mut().filter(|other| **other == class).for_each(|other| *other = first);
                }
            };
            for (at, function) in equation.head.iter().enumerate() {
                meet((equation.tensor, at), Some(function));
            }
            equation.visit_reads(&mut |read, _| {
                for (at, argument) in read.arguments.iter().enumerate() {
                    meet((read.tensor, at), Argument::function(argument));
                }
            });
        }
        let (mut weighed, mut related) = (vec![false; classes.len()], vec![false; classes.len()]);
        for ((id, _), class) in &classes {
            let tensor = program.tensor(*id);
            let has_facts = tensor.given.iter().any(|given| !matches!(given, Given::Array { .. }));
            weighed[*class] |= tensor.role == Role::Parameter;
            related[*class] |= tensor.style == Style::Round && has_facts;
        }
        let are = weighed.iter().zip(&related).map(|(weighed, related)| *weighed && !related).collect();
        Vectors { classes, are }
    }

    fn is_component(&self, id: TensorId, place: usize) -> bool {
        self.classes.get(&(id, place)).and_then(|class| self.are.get(*class)).copied().unwrap_or(false)
    }
}

fn graph(program: &Program, source: &str, found: &Ground) -> Graph {
    let mut graph = Graph::new("Network", Direction::Left);
    for (atom, values) in &found.atoms {
        let colour = colour(program.tensor(atom.0).role);
        let value = (program.tensor(atom.0).kind != Kind::Bool).then(|| vector(atom, values));
        graph.add(Node::new(Shape::Box(colour), [named(program, atom)].into_iter().chain(value)));
    }
    for made in &found.contributions {
        let lines = on_arc(program, source, made);
        match (&made.from[..], lines.is_empty()) {
            // All that it is made of is left out.
            ([], _) if made.left_out > 0 => {}
            ([from], true) => graph.arcs.push((*from, made.to)),
            (from, _) => {
                let lines = if lines.is_empty() { vec!["·".to_owned()] } else { lines };
                let pill = graph.add(Node::new(Shape::Pill, lines));
                graph.arcs.push((pill, made.to));
                graph.arcs.extend(from.iter().map(|from| (*from, pill)));
            }
        }
    }
    graph
}

fn named(program: &Program, (id, places): &Atom) -> String {
    let place = |place: &Option<_>| place.map_or_else(|| "·".to_owned(), |value| program.symbols.show(value));
    written(program, *id, &places.iter().map(place).collect::<Vec<String>>())
}

/// The first values of a vector, or the value.
fn vector((_, places): &Atom, values: &[f64]) -> String {
    match values {
        [] => "absent".to_owned(),
        [value] => shown(*value),
        _ => {
            let first: Vec<String> = values.iter().take(3).map(|value| shown(*value)).collect();
            let more = if values.len() > 3 || places.is_empty() { " …" } else { "" };
            format!("{}{more}", first.join("  "))
        }
    }
}

/// What a contribution does, with which weights, by which facts.
fn on_arc(program: &Program, source: &str, made: &Contribution) -> Vec<String> {
    let mut lines = Vec::new();
    let reads = made.from.len() + made.weights.len() + made.facts.len() + made.left_out;
    if reads == 0 {
        return vec!["a number".to_owned()];
    }
    if let Some(equation) = program.equations.get(made.equation) {
        let doing = template::doing(program, source, equation);
        lines.extend((doing != "=" && doing != "rule").then_some(doing));
    }
    for (atom, value) in &made.weights {
        lines.push(match value {
            Some(value) => format!("{} = {}", named(program, atom), shown(*value)),
            None => named(program, atom),
        });
    }
    lines.extend(made.facts.iter().map(|atom| named(program, atom)));
    if lines.len() > LINES {
        let more = lines.len() - LINES + 1;
        lines.truncate(LINES - 1);
        lines.push(format!("… {more} more"));
    }
    lines
}
