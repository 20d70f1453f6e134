//! Arrays that are computed when they are asked for, and the few kernels that compute them.
//!
//! Enter at [`Array`]. An array is a row-major space of numbers: given, or described by an operation
//! on [`View`]s of other arrays. A view walks an array along the dimensions of whoever reads it,
//! each by a step of its own, so that permuting, repeating, slicing and picking rows copy nothing.
//! Elementwise work that only one other operation reads becomes part of that operation. Seven kernels
//! suffice: `point` (a small program for every element), `fold` (the same, folded along some dimensions),
//! `product` (matrices, on the kernels of the crate `training`), `segments` (sums of rows by group),
//! `normalise` (softmax and lnorm), `slabs` (rows put elsewhere), and `placed` (arrays put into a larger one).
//!
//! All numbers of a run are of one type, 64 or 32 bits. Results depend on shapes only, never on the
//! number of threads: what is summed in parts is summed in the same parts by whoever does it.

mod array;
mod fold;
mod functions;
mod normalise;
mod number;
mod placed;
mod point;
mod product;
mod recorded;
mod segments;
mod slabs;
mod space;
#[cfg(test)]
mod tests;

pub(crate) use array::{Array, Step, View};
pub(crate) use fold::{Fold, Folding};
pub(crate) use normalise::{Layout, Normalise};
pub use number::Precision;
pub(crate) use number::{Buffer, Number, Pool, larger, smaller, strides, volume};
pub(crate) use placed::{Placed, Places, along};
pub(crate) use point::{Binary, Code, Point};
pub(crate) use product::{Matrices, Product};
pub(crate) use recorded::Recorded;
pub(crate) use segments::Segments;
pub(crate) use slabs::{NOWHERE, Slabs};
pub(crate) use space::advance;
