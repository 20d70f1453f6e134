//! What the relational engine derived, as values and refusals of the language.

use std::collections::BTreeMap;

use super::Compiled;
use crate::ast::Span;
use crate::digits;
use crate::divergence::diverges;
use crate::engine::{Tuples, Value};
use crate::error::{Code, Refusal};
use crate::program::{Program, Role, Style, TensorId};
use crate::value::Tuple;
use datarel::{Database, Failure, RelationId};

impl Compiled {
    /// The value of the goal.
    pub fn value(&self, program: &Program, goal: TensorId) -> Value {
        let relation = self.database.relation(self.goal);
        let number = |value: datarel::Value| {
            if relation.ring().counts() { value.as_count() as f64 } else { value.as_real() }
        };
        if program.tensor(goal).style == Style::Square {
            let value = relation.value(&[]).map_or(0.0, number);
            return Value::Dense(vec![value].into());
        }
        let arity = relation.arity();
        let rows = relation.rows();
        let count = relation.len();
        let tuple = |at: usize| -> Tuple {
            let ids = rows.get(at * arity..(at + 1) * arity).unwrap_or(&[]);
            ids.iter().map(|id| self.database.constants.value(*id)).collect()
        };
        let values = relation.values();
        let value = |at: usize| values.get(at).copied().map_or(1.0, number);
        let mut found: Vec<(Tuple, f64)> = (0..count).map(|at| (tuple(at), value(at))).collect();
        found.sort_by(|(a, _), (b, _)| program.symbols.compare_tuples(a, b));
        let (tuples, values) = found.into_iter().unzip();
        Value::Tuples(Tuples { tuples, values })
    }

    /// Refuses a count whose digits an answer cannot hold (53 bits).
    pub(super) fn digits_fit(&self, program: &Program) -> Result<(), Refusal> {
        let relation = self.database.relation(self.goal);
        let count = |value: &datarel::Value| i128::from(value.as_count());
        let mut counts = relation.values().iter().filter(|_| relation.ring().counts()).map(count);
        match counts.find(|count| !digits::are_kept(*count)) {
            Some(count) => Err(digits::refused(program, self.tensors.get(&self.goal).copied(), count)),
            None => Ok(()),
        }
    }

    /// How many tuples each computed relation stored, by name, in order of the program.
    pub fn derived(&self, program: &Program) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<TensorId, u64> = BTreeMap::new();
        for (relation, tensor) in &self.tensors {
            let entry = program.tensor(*tensor);
            if entry.role == Role::Computed && !entry.hidden {
                *counts.entry(*tensor).or_default() += self.database.relation(*relation).len() as u64;
            }
        }
        counts.into_iter().map(|(tensor, count)| (program.name(tensor).to_owned(), count)).collect()
    }
}

/// A failure as the language refuses it.
pub(super) fn refusal(
    program: &Program,
    database: &Database,
    tensors: &BTreeMap<RelationId, TensorId>,
    failure: Failure,
) -> Refusal {
    let tensor_of = |relation: RelationId| tensors.get(&relation).copied();
    let place = |relation: RelationId| {
        let tensor = tensor_of(relation);
        let equation = program.equations.iter().filter(|equation| Some(equation.tensor) == tensor);
        let recursive = |e: &&crate::program::Equation| program.reads_of(e.tensor).contains(&e.tensor);
        let mut equations: Vec<_> = equation.collect();
        equations.sort_by_key(|equation| (!recursive(equation), equation.span.start));
        let written = tensor.map_or(Span::default(), |id| program.tensor(id).span);
        equations.first().map_or(written, |equation| equation.head_span)
    };
    let name = |relation: RelationId| tensor_of(relation).map_or("?", |id| program.name(id)).to_owned();
    match failure {
        Failure::Tuples { relation, limit } => {
            let message = format!("`{}` grows beyond {limit} tuples (--max-tuples)", name(relation));
            Refusal::new(Code::Budget, place(relation), message)
                .help("end the rule by a comparison or a declared domain, or raise --max-tuples")
        }
        Failure::Bytes { relation, needed, limit } => {
            let message =
                format!("`{}` needs {needed} bytes, and {limit} are allowed (--max-bytes)", name(relation));
            Refusal::new(Code::Budget, place(relation), message).help("raise --max-bytes")
        }
        Failure::Divergence { relation, rounds, .. } => {
            let tensor = tensor_of(relation);
            let component = program
                .components
                .iter()
                .find(|component| tensor.is_some_and(|id| component.tensors.contains(&id)));
            match component {
                Some(component) => diverges(program, component, rounds, tensor),
                None => {
                    Refusal::new(Code::Divergence, place(relation), "the recursion does not come to rest")
                }
            }
        }
        Failure::Overflow { relation, tuple } => {
            let tuple: Tuple = tuple.iter().map(|id| database.constants.value(*id)).collect();
            let message = format!("`{}({})` leaves 64 bits", name(relation), program.show_tuple(&tuple));
            Refusal::new(Code::Overflow, place(relation), message).help("use the type real")
        }
        Failure::Interrupted
        | Failure::TooManyConstants
        | Failure::NotStratified { .. }
        | Failure::Rule { .. } => Refusal::new(Code::Budget, Span::default(), failure.to_string()),
    }
}
