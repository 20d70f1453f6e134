//! The start values of parameters (N12).
//!
//! Enter at [`start_values`]. What is drawn depends on the seed, the tensor's name and the element
//! only: neither another tensor nor another value of a domain changes it (but for the scales of
//! `glorot()` and `he()`, which are functions of the sizes). An element is the tuple of its
//! values, integers or spellings, wherever it is stored.

use std::sync::Arc;

use crate::engine::Parameters;
use crate::program::{Program, Role, Start, TensorId};
use crate::value::{Const, Domain, Symbols};

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
    let drawn = !matches!(tensor.start, Some(Start::Array { .. } | Start::Number(_)));
    let domains = tensor.places.iter().map(|place| place.domain.as_ref());
    let elements = if drawn { numbers_of_elements(&program.symbols, domains) } else { Vec::default() };
    let stream = |at: usize| family.stream(elements.get(at).copied().unwrap_or_default());
    // A 0 has no sign: -0 + 0 is 0.
    let all = |value: &dyn Fn(usize) -> f64| Arc::new((0..count).map(|at| value(at) + 0.0).collect());
    let normal = |mean: f64, deviation: f64| all(&|at| mean + deviation * stream(at).normal());
    let uniform = |low: f64, high: f64| all(&|at| low + (high - low) * stream(at).uniform());
    let glorot = (6.0 / (rows + columns)).sqrt();
    match &tensor.start {
        Some(Start::Array { values, .. }) => {
            let given = values.iter().map(|value| value + 0.0).chain(std::iter::repeat(0.0));
            Arc::new(given.take(count).collect())
        }
        Some(Start::Number(value)) => Arc::new(vec![*value + 0.0; count]),
        Some(Start::Normal(mean, deviation)) => normal(*mean, *deviation),
        Some(Start::Uniform(low, high)) => uniform(*low, *high),
        Some(Start::He) => normal(0.0, (2.0 / columns).sqrt()),
        Some(Start::Glorot) | None => uniform(-glorot, glorot),
    }
}

/// The number of each element, row-major: what its stream is drawn from. It is a function of the
/// element's values. Of one place of integers it is the integer itself.
fn numbers_of_elements<'d>(symbols: &Symbols, domains: impl Iterator<Item = Option<&'d Domain>>) -> Vec<u64> {
    let mut numbers = vec![0u64];
    for (place, domain) in domains.enumerate() {
        let values = (0..domain.map_or(0, Domain::len)).filter_map(|at| domain?.value(at));
        let values = values.map(|value| match value {
            Const::Int(value) => value as u64,
            Const::Symbol(id) => number_of_spelling(symbols.name(id)),
        });
        let values: Vec<u64> = values.collect();
        let longer = numbers.iter().flat_map(|number| {
            let before = if place == 0 { 0 } else { mixed(*number) };
            values.iter().map(move |value| before ^ value)
        });
        numbers = longer.collect();
    }
    numbers
}

/// A number for a spelling: the first eight bytes of its BLAKE3, through the key of a family.
fn number_of_spelling(name: &str) -> u64 {
    let key = *seeded::Family::named(name).key();
    let mut first = [0u8; 8];
    first.iter_mut().zip(key).for_each(|(to, byte)| *to = byte);
    u64::from_le_bytes(first)
}

/// A bijection of 64 bits in which every bit of the result hangs on every bit of the argument:
/// the finaliser of SplitMix64 (Steele, Lea and Flood 2014, figure 14).
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
