//! The space of every atom is the free module on words, and an operator multiplies by a formal sum of words from the
//! left: the free monoid, which stands beside the matrices as oracle.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::carrier::{Carrier, Change, Obstacle, Outcome, Scalar};
use super::word::Word;
use crate::ring::{Name, Ring};

/// The most letters of all words of a sum together.
const MAX_LETTERS: usize = 1 << 24;

/// The most words of all sums of an evaluation together: a value keeps its sum, of half a kilobyte or more.
const MAX_WORDS: usize = 1 << 21;

/// The most letters of all words that are compared with others of their sum.
const MAX_COMPARED: usize = 1 << 32;

/// A formal sum of words: the coefficient of each, none of them 0.
pub type FormalSum<E> = Rc<BTreeMap<Word, E>>;

/// The free module on words, over a ring.
#[derive(Debug)]
pub struct Words<R> {
    ring: R,
    words: usize,
    compared: usize,
}

impl<R: Ring> Words<R> {
    /// Over this ring.
    pub fn new(ring: R) -> Self {
        Self { ring, words: 0, compared: 0 }
    }

    /// One word.
    pub fn word(&self, letters: &[u8]) -> FormalSum<R::Element> {
        Rc::new(BTreeMap::from([(Word::new(letters), self.ring.one())]))
    }

    /// The sum of terms, whose words of equal length are compared letter by letter.
    fn collect(&mut self, terms: Vec<(Word, R::Element)>) -> Outcome<FormalSum<R::Element>> {
        let letters = terms.iter().fold(0_usize, |sum, (word, _)| sum.saturating_add(word.length() + 1));
        if letters > MAX_LETTERS {
            return Err(Obstacle::Limit("the words grow too long"));
        }
        self.words += terms.len();
        self.compared = self.compared.saturating_add(if terms.len() > 1 { letters } else { 0 });
        if self.words > MAX_WORDS || self.compared > MAX_COMPARED {
            return Err(Obstacle::Limit("the sums of words grow too large"));
        }
        let mut found: BTreeMap<Word, R::Element> = BTreeMap::new();
        for (word, coefficient) in terms {
            let sum = match found.get(&word) {
                Some(there) => self.ring.add(there, &coefficient)?,
                None => coefficient,
            };
            found.insert(word, sum);
        }
        found.retain(|_, coefficient| !self.ring.is_zero(coefficient));
        Ok(Rc::new(found))
    }

    /// Room for so many terms, before they are made.
    fn room(&self, terms: usize) -> Outcome<()> {
        if terms > MAX_WORDS { Err(Obstacle::Limit("the sums of words grow too large")) } else { Ok(()) }
    }

    fn combine(&mut self, sum: &[(R::Element, FormalSum<R::Element>)]) -> Outcome<FormalSum<R::Element>> {
        self.room(sum.iter().map(|(_, words)| words.len()).sum())?;
        let mut terms = Vec::new();
        for (c, words) in sum {
            for (word, d) in words.iter() {
                terms.push((word.clone(), self.ring.mul(c, d)?));
            }
        }
        self.collect(terms)
    }
}

impl<R: Ring> Carrier for Words<R> {
    type Ring = R;
    type Vector = FormalSum<R::Element>;
    type Operator = FormalSum<R::Element>;

    fn ring(&self) -> &R {
        &self.ring
    }

    fn combine_vectors(&mut self, sum: &[(Scalar<Self>, Self::Vector)]) -> Outcome<Self::Vector> {
        self.combine(sum)
    }

    fn combine_operators(&mut self, sum: &[(Scalar<Self>, Self::Operator)]) -> Outcome<Self::Operator> {
        self.combine(sum)
    }

    fn probes(&mut self, _: &Rc<str>) -> Outcome<Option<Vec<Self::Vector>>> {
        Ok(Some(vec![self.word(&[])]))
    }

    fn tabulate(
        &mut self,
        _: &Rc<str>,
        _: &Rc<str>,
        images: Vec<Option<Self::Vector>>,
    ) -> Outcome<Self::Operator> {
        Ok(images.into_iter().next().flatten().unwrap_or_default())
    }

    fn apply(&mut self, operator: &Self::Operator, vector: &Self::Vector) -> Outcome<Self::Vector> {
        self.compose(operator, vector)
    }

    fn identity(&mut self, _: &Rc<str>) -> Outcome<Self::Operator> {
        Ok(self.word(&[]))
    }

    fn compose(&mut self, f: &Self::Operator, g: &Self::Operator) -> Outcome<Self::Operator> {
        self.room(f.len().saturating_mul(g.len()))?;
        let mut terms = Vec::with_capacity(f.len() * g.len());
        for (left, c) in f.iter() {
            for (right, d) in g.iter() {
                terms.push((left.concat(right), self.ring.mul(c, d)?));
            }
        }
        self.collect(terms)
    }

    fn generator(&mut self, letter: u8, _: &Rc<str>, _: &Rc<str>) -> Outcome<Option<Self::Operator>> {
        Ok(Some(self.word(&[letter])))
    }

    fn epsilons_of_vector(&self, vector: &Self::Vector, visit: &mut dyn FnMut(Name)) {
        vector.values().for_each(|coefficient| self.ring.epsilons(coefficient, visit));
    }

    fn epsilons_of_operator(&self, operator: &Self::Operator, visit: &mut dyn FnMut(Name)) {
        self.epsilons_of_vector(operator, visit);
    }

    fn change_vector(&mut self, change: &Change, vector: &Self::Vector) -> Outcome<Self::Vector> {
        let mut changed = BTreeMap::new();
        for (word, coefficient) in vector.iter() {
            let coefficient = change.of(&self.ring, coefficient)?;
            if !self.ring.is_zero(&coefficient) {
                changed.insert(word.clone(), coefficient);
            }
        }
        Ok(Rc::new(changed))
    }

    fn change_operator(&mut self, change: &Change, operator: &Self::Operator) -> Outcome<Self::Operator> {
        self.change_vector(change, operator)
    }
}
