//! Values of finite type and their coordinates: section 10.1, both ways.
//!
//! Only carriers whose atoms have finite bases have coordinates: a [`Carrier`] says so by
//! [`Carrier::dimension_of`].

use std::rc::Rc;

use super::carrier::{Carrier, Obstacle, Outcome, Scalar};
use super::dense::MAX_ENTRIES;
use super::evaluate::Evaluator;
use super::matrix::Matrix;
use super::value::{Value, ValueId};
use crate::formula::{Connective, Formula};
use crate::ring::Ring;

impl<C: Carrier> Evaluator<C> {
    /// The dimension of a finite formula.
    ///
    /// # Errors
    /// If a dimension of an atom is not known, if the formula is not finite, or if the dimension is too large.
    pub fn dimension(&mut self, formula: &Formula) -> Outcome<usize> {
        let found = match formula.connective() {
            Connective::Atom(atom) => Some(self.carrier.dimension_of(atom)?),
            Connective::One => Some(1),
            Connective::Tensor(a, b) | Connective::Lolli(a, b) => {
                self.dimension(a)?.checked_mul(self.dimension(b)?)
            }
            Connective::With(a, b) | Connective::Plus(a, b) => {
                self.dimension(a)?.checked_add(self.dimension(b)?)
            }
            Connective::Bang(_) | Connective::Parameter(_) => {
                return Err(Obstacle::NotFinite(formula.to_string()));
            }
        };
        found.filter(|n| *n <= MAX_ENTRIES).ok_or(Obstacle::Limit("a space has too many dimensions"))
    }

    /// The coordinates of a value of a finite type.
    ///
    /// # Errors
    /// As for [`Evaluator::dimension`], and what stands in the way of the value.
    pub fn coordinates(&mut self, value: ValueId, formula: &Formula) -> Outcome<Vec<Scalar<C>>> {
        let zero = self.carrier.ring().zero();
        if value == ValueId::ZERO {
            return Ok(vec![zero; self.dimension(formula)?]);
        }
        match (self.values.get(value), formula.connective()) {
            (Value::Scalar(scalar), Connective::One) => Ok(vec![scalar]),
            (Value::Vector(vector), Connective::Atom(_)) => self.carrier.entries_of(&vector),
            (Value::Pair(left, right), Connective::With(a, b) | Connective::Plus(a, b)) => {
                let mut found = self.coordinates(left, a)?;
                found.extend(self.coordinates(right, b)?);
                Ok(found)
            }
            (Value::Tensor(pairs), Connective::Tensor(a, b)) => {
                let (_, columns) = (self.dimension(a)?, self.dimension(b)?);
                let mut found = vec![zero; self.dimension(formula)?];
                for (coefficient, left, right) in pairs.iter() {
                    let (x, y) = (self.coordinates(*left, a)?, self.coordinates(*right, b)?);
                    let ring = self.carrier.ring();
                    for (row, x) in found.chunks_exact_mut(columns).zip(&x) {
                        let x = ring.mul(coefficient, x)?;
                        if ring.is_zero(&x) {
                            continue;
                        }
                        for (entry, y) in row.iter_mut().zip(&y) {
                            *entry = ring.add(entry, &ring.mul(&x, y)?)?;
                        }
                    }
                }
                Ok(found)
            }
            (_, Connective::Lolli(a, b)) => {
                let (columns, rows) = (self.dimension(a)?, self.dimension(b)?);
                let mut found = vec![zero; self.dimension(formula)?];
                if formula.as_operator().is_some()
                    && let Some(operator) = self.operator(value)?
                {
                    return self.carrier.matrix_of(&operator);
                }
                for column in 0..columns {
                    let unit = self.basis(a, column)?;
                    let image = self.apply(value, unit)?;
                    let image = self.coordinates(image, b)?;
                    for (row, entry) in image.into_iter().enumerate().take(rows) {
                        if let Some(place) = found.get_mut(row * columns + column) {
                            *place = entry;
                        }
                    }
                }
                Ok(found)
            }
            _ => Err(Obstacle::IllTyped),
        }
    }

    /// An element of the basis of a finite formula.
    fn basis(&mut self, formula: &Formula, index: usize) -> Outcome<ValueId> {
        let n = self.dimension(formula)?;
        let ring = self.carrier.ring();
        let unit = (0..n).map(|i| if i == index { ring.one() } else { ring.zero() }).collect();
        self.from_coordinates(unit, formula)
    }

    /// The value with these coordinates.
    ///
    /// # Errors
    /// As for [`Evaluator::dimension`]; the number of coordinates must be right.
    pub fn from_coordinates(&mut self, entries: Vec<Scalar<C>>, formula: &Formula) -> Outcome<ValueId> {
        if entries.len() != self.dimension(formula)? {
            return Err(Obstacle::IllTyped);
        }
        let ring = self.carrier.ring();
        if entries.iter().all(|entry| ring.is_zero(entry)) {
            return Ok(ValueId::ZERO);
        }
        let found = match formula.connective() {
            Connective::Atom(_) => Value::Vector(self.carrier.vector_of(entries)?),
            Connective::One => Value::Scalar(entries.into_iter().next().ok_or(Obstacle::IllTyped)?),
            Connective::With(a, b) | Connective::Plus(a, b) => {
                let mut left = entries;
                let right = left.split_off(self.dimension(a)?);
                let (left, right) = (self.from_coordinates(left, a)?, self.from_coordinates(right, b)?);
                return Ok(self.values.pair(left, right));
            }
            Connective::Tensor(a, b) => {
                let columns = self.dimension(b)?;
                let mut pairs = Vec::new();
                for (i, row) in entries.chunks_exact(columns).enumerate() {
                    let right = self.from_coordinates(row.to_vec(), b)?;
                    if right != ValueId::ZERO {
                        pairs.push((self.carrier.ring().one(), self.basis(a, i)?, right));
                    }
                }
                Value::Tensor(pairs.into())
            }
            Connective::Lolli(a, b) => {
                let matrix = Matrix { rows: self.dimension(b)?, columns: self.dimension(a)?, entries };
                if a.as_atom().is_some() && b.as_atom().is_some() {
                    Value::Operator(self.carrier.operator_of(matrix)?)
                } else {
                    Value::Table { matrix: Rc::new(matrix), from: a.clone(), to: b.clone() }
                }
            }
            Connective::Bang(_) | Connective::Parameter(_) => {
                return Err(Obstacle::NotFinite(formula.to_string()));
            }
        };
        Ok(self.values.add(found))
    }

    /// A matrix between finite spaces at an argument.
    pub(super) fn table(
        &mut self,
        matrix: &Matrix<Scalar<C>>,
        from: &Formula,
        to: &Formula,
        argument: ValueId,
    ) -> Outcome<ValueId> {
        let argument = self.coordinates(argument, from)?;
        let ring = self.carrier.ring();
        let mut image = Vec::with_capacity(matrix.rows);
        for row in matrix.entries.chunks_exact(matrix.columns) {
            let mut total = ring.zero();
            for (x, y) in row.iter().zip(&argument) {
                total = ring.add(&total, &ring.mul(x, y)?)?;
            }
            image.push(total);
        }
        self.from_coordinates(image, to)
    }

    /// A scalar as a value of type 1.
    pub fn scalar(&mut self, scalar: Scalar<C>) -> ValueId {
        if self.carrier.ring().is_zero(&scalar) {
            return ValueId::ZERO;
        }
        self.values.add(Value::Scalar(scalar))
    }

    /// An operator as a value of type α ⊸ β.
    pub fn operator_value(&mut self, operator: C::Operator) -> ValueId {
        self.values.add(Value::Operator(operator))
    }

    /// An element of the space of an atom as a value.
    pub fn vector_value(&mut self, vector: C::Vector) -> ValueId {
        self.values.add(Value::Vector(vector))
    }

    /// The element of the space of an atom that a value is; `None` is 0.
    pub fn vector(&self, value: ValueId) -> Option<C::Vector> {
        if let Value::Vector(vector) = self.values.get(value) { Some(vector) } else { None }
    }
}
