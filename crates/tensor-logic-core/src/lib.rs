//! The language of tensor logic, from text to core form.
//!
//! **Syntax.** The crate `tensor-logic-syntax`, whose modules stand here under their own names: a text is read into a faithful
//! tree ([`ast`]) by [`lex`] and [`parse`](mod@parse); [`format`](format::format) prints the tree. What is refused is a value
//! ([`error`]) that [`draw`] quotes with its place.
//!
//! **Analysis.** [`analyse`](analyse::analyse) makes the core form of the tree: names resolved ([`names`]), scopes written out
//! ([`lower`]), every place and index with its values ([`domains`]), when a term has a value ([`present`](mod@present)), tensors that depend on each other in components
//! ([`recursion`]).
//!
//! **Core form.** [`program`] is what an engine reads. [`show`] prints it as legal text again.
//!
//! **Seam.** [`engine`] is where values are asked for: of the interpreter of plain loops, which is the crate `tensor-logic-reference`,
//! and of fast engines.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod analysis;
mod core_form;
mod seam;
pub mod show;

pub use crate::analysis::{
    analyse, domains, lower, names, parents, present, read, recursion, source, starts,
};
pub use crate::core_form::{
    carry, digits, divergence, linear, presence, program, rename, signs, value, walk, weighted, windows,
};
pub use crate::seam::{engine, handed, profile, proof, room, start};
pub use tensor_logic_syntax::{ast, draw, error, format, function, include, json, lex, parse};
