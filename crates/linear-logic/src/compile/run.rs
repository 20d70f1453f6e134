//! Straight-line programs executed over any ring.

use num_rational::BigRational;

use super::plan::{Backend, Coefficient, Instruction, Plan};
use crate::denote::{Matrix, Obstacle, Outcome};
use crate::ring::Ring;

/// A value at run time.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<E> {
    /// A multiple of the identity, of any dimension.
    Scalar(E),
    /// A matrix; a vector, or a diagonal operator, is a matrix of one column.
    Matrix(Matrix<E>),
}

/// What a program is run on.
#[derive(Debug, Clone)]
pub struct Inputs<'a, E> {
    /// The operator of each slot; diagonal ones have one column.
    pub operators: &'a [Option<Matrix<E>>],
    /// The coefficients of each slot.
    pub coefficients: &'a [Vec<E>],
    /// The vector, for the vector back end.
    pub vector: Option<&'a [E]>,
}

impl Plan {
    /// The results on operators, coefficients and a vector.
    ///
    /// # Errors
    /// If an input is missing or does not fit, and as for the ring.
    pub fn run<R: Ring>(
        &self,
        ring: &R,
        inputs: &Inputs<'_, R::Element>,
    ) -> Outcome<Vec<Operand<R::Element>>> {
        let mut values: Vec<Operand<R::Element>> = Vec::with_capacity(self.instructions.len());
        let machine = Machine { ring, is_diagonal: self.backend == Backend::Diagonal };
        for instruction in &self.instructions {
            let get = |id: &usize| values.get(*id).ok_or(Obstacle::IllTyped);
            let value = match instruction {
                Instruction::Input { slot } => {
                    let operator = inputs.operators.get(*slot).cloned().flatten();
                    Operand::Matrix(operator.ok_or(Obstacle::IllTyped)?)
                }
                Instruction::Identity => Operand::Scalar(ring.one()),
                Instruction::Zero => Operand::Scalar(ring.zero()),
                Instruction::Mul(a, b) | Instruction::Apply { operator: a, vector: b } => {
                    machine.multiply(get(a)?, get(b)?)?
                }
                Instruction::Add(all) => {
                    let mut all = all.iter().map(get);
                    let first = all.next().ok_or(Obstacle::IllTyped)??.clone();
                    all.try_fold(first, |sum, part| machine.add(&sum, part?))?
                }
                Instruction::Scale { by, of } => {
                    let by = coefficient(ring, by, inputs.coefficients)?;
                    machine.multiply(&Operand::Scalar(by), get(of)?)?
                }
                Instruction::Pow { of, exponent } => {
                    let base = get(of)?.clone();
                    let mut found = Operand::Scalar(ring.one());
                    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
                        found = machine.multiply(&found, &found)?;
                        if exponent >> bit & 1 == 1 {
                            found = machine.multiply(&found, &base)?;
                        }
                    }
                    found
                }
                Instruction::Vector => {
                    let entries = inputs.vector.ok_or(Obstacle::IllTyped)?.to_vec();
                    Operand::Matrix(Matrix { rows: entries.len(), columns: 1, entries })
                }
            };
            values.push(value);
        }
        self.results.iter().map(|id| values.get(*id).cloned().ok_or(Obstacle::IllTyped)).collect()
    }
}

fn coefficient<R: Ring>(ring: &R, by: &Coefficient, given: &[Vec<R::Element>]) -> Outcome<R::Element> {
    let mut total = ring.zero();
    for (c, product) in by {
        let c: &BigRational = c;
        let mut term = ring.fraction(c)?;
        for (slot, index) in product {
            let factor = given.get(*slot).and_then(|slot| slot.get(*index)).ok_or(Obstacle::IllTyped)?;
            term = ring.mul(&term, factor)?;
        }
        total = ring.add(&total, &term)?;
    }
    Ok(total)
}

struct Machine<'a, R> {
    ring: &'a R,
    is_diagonal: bool,
}

impl<R: Ring> Machine<'_, R> {
    fn multiply(&self, a: &Operand<R::Element>, b: &Operand<R::Element>) -> Outcome<Operand<R::Element>> {
        let ring = self.ring;
        Ok(match (a, b) {
            (Operand::Scalar(c), Operand::Scalar(d)) => Operand::Scalar(ring.mul(c, d)?),
            (Operand::Scalar(c), Operand::Matrix(m)) | (Operand::Matrix(m), Operand::Scalar(c)) => {
                let entries = m.entries.iter().map(|entry| ring.mul(c, entry)).collect::<Result<_, _>>()?;
                Operand::Matrix(Matrix { rows: m.rows, columns: m.columns, entries })
            }
            (Operand::Matrix(f), Operand::Matrix(g)) if self.is_diagonal => {
                if f.entries.len() != g.entries.len() {
                    return Err(Obstacle::IllTyped);
                }
                let pairs = f.entries.iter().zip(&g.entries);
                let entries = pairs.map(|(x, y)| ring.mul(x, y)).collect::<Result<_, _>>()?;
                Operand::Matrix(Matrix { rows: f.rows, columns: f.columns, entries })
            }
            (Operand::Matrix(f), Operand::Matrix(g)) => {
                if f.columns != g.rows {
                    return Err(Obstacle::IllTyped);
                }
                let mut entries = Vec::with_capacity(f.rows * g.columns);
                for row in f.entries.chunks(f.columns.max(1)) {
                    for column in 0..g.columns {
                        let mut total = ring.zero();
                        for (k, x) in row.iter().enumerate() {
                            let y = g.get(k, column).ok_or(Obstacle::IllTyped)?;
                            total = ring.add(&total, &ring.mul(x, y)?)?;
                        }
                        entries.push(total);
                    }
                }
                Operand::Matrix(Matrix { rows: f.rows, columns: g.columns, entries })
            }
        })
    }

    fn add(&self, a: &Operand<R::Element>, b: &Operand<R::Element>) -> Outcome<Operand<R::Element>> {
        let ring = self.ring;
        Ok(match (a, b) {
            (Operand::Scalar(c), Operand::Scalar(d)) => Operand::Scalar(ring.add(c, d)?),
            (Operand::Scalar(c), Operand::Matrix(m)) | (Operand::Matrix(m), Operand::Scalar(c)) => {
                let mut sum = m.clone();
                let step = if self.is_diagonal { 1 } else { m.columns + 1 };
                for entry in sum.entries.iter_mut().step_by(step) {
                    *entry = ring.add(entry, c)?;
                }
                Operand::Matrix(sum)
            }
            (Operand::Matrix(f), Operand::Matrix(g)) => {
                if (f.rows, f.columns) != (g.rows, g.columns) {
                    return Err(Obstacle::IllTyped);
                }
                let pairs = f.entries.iter().zip(&g.entries);
                let entries = pairs.map(|(x, y)| ring.add(x, y)).collect::<Result<_, _>>()?;
                Operand::Matrix(Matrix { rows: f.rows, columns: f.columns, entries })
            }
        })
    }
}
