//! The program below a loss as a graph: tensors, and between them what its equations do.

use std::collections::{BTreeMap, VecDeque};

use calculemus_draw::graph::{Direction, Graph, Node, Shape};
use calculemus_draw::html;

use super::{colour, sizes, written};
use crate::error::Places;
use crate::program::{Combine, Equation, Expr, Given, IndexFn, Operation, Program, Role, Style, TensorId};

/// The most tensors that are drawn.
const MOST: usize = 60;

/// The template of a goal, with what was left out of it.
pub(super) fn drawn(program: &Program, source: &str, goal: TensorId) -> html::Markup {
    let (graph, left_out) = graph(program, source, goal);
    let note = "what is learned is orange, what is given green, what is computed blue; on the arcs what an equation does";
    let mut parts = vec![html::figures(&[graph.figure(note)])];
    if left_out > 0 {
        let message = format!("{left_out} tensors further from the loss are left out.");
        parts.push(html::left_out(&message));
    }
    html::join(parts)
}

/// The graph, and how many tensors are not in it.
fn graph(program: &Program, source: &str, goal: TensorId) -> (Graph, usize) {
    let places = Places::new(source);
    let mut graph = Graph::new("Template", Direction::Down);
    let mut numbers: BTreeMap<TensorId, Option<usize>> = BTreeMap::new();
    let mut next = VecDeque::from([goal]);
    numbers.insert(goal, Some(graph.add(node(program, goal))));
    while let Some(id) = next.pop_front() {
        let Some(to) = numbers.get(&id).copied().flatten() else { continue };
        for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
            let mut from = Vec::new();
            equation.visit_reads(&mut |read, _| {
                if !from.contains(&read.tensor) {
                    from.push(read.tensor);
                }
            });
            let line = places.of(equation.span.start).0;
            let pill =
                graph.add(Node::new(Shape::Pill, [doing(program, source, equation), format!("line {line}")]));
            graph.arcs.push((pill, to));
            for read in from {
                let number = *numbers.entry(read).or_insert_with(|| {
                    let is_drawn = graph.nodes.len() < 2 * MOST;
                    next.extend(is_drawn.then_some(read));
                    is_drawn.then(|| graph.add(node(program, read)))
                });
                graph.arcs.extend(number.map(|number| (number, pill)));
            }
        }
    }
    let left_out = program.needs(&[goal]).len() - numbers.values().flatten().count();
    (graph, left_out)
}

fn node(program: &Program, id: TensorId) -> Node {
    let tensor = program.tensor(id);
    let places = named(program, id);
    let facts = || {
        let counts = tensor.given.iter().map(|given| match given {
            Given::Facts(facts) => facts.count,
            Given::Columns(columns) => columns.len,
            Given::Array { values, .. } => values.len(),
        });
        counts.sum::<usize>()
    };
    let below = match tensor.role {
        Role::Parameter => format!("parameter, {}", sizes(&tensor.sizes())),
        Role::Data if tensor.style == Style::Round => format!("{} facts", facts()),
        Role::Data => format!("given, {}", sizes(&tensor.sizes())),
        Role::Computed if tensor.places.is_empty() => "a number".to_owned(),
        Role::Computed => format!("computed, {}", tensor.kind.name()),
        Role::Empty | Role::Missing => "nothing is given".to_owned(),
    };
    Node::new(Shape::Box(colour(tensor.role)), [written(program, id, &places), below])
}

/// What the places of a tensor are called where it is defined, or else where it is first read.
fn named(program: &Program, id: TensorId) -> Vec<String> {
    let name = |function: Option<&IndexFn>| match function.and_then(IndexFn::alone) {
        Some(index) => program.index(index).name.clone(),
        None => "·".to_owned(),
    };
    if let Some(equation) = program.equations.iter().find(|equation| equation.tensor == id) {
        return equation.head.iter().map(|function| name(Some(function))).collect();
    }
    let mut found = None;
    for equation in &program.equations {
        equation.visit_reads(&mut |read, _| {
            if read.tensor == id && found.is_none() {
                let names = read.arguments.iter().map(|argument| name(argument.function()));
                found = Some(names.collect::<Vec<String>>());
            }
        });
    }
    found.unwrap_or_else(|| vec!["·".to_owned(); program.tensor(id).places.len()])
}

/// What an equation does, in few words: how contributions are put together, over which indices, and its functions.
pub(super) fn doing(program: &Program, source: &str, equation: &Equation) -> String {
    let mut over: Vec<&str> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for term in &equation.terms {
        over.extend(term.over.iter().map(|index| program.index(*index).name.as_str()));
        functions(program, source, &term.body, &mut words, &mut over);
    }
    let tensor = program.tensor(equation.tensor);
    let sign = match tensor.combine {
        Combine::Sum => "sum",
        Combine::Max => "max",
        Combine::Min => "min",
        Combine::Times => "product",
        Combine::Avg => "mean",
        Combine::Or | Combine::Exists => "exists",
        Combine::Proofs | Combine::Slopes => "proofs",
    };
    let mut seen = Vec::new();
    over.retain(|name| {
        *name != "_" && !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    let mut said = match (over.is_empty(), tensor.combine) {
        (true, Combine::Sum) => Vec::new(),
        (true, Combine::Or | Combine::Exists) => vec!["rule".to_owned()],
        (true, _) => vec![sign.to_owned()],
        (false, _) => vec![format!("{sign} over {}", over.join(", "))],
    };
    said.extend(words.into_iter().map(str::to_owned));
    if said.is_empty() { "=".to_owned() } else { said.join(" · ") }
}

/// The functions of an expression and the indices of its scopes, each once, in order.
fn functions<'p>(
    program: &'p Program,
    source: &'p str,
    expr: &'p Expr,
    words: &mut Vec<&'p str>,
    over: &mut Vec<&'p str>,
) {
    let mut word = |word: &'p str| {
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    };
    match expr {
        Expr::Call(call) => word(source.get(call.span.start..call.span.end).unwrap_or("")),
        Expr::Axis(axis) => word(source.get(axis.span.start..axis.span.end).unwrap_or("")),
        Expr::Reduce(reduce) => {
            over.extend(reduce.over.iter().map(|index| program.index(*index).name.as_str()));
            word(match reduce.operation {
                Operation::Sum => "",
                Operation::Product => "prod",
                Operation::Max => "max",
                Operation::Min => "min",
                Operation::Avg => "avg",
                Operation::Count => "count",
            });
        }
        _ => {}
    }
    expr.parts().0.into_iter().for_each(|part| functions(program, source, part, words, over));
}
