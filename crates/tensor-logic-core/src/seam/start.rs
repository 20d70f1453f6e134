//! The start values of parameters (N12).
//!
//! Enter at [`start_values`]. They depend on the seed, the tensor's name and the element only,
//! so that adding a tensor changes no other.

use std::sync::Arc;

use crate::engine::Parameters;
use crate::program::{Program, Role, Start, TensorId};

/// The start values of all parameters.
pub fn all_start_values(program: &Program) -> Parameters {
    let ids = (0u32..).map(TensorId).zip(&program.tensors);
    let parameters = ids.filter(|(_, tensor)| tensor.role == Role::Parameter);
    parameters.map(|(id, _)| (id, start_values(program, id))).collect()
}

/// The start values of one parameter, row-major over its domains. An array that is smaller than
/// the domains is followed by zeros.
pub fn start_values(program: &Program, id: TensorId) -> Arc<Vec<f64>> {
    let tensor = program.tensor(id);
    let sizes = tensor.sizes();
    let Some(count) = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size)) else {
        return Arc::default();
    };
    let from_end = |place: usize| sizes.iter().rev().nth(place).map_or(1.0, |size| *size as f64);
    let (rows, columns) = (from_end(1), from_end(0));
    let family =
        seeded::Family::new("tensor-logic", &format!("start:{}", tensor.name), program.settings.seed);
    let stream = |at: usize| family.stream(at as u64);
    // A 0 has no sign: -0 + 0 is 0.
    let all = |value: &dyn Fn(usize) -> f64| Arc::new((0..count).map(|at| value(at) + 0.0).collect());
    let normal = |mean: f64, deviation: f64| all(&|at| mean + deviation * stream(at).normal());
    let uniform = |low: f64, high: f64| all(&|at| low + (high - low) * stream(at).uniform());
    let glorot = (6.0 / (rows + columns)).sqrt();
    match &tensor.start {
        Some(Start::Array { values, .. }) => all(&|at| values.get(at).copied().unwrap_or(0.0)),
        Some(Start::Number(value)) => all(&|_| *value),
        Some(Start::Normal(mean, deviation)) => normal(*mean, *deviation),
        Some(Start::Uniform(low, high)) => uniform(*low, *high),
        Some(Start::He) => normal(0.0, (2.0 / columns).sqrt()),
        Some(Start::Glorot) | None => uniform(-glorot, glorot),
    }
}
