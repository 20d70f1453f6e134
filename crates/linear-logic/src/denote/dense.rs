//! The space of an atom is Rⁿ: vectors and matrices.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::carrier::{Carrier, Change, Obstacle, Outcome, Scalar, balanced};
use super::matrix::Matrix;
use crate::ring::{Fault, Name, Ring};

/// The most entries of a matrix or of a value.
pub const MAX_ENTRIES: usize = 1 << 22;

/// The most operations on scalars in one evaluation.
const MAX_WORK: usize = 1 << 34;

/// Words longer than this are multiplied in blocks.
const LONG: usize = 4_096;

/// The digits of a block: the products of all words of so many digits are made first.
const BLOCK: usize = 8;

/// Matrices and vectors over a ring, and the dimensions of the atoms.
#[derive(Debug)]
pub struct Dense<R> {
    ring: R,
    dimensions: BTreeMap<Rc<str>, usize>,
    work: usize,
    generic: Vec<String>,
    /// The letters of generic operators, each with the atoms between which it stands.
    generators: BTreeMap<u8, (Rc<str>, Rc<str>)>,
}

impl<R: Ring> Dense<R> {
    /// With these dimensions of atoms.
    pub fn new(ring: R, dimensions: BTreeMap<Rc<str>, usize>) -> Self {
        Self { ring, dimensions, work: 0, generic: Vec::new(), generators: BTreeMap::new() }
    }

    /// The dimension of an atom.
    ///
    /// # Errors
    /// If it is not known.
    pub fn dimension(&self, atom: &Rc<str>) -> Outcome<usize> {
        self.dimensions.get(atom).copied().ok_or_else(|| Obstacle::Dimension(atom.clone()))
    }

    /// The multiplications of scalars so far: a product of n×n matrices counts n³.
    pub fn work(&self) -> usize {
        self.work
    }

    /// The names of the entries of generic operators.
    pub fn generic(&self) -> &[String] {
        &self.generic
    }

    /// Whether a letter is that of a generic operator.
    pub fn is_generator(&self, letter: u8) -> bool {
        self.generators.contains_key(&letter)
    }

    /// The names of the entries of a generic operator, by row and column from 1: `x12`, or `x_1_12` if a dimension is
    /// 10 or more.
    ///
    /// # Errors
    /// If a dimension is not known or the operator is too large.
    pub fn entry_names(&self, letter: u8, from: &Rc<str>, to: &Rc<str>) -> Outcome<Vec<String>> {
        let (rows, columns) = (self.dimension(to)?, self.dimension(from)?);
        Self::entries(rows, columns)?;
        let gap = if rows.max(columns) >= 10 { "_" } else { "" };
        let places = (1..=rows).flat_map(|row| (1..=columns).map(move |column| (row, column)));
        let name = |(row, column)| format!("{}{gap}{row}{gap}{column}", char::from(letter));
        Ok(places.map(name).collect())
    }

    fn spend(&mut self, work: Option<usize>) -> Outcome<()> {
        self.work = work.and_then(|work| self.work.checked_add(work)).unwrap_or(usize::MAX);
        if self.work > MAX_WORK {
            Err(Obstacle::Limit("the evaluation takes too many operations"))
        } else {
            Ok(())
        }
    }

    /// The number of entries of a matrix.
    ///
    /// # Errors
    /// If it is too large.
    pub fn entries(rows: usize, columns: usize) -> Outcome<usize> {
        rows.checked_mul(columns)
            .filter(|n| *n <= MAX_ENTRIES)
            .ok_or(Obstacle::Limit("a matrix has too many entries"))
    }

    fn combine(&mut self, sum: &[(R::Element, &[R::Element])]) -> Outcome<Vec<R::Element>> {
        let Some((_, first)) = sum.first() else { return Err(Obstacle::IllTyped) };
        self.spend(first.len().checked_mul(sum.len()))?;
        let ring = &self.ring;
        let entry = |i: usize| {
            let mut total: Option<R::Element> = None;
            for (coefficient, entries) in sum {
                let entry = entries.get(i).ok_or(Obstacle::IllTyped)?;
                let scaled =
                    if ring.is_one(coefficient) { entry.clone() } else { ring.mul(coefficient, entry)? };
                total = Some(match total {
                    Some(total) => ring.add(&total, &scaled)?,
                    None => scaled,
                });
            }
            total.ok_or(Obstacle::IllTyped)
        };
        (0..first.len()).map(entry).collect()
    }

    /// `f · g` for tables of `rows × inner` and `inner × columns` entries.
    fn multiply(
        &mut self,
        f: &[R::Element],
        g: &[R::Element],
        (rows, inner, columns): (usize, usize, usize),
    ) -> Outcome<Vec<R::Element>> {
        self.spend(Self::entries(rows, columns)?.checked_mul(inner))?;
        let ring = &self.ring;
        let mut found = Vec::with_capacity(rows * columns);
        for row in f.chunks_exact(inner).take(rows) {
            for column in 0..columns {
                found.push(inner_product(ring, row, g.iter().skip(column).step_by(columns))?);
            }
        }
        Ok(found)
    }
}

fn inner_product<'a, R: Ring>(
    ring: &R,
    row: &'a [R::Element],
    column: impl Iterator<Item = &'a R::Element>,
) -> Result<R::Element, Fault> {
    let mut total: Option<R::Element> = None;
    for (x, y) in row.iter().zip(column) {
        let product = ring.mul(x, y)?;
        total = Some(match total {
            Some(total) => ring.add(&total, &product)?,
            None => product,
        });
    }
    Ok(total.unwrap_or_else(|| ring.zero()))
}

impl<R: Ring> Carrier for Dense<R> {
    type Ring = R;
    type Vector = Rc<[R::Element]>;
    type Operator = Rc<Matrix<R::Element>>;

    fn ring(&self) -> &R {
        &self.ring
    }

    fn combine_vectors(&mut self, sum: &[(Scalar<Self>, Self::Vector)]) -> Outcome<Self::Vector> {
        let sum: Vec<_> = sum.iter().map(|(c, v)| (c.clone(), &**v)).collect();
        Ok(self.combine(&sum)?.into())
    }

    fn combine_operators(&mut self, sum: &[(Scalar<Self>, Self::Operator)]) -> Outcome<Self::Operator> {
        let Some((_, first)) = sum.first() else { return Err(Obstacle::IllTyped) };
        let (rows, columns) = (first.rows, first.columns);
        let sum: Vec<_> = sum.iter().map(|(c, f)| (c.clone(), &*f.entries)).collect();
        Ok(Rc::new(Matrix { rows, columns, entries: self.combine(&sum)? }))
    }

    fn probes(&mut self, atom: &Rc<str>) -> Outcome<Option<Vec<Self::Vector>>> {
        let n = self.dimension(atom)?;
        Self::entries(n, n)?;
        let unit =
            |i: usize| (0..n).map(|j| if i == j { self.ring.one() } else { self.ring.zero() }).collect();
        Ok(Some((0..n).map(unit).collect()))
    }

    fn tabulate(
        &mut self,
        from: &Rc<str>,
        to: &Rc<str>,
        images: Vec<Option<Self::Vector>>,
    ) -> Outcome<Self::Operator> {
        let (rows, columns) = (self.dimension(to)?, self.dimension(from)?);
        Self::entries(rows, columns)?;
        let zero = self.ring.zero();
        let mut entries = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for image in &images {
                let entry = image.as_ref().map_or(Some(&zero), |vector| vector.get(row));
                entries.push(entry.ok_or(Obstacle::IllTyped)?.clone());
            }
        }
        Ok(Rc::new(Matrix { rows, columns, entries }))
    }

    fn apply(&mut self, f: &Self::Operator, vector: &Self::Vector) -> Outcome<Self::Vector> {
        if f.columns != vector.len() {
            return Err(Obstacle::IllTyped);
        }
        Ok(self.multiply(&f.entries, vector, (f.rows, f.columns, 1))?.into())
    }

    fn identity(&mut self, atom: &Rc<str>) -> Outcome<Self::Operator> {
        let probes = self.probes(atom)?.unwrap_or_default();
        self.tabulate(atom, atom, probes.into_iter().map(Some).collect())
    }

    fn compose(&mut self, f: &Self::Operator, g: &Self::Operator) -> Outcome<Self::Operator> {
        if f.columns != g.rows {
            return Err(Obstacle::IllTyped);
        }
        let entries = self.multiply(&f.entries, &g.entries, (f.rows, f.columns, g.columns))?;
        Ok(Rc::new(Matrix { rows: f.rows, columns: g.columns, entries }))
    }

    /// Long words in blocks of eight digits, whose products are made once.
    fn product(
        &mut self,
        digits: &[bool],
        f: &Self::Operator,
        g: &Self::Operator,
    ) -> Outcome<Self::Operator> {
        let factor = |one: &bool| if *one { g } else { f };
        if digits.len() < LONG {
            let factors: Vec<_> = digits.iter().map(factor).collect();
            return balanced(self, &factors);
        }
        // After k rounds: the products of all words of k digits, in the order of their binary numbers.
        let mut blocks = vec![f.clone(), g.clone()];
        for _ in 1..BLOCK {
            let mut longer = Vec::with_capacity(2 * blocks.len());
            for first in [f, g] {
                for block in &blocks {
                    longer.push(self.compose(first, block)?);
                }
            }
            blocks = longer;
        }
        let mut factors: Vec<&Self::Operator> = Vec::with_capacity(digits.len() / BLOCK + BLOCK);
        let chunks = digits.chunks_exact(BLOCK);
        let rest = chunks.remainder();
        for chunk in chunks {
            let number = chunk.iter().fold(0, |number, one| 2 * number + usize::from(*one));
            factors.push(blocks.get(number).ok_or(Obstacle::IllTyped)?);
        }
        factors.extend(rest.iter().map(factor));
        balanced(self, &factors)
    }

    fn has_coordinates(&self) -> bool {
        true
    }

    /// A matrix of variables. A letter stands for one operator: [`Obstacle::Taken`], if it has other atoms.
    fn generator(&mut self, letter: u8, from: &Rc<str>, to: &Rc<str>) -> Outcome<Option<Self::Operator>> {
        if !self.ring.has_variables() {
            return Ok(None);
        }
        let names = self.entry_names(letter, from, to)?;
        let variables: Option<Vec<_>> = names.iter().map(|name| self.ring.variable(name)).collect();
        let Some(entries) = variables else { return Ok(None) };
        let atoms = (from.clone(), to.clone());
        match self.generators.get(&letter) {
            Some(there) if *there != atoms => return Err(Obstacle::Taken(char::from(letter).to_string())),
            Some(_) => {}
            None => {
                self.generators.insert(letter, atoms);
                self.generic.extend(names);
            }
        }
        let (rows, columns) = (self.dimension(to)?, self.dimension(from)?);
        Ok(Some(Rc::new(Matrix { rows, columns, entries })))
    }

    fn dimension_of(&self, atom: &Rc<str>) -> Outcome<usize> {
        self.dimension(atom)
    }

    fn entries_of(&self, vector: &Self::Vector) -> Outcome<Vec<R::Element>> {
        Ok(vector.to_vec())
    }

    fn matrix_of(&self, operator: &Self::Operator) -> Outcome<Vec<R::Element>> {
        Ok(operator.entries.clone())
    }

    fn vector_of(&self, entries: Vec<R::Element>) -> Outcome<Self::Vector> {
        Ok(entries.into())
    }

    fn operator_of(&self, matrix: Matrix<R::Element>) -> Outcome<Self::Operator> {
        Ok(Rc::new(matrix))
    }

    fn epsilons_of_vector(&self, vector: &Self::Vector, visit: &mut dyn FnMut(Name)) {
        vector.iter().for_each(|entry| self.ring.epsilons(entry, visit));
    }

    fn epsilons_of_operator(&self, f: &Self::Operator, visit: &mut dyn FnMut(Name)) {
        f.entries.iter().for_each(|entry| self.ring.epsilons(entry, visit));
    }

    fn change_vector(&mut self, change: &Change, vector: &Self::Vector) -> Outcome<Self::Vector> {
        vector.iter().map(|entry| change.of(&self.ring, entry)).collect()
    }

    fn change_operator(&mut self, change: &Change, f: &Self::Operator) -> Outcome<Self::Operator> {
        let entries = f.entries.iter().map(|entry| change.of(&self.ring, entry)).collect::<Outcome<_>>()?;
        Ok(Rc::new(Matrix { rows: f.rows, columns: f.columns, entries }))
    }
}
