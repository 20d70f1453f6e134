//! Values, in a table: a value is known by its place, and equal places are equal values.

use std::collections::HashMap;
use std::rc::Rc;

use super::carrier::{Carrier, Scalar};
use super::matrix::Matrix;
use crate::formula::Formula;
use crate::ring::Name;

/// A value of an [`Evaluator`](super::Evaluator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u32);

impl ValueId {
    /// The value 0, of every type.
    pub const ZERO: Self = Self(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// `c ∣ν₁,…,νₛ⟩ₚ`: `c` times the coefficient of the product of the ε's in `names` of `∣∅⟩` at the point, in which the
/// ε's are bound.
#[derive(Debug, Clone)]
pub(super) struct Ket<E> {
    pub(super) coefficient: E,
    pub(super) point: ValueId,
    pub(super) names: Rc<[Name]>,
}

/// A value over a carrier.
pub(super) type ValueOf<C> = Value<Scalar<C>, <C as Carrier>::Vector, <C as Carrier>::Operator>;

/// A value over scalars S, vectors V and operators O.
#[derive(Debug, Clone)]
pub(super) enum Value<S, V, O> {
    /// Of type 1.
    Scalar(S),
    /// Of an atom.
    Vector(V),
    /// Of α ⊸ β.
    Operator(O),
    /// Of A & B or A ⊕ B.
    Pair(ValueId, ValueId),
    /// Of A ⊗ B: a formal sum of pairs.
    Tensor(Rc<[(S, ValueId, ValueId)]>),
    /// Of !A: a formal sum of kets.
    Bang(Rc<[Ket<S>]>),
    /// A λ with what it captures.
    Closure { function: usize, captures: Rc<[ValueId]> },
    /// A combination of functions; without summands it is 0, of every type.
    Sum(Rc<[(S, ValueId)]>),
    /// The numeral n at B.
    Numeral { value: u32, base: Formula },
    /// A word at B, in the order of its product.
    Word { digits: Rc<[bool]>, base: Formula },
    /// A word that has its first operator.
    HalfWord { digits: Rc<[bool]>, base: Formula, first: ValueId },
    /// fⁿ, for a function that is no operator.
    Iterate { function: ValueId, times: u32 },
    /// A product of two functions that are no operators.
    Chain { digits: Rc<[bool]>, first: ValueId, second: ValueId },
    /// A function between finite spaces, by its matrix.
    Table { matrix: Rc<Matrix<S>>, from: Formula, to: Formula },
    /// A function of whose results the coefficient of the product of these ε's is taken: they are bound here.
    Coefficient { take: Rc<[Name]>, function: ValueId },
}

/// The table of values.
pub(super) struct Values<C: Carrier> {
    values: Vec<ValueOf<C>>,
    closures: HashMap<(usize, Rc<[ValueId]>), ValueId>,
    points: HashMap<ValueId, ValueId>,
    pairs: HashMap<(ValueId, ValueId), ValueId>,
}

impl<C: Carrier> Values<C> {
    pub(super) fn new() -> Self {
        let zero = Value::Sum(Rc::new([]));
        Self { values: vec![zero], closures: HashMap::new(), points: HashMap::new(), pairs: HashMap::new() }
    }

    pub(super) fn get(&self, id: ValueId) -> ValueOf<C> {
        self.values.get(id.index()).cloned().unwrap_or(Value::Sum(Rc::new([])))
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn add(&mut self, value: ValueOf<C>) -> ValueId {
        self.values.push(value);
        // The evaluator refuses long before 2³² values.
        ValueId(u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX))
    }

    pub(super) fn closure(&mut self, function: usize, captures: Rc<[ValueId]>) -> ValueId {
        if let Some(id) = self.closures.get(&(function, captures.clone())) {
            return *id;
        }
        let id = self.add(Value::Closure { function, captures: captures.clone() });
        self.closures.insert((function, captures), id);
        id
    }

    /// `∣∅⟩` at a point.
    pub(super) fn point(&mut self, one: Scalar<C>, point: ValueId) -> ValueId {
        if let Some(id) = self.points.get(&point) {
            return *id;
        }
        let id = self.add(Value::Bang(Rc::new([Ket { coefficient: one, point, names: Rc::new([]) }])));
        self.points.insert(point, id);
        id
    }

    pub(super) fn pair(&mut self, left: ValueId, right: ValueId) -> ValueId {
        if let Some(id) = self.pairs.get(&(left, right)) {
            return *id;
        }
        let id = self.add(Value::Pair(left, right));
        self.pairs.insert((left, right), id);
        id
    }
}

/// The ε's on which a value may depend.
#[derive(Debug, Clone, Default)]
pub(super) struct Support {
    /// In order.
    pub(super) names: Rc<[Name]>,
    /// How often ε's are written in the value itself, not in its parts: what it costs to go through them.
    pub(super) weight: usize,
}
