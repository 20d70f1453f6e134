//! The vectors of the objects, of which only dot products are needed.
//!
//! A relation is a sum of tensor products, and so is a rule; a score is a dot product of such sums. It is a sum of
//! products of dot products of vectors, so that the tensors of order k in D dimensions need not be built: the Gram
//! matrix says all.

use super::block::{Room, square};
use crate::error::{Code, Refusal, Result};
use crate::value::{Const, Domain, Symbols};

/// The dot products of all objects.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gram {
    /// [n, n], 1 on the diagonal; `None` where the vectors are orthonormal.
    pub(super) dots: Option<Vec<f64>>,
    /// The largest absolute dot product of two different objects.
    pub(super) coherence: f64,
    /// The dimension.
    pub(super) dimension: u64,
}

/// Orthonormal vectors: as many dimensions as are asked for, or as objects need.
///
/// # Errors
/// `not-certified` where the dimension is below the number of objects.
pub(super) fn orthonormal(dimension: Option<u64>, room: &Room) -> Result<Gram> {
    let objects = room.objects as u64;
    let dimension = dimension.unwrap_or(objects);
    if dimension < objects {
        let message = format!(
            "{objects} orthonormal vectors need as many dimensions, and D is {dimension}; no bound holds"
        );
        let help = format!("`D={objects}` would do, and so would `emb=identity` without `D`");
        return Err(Refusal::new(Code::NotCertified, room.place, message).help(help));
    }
    Ok(Gram { dots: None, coherence: 0.0, dimension })
}

/// Random unit vectors: each depends on the seed and on its object only.
///
/// # Errors
/// `too-large`
pub(super) fn random(
    objects: &[Const],
    symbols: &Symbols,
    dimension: u64,
    seed: u64,
    room: &Room,
) -> Result<Gram> {
    // The vectors, and two Gram matrices: scaled and not.
    let count = objects.len() as u128;
    let bytes = count.saturating_mul(8).saturating_mul(u128::from(dimension).saturating_add(2 * count));
    room.holds(bytes, || format!("{} vectors of {dimension} dimensions", objects.len()))?;
    let width = usize::try_from(dimension).unwrap_or(usize::MAX);
    let mut rows = Vec::with_capacity(objects.len().saturating_mul(width));
    for object in objects {
        let name = format!("embed:{}", symbols.show(*object));
        let mut stream = seeded::Family::new("tensor-logic", &name, seed).stream(0);
        rows.extend((0..width).map(|_| stream.normal()));
    }
    Ok(of_rows(&rows, objects.len(), dimension))
}

/// The rows of a tensor, each scaled to length 1.
///
/// # Errors
/// `out-of-domain` where an object has no row, or one of zeros.
pub(super) fn given(
    objects: &[Const],
    symbols: &Symbols,
    name: &str,
    domains: &[Domain],
    values: &[f64],
    room: &Room,
) -> Result<Gram> {
    let [domain, columns] = domains else { return Ok(of_rows(&[], 0, 0)) };
    let width = columns.len();
    let bytes = (objects.len() as u128).saturating_mul(8).saturating_mul((width + 2 * objects.len()) as u128);
    room.holds(bytes, || format!("the dot products of {} vectors", objects.len()))?;
    let mut rows = Vec::with_capacity(objects.len() * width);
    for object in objects {
        let shown = symbols.show(*object);
        let refuse = |why: &str| {
            let message = format!("`{name}` gives `{shown}` {why}");
            let help = format!("every constant below the query needs a vector: `{name}[{shown}, d] = […]`");
            Err(Refusal::new(Code::OutOfDomain, room.place, message).help(help))
        };
        let row = domain.ordinal(*object).and_then(|at| values.get(at * width..(at + 1) * width));
        let Some(row) = row else { return refuse("no vector") };
        let length: f64 = row.iter().map(|value| value * value).sum();
        if !(length > 0.0 && length.is_finite()) {
            return refuse("a vector without a direction");
        }
        rows.extend_from_slice(row);
    }
    Ok(of_rows(&rows, objects.len(), width as u64))
}

/// The Gram matrix of rows of any length above 0, each scaled to length 1.
fn of_rows(rows: &[f64], count: usize, dimension: u64) -> Gram {
    let width = rows.len().checked_div(count).unwrap_or(0);
    let mut dots = vec![0.0; count * count];
    square(&mut dots, rows, count, width);
    let lengths: Vec<f64> = dots.iter().step_by(count + 1).map(|square| square.sqrt()).collect();
    let mut coherence = 0.0_f64;
    for (a, (row, length)) in dots.chunks_mut(count.max(1)).zip(&lengths).enumerate() {
        for (b, (dot, other)) in row.iter_mut().zip(&lengths).enumerate() {
            *dot = if a == b { 1.0 } else { (*dot / (length * other)).clamp(-1.0, 1.0) };
            if a != b {
                coherence = coherence.max(dot.abs());
            }
        }
    }
    Gram { dots: Some(dots), coherence, dimension }
}
