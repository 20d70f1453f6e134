//! Arrays that are computed when they are asked for, and the few kernels that compute them.
//!
//! Enter at [`Array`]. An array is a row-major space of numbers: given, or described by an operation
//! on [`View`]s of other arrays. A view walks an array along the dimensions of whoever reads it,
//! each by a step of its own, so that permuting, repeating, slicing and picking rows copy nothing.
//! Elementwise work that only one other operation reads becomes part of that operation, and operations that share an outer
//! index are done together, strip after strip, on scratch that stays in the cache. Eight kernels
//! suffice: `point` (a small program for every element), `fold` (the same, folded along some dimensions),
//! `product` (matrices, on the kernels of the crate `training`), `segments` (sums of rows by group),
//! `normalise` (softmax and lnorm), `slope` (the adjoint of lnorm), `slabs` (rows put elsewhere), and `placed` (arrays put
//! into a larger one).
//!
//! All numbers of a run are of one type, 64 or 32 bits. Results depend on shapes only, never on the
//! number of threads: what is summed in parts is summed in the same parts by whoever does it.
//!
//! Whoever builds an operation sees to it that its views stay inside their arrays; one that does not panics.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod array;
mod code;
mod constants;
mod fold;
mod force;
mod functions;
mod lanes;
mod lean;
mod normalise;
mod number;
mod placed;
mod point;
mod product;
mod recorded;
mod schedule;
mod segments;
mod slabs;
mod slope;
mod space;
mod spare;
mod strips;
mod tape;
#[cfg(test)]
mod tests;
mod threads;
mod tiles;
mod values;

pub use array::{Along, Array, Step, View};
pub use code::{Binary, Code};
pub use fold::{Fold, Folding};
pub use normalise::{Layout, Normalise};
pub use number::Precision;
pub use number::{Buffer, Number, On, Pool, finite, larger, smaller, strides, volume, zeros};
pub use placed::{Placed, Places, along};
pub use point::Point;
pub use product::{Matrices, Product};
pub use recorded::Recorded;
pub use segments::{Grouping, Segments};
pub use slabs::{NOWHERE, Slabs};
pub use slope::LnormSlope;
pub use space::advance;
pub use tape::{Origin, Tape};
pub use threads::{together, together_here};
