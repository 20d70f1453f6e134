//! R[ε₁, …]/(ε₁², …): the ring over which derivatives are values.
//!
//! An element is a sum of products of distinct ε's with coefficients in R. The value of a proof on ∣ν₁,…,νₛ⟩ₚ is the
//! coefficient of ε₁⋯εₛ in its value on ∣∅⟩ at P + Σ εᵢνᵢ.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;
use num_rational::BigRational;

use super::interface::{Fault, Name, Ring};

/// The most products of ε's in an element.
const MAX_TERMS: usize = 1 << 17;

/// The most products of terms of one evaluation: a product of two elements with all products of s ε's takes 3ˢ. A
/// numeral at 2×2 and 16 directions stays below it; all of it took two minutes with checks of overflow.
const MAX_WORK: u64 = 1 << 31;

/// Elements with no more ε's together than this are multiplied by way of tables of all their products.
const MAX_TABLED: usize = 20;

/// Elements with fewer terms than this are multiplied term by term, without a look at which ε's they have.
const FEW: usize = 8;

/// R with infinitesimals.
#[derive(Debug, Clone)]
pub struct Epsilons<R> {
    base: R,
    work: Cell<u64>,
    most: u64,
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
        Self::within(base, MAX_WORK)
    }

    /// The same for a caller with little time: once so many products of terms are made, another one is
    /// [`Fault::TooLong`].
    pub fn within(base: R, most: u64) -> Self {
        Self { base, work: Cell::new(0), most }
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

    /// Counts products of terms.
    fn spend(&self, products: u64) -> Result<(), Fault> {
        self.work.set(self.work.get().saturating_add(products));
        if self.work.get() > self.most { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// The product of elements of many terms, whose sets of ε's are masks over `names`.
    ///
    /// Only disjoint sets have a product. Where both elements have nearly all sets, it is quicker to go through the
    /// subsets of the complement of each left one, 3ˢ of them altogether, than through all 4ˢ pairs.
    fn mul_tabled(
        &self,
        a: &Infinitesimal<R::Element>,
        b: &Infinitesimal<R::Element>,
        names: &[Name],
    ) -> Result<Infinitesimal<R::Element>, Fault> {
        let mask = |set: &Vec<Name>| {
            let bits = set.iter().filter_map(|name| names.binary_search(name).ok());
            bits.fold(0, |mask, bit| mask | 1_usize << bit)
        };
        let (size, all) = (1_usize << names.len(), (1_usize << names.len()) - 1);
        let rights: Vec<(usize, &R::Element)> = b.terms.iter().map(|(set, y)| (mask(set), y)).collect();
        let mut table: Vec<Option<&R::Element>> = vec![None; size];
        for (right, y) in &rights {
            if let Some(place) = table.get_mut(*right) {
                *place = Some(y);
            }
        }
        let mut found: Vec<Option<R::Element>> = vec![None; size];
        let mut add = |set: usize, x: &R::Element, y: &R::Element| -> Result<(), Fault> {
            let product = self.base.mul(x, y)?;
            if let Some(place) = found.get_mut(set) {
                *place = Some(match place.take() {
                    Some(there) => self.base.add(&there, &product)?,
                    None => product,
                });
            }
            Ok(())
        };
        for (set, x) in &a.terms {
            let left = mask(set);
            let subsets = 1_usize << (names.len() - set.len());
            self.spend(subsets.min(rights.len()) as u64)?;
            if subsets > rights.len() {
                for (right, y) in rights.iter().filter(|(right, _)| left & right == 0) {
                    add(left | right, x, y)?;
                }
                continue;
            }
            // All subsets of the complement, the largest first.
            let complement = all & !left;
            let mut right = complement;
            loop {
                if let Some(Some(y)) = table.get(right) {
                    add(left | right, x, y)?;
                }
                if right == 0 {
                    break;
                }
                right = (right - 1) & complement;
            }
        }
        let mut terms = BTreeMap::new();
        for (set, coefficient) in found.into_iter().enumerate() {
            let Some(coefficient) = coefficient.filter(|c| !self.base.is_zero(c)) else { continue };
            let of = names.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
            terms.insert(of.map(|(_, name)| *name).collect(), coefficient);
        }
        if terms.len() > MAX_TERMS { Err(Fault::TooLarge) } else { Ok(Infinitesimal { terms }) }
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
        let (few, many) = (a.terms.len().min(b.terms.len()), a.terms.len().max(b.terms.len()));
        if few >= FEW {
            let names: BTreeSet<Name> = a.terms.keys().chain(b.terms.keys()).flatten().copied().collect();
            // A table larger than the number of pairs would cost more than it saves.
            if names.len() <= MAX_TABLED && 1 << names.len() <= few.saturating_mul(many) {
                return self.mul_tabled(a, b, &names.into_iter().collect::<Vec<_>>());
            }
        }
        self.spend(few as u64 * many as u64)?;
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
