//! What the evaluator knows of the spaces of atoms and of the maps between them.
//!
//! The evaluator is generic over a [`Carrier`]: matrices and vectors over a ring, the free module on words, or the
//! instructions of a straight-line program.

use std::rc::Rc;

use super::matrix::Matrix;
use crate::error::{Kind, Refusal};
use crate::ring::{Fault, Name, Ring};

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// An operation of the ring has no result.
    Fault(Fault),
    /// The dimension of an atom is not known.
    Dimension(Rc<str>),
    /// Something would become too large, too deep or too long: what.
    Limit(&'static str),
    /// Two things would have one name: which.
    Taken(String),
    /// A space has no finite basis in this carrier: the type whose space it is.
    NotFinite(String),
    /// A value does not fit the type at which it is used; checked terms never lead here.
    IllTyped,
}

impl From<Fault> for Obstacle {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Obstacle> for Refusal {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Fault(fault) => fault.into(),
            Obstacle::Dimension(atom) => {
                Self::new(Kind::Dimension, format!("the dimension of `{atom}` is not known"))
                    .variable(&*atom)
                    .help(format!("give it: `--dim {atom}=N`"))
            }
            Obstacle::Limit(what) => Self::new(Kind::Limit, what),
            Obstacle::Taken(name) => Self::new(Kind::Argument, format!("the name `{name}` has two meanings"))
                .variable(name)
                .help("give one of the two another name".to_owned()),
            Obstacle::NotFinite(found) => {
                Self::new(Kind::NotFinite, format!("the space of `{found}` has no finite basis")).found(found)
            }
            Obstacle::IllTyped => Self::ill_typed(),
        }
    }
}

/// What a carrier answers to questions for coordinates that it does not have; [`Carrier::dimension_of`] is asked first.
fn no_basis() -> Obstacle {
    Obstacle::NotFinite("α".to_owned())
}

/// Short for a result of evaluation.
pub type Outcome<T> = Result<T, Obstacle>;

/// What happens to the ε's of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// The coefficient of the product of those in `take`, with 0 for those in `kill`.
    Coefficient {
        /// The ε's whose product is wanted.
        take: Rc<[Name]>,
        /// The ε's that become 0.
        kill: Rc<[Name]>,
    },
    /// Other ε's for some.
    Rename(Rc<[(Name, Name)]>),
}

impl Change {
    /// The change of an element of a ring.
    ///
    /// # Errors
    /// As for the ring.
    pub fn of<R: Ring>(&self, ring: &R, element: &R::Element) -> Outcome<R::Element> {
        match self {
            Self::Coefficient { take, kill } => Ok(ring.coefficient(element, take, kill)),
            Self::Rename(names) => Ok(ring.rename(element, names)?),
        }
    }
}

/// The spaces of atoms and the operators between them.
pub trait Carrier {
    /// The ring of scalars.
    type Ring: Ring;
    /// An element of the space of an atom.
    type Vector: Clone;
    /// A map between the spaces of two atoms.
    type Operator: Clone;

    /// The ring.
    fn ring(&self) -> &Self::Ring;

    /// `Σ cᵢ vᵢ`, of one summand or more.
    ///
    /// # Errors
    /// As for the ring, here and below.
    fn combine_vectors(&mut self, sum: &[(Scalar<Self>, Self::Vector)]) -> Outcome<Self::Vector>;

    /// `Σ cᵢ fᵢ`, of one summand or more.
    ///
    /// # Errors
    /// As for the ring.
    fn combine_operators(&mut self, sum: &[(Scalar<Self>, Self::Operator)]) -> Outcome<Self::Operator>;

    /// Vectors whose images determine an operator on the space of an atom; `None` if operators are not to be
    /// tabulated here, but followed step by step.
    ///
    /// # Errors
    /// If the dimension is not known or too large.
    fn probes(&mut self, atom: &Rc<str>) -> Outcome<Option<Vec<Self::Vector>>>;

    /// The operator with these images of the probes; `None` is 0.
    ///
    /// # Errors
    /// If the dimension is not known or too large.
    fn tabulate(
        &mut self,
        from: &Rc<str>,
        to: &Rc<str>,
        images: Vec<Option<Self::Vector>>,
    ) -> Outcome<Self::Operator>;

    /// `f(v)`
    ///
    /// # Errors
    /// As for the ring.
    fn apply(&mut self, operator: &Self::Operator, vector: &Self::Vector) -> Outcome<Self::Vector>;

    /// The identity.
    ///
    /// # Errors
    /// If the dimension is not known or too large.
    fn identity(&mut self, atom: &Rc<str>) -> Outcome<Self::Operator>;

    /// `f ∘ g`
    ///
    /// # Errors
    /// As for the ring.
    fn compose(&mut self, f: &Self::Operator, g: &Self::Operator) -> Outcome<Self::Operator>;

    /// `fⁿ`, n ≥ 1, by repeated squaring.
    ///
    /// # Errors
    /// As for the ring.
    fn power(&mut self, f: &Self::Operator, n: u32) -> Outcome<Self::Operator> {
        let mut found = f.clone();
        for bit in (0..n.ilog2()).rev() {
            found = self.compose(&found, &found)?;
            if n >> bit & 1 == 1 {
                found = self.compose(&found, f)?;
            }
        }
        Ok(found)
    }

    /// The product of f for `false` and g for `true`, of one factor or more.
    ///
    /// # Errors
    /// As for the ring.
    fn product(
        &mut self,
        digits: &[bool],
        f: &Self::Operator,
        g: &Self::Operator,
    ) -> Outcome<Self::Operator> {
        let factors: Vec<&Self::Operator> = digits.iter().map(|one| if *one { g } else { f }).collect();
        balanced(self, &factors)
    }

    /// Whether the spaces of atoms have finite bases.
    fn has_coordinates(&self) -> bool {
        false
    }

    /// The generic operator of a letter, where there is one.
    ///
    /// # Errors
    /// If the dimension is not known or too large.
    fn generator(&mut self, _letter: u8, _from: &Rc<str>, _to: &Rc<str>) -> Outcome<Option<Self::Operator>> {
        Ok(None)
    }

    /// The dimension of the space of an atom.
    ///
    /// # Errors
    /// If it is not known, or if there is no finite basis, as below.
    fn dimension_of(&self, atom: &Rc<str>) -> Outcome<usize> {
        Err(Obstacle::NotFinite(atom.to_string()))
    }

    /// The entries of a vector.
    ///
    /// # Errors
    /// If there is no finite basis.
    fn entries_of(&self, _vector: &Self::Vector) -> Outcome<Vec<Scalar<Self>>> {
        Err(no_basis())
    }

    /// The entries of the matrix of an operator, row by row.
    ///
    /// # Errors
    /// If there is no finite basis.
    fn matrix_of(&self, _operator: &Self::Operator) -> Outcome<Vec<Scalar<Self>>> {
        Err(no_basis())
    }

    /// The vector with these entries.
    ///
    /// # Errors
    /// If there is no finite basis.
    fn vector_of(&self, _entries: Vec<Scalar<Self>>) -> Outcome<Self::Vector> {
        Err(no_basis())
    }

    /// The operator with this matrix.
    ///
    /// # Errors
    /// If there is no finite basis.
    fn operator_of(&self, _matrix: Matrix<Scalar<Self>>) -> Outcome<Self::Operator> {
        Err(no_basis())
    }

    /// Calls `visit` with the ε's of a vector, as [`Ring::epsilons`] does for an element.
    fn epsilons_of_vector(&self, vector: &Self::Vector, visit: &mut dyn FnMut(Name));

    /// Calls `visit` with the ε's of an operator.
    fn epsilons_of_operator(&self, operator: &Self::Operator, visit: &mut dyn FnMut(Name));

    /// Another value for the ε's of a vector.
    ///
    /// # Errors
    /// As for the ring.
    fn change_vector(&mut self, change: &Change, vector: &Self::Vector) -> Outcome<Self::Vector>;

    /// Another value for the ε's of an operator.
    ///
    /// # Errors
    /// As for the ring.
    fn change_operator(&mut self, change: &Change, operator: &Self::Operator) -> Outcome<Self::Operator>;
}

/// The scalars of a carrier.
pub type Scalar<C> = <<C as Carrier>::Ring as Ring>::Element;

/// A product as a balanced tree: with large numbers, both factors of a product are then of like size.
pub(super) fn balanced<C: Carrier + ?Sized>(
    carrier: &mut C,
    factors: &[&C::Operator],
) -> Outcome<C::Operator> {
    match factors {
        [] => Err(Obstacle::IllTyped),
        [factor] => Ok((*factor).clone()),
        _ => {
            let (left, right) = factors.split_at(factors.len() / 2);
            let (left, right) = (balanced(carrier, left)?, balanced(carrier, right)?);
            carrier.compose(&left, &right)
        }
    }
}
