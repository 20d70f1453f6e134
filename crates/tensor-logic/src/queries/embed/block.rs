//! Numbers over the bindings of some variables, and their products.
//!
//! Every variable runs over all objects, so that a block of k variables has n^k numbers. Sums of products go through
//! one matrix product for each pair of blocks ([`multiply`]); [`Room`] refuses what would not fit before it is made.

use std::borrow::Cow;

use training::kernels::{Mat, MatMut, product};

use crate::ast::Span;
use crate::error::{Code, Refusal, Result};

/// Products of matrices of fewer numbers are not worth a second thread.
const ALONE: usize = 1 << 16;

/// How many objects there are, and how much they may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The objects.
    pub(super) objects: usize,
    /// `--max-bytes`
    pub(super) bytes: u64,
    /// How many blocks may live side by side while a rule is applied.
    pub(super) blocks: usize,
    /// The directive.
    pub(super) place: Span,
}

impl Room {
    /// Whether blocks of so many variables fit beside the Gram matrix.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn fits(&self, variables: usize) -> Result<()> {
        let size = |power: usize| {
            let power = u32::try_from(power).unwrap_or(u32::MAX);
            (self.objects as u128)
                .checked_pow(power)
                .and_then(|count| count.checked_mul(8))
                .unwrap_or(u128::MAX)
        };
        self.holds(size(variables).saturating_mul(self.blocks as u128).saturating_add(size(2)), || {
            format!("the scores of {variables} variables over {} objects", self.objects)
        })
    }

    /// Whether so many bytes are allowed.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn holds(&self, bytes: u128, what: impl FnOnce() -> String) -> Result<()> {
        if bytes <= u128::from(self.bytes) {
            return Ok(());
        }
        let message = format!("{} need {bytes} bytes, and {} are allowed", what(), self.bytes);
        let help = "`--max-bytes` raises the limit; rules of fewer variables, or fewer objects, need less";
        Err(Refusal::new(Code::TooLarge, self.place, message).help(help))
    }
}

/// A number for each binding of some variables to objects, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// The variables, each once.
    pub(super) variables: Vec<usize>,
    /// n^k numbers.
    pub(super) values: Vec<f64>,
}

impl Block {
    /// The same number everywhere.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn filled(variables: Vec<usize>, value: f64, room: &Room) -> Result<Block> {
        room.fits(variables.len())?;
        let count = room.objects.pow(variables.len() as u32);
        Ok(Block { variables, values: vec![value; count] })
    }

    /// Whether it depends on a variable.
    pub(super) fn has(&self, variable: usize) -> bool {
        self.variables.contains(&variable)
    }

    /// The numbers in another order of the variables.
    fn ordered(&self, order: &[usize], objects: usize) -> Cow<'_, [f64]> {
        if order == self.variables {
            return Cow::Borrowed(&self.values);
        }
        let stride = |variable: &usize| {
            let place = self.variables.iter().position(|own| own == variable).unwrap_or(0);
            objects.pow((self.variables.len() - 1 - place) as u32)
        };
        let strides: Vec<usize> = order.iter().map(stride).collect();
        let mut values = Vec::with_capacity(self.values.len());
        let mut at = vec![0usize; order.len()];
        let mut from = 0;
        for _ in 0..self.values.len() {
            values.push(self.values.get(from).copied().unwrap_or(0.0));
            for (digit, stride) in at.iter_mut().zip(&strides).rev() {
                *digit += 1;
                from += stride;
                if *digit < objects {
                    break;
                }
                from -= stride * objects;
                *digit = 0;
            }
        }
        Cow::Owned(values)
    }

    /// The block in this order of its variables.
    pub(super) fn in_order(self, order: &[usize], objects: usize) -> Block {
        let values = match self.ordered(order, objects) {
            Cow::Borrowed(_) => return self,
            Cow::Owned(values) => values,
        };
        Block { variables: order.to_vec(), values }
    }

    /// Summed over a variable.
    pub(super) fn summed(&self, variable: usize, objects: usize) -> Block {
        let Some(place) = self.variables.iter().position(|own| *own == variable) else { return self.clone() };
        let inner = objects.pow((self.variables.len() - 1 - place) as u32);
        let mut values = vec![0.0; self.values.len() / objects.max(1)];
        for (row, sums) in self.values.chunks((inner * objects).max(1)).zip(values.chunks_mut(inner.max(1))) {
            for part in row.chunks(inner.max(1)) {
                sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
            }
        }
        let variables = self.variables.iter().copied().filter(|own| *own != variable).collect();
        Block { variables, values }
    }
}

/// The product of two blocks, summed over the variables of both that are not kept.
///
/// # Errors
/// `too-large`
pub(super) fn multiply(a: &Block, b: &Block, keep: impl Fn(usize) -> bool, room: &Room) -> Result<Block> {
    let n = room.objects;
    let (shared, left): (Vec<usize>, Vec<usize>) = a.variables.iter().partition(|own| b.has(**own));
    let (batch, inner): (Vec<usize>, Vec<usize>) = shared.into_iter().partition(|own| keep(*own));
    let right: Vec<usize> = b.variables.iter().copied().filter(|own| !a.has(*own)).collect();
    let variables = [batch.as_slice(), &left, &right].concat();
    room.fits(variables.len())?;
    let size = |variables: &[usize]| n.pow(variables.len() as u32);
    let (rows, middle, columns) = (size(&left), size(&inner), size(&right));
    let a = a.ordered(&[batch.as_slice(), &left, &inner].concat(), n); // [batch, left, inner]
    let b = b.ordered(&[batch.as_slice(), &inner, &right].concat(), n); // [batch, inner, right]
    let mut values = vec![0.0; size(&variables)]; // [batch, left, right]
    if rows * middle * columns == 0 {
        return Ok(Block { variables, values });
    }
    if (rows, middle, columns) == (1, 1, 1) {
        values.iter_mut().zip(a.iter().zip(b.iter())).for_each(|(value, (a, b))| *value = a * b);
        return Ok(Block { variables, values });
    }
    let parts = a.chunks(rows * middle).zip(b.chunks(middle * columns));
    for (out, (a, b)) in values.chunks_mut(rows * columns).zip(parts) {
        matrices(out, a, b, (rows, middle, columns));
    }
    Ok(Block { variables, values })
}

/// out = a·b, with a of shape [rows, middle] and b of shape [middle, columns].
pub(super) fn matrices(
    out: &mut [f64],
    a: &[f64],
    b: &[f64],
    (rows, middle, columns): (usize, usize, usize),
) {
    if rows * middle * columns > 0 {
        let (a, b) = (Mat::new(a, rows, middle), Mat::new(b, middle, columns));
        product(MatMut::new(out, rows, columns), false, 1.0, a, b, rows * columns > ALONE);
    }
}

/// out = a·aᵀ, with a of shape [rows, columns].
pub(super) fn square(out: &mut [f64], a: &[f64], rows: usize, columns: usize) {
    if rows * columns > 0 {
        let a = Mat::new(a, rows, columns);
        product(MatMut::new(out, rows, rows), false, 1.0, a, a.t(), rows * rows > ALONE);
    }
}
