//! The space of every atom is the free module on words, and an operator multiplies by a formal sum of words from the
//! left: the free monoid, which stands beside the matrices as oracle.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::carrier::{Carrier, Change, Obstacle, Outcome, Scalar};
use crate::ring::{Name, Ring};

/// The most letters of all words of a sum together.
const MAX_LETTERS: usize = 1 << 24;

/// A word, ordered by length and then by its letters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Word {
    length: usize,
    letters: Rc<[u8]>,
}

impl Word {
    /// The word of these ASCII letters.
    pub fn new(letters: impl Into<Rc<[u8]>>) -> Self {
        let letters = letters.into();
        Self { length: letters.len(), letters }
    }

    /// The letters.
    pub fn letters(&self) -> &[u8] {
        &self.letters
    }
}

/// A formal sum of words: the coefficient of each, none of them 0.
pub type FormalSum<E> = Rc<BTreeMap<Word, E>>;

/// The free module on words, over a ring.
#[derive(Debug)]
pub struct Words<R> {
    ring: R,
}

impl<R: Ring> Words<R> {
    /// Over this ring.
    pub fn new(ring: R) -> Self {
        Self { ring }
    }

    /// One word.
    pub fn word(&self, letters: &[u8]) -> FormalSum<R::Element> {
        Rc::new(BTreeMap::from([(Word::new(letters), self.ring.one())]))
    }

    fn collect(
        &self,
        terms: impl Iterator<Item = Outcome<(Word, R::Element)>>,
    ) -> Outcome<FormalSum<R::Element>> {
        let mut found: BTreeMap<Word, R::Element> = BTreeMap::new();
        let mut letters = 0;
        for term in terms {
            let (word, coefficient) = term?;
            letters += word.length + 1;
            if letters > MAX_LETTERS {
                return Err(Obstacle::Limit("the words grow too long"));
            }
            let sum = match found.get(&word) {
                Some(there) => self.ring.add(there, &coefficient)?,
                None => coefficient,
            };
            found.insert(word, sum);
        }
        found.retain(|_, coefficient| !self.ring.is_zero(coefficient));
        Ok(Rc::new(found))
    }

    fn combine(&self, sum: &[(R::Element, FormalSum<R::Element>)]) -> Outcome<FormalSum<R::Element>> {
        self.collect(
            sum.iter().flat_map(|(c, words)| {
                words.iter().map(|(word, d)| Ok((word.clone(), self.ring.mul(c, d)?)))
            }),
        )
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
        self.collect(f.iter().flat_map(|(left, c)| {
            g.iter().map(|(right, d)| {
                if left.length + right.length > MAX_LETTERS {
                    return Err(Obstacle::Limit("the words grow too long"));
                }
                let word = Word::new([left.letters(), right.letters()].concat());
                Ok((word, self.ring.mul(c, d)?))
            })
        }))
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
