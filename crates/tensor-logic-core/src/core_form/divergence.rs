//! The refusal of a recursion that does not come to rest (N7), the same from every engine.
//!
//! Enter at [`diverges`].

use std::collections::{BTreeMap, VecDeque};

use crate::ast::Span;
use crate::error::{Code, Refusal};
use crate::program::{Combine, Component, Equation, Program, TensorId};
use crate::value::Const;

/// The refusal of a component that does not come to rest.
pub fn diverges(program: &Program, component: &Component, rounds: u64, grew: Option<TensorId>) -> Refusal {
    let recursive = |equation: &&Equation| {
        let mut found = false;
        equation.visit_reads(&mut |read, _| found |= component.tensors.contains(&read.tensor));
        found
    };
    let mut equations: Vec<&Equation> = component.equations.iter().map(|id| program.equation(*id)).collect();
    equations.sort_by_key(|equation| equation.head_span);
    let first = equations.iter().copied().find(recursive).or(equations.first().copied());
    let tensor = first.map(|equation| equation.tensor).or(component.tensors.first().copied());
    let cycle = tensor.map_or_else(String::new, |tensor| cycle(program, component, &equations, tensor));
    let grew = grew.or(tensor).map_or("", |id| program.name(id));
    let message =
        format!("`{cycle}` does not come to rest: after {rounds} rounds `{grew}` still grows or changes");
    let help = match (tensor.map(|id| program.tensor(id)), first) {
        (Some(tensor), Some(equation))
            if !tensor.places.is_empty() && !matches!(tensor.combine, Combine::Max | Combine::Min) =>
        {
            let places = equation.head.iter().map(|place| match place.alone() {
                Some(index) => program.index(index).name.as_str(),
                None => "_",
            });
            let places: Vec<&str> = places.collect();
            let head = format!("{}({})", tensor.name, places.join(", "));
            format!(
                "`{head} <- …` asks whether there is one, which always ends; `min=` and `max=` come to rest \
                 where no cycle improves a value"
            )
        }
        _ => "no number of rounds finds a limit; break the cycle with a guard, count its steps in an index, or \
              take `min=` or `max=` where no cycle improves a value"
            .to_owned(),
    };
    let span = first.map_or_else(Span::default, |equation| equation.head_span);
    Refusal::new(Code::Divergence, span, message).help(help)
}

/// The refusal of a recursive relation without values that adds a number below 0 up for a tuple.
pub fn falls(program: &Program, tensor: TensorId, tuple: &[Const]) -> Refusal {
    let name = program.name(tensor);
    let shown = format!("{name}({})", program.show_tuple(&tuple.to_vec()));
    let message =
        format!("`{shown}` meets a factor below 0, which takes tuples away that others may rest on");
    let help = format!(
        "`{name}(…) <- …` asks whether there is one, which always ends; or keep what is above 0: `R(x) > 0`"
    );
    let own = program.equations.iter().filter(|equation| equation.tensor == tensor);
    let first = own.min_by_key(|equation| equation.head_span);
    Refusal::new(Code::Divergence, first.map_or(Span::default(), |equation| equation.head_span), message)
        .help(help)
}

/// The shortest way through the component from a tensor to itself: `A -> B -> A`.
fn cycle(program: &Program, component: &Component, equations: &[&Equation], from: TensorId) -> String {
    let mut before: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        for equation in equations.iter().filter(|equation| equation.tensor == at) {
            equation.visit_reads(&mut |read, _| {
                if component.tensors.contains(&read.tensor) && !before.contains_key(&read.tensor) {
                    before.insert(read.tensor, at);
                    open.push_back(read.tensor);
                }
            });
        }
    }
    let mut names = vec![program.name(from)];
    let mut at = from;
    while let Some(previous) = before.get(&at).copied() {
        names.push(program.name(previous));
        at = previous;
        if at == from || names.len() > component.tensors.len() + 1 {
            break;
        }
    }
    names.reverse();
    names.join(" -> ")
}
