//! The carrier whose operators are combinations of instructions.
//!
//! An operator is Σ c·m, with coefficients that are polynomials in those of the mixtures. For matrices, m is one
//! instruction or the identity. For diagonal operators, which commute, m is a product of powers, and instructions are
//! written only when a sum or a result needs them. A vector is an operator too: what has been applied to the one
//! vector of the program.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::plan::{Backend, Coefficient, Instruction, Plan};
use crate::denote::{Carrier, Change, Obstacle, Outcome};
use crate::ring::{Name, Polynomial, Polynomials, Ring};

/// The most instructions of a program: enough for the largest numeral, applied step by step.
pub(super) const MAX_INSTRUCTIONS: usize = 1_100_000;

/// The most coefficients of mixtures that all `scale` instructions together write out: a power is written as a product.
const MAX_FACTORS: u64 = 1 << 20;

/// A product of powers of instructions, by number; empty is the identity.
type Product = Vec<(usize, u64)>;

/// Σ c·m, without coefficients 0.
pub(super) type Combination = Rc<BTreeMap<Product, Polynomial>>;

pub(super) struct Builder {
    ring: Polynomials,
    backend: Backend,
    instructions: Vec<Instruction>,
    known: HashMap<Instruction, usize>,
    most: usize,
    /// The coefficients of mixtures that are written out so far.
    factors: u64,
}

impl Builder {
    pub(super) fn new(backend: Backend, most: usize) -> Self {
        let (instructions, known) = (Vec::new(), HashMap::new());
        Self { ring: Polynomials::default(), backend, instructions, known, most, factors: 0 }
    }

    fn write(&mut self, instruction: Instruction) -> Outcome<usize> {
        if let Some(id) = self.known.get(&instruction) {
            return Ok(*id);
        }
        if self.instructions.len() >= self.most {
            return Err(Obstacle::Limit("the program has too many instructions"));
        }
        self.known.insert(instruction.clone(), self.instructions.len());
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn single(&self, product: Product) -> Combination {
        Rc::new(BTreeMap::from([(product, self.ring.one())]))
    }

    pub(super) fn input(&mut self, slot: usize) -> Outcome<Combination> {
        let id = self.write(Instruction::Input { slot })?;
        Ok(self.single(vec![(id, 1)]))
    }

    /// The vector that results are applied to, in the back end that has one.
    pub(super) fn vector(&mut self) -> Outcome<Option<Combination>> {
        if self.backend != Backend::Vector {
            return Ok(None);
        }
        let id = self.write(Instruction::Vector)?;
        Ok(Some(self.single(vec![(id, 1)])))
    }

    /// Writes what a combination still needs and gives the instruction that holds it.
    pub(super) fn emit(&mut self, combination: &Combination) -> Outcome<usize> {
        let mut parts = Vec::with_capacity(combination.len());
        for (product, coefficient) in combination.iter() {
            let of = self.power_product(product)?;
            let scaled = if self.ring.is_one(coefficient) {
                of
            } else {
                let by = self.coefficient(coefficient)?;
                self.write(Instruction::Scale { by, of })?
            };
            parts.push(scaled);
        }
        match parts.as_slice() {
            [] => self.write(Instruction::Zero),
            [one] => Ok(*one),
            _ => self.write(Instruction::Add(parts)),
        }
    }

    fn power_product(&mut self, product: &Product) -> Outcome<usize> {
        let mut found = None;
        for (id, exponent) in product {
            let power = match exponent {
                1 => *id,
                _ => self.write(Instruction::Pow { of: *id, exponent: *exponent })?,
            };
            found = Some(match found {
                None => power,
                Some(before) => self.write(Instruction::Mul(before, power))?,
            });
        }
        found.map_or_else(|| self.write(Instruction::Identity), Ok)
    }

    /// The variables of the ring are called `slot.index`.
    fn coefficient(&mut self, polynomial: &Polynomial) -> Outcome<Coefficient> {
        let exponents = polynomial.terms.keys().flatten().map(|(_, exponent)| *exponent);
        self.factors = exponents.fold(self.factors, u64::saturating_add);
        if self.factors > MAX_FACTORS {
            return Err(Obstacle::Limit("the coefficients of the program are too large"));
        }
        let names = self.ring.names();
        let pair = |number: u32| {
            let (slot, index) = names.get(number as usize)?.split_once('.')?;
            Some((slot.parse().ok()?, index.parse().ok()?))
        };
        let term = |monomial: &Vec<(u32, u64)>| {
            let powers = monomial.iter().filter_map(|(variable, e)| Some((pair(*variable)?, *e)));
            powers
                .flat_map(|(pair, e)| std::iter::repeat_n(pair, usize::try_from(e).unwrap_or(usize::MAX)))
                .collect()
        };
        Ok(polynomial.terms.iter().map(|(monomial, c)| (c.clone(), term(monomial))).collect())
    }

    fn combine(&mut self, sum: &[(Polynomial, Combination)]) -> Outcome<Combination> {
        let mut found: BTreeMap<Product, Polynomial> = BTreeMap::new();
        for (coefficient, combination) in sum {
            for (product, c) in combination.iter() {
                let scaled = self.ring.mul(coefficient, c)?;
                let total = match found.get(product) {
                    Some(there) => self.ring.add(there, &scaled)?,
                    None => scaled,
                };
                found.insert(product.clone(), total);
            }
        }
        found.retain(|_, coefficient| !self.ring.is_zero(coefficient));
        Ok(Rc::new(found))
    }

    /// One product with its coefficient; a sum is written and becomes one instruction.
    fn factor(&mut self, combination: &Combination) -> Outcome<(Product, Polynomial)> {
        if let (1, Some((product, coefficient))) = (combination.len(), combination.first_key_value()) {
            return Ok((product.clone(), coefficient.clone()));
        }
        let id = self.emit(combination)?;
        Ok((vec![(id, 1)], self.ring.one()))
    }

    fn multiply(&mut self, left: Product, right: Product) -> Outcome<Product> {
        if left.is_empty() {
            return Ok(right);
        }
        if right.is_empty() {
            return Ok(left);
        }
        if self.backend == Backend::Diagonal {
            let mut powers: BTreeMap<usize, u64> = left.into_iter().collect();
            for (id, exponent) in right {
                let there = powers.entry(id).or_insert(0);
                *there = there.checked_add(exponent).ok_or(Obstacle::Limit("an exponent grows too large"))?;
            }
            return Ok(powers.into_iter().collect());
        }
        let (left, right) = (self.power_product(&left)?, self.power_product(&right)?);
        let id = self.write(match self.backend {
            Backend::Vector => Instruction::Apply { operator: left, vector: right },
            _ => Instruction::Mul(left, right),
        })?;
        Ok(vec![(id, 1)])
    }

    /// The instructions that the results need, numbered in order of use.
    pub(super) fn plan(&self, results: &[usize]) -> Outcome<Plan> {
        let mut numbers: Vec<Option<usize>> = vec![None; self.instructions.len()];
        let mut instructions = Vec::new();
        let mut todo: Vec<(usize, bool)> = Vec::new();
        for result in results {
            todo.push((*result, false));
            while let Some((id, is_ready)) = todo.pop() {
                let (Some(instruction), Some(None)) = (self.instructions.get(id), numbers.get(id)) else {
                    continue;
                };
                if !is_ready {
                    todo.push((id, true));
                    todo.extend(instruction.arguments().into_iter().rev().map(|argument| (argument, false)));
                    continue;
                }
                let number = |id: usize| numbers.get(id).copied().flatten().unwrap_or(0);
                instructions.push(instruction.renumbered(number));
                if let Some(place) = numbers.get_mut(id) {
                    *place = Some(instructions.len() - 1);
                }
            }
        }
        let number = |id: &usize| numbers.get(*id).copied().flatten().unwrap_or(0);
        Ok(Plan { backend: self.backend, results: results.iter().map(number).collect(), instructions })
    }
}

impl Carrier for Builder {
    type Ring = Polynomials;
    type Vector = Combination;
    type Operator = Combination;

    fn ring(&self) -> &Polynomials {
        &self.ring
    }

    fn combine_vectors(&mut self, sum: &[(Polynomial, Combination)]) -> Outcome<Combination> {
        self.combine(sum)
    }

    fn combine_operators(&mut self, sum: &[(Polynomial, Combination)]) -> Outcome<Combination> {
        self.combine(sum)
    }

    /// The generic vector is the identity; the vector back end follows functions step by step instead.
    fn probes(&mut self, _: &Rc<str>) -> Outcome<Option<Vec<Combination>>> {
        Ok((self.backend != Backend::Vector).then(|| vec![self.single(Vec::new())]))
    }

    fn tabulate(
        &mut self,
        _: &Rc<str>,
        _: &Rc<str>,
        images: Vec<Option<Combination>>,
    ) -> Outcome<Combination> {
        Ok(images.into_iter().next().flatten().unwrap_or_default())
    }

    fn identity(&mut self, _: &Rc<str>) -> Outcome<Combination> {
        Ok(self.single(Vec::new()))
    }

    fn compose(&mut self, f: &Combination, g: &Combination) -> Outcome<Combination> {
        if f.is_empty() || g.is_empty() {
            return Ok(Combination::default());
        }
        let is_identity = |h: &Combination| h.len() == 1 && h.contains_key(&Vec::new());
        if is_identity(f) || is_identity(g) {
            let (identity, other) = if is_identity(f) { (f, g) } else { (g, f) };
            let scale = identity.get(&Vec::new()).cloned().unwrap_or_default();
            return self.combine(&[(scale, other.clone())]);
        }
        let ((left, c), (right, d)) = (self.factor(f)?, self.factor(g)?);
        let coefficient = self.ring.mul(&c, &d)?;
        let product = self.multiply(left, right)?;
        let one = self.single(product);
        self.combine(&[(coefficient, one)])
    }

    /// In the vector back end, each summand is applied by itself.
    fn apply(&mut self, f: &Combination, vector: &Combination) -> Outcome<Combination> {
        if self.backend != Backend::Vector {
            return self.compose(f, vector);
        }
        let mut sum = Vec::with_capacity(f.len());
        for (product, coefficient) in f.iter() {
            let one = self.single(product.clone());
            sum.push((coefficient.clone(), self.compose(&one, vector)?));
        }
        self.combine(&sum)
    }

    /// From the innermost factor outwards, so that words with a common innermost part share it.
    fn product(&mut self, digits: &[bool], f: &Combination, g: &Combination) -> Outcome<Combination> {
        let mut factors = digits.iter().rev().map(|one| if *one { g } else { f });
        let innermost = factors.next().ok_or(Obstacle::IllTyped)?.clone();
        factors.try_fold(innermost, |found, factor| self.compose(factor, &found))
    }

    /// Coefficients of programs have no ε's.
    fn epsilons_of_vector(&self, _: &Combination, _: &mut dyn FnMut(Name)) {}

    fn epsilons_of_operator(&self, _: &Combination, _: &mut dyn FnMut(Name)) {}

    fn change_vector(&mut self, _: &Change, vector: &Combination) -> Outcome<Combination> {
        Ok(vector.clone())
    }

    fn change_operator(&mut self, _: &Change, operator: &Combination) -> Outcome<Combination> {
        Ok(operator.clone())
    }
}
