//! The warning `duplicate-fact` of a recursion (N6.8): a step that contributes to an element that is given.
//!
//! Enter at [`warnings`]. `C[0] = X[0]` and `C[t+1] = C[t] + X[t+1]` have a step at t = -1, since only reads from outside
//! limit `t`: `C[-1]` is absent and left out, and `X[0]` is added to `C[0]` once more.

use crate::ast::Span;
use crate::error::{Code, Warning};
use crate::linear::linear;
use crate::program::{
    Class, Combine, Component, Equation, Expr, Given, IndexFn, Operation, Program, Range, TensorId, Term,
};
use crate::value::{Const, Domain};

/// A warning for every equation of a recursion that adds to elements which others give by name.
pub fn warnings(program: &Program) -> Vec<Warning> {
    let stepped = program.components.iter().filter(|one| matches!(one.class, Class::Stepped(_)));
    let all = stepped.flat_map(|component| component.equations.iter().map(move |id| (component, *id)));
    all.filter_map(|(component, id)| warning(program, component, program.equation(id))).collect()
}

fn warning(program: &Program, component: &Component, equation: &Equation) -> Option<Warning> {
    let tensor = program.tensor(equation.tensor);
    let adds =
        tensor.combine == Combine::Sum && equation.terms.iter().any(|term| recurs(component, &term.body));
    let begins = |term: &Term| term.when.guards.is_empty() && !recurs_only(component, &term.body);
    if !adds || !equation.terms.iter().any(begins) {
        return None;
    }
    for (place, function) in equation.head.iter().enumerate() {
        let Some((terms, constant)) = linear(function) else { continue };
        let [(index, 1)] = terms[..] else { continue };
        if constant <= 0 {
            continue;
        }
        let entry = program.index(index);
        let Range::Domain(Domain::Interval { from, .. }) = entry.range else { continue };
        let Some(first) = from.checked_add(constant) else { continue };
        let Some(given) = given_at(program, equation, place, first) else { continue };
        let name = &tensor.name;
        let message =
            format!("this has a step at {} = {from}, which adds to what is given of `{name}`", entry.name);
        let help = format!("declare what `{0}` ranges over, or write `| {0} > {from}` behind it", entry.name);
        let report = Warning::new(Code::DuplicateFact, equation.head_span, message);
        return Some(report.label(given, "given here").help(help));
    }
    None
}

/// Where elements are given, or equated, whose place is this integer.
fn given_at(program: &Program, equation: &Equation, place: usize, at: i64) -> Option<Span> {
    let wanted = Const::Int(at);
    let tensor = program.tensor(equation.tensor);
    let others = program.equations.iter().filter(|other| other.tensor == equation.tensor);
    let mut equated = others.filter(|other| other.head.get(place) == Some(&IndexFn::Const(wanted)));
    if let Some(other) = equated.next() {
        return Some(other.head_span);
    }
    tensor.given.iter().find_map(|given| match given {
        Given::Array { fixed, .. } => (fixed.get(place) == Some(&Some(wanted))).then_some(tensor.span),
        Given::Facts(facts) => (0..facts.count)
            .find(|fact| facts.tuple(*fact).get(place) == Some(&wanted))
            .and_then(|fact| facts.spans.get(fact).copied()),
        Given::Columns(_) => None,
    })
}

/// Whether an expression reads a tensor of the component.
fn recurs(component: &Component, expr: &Expr) -> bool {
    let mut found = false;
    expr.visit_reads(&mut |read, _| found |= is_of(component, read.tensor));
    found
}

fn is_of(component: &Component, tensor: TensorId) -> bool {
    component.tensors.contains(&tensor)
}

/// Whether an expression is absent where what it reads of the component is.
fn recurs_only(component: &Component, expr: &Expr) -> bool {
    match expr {
        Expr::Read(read) => is_of(component, read.tensor),
        Expr::Terms(parts) => parts.iter().all(|part| recurs_only(component, part)),
        Expr::Reduce(reduce)
            if matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product)
                && reduce.explicit =>
        {
            false
        }
        _ => expr.parts().0.into_iter().any(|part| recurs_only(component, part)),
    }
}
