//! What is given of a tensor, to which its equations contribute.

use crate::engine::Storage;
use std::sync::Arc;

use super::slices::join;
use super::{Accumulator, Elements};
use crate::error::Result;
use crate::kernels::volume;
use crate::program::{Combine, Given, Place, Role, Style, Tensor, TensorId};
use crate::store::machine::Machine;
use crate::store::relation::{Codes, Piece, Relation};
use crate::value::{Const, Domain};

impl Machine {
    /// What is given of a tensor.
    pub(crate) fn given(&mut self, id: TensorId, parameter: Option<&[f64]>) -> Result<Accumulator> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(id);
        let domains = program.tensor(id).domains();
        let start = self.starts.get(&id).cloned();
        let parameter = parameter.or_else(|| start.as_deref().map(Vec::as_slice));
        if (tensor.style == Style::Round || self.is_listed(id))
            && let Some(relation) = Relation::as_given(&program, id)
        {
            return Ok(Accumulator::Ready(relation));
        }
        if tensor.style == Style::Round {
            let mut pieces = Vec::new();
            if let Some(values) = parameter {
                // A parameter has all tuples that its places have values for.
                let shape = program.tensor(id).sizes();
                let fixed = vec![None; shape.len()];
                let whole = Given::Array { fixed, shape, values: Arc::from(values), span: tensor.span };
                pieces.push(given_piece(&domains, &whole, &tensor.places));
            }
            for given in &tensor.given {
                pieces.push(given_piece(&domains, given, &tensor.places));
            }
            return Ok(Accumulator::Sparse(pieces));
        }
        let sizes: Vec<usize> = domains.iter().map(Domain::len).collect();
        let size = volume(&sizes);
        let mean = tensor.combine == Combine::Avg;
        let mut data = match whole_array(tensor, parameter, &sizes) {
            Some(values) => {
                let data = Elements::Sum(self.given_array(values));
                return Ok(Accumulator::Dense { data, counts: None, size });
            }
            None if tensor.given.is_empty() && tensor.role != Role::Parameter => {
                let counts = mean.then_some(Elements::None);
                return Ok(Accumulator::Dense { data: Elements::None, counts, size });
            }
            None => vec![tensor.combine.default_value(); size],
        };
        let mut counts = vec![0.0; if mean { size } else { 0 }];
        let mut add = |at: usize, value: f64| {
            if let Some(slot) = data.get_mut(at) {
                join(tensor.combine, slot, value);
            }
            if let Some(count) = counts.get_mut(at) {
                *count += 1.0;
            }
        };
        if tensor.role == Role::Parameter {
            parameter.unwrap_or(&[]).iter().enumerate().for_each(|(at, value)| add(at, *value));
        }
        for given in &tensor.given {
            match given {
                Given::Array { fixed, shape, values, .. }
                    if fixed.iter().all(Option::is_none) && *shape == sizes =>
                {
                    values.iter().enumerate().for_each(|(at, value)| add(at, *value));
                }
                _ => given.each(&domains, |element, value| {
                    position(&domains, element).into_iter().for_each(|at| add(at, value));
                }),
            }
        }
        let counts = mean.then_some(Elements::Joined(counts));
        Ok(Accumulator::Dense { data: Elements::Joined(data), counts, size })
    }

    /// Whether a square tensor is given by the elements that may be another number than 0.
    pub(crate) fn is_listed(&self, id: TensorId) -> bool {
        let tensor = self.program.tensor(id);
        self.storage != Storage::Dense
            && tensor.style == Style::Square
            && tensor.combine == Combine::Sum
            && Relation::is_given(&self.program, id)
    }
}

/// The values of a sum that is given as one whole array.
fn whole_array<'a>(tensor: &'a Tensor, parameter: Option<&'a [f64]>, sizes: &[usize]) -> Option<&'a [f64]> {
    if tensor.combine != Combine::Sum {
        return None;
    }
    if tensor.role == Role::Parameter {
        return parameter.filter(|values| tensor.given.is_empty() && values.len() == volume(sizes));
    }
    let [Given::Array { fixed, shape, values, .. }] = tensor.given.as_slice() else { return None };
    let whole = fixed.iter().all(Option::is_none) && *shape == sizes && values.len() == volume(sizes);
    whole.then_some(values)
}

/// The row-major position of an element.
fn position(domains: &[Domain], tuple: &[Const]) -> Option<usize> {
    let places = domains.iter().zip(tuple);
    places.into_iter().try_fold(0, |at: usize, (domain, value)| {
        at.checked_mul(domain.len())?.checked_add(domain.ordinal(*value)?)
    })
}

fn given_piece(domains: &[Domain], given: &Given, places: &[Place]) -> Piece {
    let inside =
        |(value, place): (&Const, &Place)| place.limit.as_ref().is_none_or(|limit| limit.contains(*value));
    // Facts are read where they lie, unless some of them are outside.
    if let Given::Facts(facts) = given
        && (0..facts.count).all(|at| facts.tuple(at).iter().zip(places).all(inside))
    {
        let arity = places.len();
        let column = |place| Codes::of(facts.constants.iter().skip(place).step_by(arity).copied());
        let values = facts.values.iter().any(|value| *value != 1.0).then(|| facts.values.clone());
        return Piece { len: facts.count, places: (0..arity).map(column).collect(), values, counts: None };
    }
    if let Given::Columns(columns) = given
        && columns.dictionaries.iter().zip(places).all(|(own, place)| {
            let mut own = own.iter();
            own.all(|value| inside((value, place)))
        })
    {
        let codes = columns.dictionaries.iter().zip(&columns.columns);
        let codes = codes.map(|(own, codes)| Codes { dictionary: own.to_vec(), codes: codes.to_vec() });
        let values = columns.values.as_ref().map(|values| values.to_vec());
        return Piece { len: columns.len, places: codes.collect(), values, counts: None };
    }
    let (mut columns, mut values) = (vec![Vec::new(); places.len()], Vec::new());
    given.each(domains, |element, value| {
        if element.iter().zip(places).all(inside) {
            columns.iter_mut().zip(element).for_each(|(column, constant)| column.push(*constant));
            values.push(value);
        }
    });
    let places = columns.iter().map(|column| Codes::of(column.iter().copied())).collect();
    let valued = values.iter().any(|value| *value != 1.0);
    Piece { len: values.len(), places, values: valued.then_some(values), counts: None }
}
