//! Combinations of values, formal sums of kets, and what happens to ε's.
//!
//! A ket binds its ε's. To look inside, they are replaced by fresh ones ([`Evaluator::open`]), and the coefficient of
//! their product is taken of what comes out ([`Evaluator::over`]). That is the sum over subsets for `copy`, the three
//! cases of `derelict`, and the sum over set partitions for a box: the rules of the cofree coalgebra are those of the
//! product of polynomials in ε.

use std::rc::Rc;

use super::carrier::{Carrier, Change, Obstacle, Outcome, Scalar};
use super::evaluate::Evaluator;
use super::value::{Ket, Value, ValueId, ValueOf};
use crate::ring::{Name, Ring};

/// The most ε's of one ket.
const MAX_NAMES: usize = 16;

impl<C: Carrier> Evaluator<C> {
    /// `Σ cᵢ vᵢ`, for values of one type.
    ///
    /// # Errors
    /// As for the ring.
    pub fn combine(&mut self, sum: Vec<(Scalar<C>, ValueId)>) -> Outcome<ValueId> {
        let ring = self.carrier.ring();
        let sum: Vec<_> = sum.into_iter().filter(|(c, v)| *v != ValueId::ZERO && !ring.is_zero(c)).collect();
        match sum.as_slice() {
            [] => return Ok(ValueId::ZERO),
            [(coefficient, value)] if ring.is_one(coefficient) => return Ok(*value),
            _ => {}
        }
        let values: Vec<(Scalar<C>, ValueOf<C>)> =
            sum.iter().map(|(c, v)| (c.clone(), self.values.get(*v))).collect();
        let found = match values.first() {
            Some((_, Value::Scalar(_))) => {
                let mut total = self.carrier.ring().zero();
                for (coefficient, value) in &values {
                    let Value::Scalar(scalar) = value else { return Err(Obstacle::IllTyped) };
                    let term = self.carrier.ring().mul(coefficient, scalar)?;
                    total = self.carrier.ring().add(&total, &term)?;
                }
                Value::Scalar(total)
            }
            Some((_, Value::Vector(_))) => {
                let vectors = values
                    .into_iter()
                    .map(|(c, v)| if let Value::Vector(v) = v { Some((c, v)) } else { None });
                let vectors: Option<Vec<_>> = vectors.collect();
                Value::Vector(self.carrier.combine_vectors(&vectors.ok_or(Obstacle::IllTyped)?)?)
            }
            Some((_, Value::Pair(..))) => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                for (coefficient, value) in values {
                    let Value::Pair(a, b) = value else { return Err(Obstacle::IllTyped) };
                    left.push((coefficient.clone(), a));
                    right.push((coefficient, b));
                }
                let (left, right) = (self.combine(left)?, self.combine(right)?);
                return Ok(self.values.pair(left, right));
            }
            Some((_, Value::Tensor(_))) => {
                let mut pairs = Vec::new();
                for (coefficient, value) in values {
                    let Value::Tensor(tensor) = value else { return Err(Obstacle::IllTyped) };
                    self.spend(tensor.len())?;
                    for (c, a, b) in tensor.iter() {
                        pairs.push((self.carrier.ring().mul(&coefficient, c)?, *a, *b));
                    }
                }
                Value::Tensor(pairs.into())
            }
            Some((_, Value::Bang(_))) => {
                let mut kets = Vec::new();
                for (coefficient, value) in values {
                    let Value::Bang(summand) = value else { return Err(Obstacle::IllTyped) };
                    self.spend(summand.len())?;
                    for ket in summand.iter() {
                        let coefficient = self.carrier.ring().mul(&coefficient, &ket.coefficient)?;
                        kets.push(Ket { coefficient, ..ket.clone() });
                    }
                }
                return self.bang(kets);
            }
            _ => self.combine_functions(&sum, values)?,
        };
        Ok(self.values.add(found))
    }

    /// Operators are added at once; other functions stay a sum.
    fn combine_functions(
        &mut self,
        sum: &[(Scalar<C>, ValueId)],
        values: Vec<(Scalar<C>, ValueOf<C>)>,
    ) -> Outcome<ValueOf<C>> {
        let mut operators = Vec::with_capacity(values.len());
        let mut flat = Vec::with_capacity(values.len());
        for ((coefficient, id), (_, value)) in sum.iter().zip(values) {
            match value {
                Value::Operator(operator) => {
                    operators.push((coefficient.clone(), operator));
                    flat.push((coefficient.clone(), *id));
                }
                Value::Sum(inner) => {
                    for (c, function) in inner.iter() {
                        flat.push((self.carrier.ring().mul(coefficient, c)?, *function));
                    }
                }
                _ => flat.push((coefficient.clone(), *id)),
            }
        }
        if operators.len() == sum.len() {
            return Ok(Value::Operator(self.carrier.combine_operators(&operators)?));
        }
        Ok(Value::Sum(flat.into()))
    }

    /// `Σ cᵢ·f(pᵢ)` over the kets of a formal sum.
    pub(super) fn over(
        &mut self,
        kets: &[Ket<Scalar<C>>],
        mut each: impl FnMut(&mut Self, ValueId) -> Outcome<ValueId>,
    ) -> Outcome<ValueId> {
        let mut sum = Vec::with_capacity(kets.len());
        for ket in kets {
            let (point, names) = self.open(ket)?;
            let mut value = each(self, point)?;
            if !names.is_empty() {
                value = self.change(&Change::taking(names), value)?;
            }
            sum.push((ket.coefficient.clone(), value));
        }
        self.combine(sum)
    }

    /// The point of a ket with fresh ε's, and these.
    pub(super) fn open(&mut self, ket: &Ket<Scalar<C>>) -> Outcome<(ValueId, Rc<[Name]>)> {
        if ket.names.is_empty() {
            return Ok((ket.point, ket.names.clone()));
        }
        let (fresh, point) = self.renamed(&ket.names, ket.point)?;
        Ok((point, fresh))
    }

    /// An ε that nothing knows yet.
    pub fn fresh(&mut self) -> Name {
        self.names += 1;
        self.names
    }

    /// `∣v⟩₀`
    pub(super) fn coderelict(&mut self, value: ValueId) -> Outcome<ValueId> {
        let name = self.fresh();
        let Some(epsilon) = self.carrier.ring().epsilon(name) else { return Err(Obstacle::IllTyped) };
        let point = self.combine(vec![(epsilon, value)])?;
        let coefficient = self.carrier.ring().one();
        self.bang(vec![Ket { coefficient, point, names: Rc::new([name]) }])
    }

    /// `∣ν⃗⟩ₚ, ∣μ⃗⟩_Q ↦ ∣ν⃗,μ⃗⟩_{P+Q}`
    pub(super) fn cocopy(&mut self, left: ValueId, right: ValueId) -> Outcome<ValueId> {
        let Value::Bang(lefts) = self.values.get(left) else { return self.zero(left) };
        let Value::Bang(rights) = self.values.get(right) else { return self.zero(right) };
        let mut found = Vec::new();
        for a in lefts.iter() {
            for b in rights.iter() {
                self.spend(1)?;
                let ((p, mut names), (q, more)) = (self.open(a)?, self.open(b)?);
                let coefficient = self.carrier.ring().mul(&a.coefficient, &b.coefficient)?;
                let one = self.carrier.ring().one();
                let point = self.combine(vec![(one.clone(), p), (one, q)])?;
                names = names.iter().chain(more.iter()).copied().collect();
                if names.len() > MAX_NAMES {
                    return Err(Obstacle::Limit("a ket has more than 16 vectors"));
                }
                found.push(Ket { coefficient, point, names });
            }
        }
        self.bang(found)
    }
}
