//! Recursion has a contract (N7): which tensors depend on each other, how each such component is
//! evaluated, and the refusals of the stage "recursion" but `unbounded-index`.
//!
//! Enter at [`analyse`]. `graph` lists what every equation reads and finds strongly connected
//! components; `offset` bounds by how much an index function of the left side exceeds one of a
//! read; `steps` looks for places that move in one direction on every cycle; `refusals`
//! finds what a closure must not do to its own tensors.
//!
//! Classes are decided in this order: plain; closure, where all tensors are relations whose
//! combination is idempotent and nothing in the way forbids it; stepped; closure for square
//! tensors under `max=`, `min=`, `or=`; numeric. A relation takes its indices from tuples and
//! needs no end of range, so it steps only where a closure would be refused. Square tensors
//! step first.

mod graph;
mod offset;
mod refusals;
mod steps;

use crate::ast;
use crate::error::Refusal;
use crate::program::{Class, Combine, Component, EquationId, Program, Style, TensorId};

/// The strongly connected components of computed tensors, in evaluation order: each needs only
/// earlier ones and itself. The order does not depend on anything but the order of the text.
pub fn components(program: &Program) -> Vec<Vec<TensorId>> {
    graph::components(&graph::Reads::of(program))
}

/// The components with their equations and classes.
///
/// # Errors
/// `self-reference` and `not-stratified`, in order of place. Comparisons carry no place in the
/// core form: their literals are looked up in the tree.
pub fn analyse(program: &Program, tree: &ast::Program) -> Result<Vec<Component>, Vec<Refusal>> {
    let reads = graph::Reads::of(program);
    let mut reports = Vec::new();
    let mut components = Vec::new();
    for tensors in graph::components(&reads) {
        let inside = graph::Inside::new(program, &reads, &tensors);
        let class = classify(&inside, tree, &mut reports);
        let equations: Vec<EquationId> = inside.equations();
        components.push(Component { tensors, equations, class });
    }
    if reports.is_empty() {
        return Ok(components);
    }
    reports.sort_by_key(|report| (report.span.start, report.code));
    reports.dedup();
    Err(reports)
}

fn classify(inside: &graph::Inside<'_>, tree: &ast::Program, reports: &mut Vec<Refusal>) -> Class {
    if inside.occurrences.is_empty() {
        return Class::Plain;
    }
    let to_itself = refusals::self_references(inside);
    if !to_itself.is_empty() {
        reports.extend(to_itself);
        return Class::Numeric;
    }
    let tensors = || inside.tensors.iter().map(|id| inside.program.tensor(*id));
    let round = tensors().all(|tensor| tensor.style == Style::Round);
    let idempotent = tensors().all(|tensor| {
        matches!(
            tensor.combine,
            Combine::Exists | Combine::Or | Combine::Max | Combine::Min | Combine::Proofs
        )
    });
    let mixed = refusals::through_values(inside);
    if !mixed.is_empty() {
        reports.extend(mixed);
        return Class::Closure;
    }
    let refused = if idempotent { refusals::not_monotone(inside, tree) } else { refusals::averages(inside) };
    if round && idempotent && refused.is_empty() {
        return Class::Closure;
    }
    if let Some(steps) = steps::find(inside) {
        return Class::Stepped(steps);
    }
    reports.extend(refused);
    if idempotent { Class::Closure } else { Class::Numeric }
}
