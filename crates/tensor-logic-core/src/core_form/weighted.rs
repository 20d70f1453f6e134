//! Weighted facts: what a relation of the type `prob` or `topk` says in the core form.
//!
//! Such a relation is combined by [`Combine::Proofs`](crate::program::Combine::Proofs). Every given tuple holds with the
//! probability that is its value, whatever else holds; tuples of one relation that differ in a place that
//! [`Program::exclusive`] names are alternatives of which at most one holds. Each of its equations has one term, a rule: for
//! every binding whose guards hold, the head follows where all factors of the body do:
//!
//! | factor | holds |
//! |---|---|
//! | a read of a relation of this kind | where its tuple follows |
//! | a read of any other tensor | with a probability that is the element's value, whatever else holds |
//! | [`Expr::Missing`] of either | where that does not |
//!
//! A given tuple of weight 1 holds for certain. The relation has the tuples that follow in some choice of what holds; the
//! value of a tuple is the probability of that. Reads in guards, and by equations of other kinds, see these values.

use std::collections::BTreeSet;

use crate::function::Function;
use crate::program::{Equation, Expr, Kind, Program, Read, Role, TensorId, Term};

/// The factors of a rule's body: reads, and whether they are denied.
pub fn factors(term: &Term) -> Vec<(&Read, bool)> {
    let parts = match &term.body {
        Expr::Product(parts) | Expr::Terms(parts) => parts.as_slice(),
        body => std::slice::from_ref(body),
    };
    parts.iter().filter_map(factor).collect()
}

fn factor(part: &Expr) -> Option<(&Read, bool)> {
    match part {
        Expr::Read(read) => Some((read, false)),
        Expr::Missing(read) => Some((read, true)),
        _ => None,
    }
}

/// Where the weights of what a relation follows from stand: relations of its kind with given tuples, itself among them, and
/// tensors whose elements rules read as probabilities.
pub fn sources(program: &Program, relation: TensorId) -> BTreeSet<TensorId> {
    let mut sources = BTreeSet::new();
    let mut open = vec![relation];
    let mut seen = BTreeSet::from([relation]);
    while let Some(id) = open.pop() {
        if !program.tensor(id).given.is_empty() || program.tensor(id).role == Role::Parameter {
            sources.insert(id);
        }
        for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
            for (read, _) in equation.terms.iter().flat_map(factors) {
                let tensor = program.tensor(read.tensor);
                if tensor.is_proved() {
                    if seen.insert(read.tensor) {
                        open.push(read.tensor);
                    }
                } else if tensor.kind != Kind::Bool {
                    sources.insert(read.tensor);
                }
            }
        }
    }
    sources
}

/// The relations of the type `addmult`, each with the relation of its sums: their tuples are the same, and only the first is
/// in the text.
pub fn clamped(program: &Program) -> Vec<(TensorId, TensorId)> {
    let of = |equation: &Equation| {
        let [Term { body: Expr::Call(call), .. }] = equation.terms.as_slice() else { return None };
        let ([Expr::Number(1.0), Expr::Read(read)], Function::Min) =
            (call.arguments.as_slice(), &call.function)
        else {
            return None;
        };
        let (own, sums) = (program.tensor(equation.tensor), program.tensor(read.tensor));
        (own.kind == Kind::AddMult && sums.kind == Kind::Real && own.span == sums.span)
            .then_some((equation.tensor, read.tensor))
    };
    program.equations.iter().filter_map(of).collect()
}
