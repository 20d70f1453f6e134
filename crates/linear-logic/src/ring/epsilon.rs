//! R[ε₁, …]/(ε₁², …): the ring over which derivatives are values.
//!
//! An element is a sum of products of distinct ε's with coefficients in R. The value of a proof on ∣ν₁,…,νₛ⟩ₚ is the
//! coefficient of ε₁⋯εₛ in its value on ∣∅⟩ at P + Σ εᵢνᵢ.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;

use super::interface::{Fault, Name, Ring};

/// The most products of ε's in an element.
const MAX_TERMS: usize = 1 << 17;

/// R with infinitesimals.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epsilons<R> {
    base: R,
}

/// An element of [`Epsilons`]: the coefficient of each product of ε's, none of them 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Infinitesimal<E> {
    terms: BTreeMap<Vec<Name>, E>,
}

impl<E: Clone> Infinitesimal<E> {
    /// The part without ε, unless it is 0.
    pub fn finite_part(&self) -> Option<&E> {
        self.terms.get(&Vec::new())
    }
}

impl<R: Ring> Epsilons<R> {
    /// R with infinitesimals.
    pub fn new(base: R) -> Self {
        Self { base }
    }

    /// R.
    pub fn base(&self) -> &R {
        &self.base
    }

    fn single(&self, names: Vec<Name>, coefficient: R::Element) -> Infinitesimal<R::Element> {
        let mut terms = BTreeMap::new();
        if !self.base.is_zero(&coefficient) {
            terms.insert(names, coefficient);
        }
        Infinitesimal { terms }
    }

    fn insert(
        &self,
        terms: &mut BTreeMap<Vec<Name>, R::Element>,
        names: Vec<Name>,
        coefficient: R::Element,
    ) -> Result<(), Fault> {
        let sum = match terms.get(&names) {
            Some(there) => self.base.add(there, &coefficient)?,
            None => coefficient,
        };
        if self.base.is_zero(&sum) {
            terms.remove(&names);
        } else {
            terms.insert(names, sum);
        }
        if terms.len() > MAX_TERMS { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

/// Two sorted lists as one, unless they share a name.
fn union(a: &[Name], b: &[Name]) -> Option<Vec<Name>> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.windows(2).all(|pair| pair.first() != pair.last()).then_some(all)
}

impl<R: Ring> Ring for Epsilons<R> {
    type Element = Infinitesimal<R::Element>;

    fn zero(&self) -> Self::Element {
        Infinitesimal { terms: BTreeMap::new() }
    }

    fn one(&self) -> Self::Element {
        self.single(Vec::new(), self.base.one())
    }

    fn add(&self, a: &Self::Element, b: &Self::Element) -> Result<Self::Element, Fault> {
        let mut terms = a.terms.clone();
        for (names, coefficient) in &b.terms {
            self.insert(&mut terms, names.clone(), coefficient.clone())?;
        }
        Ok(Infinitesimal { terms })
    }

    fn mul(&self, a: &Self::Element, b: &Self::Element) -> Result<Self::Element, Fault> {
        let mut terms = BTreeMap::new();
        for (left, x) in &a.terms {
            for (right, y) in &b.terms {
                if let Some(names) = union(left, right) {
                    self.insert(&mut terms, names, self.base.mul(x, y)?)?;
                }
            }
        }
        Ok(Infinitesimal { terms })
    }

    fn integer(&self, value: &BigInt) -> Result<Self::Element, Fault> {
        Ok(self.single(Vec::new(), self.base.integer(value)?))
    }

    fn fraction(&self, value: &BigRational) -> Result<Self::Element, Fault> {
        Ok(self.single(Vec::new(), self.base.fraction(value)?))
    }

    fn decimal(&self, text: &str, exact: &BigRational) -> Result<Self::Element, Fault> {
        Ok(self.single(Vec::new(), self.base.decimal(text, exact)?))
    }

    fn has_variables(&self) -> bool {
        self.base.has_variables()
    }

    fn variable(&self, name: &str) -> Option<Self::Element> {
        Some(self.single(Vec::new(), self.base.variable(name)?))
    }

    fn epsilon(&self, name: Name) -> Option<Self::Element> {
        Some(self.single(vec![name], self.base.one()))
    }

    fn coefficient(&self, a: &Self::Element, take: &[Name], kill: &[Name]) -> Self::Element {
        let terms = a.terms.iter().filter_map(|(names, coefficient)| {
            let fits = take.iter().all(|t| names.contains(t)) && !names.iter().any(|n| kill.contains(n));
            let rest = names.iter().copied().filter(|n| !take.contains(n)).collect();
            fits.then(|| (rest, coefficient.clone()))
        });
        Infinitesimal { terms: terms.collect() }
    }

    fn epsilons(&self, a: &Self::Element, visit: &mut dyn FnMut(Name)) {
        a.terms.keys().flatten().for_each(|name| visit(*name));
    }

    fn rename(&self, a: &Self::Element, names: &[(Name, Name)]) -> Result<Self::Element, Fault> {
        let other = |n: &Name| names.iter().find(|(from, _)| from == n).map_or(*n, |(_, to)| *to);
        let mut terms = BTreeMap::new();
        for (names, coefficient) in &a.terms {
            let renamed: Vec<Name> = names.iter().map(other).collect();
            if let Some(renamed) = union(&renamed, &[]) {
                self.insert(&mut terms, renamed, coefficient.clone())?;
            }
        }
        Ok(Infinitesimal { terms })
    }

    fn is_zero(&self, a: &Self::Element) -> bool {
        a.terms.is_empty()
    }
}
