//! What was learned of a parameter, element by element: the program behind it may have other elements, or the same in
//! another order.

use std::sync::Arc;

use crate::program::{Program, TensorId};
use crate::start::start_values;
use crate::value::{Const, Domain, Symbols};

/// The values of a parameter over the elements that it had when it was learned.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    domains: Vec<Domain>,
    symbols: Arc<Symbols>,
    /// Row-major.
    values: Arc<Vec<f64>>,
}

impl Learned {
    pub(super) fn new(domains: Vec<Domain>, symbols: Arc<Symbols>, values: Arc<Vec<f64>>) -> Learned {
        Learned { domains, symbols, values }
    }

    /// The values in a program: those of elements that were there are kept, the others are `given` or start. None where
    /// the tensor has another number of places, and so is another one.
    pub(super) fn values(
        &self,
        program: &Program,
        id: TensorId,
        given: Option<&Vec<f64>>,
    ) -> Option<Arc<Vec<f64>>> {
        let domains = program.tensor(id).domains();
        if domains.len() != self.domains.len() {
            return None;
        }
        // For each place, where each of its values stood.
        let places: Vec<Vec<Option<usize>>> = domains
            .iter()
            .zip(&self.domains)
            .map(|(new, old)| new.values().map(|value| self.ordinal(old, value, &program.symbols)).collect())
            .collect();
        let stays = |(place, old): (&Vec<Option<usize>>, &Domain)| {
            place.len() == old.len() && (0..).map(Some).zip(place).all(|(at, was)| at == *was)
        };
        if places.iter().zip(&self.domains).all(stays) {
            return Some(Arc::clone(&self.values));
        }
        let mut values = given.cloned().unwrap_or_else(|| start_values(program, id).to_vec());
        for (at, value) in values.iter_mut().enumerate() {
            let mut was = Some(0);
            let (mut rest, mut step) = (at, 1);
            for (place, old) in places.iter().zip(&self.domains).rev() {
                let own = place.get(rest % place.len().max(1)).copied().flatten();
                was = was.zip(own).map(|(was, own)| was + step * own);
                rest /= place.len().max(1);
                step *= old.len();
            }
            if let Some(learned) = was.and_then(|was| self.values.get(was)) {
                *value = *learned;
            }
        }
        Some(Arc::new(values))
    }

    /// The position in an old domain of a value of the new program.
    fn ordinal(&self, old: &Domain, value: Const, symbols: &Symbols) -> Option<usize> {
        match value {
            Const::Int(_) => old.ordinal(value),
            Const::Symbol(id) => old.ordinal(Const::Symbol(self.symbols.id(symbols.name(id))?)),
        }
    }
}
