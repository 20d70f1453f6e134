//! ℚ[x₁, …]: polynomials with rational coefficients in variables that are named when they are first asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

use super::exact::Rationals;
use super::interface::{Fault, Ring};

/// The most terms of a polynomial.
const MAX_TERMS: usize = 200_000;

/// The most products of terms for one product of polynomials.
const MAX_WORK: usize = 5_000_000;

/// Powers of variables by number, each exponent positive, by increasing number.
pub type Monomial = Vec<(u32, u64)>;

/// A polynomial: the coefficient of each monomial, none of them 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Polynomial {
    /// The terms.
    pub terms: BTreeMap<Monomial, BigRational>,
}

/// The ring of polynomials, with the names of its variables.
#[derive(Debug, Default)]
pub struct Polynomials {
    names: RefCell<Vec<String>>,
}

impl Polynomials {
    /// The names of the variables so far, by number.
    pub fn names(&self) -> Vec<String> {
        self.names.borrow().clone()
    }
}

impl Polynomial {
    /// c
    pub fn constant(value: BigRational) -> Self {
        Self::single(Vec::new(), value)
    }

    /// c·m
    pub fn single(monomial: Monomial, coefficient: BigRational) -> Self {
        let mut terms = BTreeMap::new();
        if !coefficient.is_zero() {
            terms.insert(monomial, coefficient);
        }
        Self { terms }
    }

    fn insert(&mut self, monomial: Monomial, coefficient: BigRational) -> Result<(), Fault> {
        use std::collections::btree_map::Entry;
        match self.terms.entry(monomial) {
            Entry::Vacant(place) => _ = place.insert(coefficient),
            Entry::Occupied(mut place) => {
                let sum = Rationals.add(place.get(), &coefficient)?;
                if sum.is_zero() {
                    place.remove();
                } else {
                    place.insert(sum);
                }
            }
        }
        if self.terms.len() > MAX_TERMS { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

fn product(a: &Monomial, b: &Monomial) -> Result<Monomial, Fault> {
    let mut powers: BTreeMap<u32, u64> = a.iter().copied().collect();
    for (variable, exponent) in b {
        let there = powers.entry(*variable).or_insert(0);
        *there = there.checked_add(*exponent).ok_or(Fault::TooLarge)?;
    }
    Ok(powers.into_iter().collect())
}

impl Ring for Polynomials {
    type Element = Polynomial;

    fn zero(&self) -> Polynomial {
        Polynomial::default()
    }

    fn one(&self) -> Polynomial {
        Polynomial::constant(BigRational::one())
    }

    fn add(&self, a: &Polynomial, b: &Polynomial) -> Result<Polynomial, Fault> {
        let mut sum = a.clone();
        for (monomial, coefficient) in &b.terms {
            sum.insert(monomial.clone(), coefficient.clone())?;
        }
        Ok(sum)
    }

    fn mul(&self, a: &Polynomial, b: &Polynomial) -> Result<Polynomial, Fault> {
        if a.terms.len() * b.terms.len() > MAX_WORK {
            return Err(Fault::TooLarge);
        }
        let mut found = Polynomial::default();
        for (left, x) in &a.terms {
            for (right, y) in &b.terms {
                found.insert(product(left, right)?, Rationals.mul(x, y)?)?;
            }
        }
        Ok(found)
    }

    fn integer(&self, value: &BigInt) -> Result<Polynomial, Fault> {
        Ok(Polynomial::constant(BigRational::from_integer(value.clone())))
    }

    fn fraction(&self, value: &BigRational) -> Result<Polynomial, Fault> {
        Ok(Polynomial::constant(value.clone()))
    }

    fn has_variables(&self) -> bool {
        true
    }

    fn variable(&self, name: &str) -> Option<Polynomial> {
        let mut names = self.names.borrow_mut();
        let number = names.iter().position(|n| n == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        Some(Polynomial::single(vec![(u32::try_from(number).ok()?, 1)], BigRational::one()))
    }

    fn is_zero(&self, a: &Polynomial) -> bool {
        a.terms.is_empty()
    }
}
