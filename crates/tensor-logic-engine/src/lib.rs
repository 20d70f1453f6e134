//! Core form to values: the engine that programs of tensor logic run on.
//!
//! Enter at [`auto::Auto`], which sends rules over relations to [`datalog`] and the rest to [`fast`]. All are an
//! [`Engine`](tensor_logic_core::engine::Engine), as the reference interpreter is.

// The order is that of reading: what stands on kernels, the rules, and what chooses.
pub mod fast;

pub mod datalog;

pub mod auto;

pub mod plan;

mod bound;

mod room;

use tensor_logic_core::{
    ast, digits, divergence, domains, engine, error, function, gradient, linear, presence, present, profile,
    program, rename, start, value, walk, windows,
};
use tensor_logic_kernels as kernels;
use tensor_logic_reference as reference;
use tensor_logic_weighted as weighted;
