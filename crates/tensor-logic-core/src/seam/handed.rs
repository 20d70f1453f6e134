//! What was computed, given to a program as its data.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::digits::halves;
use crate::engine::Value;
use crate::program::{Facts, Given, Kind, Program, Role, Tensor, TensorId};

/// The program with these relations as data.
pub fn with_data(program: &Program, derived: BTreeMap<TensorId, Vec<Given>>) -> Program {
    let mut changed = program.clone();
    for component in &mut changed.components {
        component.tensors.retain(|id| !derived.contains_key(id));
    }
    changed.components.retain(|component| !component.tensors.is_empty());
    for (id, given) in derived {
        let Some(tensor) = changed.tensors.get_mut(id.0 as usize) else { continue };
        tensor.given = given;
        tensor.role = Role::Data;
        for equation in changed.equations.iter_mut().filter(|equation| equation.tensor == id) {
            equation.terms.clear();
        }
    }
    changed
}

/// A value as data for another engine.
pub fn data(tensor: &Tensor, value: Value) -> Vec<Given> {
    let array = |values: Arc<[f64]>| Given::Array {
        fixed: vec![None; tensor.places.len()],
        shape: tensor.sizes(),
        values,
        span: tensor.span,
    };
    match value {
        Value::Tuples(tuples) => {
            let mut facts = Facts { arity: tensor.places.len(), ..Facts::default() };
            // A count that one number does not hold is given as two, which are added.
            for (tuple, count) in tuples.tuples.iter().zip(&tuples.counts) {
                halves(*count).into_iter().for_each(|half| facts.push(tuple, half, None));
            }
            if tuples.counts.is_empty() {
                facts.count = tuples.tuples.len();
                facts.constants = tuples.tuples.into_iter().flatten().collect();
                facts.values = if tensor.kind != Kind::Bool { tuples.values } else { Vec::new() };
            }
            vec![Given::Facts(Arc::new(facts))]
        }
        Value::Counts(counts) => {
            [0, 1].map(|half| array(counts.iter().map(|count| halves(*count)[half]).collect())).into()
        }
        Value::Dense(values) => vec![array(values.doubles().as_slice().into())],
    }
}
