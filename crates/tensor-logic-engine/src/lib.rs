//! Core form to values: the engine that programs of tensor logic run on.
//!
//! Enter at [`auto::Auto`], which sends rules over relations to [`datalog`] and the rest to [`fast`]. All are an
//! [`Engine`](tensor_logic_core::engine::Engine), as the reference interpreter is.

// The order is that of reading: what stands on kernels, the rules, and what chooses.
pub use tensor_logic_blocks as fast;

pub mod datalog;

pub mod auto;

pub mod plan;

mod bound;

use tensor_logic_core::{
    ast, digits, divergence, engine, error, function, handed, linear, profile, program, room, value,
};
use tensor_logic_rewrites::gradient;
use tensor_logic_weighted as weighted;
